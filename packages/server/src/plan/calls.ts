import type { AssistantMessage, Message, ToolCall } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { isProviderExecuted, resultMessage, withResults } from '../history/history.js'
import type { ToolOutputEvent } from './events.js'
import type { PlannableCall } from './plan.js'

/** A tool call for planners and their predicates. */
export interface PlannedCall extends PlannableCall {
  readonly toolName: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
  /** The arguments, parsed strictly; `undefined` if they can't be. Such a call never runs, whatever the decision is. */
  readonly input: unknown
}

/** The calls of a model's turn that this server runs. */
export function plannedCalls(turn: Message | undefined): readonly PlannedCall[] {
  if (turn?.role !== 'assistant') return []
  return (turn.toolCalls ?? []).filter((call) => !isProviderExecuted(call)).map(plannedCall)
}

function plannedCall({ id, function: { name, arguments: text } }: ToolCall): PlannedCall {
  const read = readArguments(text)
  return { toolCallId: id, toolName: name, arguments: text, input: read.ok ? read.value : undefined }
}

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
