import { randomId } from '../encoding/ids.js'
import type { RunContext } from '../scope/run-context.js'
import type { Holder } from '../scope/run-key.js'

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
