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
  const renew = () => {
    ledger.renew(ref, holder, leaseMs).then(
      ({ status }) => {
        if (status === 'lost') clearInterval(timer)
      },
      (error: unknown) => scope.settings.warn('A lease could not be renewed.', error),
    )
  }
  const timer = setInterval(renew, leaseMs / 3)
  return () => clearInterval(timer)
}

/** Ends a claim: the outcome goes into the ledger and the audit trail. */
export async function complete(scope: RunScope, claim: Claim, outcome: ToolOutcome): Promise<void> {
  await record(scope, claim, outcome)
  await audit(scope, { event: 'completed', ...auditNames(claim), outcome: outcome.type })
}

const ATTEMPTS = 3

/** Records an outcome. It is told to the person even where it cannot be recorded; the row then lapses to interrupted. */
export async function record(
  { settings: { approvals, warn } }: RunScope,
  { ref, holder, call }: Claim,
  outcome: ToolOutcome,
): Promise<void> {
  const { name } = call.function
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      const { status } = await approvals.ledger.complete(ref, holder, outcome)
      if (status !== 'recorded') warn(`The outcome of ${name} was not recorded: ${status}.`)
      return
    } catch (error) {
      warn(`The outcome of ${name} could not be recorded (attempt ${attempt}).`, error)
    }
  }
}

/** What the audit trail calls a claim by. */
export function auditNames({ ref: { approvalId }, call }: Claim) {
  return { approvalId, toolCallId: call.id, toolName: call.function.name }
}
