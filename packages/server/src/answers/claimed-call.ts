import type { Message } from '@countersign/core'
import type { LedgerAnswer } from '../ledger/ledger.js'
import type { AuditStep } from '../scope/audit.js'
import type { ReadyCall } from '../tools/call.js'
import type { VerifiedVerdict } from './verdicts.js'

/** An approved call that this run has claimed. */
export interface ClaimedCall {
  readonly verdict: VerifiedVerdict
  readonly call: ReadyCall
  /** The call as it was shown for approval. */
  readonly asked: ReadyCall
  readonly answer: LedgerAnswer
  readonly holder: string
  /** The ledger's revision from the claim, for the grant that may follow. */
  readonly revision: number
  readonly messages: readonly Message[]
  /** What the audit trail records of the claim. Absent if it is recorded already. */
  readonly told?: Omit<AuditStep, 'event'> | undefined
}
