import type { Message } from '@countersign/core'
import { type Asking, requestApproval } from '../gate/ask.js'
import type { ComputedPreview } from '../gate/preview.js'
import type { ApprovalRecord, LedgerEntry } from '../ledger/ledger.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import type { TokenClaims } from '../tokens/token.js'
import type { ReadyCall } from '../tools/call.js'

/** A settled request whose preview had changed, and the id of the one that replaces it. */
export interface Replaced {
  readonly claims: TokenClaims
  /** The settled request, if the ledger has it. */
  readonly record: ApprovalRecord | undefined
  readonly next: string
  readonly messages: readonly Message[]
  /** The preview now, if it was computed already. */
  readonly preview?: ComputedPreview | undefined
}

/**
 * Requests approval again for a call whose preview has changed. The call is as the model made it, without edits: the verified token of
 * the settled request signs exactly these arguments. Any run that finds the new request missing may do this: its id is settled, so the
 * ledger takes only one.
 */
export function requestAgain(
  scope: RunScope,
  call: ReadyCall,
  { claims, record, next, messages, preview }: Replaced,
): Promise<Asking> {
  return requestApproval(scope, call, gateContext(scope, call.id, messages), {
    approvalId: next,
    scopes: claims.scopes,
    shown: record?.shown,
    again: {
      count: Math.max(claims.again, record?.earlier?.length ?? 0) + 1,
      earlier: [...(record?.earlier ?? []), record?.approvalId ?? claims.approvalId],
      previous: record?.preview,
      preview,
    },
  })
}

/** The id of the request that replaces this one; undefined if it was not replaced. */
export function nextOf(entry: LedgerEntry | undefined | 'unavailable'): string | undefined {
  if (entry === undefined || entry === 'unavailable' || entry.state.phase !== 'done') return undefined
  const { outcome } = entry.state
  return outcome.type === 'cancelled' ? outcome.next : undefined
}
