import type { ToolCall } from '@countersign/core'
import type { ApprovalRef, ToolOutcome } from '../ledger/ledger.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'

/** An approval that this run holds in the ledger, and the call that it is about. */
export interface Claim {
  readonly ref: ApprovalRef
  readonly holder: string
  readonly call: ToolCall
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
 * Whether the lease is held at this moment: the ledger has just renewed it, and its word is not older than the lease. A ledger that cannot
 * say means no.
 */
export async function holdsLease({ settings }: RunScope, { ref, holder, call }: Claim): Promise<boolean> {
  const { approvals, now, warn } = settings
  const { ledger, leaseMs } = approvals
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const asked = now()
    try {
      if ((await ledger.renew(ref, holder, leaseMs)).status === 'lost') return false
      // the ledger counts from when it was asked, or later
      if (now() < asked + leaseMs) return true
    } catch (error) {
      warn(`The lease of ${call.function.name} could not be renewed (attempt ${attempt}).`, error)
    }
  }
  return false
}

/** Ends a claim: the outcome goes into the ledger and the audit trail. */
export async function complete(scope: RunScope, claim: Claim, outcome: ToolOutcome): Promise<void> {
  await record(scope, claim, outcome)
  await audit(scope, { event: 'completed', ...auditNames(claim), outcome: outcome.type })
}

const ATTEMPTS = 3

/** Whether an outcome was recorded while the lease was held; `unknown` where the ledger may have it and did not say so in time. */
export type Recorded = 'held' | 'lost' | 'unknown'

/** Records an outcome. What has run is told to the person even where it cannot be recorded; the row then lapses to interrupted. */
export async function record(scope: RunScope, claim: Claim, outcome: ToolOutcome): Promise<Recorded> {
  const { ref, holder, call } = claim
  const { approvals, warn } = scope.settings
  const { name } = call.function
  let isInDoubt = false
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      const result = await approvals.ledger.complete(ref, holder, outcome)
      if (result.status === 'recorded') return result.late ? 'lost' : 'held'
      // an attempt before may have done it, whose word was lost
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

/** Whether this is how the call ended, as a repeat of the answer would be told. */
async function hasOutcome({ settings }: RunScope, { ref }: Claim, outcome: ToolOutcome): Promise<boolean> {
  const { state } = (await settings.approvals.ledger.lookup(ref)) ?? {}
  return state?.phase === 'done' && !state.late && state.outcome.type === outcome.type
}

/** What the audit trail calls a claim by. */
export function auditNames({ ref: { approvalId }, call }: Claim) {
  return { approvalId, toolCallId: call.id, toolName: call.function.name }
}
