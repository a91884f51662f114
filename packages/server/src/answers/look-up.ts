import type { ApprovalRef, LedgerEntry } from '../ledger/ledger.js'
import type { RunScope } from '../scope/scope.js'
import { nextOf } from './ask-again.js'

export async function lookUp(
  { settings }: Pick<RunScope, 'settings'>,
  ref: ApprovalRef,
): Promise<LedgerEntry | undefined | 'unavailable'> {
  try {
    return await settings.approvals.ledger.lookup(ref)
  } catch (error) {
    settings.warn('The ledger could not be read.', error)
    return 'unavailable'
  }
}

/** The same, or the request that has replaced it since, if the ledger still has that. */
export async function lookUpLast(
  scope: Pick<RunScope, 'settings'>,
  ref: ApprovalRef,
): Promise<LedgerEntry | undefined | 'unavailable'> {
  const entry = await lookUp(scope, ref)
  const next = nextOf(entry)
  return next === undefined ? entry : ((await lookUpLast(scope, { ...ref, approvalId: next })) ?? entry)
}
