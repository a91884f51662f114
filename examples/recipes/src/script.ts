import type { RunAgentInput } from '@countersign/core'
import type { ModelEvent } from '@countersign/server'

/** A turn in which the model only writes text. */
export function says(text: string): readonly ModelEvent[] {
  return [
    { type: 'text-delta', delta: text },
    { type: 'finish', reason: 'stop' },
  ]
}

/** A turn in which the model calls tools. */
export function calls(
  ...called: readonly (readonly [id: string, tool: string, input: unknown])[]
): readonly ModelEvent[] {
  const proposed = called.map(
    ([id, name, input]): ModelEvent => ({ type: 'tool-call', id, name, arguments: JSON.stringify(input) }),
  )
  return [...proposed, { type: 'finish', reason: 'tool_calls' }]
}

/** The input of a run with these messages. */
export function inputOf(threadId: string, messages: RunAgentInput['messages']): RunAgentInput {
  return {
    protocolVersion: '1.0',
    threadId,
    runId: crypto.randomUUID(),
    messages,
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
  }
}
