import {
  CountersignError,
  isCountersignError,
  omitUndefined,
  readRecord,
  type ThreadRecord,
} from '@countersign/core'
import type { Connection } from '../connections/connection.js'
import type { KeptSession, ThreadHost } from './persistence.js'
import { WorkLock } from './work-lock.js'

type End = NonNullable<ThreadRecord['openRunFrom']>

/** Rejoins the run that the page of one conversation has left: it may go on, and a new one would make its calls a second time. */
export class LeftRuns {
  readonly #session: KeptSession
  readonly #host: ThreadHost
  /** Held by the page whose run is open, where tabs do not share it. */
  readonly #lock: WorkLock
  /** The run of another page that is followed here. */
  #followed: string | undefined

  constructor(session: KeptSession, host: ThreadHost, timeout: number) {
    this.#session = session
    this.#host = host
    this.#lock = new WorkLock({
      locks: session.options.tabs ? undefined : globalThis.navigator?.locks,
      name: () => `countersign:run:${session.threadId}`,
      isWorking: () => session.state.run.phase !== 'idle' && session.state.run.runId !== this.#followed,
      isGone: () => host.isUnused(0),
      timeout,
    })
  }

  /** A run may have begun or ended. */
  update(): void {
    this.#lock.update()
  }

  /**
   * The run is read from its first event, which replaces what is shown of it. If there is no such run, the conversation is as it was before.
   * Resolves once that is known.
   */
  async rejoin({ openRun: runId, openRunFrom: from }: ThreadRecord): Promise<void> {
    const { threadId, state, options } = this.#session
    const warn = (message: string) => this.#session.warn(message)
    const connection = options.compat?.(options.connection, warn) ?? options.connection
    const before = readRecord(state)
    if (runId === undefined || !from || !connection.rejoin || !isAllOnServer(before, from)) return
    const { run } = state
    // A page that has the run open runs its client tools, too.
    const isForeign = !options.tabs && (await this.#lock.try()) === false
    if (run !== state.run) return
    if (isForeign) this.#followed = runId
    const unsent = new Set(state.unsent)
    await new Promise<void>((known) => {
      const begin = () => {
        forget(this.#session, runId, from)
        known()
      }
      const cursor = { threadId, runId }
      const rejoined = this.#host.rejoin({
        cursor,
        connection: replaying(connection, begin),
        from,
        isForeign,
      })
      void rejoined.then((isThere) => {
        if (!isThere) this.#restore(before, runId, unsent)
        known()
      })
    })
  }

  /** There is no such run. What the user has done meanwhile has waited for its end. */
  #restore(before: ThreadRecord, openRun: string, unsent: ReadonlySet<unknown>): void {
    const { state } = this.#session
    const isAnswered = [...state.unsent].some((item) => !unsent.has(item))
    const isSaid = state.queue.length > before.queue.length
    const { run, from, error } = before
    const record = omitUndefined({ ...readRecord(state), run, from, error, openRun })
    this.#session.dispatch({ type: 'restore', record })
    if (isSaid) this.#host.sendQueued()
    else if (isAnswered) void this.#host.perform('retry', undefined)
  }
}

/** Whether nothing that the run wrote was answered here: its events would not bring that back. */
function isAllOnServer({ messages, unsentOutputs }: ThreadRecord, from: End): boolean {
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
      try {
        for await (const batch of connection.rejoin?.(cursor, options) ?? []) {
          const isEvent = !Array.isArray(batch) || batch.length > 0
          if (isNew && isEvent && !options.signal.aborted) begin()
          isNew &&= !isEvent
          yield batch
        }
      } catch (error) {
        throw isTemporary(error) ? new CountersignError('connection-failed', error.message, {}, error) : error
      }
    },
  }
}

/** The server can't tell now whether the run is there: it can still be rejoined. */
function isTemporary(error: unknown): error is CountersignError {
  const status = isCountersignError(error) ? Number(error.data.status) : 0
  return status === 408 || status === 429 || status >= 500
}

/** Removes what the run wrote, which its events bring again. What its request carried has arrived. */
function forget(session: KeptSession, runId: string, begin: End): void {
  const { from: _, error: __, messages, ...record } = readRecord(session.state)
  const before = messages.slice(0, begin[0]).map((message, at) => {
    const parts = message.parts.slice(0, partsBefore(begin, at))
    return parts.length < message.parts.length ? { ...message, parts } : message
  })
  session.dispatch({ type: 'restore', record: { ...record, messages: before, unsentOutputs: [] } })
  session.dispatch({ type: 'run-rejoined', runId })
}

/** How many parts the message at this place had before the run. */
function partsBefore([messages, parts]: End, at: number): number {
  if (at >= messages) return 0
  return at === messages - 1 ? parts : Number.POSITIVE_INFINITY
}
