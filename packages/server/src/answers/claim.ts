import type { ToolCall } from '@countersign/core'
import { claimAndWait } from '../ledger/claim-and-wait.js'
import type { ApprovalRef, ApprovalState, ClaimResult, LedgerAnswer, ToolOutcome } from '../ledger/ledger.js'
import { type AuditedScope, type AuditStep, audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'
import { lookUp } from './look-up.js'

/** An approval that this run holds in the ledger, and its call. */
export interface Claim {
  readonly ref: ApprovalRef
  readonly holder: string
  readonly call: ToolCall
}

export type ClaimedOrNot = ClaimResult | { readonly status: 'unavailable' }

/** Claims an answer. While another run carries out the same answer, waits for its outcome. */
export async function claimAnswer(
  scope: RunScope,
  ref: ApprovalRef,
  answer: LedgerAnswer,
  holder: string,
): Promise<ClaimedOrNot> {
  const { approvals, warn } = scope.settings
  const { leaseMs, waitMs, ledger } = approvals
  try {
    return await claimAndWait(ledger, ref, answer, holder, { leaseMs, waitMs, signal: scope.stop })
  } catch (error) {
    warn('The ledger could not be reached.', error)
    return { status: 'unavailable' }
  }
}

/** The answer in the ledger and its state. Undefined if there is none, or the ledger can't be read now. */
export async function firstAnswer(
  scope: Pick<RunScope, 'settings'>,
  ref: ApprovalRef,
): Promise<Exclude<ApprovalState, { phase: 'issued' }> | undefined> {
  const entry = await lookUp(scope, ref)
  return entry === undefined || entry === 'unavailable' || entry.state.phase === 'issued'
    ? undefined
    : entry.state
}

/** Extends the lease of a claim until the returned function is called. */
export function keepLease(scope: RunScope, { ref, holder }: Claim): () => void {
  const { ledger, leaseMs } = scope.settings.approvals
  const renew = async () => {
    try {
      const { status } = await ledger.renew(ref, holder, leaseMs)
      if (status === 'lost') clearInterval(timer)
    } catch (error) {
      scope.settings.warn('A lease could not be renewed.', error)
    }
  }
  const timer = setInterval(() => void renew(), leaseMs / 3)
  return () => clearInterval(timer)
}

/**
 * Whether the lease is held at this moment: the ledger has just renewed it, and replied within the lease. If the ledger can't tell, the
 * lease is not held.
 */
export async function holdsLease({ settings }: RunScope, { ref, holder, call }: Claim): Promise<boolean> {
  const { approvals, now, warn } = settings
  const { ledger, leaseMs } = approvals
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const asked = now()
    try {
      if ((await ledger.renew(ref, holder, leaseMs)).status === 'lost') return false
      // The ledger counts from the moment of the request, or later.
      if (now() < asked + leaseMs) return true
    } catch (error) {
      warn(`The lease of ${call.function.name} could not be renewed (attempt ${attempt}).`, error)
    }
  }
  return false
}

/** Ends a claim: records the outcome in the ledger and the audit trail. */
export async function complete(scope: RunScope, claim: Claim, outcome: ToolOutcome): Promise<Recorded> {
  const recorded = await record(scope, claim, outcome)
  await audit(scope, { event: 'completed', ...auditNames(claim), outcome: outcome.type })
  return recorded
}

const ATTEMPTS = 3

/** Whether an outcome was recorded while the lease was held; `unknown` if the ledger may have it, but did not confirm in time. */
export type Recorded = 'held' | 'lost' | 'unknown'

/** Records an outcome. The user learns of what has run even if it can't be recorded; the row then becomes interrupted. */
export async function record(scope: RunScope, claim: Claim, outcome: ToolOutcome): Promise<Recorded> {
  const { ref, holder, call } = claim
  const { approvals, warn } = scope.settings
  const { name } = call.function
  let isInDoubt = false
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      const result = await approvals.ledger.complete(ref, holder, outcome)
      if (result.status === 'recorded') return result.late ? 'lost' : 'held'
      // An earlier attempt may have recorded it, with its reply lost.
      if (isInDoubt && (await hasOutcome(scope, claim, outcome))) return 'held'
      warn(`The outcome of ${name} was not recorded: ${result.status}.`)
      return isInDoubt ? 'unknown' : 'lost'
    } catch (error) {
      isInDoubt = true
      warn(`The outcome of ${name} could not be recorded (attempt ${attempt}).`, error)
    }
  }
  return 'unknown'
}

/** Whether the ledger has this outcome, as a repeated answer would get it. */
async function hasOutcome({ settings }: RunScope, { ref }: Claim, outcome: ToolOutcome): Promise<boolean> {
  const { state } = (await settings.approvals.ledger.lookup(ref)) ?? {}
  return state?.phase === 'done' && !state.late && state.outcome.type === outcome.type
}

export function auditNames({ ref: { approvalId }, call }: Pick<Claim, 'ref' | 'call'>) {
  return { approvalId, toolCallId: call.id, toolName: call.function.name }
}

export async function auditSettled(
  scope: AuditedScope,
  step: Omit<AuditStep, 'event'> & ReturnType<typeof auditNames>,
  { decision }: LedgerAnswer,
): Promise<void> {
  const { approvalId, toolCallId, toolName } = step
  const outcome = decision === 'deny' ? 'denied' : 'cancelled'
  await audit(scope, { event: 'claimed', ...step })
  await audit(scope, { event: 'completed', approvalId, toolCallId, toolName, outcome })
}
