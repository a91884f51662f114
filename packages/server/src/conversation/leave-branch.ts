import type { Message, ToolMessage } from '@countersign/core'
import type { KnownMessage } from '../threads/known-threads.js'
import type { StoredMessage } from '../threads/thread-store.js'
import { chain } from './branch.js'
import { sharedBy } from './versions.js'

/** Closes the calls without a result in these of the messages, and returns the results: no request on a branch that was left can be answered. */
export type CloseCalls = (
  messages: readonly Message[],
  ids: ReadonlySet<string>,
) => Promise<readonly ToolMessage[]>

/** Closes what is open on the branch `shown` where `next` differs from it. Returns what must be stored on it. */
export async function leaveBranch(
  shown: readonly KnownMessage[],
  next: readonly KnownMessage[],
  closeCalls: CloseCalls,
): Promise<readonly StoredMessage[]> {
  const left = shown.slice(sharedBy(shown, next))
  if (left.length === 0) return []
  const messages = shown.map(({ message }) => message)
  const closed = await closeCalls(messages, new Set(left.map(({ id }) => id)))
  return chain(closed, left.at(-1)?.id ?? null)
}
