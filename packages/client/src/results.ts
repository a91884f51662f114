import {
  type ApprovalErrorCode,
  type CallDraft,
  type CountersignError,
  type InterruptDraft,
  isRefusedWhole,
  isTerminal,
  leavesOpen,
  type RunEnd,
} from '@countersign/core'
import type { FieldIssue } from './client-tools.js'

/**
 * The outcome of a message. `refused`: it was not accepted; the caller keeps the text. `failed`: its run failed. `stopped`:
 * its run was ended here, by `stop()` or by another action that cancels it; the message stays in the conversation.
 */
export type SendResult =
  | { readonly status: 'sent' | 'stopped' }
  | { readonly status: 'queued'; readonly id: string }
  | { readonly status: 'refused' | 'failed'; readonly error: CountersignError }

/**
 * The outcome of an answer. `sent`: the server has it. `waiting`: it is kept and goes out with the next request (other
 * requests are unanswered, or the run was stopped before the server was known to have it). `closed`: not used; `reason` is the
 * state of a call that the server ended before the answer was sent, else `cancelled` (the conversation was replaced or the client
 * disposed). `refused`: not accepted by the
 * server; the request stays open after `approval-edit-invalid` (answer with other arguments), `approval-mandate-refused` (answer for
 * this call alone), `approval-not-yours` (`confirm` refused it) and `request-refused` (the whole request was refused). `failed`: its request failed; `retry()` repeats it.
 */
export type AnswerResult =
  | { readonly status: 'sent' | 'waiting' | 'already-answered' | 'not-found' | 'expired' }
  | { readonly status: 'closed'; readonly reason: string }
  | {
      readonly status: 'refused'
      readonly code: ApprovalErrorCode
      readonly reason?: string
      /** Of edited arguments that this page has refused itself, by the tool's schema: nothing was sent. */
      readonly issues?: readonly FieldIssue[]
    }
  | { readonly status: 'failed'; readonly error: CountersignError }

/** What can be answered: an approval request, a client tool's call or an interrupt. */
export type Answered = CallDraft | InterruptDraft

/** The outcome of an answer after the request that carried it has ended; for one that was ended here, only if the server has it. */
export function resultOf(answered: Answered, end: RunEnd): AnswerResult {
  if (answered.kind === 'interrupt') {
    const { problem: reason } = answered
    const isWhole = end.type === 'failed' && isRefusedWhole(end.error)
    const code = isWhole ? 'request-refused' : 'approval-malformed'
    if (reason !== undefined) return { status: 'refused', code, reason }
  } else {
    const { approval, error } = answered
    const code = error && leavesOpen(error.code) ? error.code : approval?.problem
    if (code === 'approval-expired') return { status: 'expired' }
    if (code) return { status: 'refused', code, ...(error && { reason: error.message }) }
  }
  return end.type === 'failed' && !tookEffect(answered)
    ? { status: 'failed', error: end.error }
    : { status: 'sent' }
}

/** Whether the call has the outcome that the answer decided, however that was learned. */
function tookEffect(answered: Answered): boolean {
  if (answered.kind === 'interrupt' || answered.approval?.delivery !== 'settled') return false
  if (answered.approval.problem) return false
  return answered.approval.approved === (answered.state !== 'denied')
}

/** Promises for answers whose outcome is not known yet. */
export function createPendingResults() {
  const waiting = new Map<Answered, (result: AnswerResult) => void>()

  function resolve(answered: Answered, result: AnswerResult): void {
    waiting.get(answered)?.(result)
    waiting.delete(answered)
  }

  return {
    wait: (answered: Answered) =>
      new Promise<AnswerResult>((resolve) => {
        const before = waiting.get(answered)
        waiting.set(answered, (result) => {
          before?.(result)
          resolve(result)
        })
      }),
    resolve,
    /** Resolves the rest: an answer that could not be sent is `waiting` if it is still kept. */
    resolveRest(isKept: (answered: Answered) => unknown): void {
      for (const answered of waiting.keys()) {
        const status = isKept(answered) ? 'waiting' : 'sent'
        const reason = answered.kind === 'call' && isTerminal(answered.state) ? answered.state : 'cancelled'
        const isUsed = status === 'waiting' || (reason !== 'cancelled' && tookEffect(answered))
        resolve(answered, isUsed ? { status } : { status: 'closed', reason })
      }
    },
  }
}
