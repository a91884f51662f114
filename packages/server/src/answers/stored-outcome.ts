import { failed, isSuccess, type ToolOutcome, toResultContent } from '@countersign/core'
import type { ToolOutcome as RanOutcome, StoredOutcome } from './ledger.js'

/** A result as the ledger keeps it, or a client tool that is handed out again. */
export type Restored =
  | { readonly kind: 'outcome'; readonly outcome: ToolOutcome }
  | { readonly kind: 'handed-out'; readonly arguments: string }

/** What the ledger kept of a settled call. */
export function restoreOutcome(stored: StoredOutcome): Restored {
  switch (stored.type) {
    case 'result':
      return { kind: 'outcome', outcome: { kind: 'ok', value: JSON.parse(stored.content) } }
    case 'error':
      return { kind: 'outcome', outcome: failed('execution_error', stored.message, stored.code) }
    case 'denied':
      return { kind: 'outcome', outcome: failed('denied', stored.reason) }
    case 'cancelled':
      return { kind: 'outcome', outcome: failed('cancelled', stored.reason, stored.code) }
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

/** An outcome as the ledger keeps it. */
export function toStored(outcome: ToolOutcome): RanOutcome {
  if (isSuccess(outcome)) return { type: 'result', content: toResultContent(outcome).content }
  return { type: 'error', message: outcome.reason ?? 'The tool failed.', code: outcome.code }
}

/** The outcome of a call whose runner was lost. */
export function interruptedOutcome(reason?: string): ToolOutcome {
  return failed('execution_error', reason ?? 'It was interrupted; it may or may not have run.', 'interrupted')
}
