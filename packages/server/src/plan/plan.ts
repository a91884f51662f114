import { copyOf } from '../encoding/copy.js'
import { failed, type ToolFailure } from '../outcome.js'

/** A decision about one request, named by the approval's id or, where that is not known, by the call's. */
export interface Verdict {
  readonly approvalId?: string | undefined
  /** Counts only without an approval id. Ids of calls may repeat in a conversation: it means the last call of that id. */
  readonly toolCallId?: string | undefined
  /** `cancel`: the person walked away. */
  readonly decision: 'approve' | 'deny' | 'cancel'
  readonly reason?: string | undefined
  /** How far a yes reaches. Default `once`. */
  readonly scope?: 'once' | 'session' | undefined
}

/** A call to plan. */
export interface PlannableCall {
  readonly toolCallId: string
  /** Of the request, where the person was asked. */
  readonly approvalId?: string | undefined
}

export interface PlanPolicy<Call extends PlannableCall = PlannableCall> {
  /** A call that waits for a verdict nobody gave: leave it open, or close it as cancelled. */
  readonly onMissingVerdict: 'pending' | 'cancel'
  /** Why calls without a verdict are cancelled. */
  readonly reason?: string | undefined
  /**
   * Whether a call needs a verdict; asked once for each call. One that throws, or answers anything but `false`, means yes. Default: a call that has an approval id
   * needs one, any other is safe.
   */
  readonly needsApproval?: ((call: Call) => boolean) | undefined
}

/** A call that runs; `verdict` is absent for a safe one. */
export interface ApprovedCall<Call extends PlannableCall, V extends Verdict = Verdict> {
  readonly call: Call
  readonly verdict?: V
}

/** A call that does not run, and what its result is instead. */
export interface RejectedCall<Call extends PlannableCall, V extends Verdict = Verdict> {
  readonly call: Call
  readonly failure: ToolFailure
  readonly verdict?: V
}

/** Plain data: what is to run, what is not, and what waits. Nothing has happened yet. */
export interface ApprovalPlan<Call extends PlannableCall, V extends Verdict = Verdict> {
  readonly approved: readonly ApprovedCall<Call, V>[]
  readonly rejected: readonly RejectedCall<Call, V>[]
  readonly pending: readonly Call[]
}

/**
 * Sorts calls by their verdicts; every list keeps the order of the calls. The first verdict for a call wins, verdicts for
 * others are ignored, and a safe call runs whatever is said about it. Give it **verified** verdicts only: it believes them.
 */
export function planApprovals<Call extends PlannableCall, V extends Verdict>(
  calls: readonly Call[],
  verdicts: readonly V[],
  policy: PlanPolicy<Call>,
): ApprovalPlan<Call, V> {
  const verdictOf = matchVerdicts(calls, verdicts)
  const approved: ApprovedCall<Call, V>[] = []
  const rejected: RejectedCall<Call, V>[] = []
  const pending: Call[] = []
  for (const call of calls) {
    if (!isGated(call, policy)) {
      approved.push({ call })
      continue
    }
    const verdict = verdictOf(call)
    if (verdict?.decision === 'approve') approved.push({ call, verdict })
    else if (verdict !== undefined) rejected.push({ call, failure: failureOf(verdict), verdict })
    else if (policy.onMissingVerdict === 'cancel')
      rejected.push({ call, failure: failed('cancelled', policy.reason) })
    else pending.push(call)
  }
  return { approved, rejected, pending }
}

function isGated<Call extends PlannableCall>(call: Call, { needsApproval }: PlanPolicy<Call>): boolean {
  if (needsApproval === undefined) return call.approvalId !== undefined
  try {
    const needed: unknown = needsApproval('input' in call ? { ...call, input: copyOf(call.input) } : call)
    return needed !== false
  } catch {
    return true
  }
}

function failureOf({ decision, reason }: Verdict): ToolFailure {
  return failed(decision === 'deny' ? 'denied' : 'cancelled', reason)
}

function matchVerdicts<Call extends PlannableCall, V extends Verdict>(
  calls: readonly Call[],
  verdicts: readonly V[],
): (call: Call) => V | undefined {
  const byApproval = new Map<string, V>()
  const byCall = new Map<string, V>()
  for (const verdict of verdicts) {
    const [known, id] =
      verdict.approvalId === undefined ? [byCall, verdict.toolCallId] : [byApproval, verdict.approvalId]
    if (id !== undefined && !known.has(id)) known.set(id, verdict)
  }
  const lastOfId = new Map(calls.map((call) => [call.toolCallId, call]))
  return (call) => {
    const named = call.approvalId === undefined ? undefined : byApproval.get(call.approvalId)
    return named ?? (lastOfId.get(call.toolCallId) === call ? byCall.get(call.toolCallId) : undefined)
  }
}
