import type { ApprovalErrorCode } from '@countersign/core'
import {
  type LedgerAnswer,
  MAX_REASON_LENGTH,
  type ToolOutcome as RanOutcome,
  type StoredOutcome,
} from '../ledger/ledger.js'
import { failed, isSuccess, type ToolOutcome } from '../outcome.js'

/** A stored outcome, or a call that is handed out again. */
export type Restored =
  | { readonly kind: 'outcome'; readonly outcome: ToolOutcome }
  | { readonly kind: 'handed-out'; readonly arguments: string }

/** Restores the ledger's outcome of a settled call. */
export function restoreOutcome(stored: StoredOutcome): Restored {
  switch (stored.type) {
    case 'result':
      return { kind: 'outcome', outcome: { kind: 'ok', value: JSON.parse(stored.content) } }
    case 'error':
      return { kind: 'outcome', outcome: failed('execution_error', stored.message, stored.code) }
    case 'denied':
    case 'cancelled':
      return { kind: 'outcome', outcome: unstartedOutcome(stored) }
    case 'handed-out':
      return { kind: 'handed-out', arguments: stored.arguments }
    case 'unavailable': {
      const reason = 'The call ran before; its result is no longer available.'
      return { kind: 'outcome', outcome: failed('execution_error', reason, 'result-unavailable') }
    }
    default:
      return stored satisfies never
  }
}

/** Converts an outcome for the ledger. */
export function toStored(outcome: ToolOutcome): RanOutcome {
  if (isSuccess(outcome)) return { type: 'result', content: JSON.stringify(outcome.value ?? null) }
  return { type: 'error', message: outcome.reason ?? 'The tool failed.', code: outcome.code }
}

/** The outcome of a call whose holder was lost. */
export function interruptedOutcome(reason?: string): ToolOutcome {
  return failed('execution_error', reason ?? 'It was interrupted; it may or may not have run.', 'interrupted')
}

/** The outcome of a call that was handed to a page whose result never arrived. */
export function handedOutOutcome(): ToolOutcome {
  return interruptedOutcome(
    'It was handed to a page, which has not sent its result; it may or may not have run.',
  )
}

/** Why an approved call was not started after all; `interrupted` if its claim was lost, and nothing more is known. */
export type Unstarted = Extract<RanOutcome, { type: 'denied' | 'cancelled' | 'interrupted' }>

/** The outcome of such a call, as a repeated answer gets it from the ledger. */
export function unstartedOutcome(why: Unstarted): ToolOutcome {
  switch (why.type) {
    case 'denied':
      return failed('denied', why.reason)
    case 'cancelled':
      return failed('cancelled', why.reason ?? reasonOf(why.code), why.code)
    case 'interrupted':
      return interruptedOutcome()
    default:
      return why satisfies never
  }
}

/** The outcome of an answer that runs nothing, as a repeated answer gets it from the ledger. */
export function rejection(answer: LedgerAnswer): ToolOutcome {
  switch (answer.decision) {
    case 'deny':
      return failed('denied', shortened(answer.reason))
    case 'cancel':
      return failed('cancelled', shortened(answer.reason) ?? reasonOf(answer.code), answer.code)
    case 'expire':
      return failed('cancelled', reasonOf('approval-expired'), 'approval-expired')
    case 'approve':
      return interruptedOutcome()
    default:
      return answer satisfies never
  }
}

/** The audit trail's outcome for such an answer. */
export function settledKind({ decision }: LedgerAnswer): 'denied' | 'cancelled' {
  return decision === 'deny' ? 'denied' : 'cancelled'
}

function shortened(reason: string | undefined): string | undefined {
  return reason?.slice(0, MAX_REASON_LENGTH)
}

/** Why the server closed a call, if only the code was kept. */
function reasonOf(code: ApprovalErrorCode | undefined): string | undefined {
  if (code === undefined) return undefined
  // The model must not claim that nothing happened.
  if (code === 'approval-not-found') return 'the approval is not known any more; the call may have run'
  return code === 'approval-expired' ? 'expired' : 'the approval is not valid'
}
