import {
  clientCalls,
  omitUndefined,
  type QueuedMessage,
  readRecord,
  type ThreadRecord,
} from '@countersign/core'
import type { SendResult } from '../results.js'
import { worksElsewhere } from './failures.js'
import { OwnRuns } from './own-runs.js'
import type { KeptSession, Persistence, ThreadHost } from './persistence.js'
import { type End, partsBefore, replaying, sizeOfParts } from './replay.js'
import { WorkLock } from './work-lock.js'

/** Rejoins the run that the page of one conversation has left: it may go on, and a new one would make its calls a second time. */
export class LeftRuns {
  readonly #session: KeptSession
  readonly #host: ThreadHost
  /** Held by the page whose run is open or whose client tools run, where tabs do not share it. */
  readonly #lock: WorkLock
  readonly #storage: Pick<Persistence, 'load'>
  readonly #runs: OwnRuns
  /** The pages of the browser share the lock. */
  readonly #isShared: boolean

  constructor(session: KeptSession, host: ThreadHost, storage: Pick<Persistence, 'load'>, timeout: number) {
    this.#session = session
    this.#host = host
    this.#storage = storage
    this.#runs = new OwnRuns(session.state)
    // What `tabs` share is done by one of them.
    const locks = session.options.tabs ? undefined : globalThis.navigator?.locks
    this.#isShared = locks !== undefined
    if (locks) session.onStep = (step) => this.#runs.follow(step)
    this.#lock = new WorkLock({
      locks,
      name: () => `countersign:run:${session.threadId}`,
      isWorking: () => this.#runs.isOpen || session.state.executing.size > 0,
      isGone: () => host.isUnused(0),
      timeout,
    })
  }

  /** It is not known yet whether another page has the run open. Until then, a message must wait: it would begin a second run. */
  isAsking = false

  /** A run may have begun or ended. */
  update(): void {
    this.#lock.update()
  }

  /**
   * The run is read from its first event, which replaces what is shown of it. If there is no such run, the conversation is as it was before.
   * Resolves once that is known. `keep` stores what is shown then.
   */
  async rejoin({ openRun: runId, openRunFrom: from }: ThreadRecord, keep: () => unknown): Promise<void> {
    const { threadId, state, options } = this.#session
    const warn = (message: string) => this.#session.warn(message)
    const connection = options.compat?.(options.connection, warn) ?? options.connection
    const before = readRecord(state)
    this.isAsking = false
    if (runId === undefined || !from || !connection.rejoin || !isAllOnServer(before, from)) return
    const { run } = state
    // A page that has the run open runs its client tools, too.
    this.isAsking = true
    const isForeign = (await this.#lock.try()) === false
    this.isAsking = false
    if (run !== state.run) return
    this.#runs.former = isForeign ? undefined : runId
    const unsent = new Set(state.unsent)
    await new Promise<void>((known) => {
      const begin = () => forget(this.#session, runId, from)
      const shown = () => sizeOfParts(readRecord(state).messages, from)
      const rejoined = this.#host.rejoin({
        cursor: { threadId, runId },
        connection: replaying(connection, known, shown, begin),
        from,
        isForeign,
      })
      void rejoined.then((isThere) => {
        if (!isThere) this.#restore(before, runId, unsent, keep)
        else if (isForeign) void this.#takeOver(runId, keep)
        known()
      })
    })
  }

  /** Once a run was followed to its end: if its page is gone, nobody else has stored the end. */
  async #takeOver(runId: string, keep: () => unknown): Promise<void> {
    if (this.#session.state.error || !(await this.#lock.try()) || !(await this.#isLeft(runId))) return
    this.#runs.former = runId
    keep()
  }

  /** Whether the page of this run has stored that it was open, and nothing since. */
  async #isLeft(runId: string): Promise<boolean> {
    const stored = await this.#storage.load(this.#session.threadId).catch(() => undefined)
    return stored?.openRun === runId
  }

  /** The last run shown here was another page's. This page then stores nothing, unless its user has said, answered or started something. */
  get isFollower(): boolean {
    const { queue, unsent, executing } = this.#session.state
    return this.#runs.isForeign && queue.length + unsent.size + executing.size === 0
  }

  get #isBroken(): boolean {
    const { run } = this.#session.state
    return run.phase === 'idle' && Boolean(run.brokenOff)
  }

  /**
   * A message that was sent before the page could show that its run broke off, or that a client tool has to run, waits for `retry()`, like one
   * that is sent during a run.
   */
  hold(name: string, value: unknown): SendResult | undefined {
    const item = value as QueuedMessage
    const waits = this.#isBroken || clientCalls(this.#session.state).length > 0
    if (name !== 'send' || item.replaces !== undefined || !waits) return undefined
    this.#session.dispatch({ type: 'queue', item })
    return { status: 'queued', id: item.id }
  }

  /** Whether `retry()` may go on here. `reload` shows what another page has stored. */
  mayStart(reload: () => Promise<void>): Promise<boolean> | undefined {
    // A run that is rejoined stays that of its page.
    if (!this.#isShared || this.#isBroken) return undefined
    return this.#lock.during(async (isFree) => {
      if (isFree === false) this.#session.failed(worksElsewhere())
      else if (this.isFollower) await reload()
      return isFree !== false
    })
  }

  /** There is no such run. What the user has done meanwhile has waited for its end. */
  #restore(before: ThreadRecord, openRun: string, unsent: ReadonlySet<unknown>, keep: () => unknown): void {
    const { state } = this.#session
    const isAnswered = [...state.unsent].some((item) => !unsent.has(item))
    const isSaid = state.queue.length > before.queue.length
    const { run, from, error } = before
    const record = omitUndefined({ ...readRecord(state), run, from, error, openRun })
    this.#session.dispatch({ type: 'restore', record })
    // What was stored at the end of the rejoin has no error, and would look complete after another reload.
    keep()
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
