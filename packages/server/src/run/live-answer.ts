import type { ApprovalDecided, CountersignError, Message } from '@countersign/core'
import { closeCall, type OpenCallResult, resultOfOpenCall } from '../answers/abandoned.js'
import { answerOf } from '../answers/answers.js'
import type { IssuedRecords } from '../answers/issued.js'
import type { Refusal } from '../answers/refusals.js'
import { resolveVerdicts } from '../answers/resolve.js'
import { verifyAnswers } from '../answers/verdicts.js'
import type { AnswerSource } from '../channel/answer-queue.js'
import { type Arrival, nextArrival } from '../channel/arrival.js'
import type { ApprovalRequest } from '../gate/ask.js'
import type { CallSite } from '../history/history.js'
import type { LedgerAnswer } from '../ledger/ledger.js'
import type { ToolOutcome } from '../outcome.js'
import type { RunScope } from '../scope/scope.js'

/** An approval request and its call. */
export interface AskedCall {
  readonly site: CallSite
  readonly request: ApprovalRequest
  readonly issued: IssuedRecords
  /** Aborted when nobody may wait any longer. */
  readonly waitSignal: AbortSignal
}

/** How a run's wait for an approval request ended. */
export type LiveEnding = { readonly refusal?: Refusal | undefined } & (
  | {
      readonly kind: 'result'
      readonly outcome: ToolOutcome
      readonly decided?: ApprovalDecided | undefined
    }
  /** An approved client tool: the client runs it after this run has finished. */
  | {
      readonly kind: 'handed-out'
      readonly input: unknown
      readonly decided?: ApprovalDecided | undefined
    }
  /** An approved call of the provider, which learns of it with the next step. */
  | { readonly kind: 'forwarded'; readonly decided?: ApprovalDecided | undefined }
  /** It was handed out before. */
  | { readonly kind: 'client' }
  /** The wait has ended undecided: a later request can bring the answer. */
  | { readonly kind: 'open' }
  | { readonly kind: 'threw'; readonly error: CountersignError }
)

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
): Promise<LiveEnding> {
  const { id, expiresAt } = asked.request.approval
  const arrival = await nextArrival(answers, id, {
    waitSignal: asked.waitSignal,
    ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
    now: scope.settings.now,
  })
  switch (arrival.kind) {
    case 'answer': {
      const ending = await carryOut(scope, asked, arrival, messages)
      if (ending.kind === 'open') answers.refuse?.(id)
      return ending
    }
    case 'expired':
      return close(scope, asked, { decision: 'expire' })
    case 'closed':
      return close(scope, asked, { decision: 'cancel', reason: 'the channel was closed' })
    case 'stopped':
      return scope.callerSignal?.aborted
        ? close(scope, asked, { decision: 'cancel', reason: 'the run was stopped' })
        : { kind: 'open' }
    default:
      return arrival satisfies never
  }
}

/** Processes the answer like any other: verify, claim, run. A refused answer has the same effect on the call as one from a request. */
async function carryOut(
  scope: RunScope,
  asked: AskedCall,
  { entry, context }: Extract<Arrival, { kind: 'answer' }>,
  messages: readonly Message[],
): Promise<LiveEnding> {
  const { site, issued } = asked
  const answer = answerOf(entry, 'live', site, context)
  const { verdicts, refusals } = await verifyAnswers(scope, [answer], issued)
  for await (const resolution of resolveVerdicts(scope, verdicts, messages)) {
    if (resolution.kind !== 'refused') return resolution
    return refused(scope, asked, resolution.refusal, messages)
  }
  const [refusal] = refusals
  return refusal === undefined ? { kind: 'open' } : refused(scope, asked, refusal, messages)
}

/** If a refused answer leaves the request open, this run stops waiting for it: the next answer comes with a request of its own. */
async function refused(
  scope: RunScope,
  { site, issued }: AskedCall,
  refusal: Refusal,
  messages: readonly Message[],
): Promise<LiveEnding> {
  return { ...endingOf(await resultOfOpenCall(scope, site, issued, refusal, messages)), refusal }
}

async function close(
  scope: RunScope,
  { site, request, issued }: AskedCall,
  answer: LedgerAnswer,
): Promise<LiveEnding> {
  const { owner, threadId } = scope
  const { id: approvalId, options } = request.approval
  const ref = { owner, threadId, approvalId }
  const scopes = options.filter((option) => option !== 'deny')
  return endingOf(await closeCall(scope, { site, issued, ref, scopes }, answer))
}

function endingOf(fate: OpenCallResult): LiveEnding {
  switch (fate.kind) {
    case 'result':
      return { kind: fate.kind, outcome: fate.outcome, decided: fate.decided }
    case 'forwarded':
      return { kind: fate.kind, decided: fate.decided }
    case 'open':
    case 'client':
      return { kind: fate.kind }
    default:
      return fate satisfies never
  }
}
