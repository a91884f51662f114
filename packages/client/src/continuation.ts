import {
  areAllToolsComplete,
  type ChatState,
  executingCalls,
  hasUnsentAnswer,
  type QueuedMessage,
  visibleRequests,
} from '@countersign/core'
import type { PendingMessageMode } from './options.js'

/**
 * Whether the conversation goes on by itself: the turn has an answer or a tool's output that the server was not sent, and every call
 * of the turn is answered or finished. Where a stream is open the caller does not ask (design, continuation).
 */
export function shouldContinue(state: ChatState): boolean {
  return hasUnsentAnswer(state) && areAllToolsComplete(state)
}

/**
 * Whether a message may go out now that no stream is open: what the person saw when writing it gives way to it or is waited for, as
 * they chose; a request that came later is always waited for. Client tools at work are waited for too.
 */
export function mayLeave(
  state: ChatState,
  item: Pick<QueuedMessage, 'visible'>,
  mode: PendingMessageMode,
): boolean {
  if (executingCalls(state).length > 0) return false
  const pending = visibleRequests(state)
  if (mode !== 'cancel') return pending.length === 0
  const seen = new Set(item.visible)
  return pending.every((id) => seen.has(id))
}
