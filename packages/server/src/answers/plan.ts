import { failed, type ToolFailure } from '@countersign/core'

/** A decision about one request, named by the approval's id or, where that is not known, by the call's. */
export type Verdict =
  | { readonly approvalId?: string; readonly toolCallId?: string; readonly decision: 'approve' }
  | {
      readonly approvalId?: string
      readonly toolCallId?: string
      readonly decision: 'deny' | 'cancel'
      readonly reason?: string | undefined
    }

/** A call to plan. Without an approval id nothing was asked: it is safe and runs. */
export interface PlannableCall {
  readonly toolCallId: string
  readonly approvalId?: string | undefined
}

export interface PlanPolicy {
  /** A call that waits for a verdict nobody gave: leave it open, or close it as cancelled. */
  readonly onMissingVerdict: 'pending' | 'cancel'
  readonly reason?: string | undefined
}

export interface ApprovalPlan<Call extends PlannableCall, V extends Verdict> {
  /** To run; `verdict` is absent for a safe call. */
  readonly approved: readonly { readonly call: Call; readonly verdict?: V }[]
  readonly rejected: readonly { readonly call: Call; readonly failure: ToolFailure; readonly verdict?: V }[]
  readonly pending: readonly Call[]
}

/**
 * Sorts calls by their verdicts; every list keeps the order of the calls. The first verdict for a call wins, verdicts for
 * others are ignored. Give it **verified** verdicts only: it believes them.
 */
export function planApprovals<Call extends PlannableCall, V extends Verdict>(
  calls: readonly Call[],
  verdicts: readonly V[],
  policy: PlanPolicy,
): ApprovalPlan<Call, V> {
  const byApproval = firstBy(verdicts, (verdict) => verdict.approvalId)
  const byCall = firstBy(verdicts, (verdict) =>
    verdict.approvalId === undefined ? verdict.toolCallId : undefined,
  )
  const approved: { call: Call; verdict?: V }[] = []
  const rejected: { call: Call; failure: ToolFailure; verdict?: V }[] = []
  const pending: Call[] = []
  for (const call of calls) {
    if (call.approvalId === undefined) {
      approved.push({ call })
      continue
    }
    const verdict = byApproval.get(call.approvalId) ?? byCall.get(call.toolCallId)
    if (verdict === undefined && policy.onMissingVerdict === 'pending') pending.push(call)
    else if (verdict === undefined) rejected.push({ call, failure: failed('cancelled', policy.reason) })
    else if (verdict.decision === 'approve') approved.push({ call, verdict })
    else rejected.push({ call, failure: failed(kinds[verdict.decision], verdict.reason), verdict })
  }
  return { approved, rejected, pending }
}

const kinds = { deny: 'denied', cancel: 'cancelled' } as const

function firstBy<V>(verdicts: readonly V[], key: (verdict: V) => string | undefined): ReadonlyMap<string, V> {
  const first = new Map<string, V>()
  for (const verdict of verdicts) {
    const name = key(verdict)
    if (name !== undefined && !first.has(name)) first.set(name, verdict)
  }
  return first
}
