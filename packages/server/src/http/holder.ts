import { randomId } from '../encoding/ids.js'
import { ledgerKey } from '../ledger/ledger.js'
import type { RunContext } from '../scope/run-context.js'

/**
 * To whom a run belongs as far as taking it up and answering into it go: a person, or, where the application has no users, the one
 * socket that started it.
 */
export type Holder =
  | { readonly kind: 'subject'; readonly id: string }
  | { readonly kind: 'socket'; readonly id: string }

/** The person, where the application names one. */
export function subjectOf(context: RunContext | undefined): Holder | undefined {
  const subject = context?.subject
  return typeof subject === 'string' && subject !== '' ? { kind: 'subject', id: subject } : undefined
}

/** Whose share of the process's memory it counts in; nobody's where the application named no person. */
export function ownerOf(holder: Holder | undefined): string | undefined {
  return holder?.kind === 'subject' ? holder.id : undefined
}

/** A name that only this process knows, for one socket. */
export function newSocket(): Holder {
  return { kind: 'socket', id: randomId('socket_') }
}

/** What the run log and the answer channel know a run by. Its parts have their lengths, so that no two runs share one. */
export function runKey(holder: Holder, threadId: string, runId: string): string {
  return ledgerKey(holder.kind, holder.id, threadId, runId)
}
