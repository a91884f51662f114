import type { Message } from '@countersign/core'
import type { LedgerAnswer } from '../ledger/ledger.js'
import type { AuditStep } from '../scope/audit.js'
import type { ReadyCall } from '../tools/call.js'
import type { VerifiedVerdict } from './verdicts.js'

/** An approved call that this run has claimed. */
export interface ClaimedCall {
  readonly verdict: VerifiedVerdict
  readonly call: ReadyCall
  /** The call as it was asked about. */
  readonly asked: ReadyCall
  readonly answer: LedgerAnswer
  readonly holder: string
  /** The ledger's, from the claim; for the grant it may lead to. */
  readonly revision: number
  readonly messages: readonly Message[]
  /** What the audit trail is told of the claim; nothing where it was told before. */
  readonly told?: Omit<AuditStep, 'event'> | undefined
}
