import { type ApprovalErrorCode, refusalCodes } from '../errors.js'
import { asString, isRecord, oneOf } from '../value.js'
import { reopen } from './approval-answer.js'
import { callAskedBy, moveCall, setApproval } from './calls.js'
import type { Outcome } from './effects.js'
import type { ChatState } from './state.js'

/** Returns the value if it is a refusal code. */
export function readRefusal(value: unknown): ApprovalErrorCode | undefined {
  return oneOf(value, ...refusalCodes)
}

/** Whether a value is a refusal code. */
export function isRefusal(value: unknown): value is ApprovalErrorCode {
  return readRefusal(value) !== undefined
}

/** Whether only this answer was refused: the request is open for another (shorter, with other arguments, or from the right user). */
export function leavesOpen(
  code: string | undefined,
): code is 'approval-edit-invalid' | 'approval-mandate-refused' | 'approval-not-yours' | 'request-refused' {
  return (
    code === 'approval-edit-invalid' ||
    code === 'approval-mandate-refused' ||
    code === 'approval-not-yours' ||
    code === 'request-refused'
  )
}

/** Whether nothing is wrong with the answer, and it can be sent again later. */
export function isForNow(code: string | undefined): boolean {
  return code === 'ledger-unavailable' || code === 'call-running'
}

/** `CUSTOM approval-refused`: the server did not accept an answer. */
export function refuseApproval(state: ChatState, value: unknown): Outcome {
  const refused = isRecord(value) ? value : {}
  const call = callAskedBy(state, asString(refused.approvalId) ?? '')
  if (!call) return 'unknown-id'
  const problem = readRefusal(refused.code) ?? 'approval-malformed'
  const error = { message: asString(refused.message) ?? 'The answer was refused.', code: problem }
  if (leavesOpen(problem)) {
    // The approval request is not used up: it is open again, with the reason for the refusal.
    if (reopen(state, call)) call.error = error
  } else if (isForNow(problem)) {
    if (call.state === 'approval-responded') {
      setApproval(state, call, { problem, delivery: 'waiting' })
      state.unsent.add(call)
    }
  } else if (mayHaveRun(problem) ? call.state === 'approval-responded' : moveCall(state, call, 'cancelled')) {
    call.error = error
    setApproval(state, call, { problem, delivery: 'settled' })
    state.unsent.delete(call)
  } else if (
    // What came of the other answer was told before. A run that is only followed has brought none of this page.
    state.run.phase !== 'idle' &&
    state.run.carried.includes(call) &&
    call.approval?.approved !== undefined
  )
    setApproval(state, call, { problem, delivery: 'settled' })
  return undefined
}

/** Another answer came first, or the call had already started: its outcome may still arrive, and counts. */
function mayHaveRun(problem: ApprovalErrorCode): boolean {
  return problem === 'approval-conflict' || problem === 'approval-interrupted'
}
