import type { AuditEntry } from '../ledger/ledger.js'
import { keyedHash } from '../tokens/keys.js'
import { hashOwner } from '../tokens/token.js'
import type { RunScope } from './scope.js'

/** What the engine says about one step; times, owner and hashes are added here. */
export interface AuditStep extends Omit<AuditEntry, 'at' | 'ownerHash' | 'threadId' | 'argumentsHash'> {
  /** RFC 8785 text; only its keyed hash is written. */
  readonly arguments?: string | undefined
}

/** Appends to the ledger's audit trail. A trail that cannot be written warns and stops nothing. */
export async function audit(
  scope: Pick<RunScope, 'settings' | 'owner' | 'threadId'>,
  step: AuditStep,
): Promise<void> {
  const { approvals, now, warn } = scope.settings
  try {
    const keys = await approvals.keyring.current()
    const { arguments: text, ...entry } = step
    await approvals.ledger.audit({
      ...entry,
      at: now(),
      ownerHash: await hashOwner(keys.owner, scope.owner),
      threadId: scope.threadId,
      ...(text !== undefined && { argumentsHash: await keyedHash(keys.args, text) }),
    })
  } catch (error) {
    warn('The audit trail could not be written.', error)
  }
}
