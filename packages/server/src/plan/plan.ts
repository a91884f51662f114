import type { AssistantMessage, Message, ToolCall } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { copyOf } from '../encoding/copy.js'
import { isProviderExecuted, resultMessage, withResults } from '../history/history.js'
import { failed, type ToolFailure } from '../outcome.js'
import type { ToolOutputEvent } from './events.js'

/** A decision about one call, identified by the approval's id or, if that is not known, by the call's. */
export interface Verdict {
  readonly approvalId?: string | undefined
  /** Used only without an approval id. Ids of calls may repeat in a conversation: the last call with this id is meant. */
  readonly toolCallId?: string | undefined
  /** `cancel`: the user moved on. */
  readonly decision: 'approve' | 'deny' | 'cancel'
  readonly reason?: string | undefined
  /** What an approval covers. Default `once`. */
  readonly scope?: 'once' | 'session' | undefined
}

/** A call to plan. */
export interface PlannableCall {
  readonly toolCallId: string
  /** The approval's id, if approval was requested. */
  readonly approvalId?: string | undefined
}

export interface PlanPolicy<Call extends PlannableCall = PlannableCall> {
  /** What to do with a call whose verdict is missing: leave it open, or close it as cancelled. */
  readonly onMissingVerdict: 'pending' | 'cancel'
  /** Why calls without a verdict are cancelled. */
  readonly reason?: string | undefined
  /**
   * Whether a call needs approval; called once per call. Throwing, or returning anything but `false`, means yes. Default: calls with
   * an approval id need it, others don't.
   */
  readonly needsApproval?: ((call: Call) => boolean) | undefined
}

/** A call that runs; `verdict` is absent if it needs no approval. */
export interface ApprovedCall<Call extends PlannableCall, V extends Verdict = Verdict> {
  readonly call: Call
  readonly verdict?: V
}

/** A call that does not run, and its result instead. */
export interface RejectedCall<Call extends PlannableCall, V extends Verdict = Verdict> {
  readonly call: Call
  readonly failure: ToolFailure
  readonly verdict?: V
}

/** Plain data: which calls run, don't run or wait. Nothing has happened yet. */
export interface ApprovalPlan<Call extends PlannableCall, V extends Verdict = Verdict> {
  readonly approved: readonly ApprovedCall<Call, V>[]
  readonly rejected: readonly RejectedCall<Call, V>[]
  readonly pending: readonly Call[]
}

/**
 * Sorts calls by their verdicts; every list keeps the order of the calls. The first verdict for a call wins, verdicts for unknown
 * calls are ignored, and a call that needs no approval runs whatever its verdict. Pass only **verified** verdicts: they are trusted.
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
    else if (verdict !== undefined) {
      const failure = failed(verdict.decision === 'deny' ? 'denied' : 'cancelled', verdict.reason)
      rejected.push({ call, failure, verdict })
    } else if (policy.onMissingVerdict === 'cancel')
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

/** A tool call for planners and their predicates. */
export interface PlannedCall extends PlannableCall {
  readonly toolName: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
  /** The arguments, parsed strictly; `undefined` if they can't be. Such a call never runs, whatever the decision is. */
  readonly input: unknown
}

/** The calls of a model's turn that this server runs. */
export function plannedCalls(turn: Message | undefined): readonly PlannedCall[] {
  if (turn?.role !== 'assistant') return []
  return (turn.toolCalls ?? []).filter((call) => !isProviderExecuted(call)).map(plannedCall)
}

function plannedCall({ id, function: { name, arguments: text } }: ToolCall): PlannedCall {
  const read = readArguments(text)
  return { toolCallId: id, toolName: name, arguments: text, input: read.ok ? read.value : undefined }
}

/** Appends one more turn of the model: the turn, followed by the results of its calls, in their order. */
export function appendTurn(
  history: readonly Message[],
  turn: AssistantMessage,
  outputs: readonly ToolOutputEvent[],
): readonly Message[] {
  const results = outputs.map(({ toolCallId, outcome }) =>
    resultMessage(`result_${turn.id}_${toolCallId}`, toolCallId, outcome),
  )
  return [...history, ...withResults([turn], results)]
}
