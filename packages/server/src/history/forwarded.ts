import type { Message, ToolCall } from '@countersign/core'
import { withoutApproval } from './history.js'

/**
 * Calls that the model's provider runs and may run now: their approval was verified in this run. Calls as they are in the history
 * beside it, by identity, so that nothing a client sends can stand for one.
 */
export type ForwardedCalls = ReadonlySet<ToolCall>

export interface ForwardedHistory {
  readonly messages: readonly Message[]
  readonly forwarded: ForwardedCalls
}

/** The history with the chosen calls in the form that {@link prepareMessagesForModel} passes on as they are. */
export function forwardCalls(
  messages: readonly Message[],
  chosen: (call: ToolCall) => boolean,
): ForwardedHistory {
  const forwarded = new Set<ToolCall>()
  const forward = (call: ToolCall) => {
    if (!chosen(call)) return call
    const bare = withoutApproval(call)
    forwarded.add(bare)
    return bare
  }
  return {
    messages: messages.map((message) =>
      message.role === 'assistant' && message.toolCalls?.some(chosen)
        ? { ...message, toolCalls: message.toolCalls.map(forward) }
        : message,
    ),
    forwarded,
  }
}
