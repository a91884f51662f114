import { readDecision } from '../answers/answers.js'
import type { AnswerSource } from '../channel/answer-queue.js'
import { usableIds } from '../encoding/ids.js'
import { anySignal, onAbort } from '../encoding/signals.js'
import { failed } from '../outcome.js'
import { createChannel, type Outlet } from '../scope/channel.js'
import type { ApprovalRequestedEvent } from './events.js'
import {
  type ApprovedCall,
  type PlannedCall,
  planApprovals,
  type RejectedCall,
  type Verdict,
} from './plan.js'

/** A call that waits for approval. */
export type AskedCall<Call extends PlannedCall = PlannedCall> = Call & { readonly approvalId: string }

/** The outcome of the wait for one call. */
export type DecidedCall<Call extends PlannedCall = PlannedCall> =
  | ({ readonly kind: 'approved' } & ApprovedCall<AskedCall<Call>>)
  | ({ readonly kind: 'rejected' } & RejectedCall<AskedCall<Call>>)

/** A plan whose calls are decided while it is carried out. */
export interface LivePlan<Call extends PlannedCall = PlannedCall> {
  /** Calls that need no approval, and run at once. */
  readonly approved: readonly ApprovedCall<Call>[]
  /** Calls that need approval, each with its approval id. */
  readonly pending: readonly AskedCall<Call>[]
  /** One request for each pending call, in their order; to be read once. */
  readonly approvalRequests: AsyncIterable<ApprovalRequestedEvent>
  /**
   * Each decision as soon as it is made; every call waits only for its own answer. Closing the queue or aborting cancels pending
   * calls. To be read once; a reader that stops ends the wait.
   */
  readonly decisions: AsyncIterableIterator<DecidedCall<Call>>
}

export interface LivePlanOptions {
  /** Cancels pending calls. */
  readonly signal?: AbortSignal | undefined
  /** Why a call without an answer is cancelled. */
  readonly reason?: string | undefined
  /** Generates approval ids for calls that have none. They must be unguessable. */
  readonly generateId?: (() => string) | undefined
}

/**
 * A planner for answers that arrive during an open run: calls that need no approval run at once, every other waits for its own answer,
 * by approval id or call id. There is no time limit; `signal` and the queue's `close()` end the wait. `needsApproval` is called
 * once per call. Answers are not verified, so they must arrive over an authenticated connection, in a queue for this
 * conversation alone.
 */
export function planFromQueue<Call extends PlannedCall = PlannedCall>(
  needsApproval: (call: Call) => boolean,
  answers: AnswerSource,
  options: LivePlanOptions = {},
): (calls: readonly Call[]) => LivePlan<Call> {
  const generateId = usableIds(options.generateId, 'approval_')
  return (calls) => {
    const sorted = planApprovals(calls, [], { onMissingVerdict: 'pending', needsApproval })
    const pending = sorted.pending.map((call) => ({ ...call, approvalId: call.approvalId ?? generateId() }))
    return {
      approved: sorted.approved,
      pending,
      approvalRequests: inTurn(pending.map(requestOf)),
      decisions: createChannel((outlet) => decideAll(pending, answers, options, outlet)),
    }
  }
}

function requestOf({ approvalId, toolCallId, toolName, input }: AskedCall): ApprovalRequestedEvent {
  return { type: 'approval-requested', approvalId, toolCallId, toolName, input }
}

async function* inTurn<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values
}

async function decideAll<Call extends PlannedCall>(
  calls: readonly AskedCall<Call>[],
  answers: AnswerSource,
  { signal, reason }: LivePlanOptions,
  { emit, gone }: Outlet<DecidedCall<Call>>,
): Promise<void> {
  const stop = anySignal([gone, signal])
  const decide = async (call: AskedCall<Call>) =>
    emit(decidedCall(call, await verdictFor(call, answers, stop), reason))
  await Promise.all(calls.map(decide))
}

/** Waits for an answer under either id of a call. An invalid answer is ignored. */
function verdictFor(call: AskedCall, answers: AnswerSource, stop: AbortSignal): Promise<Verdict | undefined> {
  return new Promise((resolve) => {
    const leaves: (() => void)[] = []
    let waits = true
    const end = (verdict: Verdict | undefined) => {
      waits = false
      for (const leave of leaves) leave()
      resolve(verdict)
    }
    const onStop = () => end(undefined)
    const listen = (id: string) => {
      if (!waits) return
      const leave = answers.take(id, (entry) => {
        const decision = entry && readDecision(entry)
        if (entry !== undefined && decision === undefined) listen(id)
        else end(decision && { ...decision, approvalId: call.approvalId })
      })
      // It may have been answered already.
      if (waits) leaves.push(leave)
      else leave()
    }
    leaves.push(onAbort(stop, onStop))
    if (stop.aborted) onStop()
    listen(call.approvalId)
    listen(call.toolCallId)
  })
}

function decidedCall<Call extends PlannedCall>(
  call: AskedCall<Call>,
  verdict: Verdict | undefined,
  reason: string | undefined,
): DecidedCall<Call> {
  const verdicts = verdict === undefined ? [] : [verdict]
  const { approved, rejected } = planApprovals([call], verdicts, { onMissingVerdict: 'cancel', reason })
  const [yes] = approved
  const [no = { call, failure: failed('cancelled', reason) }] = rejected
  return yes === undefined ? { kind: 'rejected', ...no } : { kind: 'approved', ...yes }
}
