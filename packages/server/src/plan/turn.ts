import type { AssistantMessage, Message } from '@countersign/core'
import { resultMessage, withResults } from '../history/history.js'
import type { ToolOutputEvent } from './events.js'

/** Appends one more turn of the model: the turn, followed by the results of its calls, in their order. */
export function appendTurn(
  history: readonly Message[],
  turn: AssistantMessage,
  outputs: readonly ToolOutputEvent[],
): readonly Message[] {
  const results = outputs.map(({ toolCallId, outcome }) =>
    resultMessage(`result_${turn.id}_${toolCallId}`, toolCallId, outcome),
  )
  return [...history, ...withResults([turn], results)]
}
