import { omitUndefined, readRecord, type ThreadRecord } from '@countersign/core'
import type { Connection } from '../connections/connection.js'
import type { KeptSession, ThreadHost } from './persistence.js'

/** A run that was open, or could still be rejoined, when its page was left; and where what it wrote begins. */
interface LeftRun {
  readonly runId: string
  readonly from: NonNullable<ThreadRecord['from']>
}

/**
 * Rejoins the run that its page has left: it may go on, and a new one would make its calls a second time. It is read from its first event,
 * which replaces what is shown of it. If there is no such run, the conversation is as it was before. Resolves once that is known.
 */
export function rejoinLeft(
  session: KeptSession,
  host: ThreadHost,
  { openRun: runId, openRunFrom }: ThreadRecord,
): Promise<void> {
  const { state, options } = session
  const connection =
    options.compat?.(options.connection, (message) => session.warn(message)) ?? options.connection
  const before = readRecord(state)
  if (runId === undefined || !openRunFrom || !connection.rejoin) return Promise.resolve()
  const left = { runId, from: openRunFrom }
  if (!isAllOnServer(before, left)) return Promise.resolve()
  const unsent = new Set(state.unsent)
  const { threadId } = session
  return new Promise((known) => {
    const begin = () => {
      forget(session, left)
      known()
    }
    const rejoined = host.rejoin({ cursor: { threadId, runId }, connection: replaying(connection, begin) })
    void rejoined.then((isThere) => {
      if (!isThere) {
        const isAnswered = [...state.unsent].some((item) => !unsent.has(item))
        const isSaid = state.queue.length > before.queue.length
        const { run, from, error } = before
        const record = omitUndefined({ ...readRecord(state), run, from, error, openRun: runId })
        session.dispatch({ type: 'restore', record })
        // What the user has done meanwhile has waited for the end of the run.
        if (isSaid) host.sendQueued()
        else if (isAnswered) void host.perform('retry', undefined)
      }
      known()
    })
  })
}

/** Whether nothing that the run wrote was answered here: its events would not bring that back. */
function isAllOnServer({ messages, unsentOutputs }: ThreadRecord, { from }: LeftRun): boolean {
  const outputs = new Set(unsentOutputs)
  return messages.every((message, at) =>
    message.parts.slice(partsBefore(from, at)).every((part) => {
      if (part.type !== 'tool-call') return true
      const { delivery = 'settled' } = part.approval ?? {}
      return delivery === 'settled' && !outputs.has(part.id)
    }),
  )
}

/** Calls `begin` before the first events of a run that is read from its beginning. */
function replaying(connection: Connection, begin: () => void): Connection {
  return {
    ...connection,
    async *rejoin(cursor, options) {
      let isNew = cursor.lastEventId === undefined
      for await (const batch of connection.rejoin?.(cursor, options) ?? []) {
        if (isNew && !options.signal.aborted) begin()
        isNew = false
        yield batch
      }
    },
  }
}

/** Removes what the run wrote, which its events bring again. What its request carried has arrived. */
function forget(session: KeptSession, { runId, from }: LeftRun): void {
  const { from: _, error: __, messages, ...record } = readRecord(session.state)
  const before = messages.slice(0, from[0]).map((message, at) => {
    const parts = message.parts.slice(0, partsBefore(from, at))
    return parts.length < message.parts.length ? { ...message, parts } : message
  })
  session.dispatch({ type: 'restore', record: { ...record, messages: before, unsentOutputs: [] } })
  session.dispatch({ type: 'run-rejoined', runId })
}

/** How many parts the message at this place had before the run. */
function partsBefore([messages, parts]: LeftRun['from'], at: number): number {
  if (at >= messages) return 0
  return at === messages - 1 ? parts : Number.POSITIVE_INFINITY
}
