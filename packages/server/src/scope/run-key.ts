import { ledgerKey } from '../ledger/ledger.js'

/**
 * Who may rejoin a run and answer into it: a user, or, if the application has no users, the one socket
 * that started it.
 */
export type Holder =
  | { readonly kind: 'subject'; readonly id: string }
  | { readonly kind: 'socket'; readonly id: string }

/** The key of a run in the run log and the answer channel. Each part includes its length, so that different runs never share a key. */
export function runKey(holder: Holder, threadId: string, runId: string): string {
  return ledgerKey(holder.kind, holder.id, threadId, runId)
}
