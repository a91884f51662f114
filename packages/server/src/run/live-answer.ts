import type { Message } from '@countersign/core'
import { answerOf } from '../answers/answers.js'
import { closeRequest, outcomeOfOpenCall } from '../answers/open-call.js'
import type { CallOutcome, Refusal } from '../answers/outcome.js'
import type { IssuedRecords } from '../answers/records.js'
import { settleVerdicts } from '../answers/settle.js'
import { verifyAnswers } from '../answers/verify.js'
import type { AnswerSource } from '../channel/answer-queue.js'
import { type Arrival, nextArrival } from '../channel/arrival.js'
import { unlessLeft } from '../encoding/hooks.js'
import type { ApprovalRequest } from '../gate/ask.js'
import type { CallSite } from '../history/history.js'
import type { LedgerAnswer } from '../ledger/ledger.js'
import type { RunScope } from '../scope/scope.js'

/** An approval request and its call. */
export interface AskedCall {
  readonly site: CallSite
  readonly request: ApprovalRequest
  readonly issued: IssuedRecords
  /** Aborted when nobody may wait any longer. */
  readonly waitSignal: AbortSignal
}

/**
 * Waits for the answer to one approval request, and carries it out like an answer from a request. Without an answer, the request
 * expires, or is cancelled if the caller stopped the run or closed the channel. It stays open if only the reader
 * has gone: the user may come back.
 */
export async function awaitAnswer(
  scope: RunScope,
  answers: AnswerSource,
  asked: AskedCall,
  messages: readonly Message[],
): Promise<CallOutcome> {
  const { site, request, waitSignal } = asked
  const { id, expiresAt, options } = request.approval
  const close = async (answer: LedgerAnswer) => {
    const ref = { owner: scope.owner, threadId: scope.threadId, approvalId: id }
    const scopes = options.filter((option) => option !== 'deny')
    return orOpen(asked, await closeRequest(scope, { site, ref, scopes }, answer))
  }
  const arrival = await nextArrival(answers, id, {
    waitSignal,
    ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
    now: scope.settings.now,
  })
  switch (arrival.kind) {
    case 'answer': {
      const outcome = await carryOut(scope, asked, arrival, messages)
      // The run stops waiting for it: the next answer comes with a request of its own.
      if (outcome.kind === 'open') answers.refuse?.(id)
      return outcome
    }
    case 'expired':
      return close({ decision: 'expire' })
    case 'closed':
      return close({ decision: 'cancel', reason: 'the channel was closed' })
    case 'stopped':
      return scope.callerSignal?.aborted
        ? close({ decision: 'cancel', reason: 'the run was stopped' })
        : { kind: 'open', site, request, isAnothers: false }
    default:
      return arrival satisfies never
  }
}

/** While another answer is carried out, or once the run was left, the request is neither settled nor asked about again. */
function orOpen({ site, request }: AskedCall, outcome: CallOutcome | Refusal | undefined): CallOutcome {
  const open = { kind: 'open', site, request, isAnothers: false } as const
  if (outcome === undefined) return open
  return outcome.kind === 'refused' ? { ...open, refusal: outcome } : outcome
}

/** Processes the answer like any other: verify, claim, run. A refused answer has the same effect on the call as one from a request. */
async function carryOut(
  scope: RunScope,
  asked: AskedCall,
  { entry, context }: Extract<Arrival, { kind: 'answer' }>,
  messages: readonly Message[],
): Promise<CallOutcome> {
  const { site, issued, request } = asked
  const answer = answerOf(entry, 'live', site, context)
  const { verdicts, refusals } = await verifyAnswers(scope, [answer], issued)
  let refusal: Refusal | undefined = refusals[0]
  for await (const outcome of settleVerdicts(scope, verdicts, messages)) {
    if (outcome.kind !== 'refused') return outcome
    refusal = outcome
  }
  const outcome = orOpen(
    asked,
    await outcomeOfOpenCall(scope, site, issued, refusal, messages).catch(unlessLeft),
  )
  if (outcome.kind !== 'open') return { ...outcome, refusal }
  return outcome.request.approval.id === request.approval.id
    ? { refusal, ...outcome, request }
    : { kind: 'asked-again', site, request: outcome.request, refusal }
}
