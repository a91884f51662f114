import {
  type ApprovalErrorCode,
  type CountersignError,
  isRefusal,
  leavesOpen,
  type ToolCallPart,
} from '@countersign/core'
import type { AnswerResult } from './results.js'

/** What happened to an answer that was refused or did not arrive, and what helps. */
export interface NextStep {
  /**
   * `kept`: it is kept here and counts once it has arrived. `unused`: it did not count; the request is closed or cannot be
   * answered, unless `next` is `correct`. `unclear`: the call may or may not have run, because of this answer or an earlier one.
   */
  readonly state: 'kept' | 'unused' | 'unclear'
  /** For the user: plain text, in English. */
  readonly message: string
  /**
   * `retry`: `client.retry()` sends the same answer again, which our server counts once. `ask-again`: the user repeats what they
   * want, and the agent can make a new request. `sign-in`: as the user who was asked; if `kept`, `client.retry()` then sends it.
   * `reload`: the page is out of date. `check`: the user checks what the call was to change before repeating it. `correct`: the
   * request is still open; answer it again with other arguments or without edits. `confirm`: it is still open, and the server's `confirm`
   * wants more than this answer, such as a one-time code. `none`: there is nothing to do.
   */
  readonly next: 'retry' | 'ask-again' | 'sign-in' | 'reload' | 'check' | 'correct' | 'confirm' | 'none'
}

/**
 * What to tell the user, and what the page can offer, about an answer that was refused or did not arrive. It
 * takes the stable code, the call with its approval request, or the result of `addToolApprovalResponse`.
 * Returns `undefined` if all is well. A page with its own wording switches on the code instead.
 *
 * @example
 * const step = nextStep(part)
 * if (step?.next === 'retry') button('Retry', () => client.retry())
 */
export function nextStep(code: ApprovalErrorCode): NextStep
export function nextStep(of: ApprovalErrorCode | ToolCallPart | AnswerResult): NextStep | undefined
export function nextStep(of: ApprovalErrorCode | ToolCallPart | AnswerResult): NextStep | undefined {
  if (typeof of === 'string') return steps[of]
  return 'status' in of ? afterAnswer(of) : ofCall(of)
}

const steps: Readonly<Record<ApprovalErrorCode, NextStep>> = {
  'approval-malformed': {
    state: 'unused',
    message: 'The server could not read this answer. Nothing was run. Ask again.',
    next: 'ask-again',
  },
  'approval-edit-invalid': {
    state: 'unused',
    message:
      'The changed arguments were not accepted. Nothing was run. Correct them, or answer without changes.',
    next: 'correct',
  },
  'approval-mandate-refused': {
    state: 'unused',
    message: 'The standing approval or denial was not accepted. Nothing was run. Answer for this call alone.',
    next: 'correct',
  },
  'approval-not-found': {
    state: 'unclear',
    message: 'The server has forgotten this request. The call may have run: check before you ask again.',
    next: 'check',
  },
  'approval-not-yours': {
    state: 'unused',
    message: 'This request belongs to somebody else, or your answer was not confirmed. It ran nothing.',
    next: 'sign-in',
  },
  'approval-tampered': {
    state: 'unused',
    message: 'The call is not the one that was asked about. Nothing was run. Ask again.',
    next: 'ask-again',
  },
  'approval-expired': {
    state: 'unused',
    message: 'The time to answer is over. Ask again.',
    next: 'ask-again',
  },
  'approval-stale': {
    state: 'unused',
    message: 'What this request is about has changed since you were asked. Nothing was run. Ask again.',
    next: 'ask-again',
  },
  'approval-changed': {
    state: 'unused',
    message: 'The request changed while it was shown. It cannot be answered. Ask again.',
    next: 'ask-again',
  },
  'approval-conflict': {
    state: 'unused',
    message: 'Another answer was first, perhaps in another tab. It stands, and yours was not used.',
    next: 'reload',
  },
  'approval-interrupted': {
    state: 'unclear',
    message: 'The call was interrupted: it may or may not have run. Check before you ask for it again.',
    next: 'check',
  },
  'ledger-unavailable': {
    state: 'kept',
    message: 'The server could not check the answer just now. It is kept: you can send it again.',
    next: 'retry',
  },
  'call-running': {
    state: 'kept',
    message: 'The call is still running. Your answer is kept: you can send it again later.',
    next: 'retry',
  },
  'request-refused': {
    state: 'unused',
    message:
      'The request with your answer was refused, perhaps for its length. Answer again, with less or without changes.',
    next: 'correct',
  },
}

const unconfirmed: NextStep = { state: 'unused', message: 'Your answer was not confirmed.', next: 'confirm' }

const answeredBefore: NextStep = {
  state: 'unused',
  message: 'This was answered before, perhaps in another tab. That answer stands, yours was not used.',
  next: 'none',
}

const closed: NextStep = {
  state: 'unused',
  message: 'This request is closed. Your answer was not used.',
  next: 'none',
}

const unreached: NextStep = {
  state: 'kept',
  message: 'The server did not confirm your answer. It is kept: you can send it again.',
  next: 'retry',
}

const signedOut: NextStep = {
  state: 'kept',
  message: 'The server does not know who you are any more. Your answer is kept; sign in and send it again.',
  next: 'sign-in',
}

const refusedRequest: NextStep = {
  state: 'kept',
  message: 'The server does not accept requests from this page. Your answer is kept. Reload and try again.',
  next: 'reload',
}

function ofCall({ approval, error }: ToolCallPart): NextStep | undefined {
  if (approval?.problem) return steps[approval.problem]
  if (approval?.delivery === 'unknown') return unreached
  if (error && leavesOpen(error.code)) return ofRefusal(error.code, error.message)
  const isUnclear = error?.code === 'interrupted' || error?.code === 'incomplete-arguments'
  return isUnclear ? steps['approval-interrupted'] : undefined
}

function afterAnswer(result: AnswerResult): NextStep | undefined {
  const { status } = result
  switch (status) {
    case 'sent':
    case 'waiting':
      return undefined
    case 'already-answered':
      return answeredBefore
    case 'not-found':
      return closed
    case 'expired':
      return steps['approval-expired']
    case 'closed':
      return isRefusal(result.reason) ? steps[result.reason] : closed
    case 'refused':
      return ofRefusal(result.code, result.reason)
    case 'failed':
      return afterFailure(result.error)
    default:
      return status satisfies never
  }
}

/** What our server says where `confirm` refused an answer: the code alone does not tell that from another's request. */
function ofRefusal(code: ApprovalErrorCode, said: string | undefined): NextStep {
  return said === 'The answer was not confirmed.' ? unconfirmed : steps[code]
}

/** A failed request leaves its answers as they were. */
function afterFailure({ code, data }: CountersignError): NextStep {
  if (code !== 'http-status') return unreached
  const status = Number(data.status)
  if (status === 401 || status === 403) return signedOut
  const mayPass = status >= 500 || status === 408 || status === 429
  return mayPass ? unreached : refusedRequest
}
