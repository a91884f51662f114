import type { ApprovalDecided, Message, ToolCall } from '@countersign/core'
import { withoutApproval } from './history.js'

/**
 * Calls that the model's provider may run now: their approval was verified in this run. Keyed by identity with the calls of the
 * accompanying history, so that nothing a client sends can pose as one.
 */
export type ForwardedCalls = ReadonlyMap<ToolCall, Forwarded>

/** The answer that lets the provider run a call, if the ledger returned it. */
export interface Forwarded {
  readonly decided?: ApprovalDecided | undefined
}

export interface ForwardedHistory {
  readonly messages: readonly Message[]
  readonly forwarded: ForwardedCalls
}

/** The history with the chosen calls in the form that {@link prepareMessagesForModel} passes on unchanged. */
export function forwardCalls(
  messages: readonly Message[],
  chosen: (call: ToolCall) => Forwarded | undefined,
): ForwardedHistory {
  const forwarded = new Map<ToolCall, Forwarded>()
  const forward = (call: ToolCall) => {
    const allowed = chosen(call)
    if (allowed === undefined) return call
    const bare = withoutApproval(call)
    forwarded.set(bare, allowed)
    return bare
  }
  return {
    messages: messages.map((message) =>
      message.role === 'assistant' && message.toolCalls?.some((call) => chosen(call) !== undefined)
        ? { ...message, toolCalls: message.toolCalls.map(forward) }
        : message,
    ),
    forwarded,
  }
}
