import { randomId } from '../encoding/ids.js'
import { ledgerKey } from '../ledger/ledger.js'

/** What the application knows about a run, passed to tools and decisions unchanged. */
export type RunContext = Readonly<Record<string, unknown>> & {
  /** The user, from the application's own authentication, never from the request's body. */
  readonly subject?: string | undefined
}

/**
 * Who may rejoin a run and answer into it: a user, or, if the application has no users, the one socket
 * that started it.
 */
export type Holder =
  | { readonly kind: 'subject'; readonly id: string }
  | { readonly kind: 'socket'; readonly id: string }

/** The key of a run in the run log and the answer channel. Each part includes its length, so that different runs never share a key. */
export function runKey(holder: Holder, threadId: string, runId: string): string {
  return ledgerKey(holder.kind, holder.id, threadId, runId)
}

/** The user, if the application names one. */
export function subjectOf(context: RunContext | undefined): Holder | undefined {
  const subject = context?.subject
  return typeof subject === 'string' && subject !== '' ? { kind: 'subject', id: subject } : undefined
}

/** Whose share of the process's memory it counts in; undefined if the application named no user. */
export function ownerOf(holder: Holder | undefined): string | undefined {
  return holder?.kind === 'subject' ? holder.id : undefined
}

/** A random name for one socket, known only to this process. */
export function newSocket(): Holder {
  return { kind: 'socket', id: randomId('socket_') }
}
