import {
  type ApprovalErrorCode,
  type CallDraft,
  type CountersignError,
  type InterruptDraft,
  leavesOpen,
  type RunEnd,
} from '@countersign/core'

/**
 * What became of a message. `refused`: it was not taken, the text is still the caller's. `failed`: its run failed. `stopped`: its run was
 * ended here, by `stop()` or something else that voids it; the message stays in the conversation.
 */
export type SendResult =
  | { readonly status: 'sent' | 'stopped' }
  | { readonly status: 'queued'; readonly id: string }
  | { readonly status: 'refused' | 'failed'; readonly error: CountersignError }

/**
 * What became of an answer. `sent`: the server has it. `waiting`: it is kept and goes out with the next request (siblings are
 * unanswered, or the run was stopped before the server had it for sure). `closed`: it is not used; where the conversation was replaced
 * before it went out, or the client disposed of, its `reason` is `cancelled`. `refused`: the server did not take it; with the code `approval-edit-invalid` the request is still open,
 * to be answered with other arguments, and so it is where `confirm` said no (`approval-not-yours`) and where the whole request was refused (`request-refused`). `failed`: its request failed; `retry()` repeats it.
 */
export type AnswerResult =
  | { readonly status: 'sent' | 'waiting' | 'already-answered' | 'not-found' | 'expired' }
  | { readonly status: 'closed'; readonly reason: string }
  | { readonly status: 'refused'; readonly code: ApprovalErrorCode; readonly reason?: string }
  | { readonly status: 'failed'; readonly error: CountersignError }

/** What was answered: an approval, a client tool's result, an interrupt. */
export type Answered = CallDraft | InterruptDraft

/** What is known of an answer once the request that carried it has ended; of one that was ended here, if the server has it. */
export function resultOf(answered: Answered, end: RunEnd): AnswerResult {
  if (answered.kind === 'interrupt') {
    const { problem: reason } = answered
    if (reason !== undefined) return { status: 'refused', code: 'approval-malformed', reason }
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

/** Whether its call became what the answer said, however that was heard of. */
function tookEffect(answered: Answered): boolean {
  if (answered.kind === 'interrupt' || answered.approval?.delivery !== 'settled') return false
  return answered.approval.approved === (answered.state !== 'denied')
}

/** Those who gave an answer and want to know what became of it. */
export function createPendingResults() {
  const waiting = new Map<Answered, (result: AnswerResult) => void>()

  function tell(answered: Answered, result: AnswerResult): void {
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
    tell,
    /** What could not go out waits (for siblings, or for the person after a stop or a failure), if it is still kept. */
    tellRest(isKept: (answered: Answered) => unknown): void {
      for (const answered of waiting.keys()) {
        const status = isKept(answered) ? 'waiting' : 'sent'
        const isUsed = status === 'waiting' || tookEffect(answered)
        tell(answered, isUsed ? { status } : { status: 'closed', reason: 'cancelled' })
      }
    },
  }
}
