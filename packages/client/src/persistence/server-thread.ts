import {
  CountersignError,
  clientCalls,
  type Message,
  type QueuedMessage,
  readMessages,
  readRecord,
  type ThreadRecord,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { EarlyMessages } from './early-messages.js'
import { LeftUnsent } from './left-unsent.js'
import { OwnCalls } from './own-calls.js'
import type { InitialThread, KeptSession, KeptThread, Persistence, ThreadHost } from './persistence.js'
import { type Replaced, Replacement } from './replacement.js'
import { hasFailed, readServerThread, withUnsent } from './server-record.js'
import { Thread } from './thread.js'
import type { LoadedThread, ThreadRoute } from './thread-route.js'
import { Unsent } from './unsent.js'
import { type Locks, WorkLock } from './work-lock.js'

/** What the conversations of one `serverThreads` share. */
export interface ServerThreadsShared {
  /** What an open run's request replaces. */
  readonly replaced: Map<string, Replaced>
  /** The conversations that a page shows. */
  readonly shown: Set<ServerThread>
  readonly locks: Locks | undefined
  /** Names the locks. */
  readonly place: string
}

export interface ServerThreadLimits {
  /** Milliseconds between two requests for what has changed elsewhere. */
  readonly pollEvery: number
  readonly timeout: number
}

/** Commands after which the queue stays held by `stop()`. */
const releasesNothing = /^(cancelQueued|expire|withdraw|setState|clearError|setMessages)$/

/** Events of the page after which something may have changed elsewhere. */
const returns = ['focus', 'online', 'visibilitychange']

/** One client's conversation, kept by its server. What the server was not sent is kept in `local`. */
export class ServerThread implements KeptThread {
  readonly #session: KeptSession
  readonly #host: ThreadHost
  readonly #thread: Thread
  readonly #route: ThreadRoute
  readonly #pollEvery: number
  readonly #unsent: Unsent
  readonly #shared: ServerThreadsShared
  /** What was loaded last; undefined for a conversation that the server does not have. */
  #loaded: LoadedThread | undefined
  /** What is shown of that: something may have happened here while it was loading. */
  #shown: LoadedThread | undefined
  /** The run that was open here last: not rejoined unless its stream was lost. A conversation has one run at a time. */
  #lastRun: string | undefined
  /** The server may have more of the shown messages: a stream broke off, or an open run was not rejoined. */
  #isBehind = false
  /** The last message when the user stopped the last run here: they know that the reply is incomplete. */
  #stoppedAt: string | undefined
  /** The last run that this page opened. */
  #ownRun: string | undefined
  /** The run that it opened before a reload; none once another page of the browser works, which may have taken that up. */
  #formerRun: string | undefined
  /** What a load brought is shown, or was replaced meanwhile. Until then, every load is the first. */
  #isLoaded = false
  /** What this browser has stored was not read: another page may have begun what it tells of. */
  #isUnread = false
  readonly #lock: WorkLock
  readonly #replacement: Replacement
  readonly #removed: LeftUnsent
  readonly #calls: OwnCalls
  readonly #early: EarlyMessages
  /** Settles when the last of them is stored. */
  #stored: Promise<void> = Promise.resolve()
  /** How often something was left in the storage for this page, and how much of that it has shown. */
  #left = 0
  #leftShown = 0
  /** The same of what was read last; undefined while another page works on that. */
  #leftRead: number | undefined = 0
  /** The user has stopped, here or before a reload, and has not acted since: what is queued is held. */
  #isStopped = false
  /** The open run makes a new version of a message. */
  #isNewVersion = false
  #stopPolling: (() => void) | undefined
  readonly #timeout: number
  /** When the look began that is under way. */
  #lookingSince = -Infinity

  constructor(
    session: KeptSession,
    host: ThreadHost,
    route: ThreadRoute,
    local: Persistence,
    shared: ServerThreadsShared,
    { pollEvery, timeout }: ServerThreadLimits,
  ) {
    this.#session = session
    this.#host = host
    this.#route = route
    this.#unsent = new Unsent(local)
    this.#shared = shared
    this.#lock = new WorkLock({
      locks: shared.locks,
      name: () => `countersign-unsent:${shared.place} ${session.threadId}`,
      isWorking: () => this.#isWorking,
      isGone: () => host.isUnused(1),
      timeout,
    })
    this.#replacement = new Replacement(session.state, shared.replaced)
    this.#removed = new LeftUnsent(session)
    this.#calls = new OwnCalls()
    this.#early = new EarlyMessages(session)
    session.onStep = (step) => {
      this.#removed.follow(step)
      this.#calls.follow(step, this.#isOwnRun)
      // What the server has may differ from what is shown, such as how a call has ended. A run that has ended may be on another version.
      const isOver = step.type === 'run-rejoined' && step.runId !== this.#loaded?.run?.runId
      if (step.type === 'MESSAGES_SNAPSHOT' || isOver) this.#isBehind = true
      if (step.type === 'run-opened' || step.type === 'run-rejoined') this.#stoppedAt = undefined
      const isStopped = step.type === 'run-closed' && step.end.type === 'aborted' && this.#isOwnRun
      if (isStopped) this.#stoppedAt = session.state.order.at(-1)?.id
      if (this.#replacement.follow(step)) this.#isNewVersion = true
    }
    this.#pollEvery = pollEvery
    this.#timeout = timeout
    const storage = {
      merges: true,
      load: () => this.#load(),
      save: async (threadId: string, { openRun, openRunFrom: _, ...record }: ThreadRecord) => {
        await this.#stored.catch(() => {})
        // A run that is only followed belongs to another page, also after a reload of this one.
        const own = { ...record, isHeld: this.#isHeld, ...(this.#isOwnRun && { openRun }) }
        await this.#unsent.save(threadId, own, this.#removed)
      },
      restored: () => {
        this.#isLoaded = true
        this.#shown = this.#loaded
        this.#leftShown = this.#leftRead ?? this.#leftShown
        this.#unsent.shown()
        this.#replacement.loaded(this.#loaded?.messages ?? [])
        this.#removed.loaded(this.#loaded?.messages ?? [])
        const { run } = this.#loaded ?? {}
        this.#isNewVersion ||= run?.isVersion === true
        this.#isBehind = run !== undefined && !run.lapsed && this.#openRun === undefined
        void this.#rejoin()
      },
    }
    // Only what was not sent is saved, so a save costs little.
    this.#thread = new Thread(session, host, storage, { saveEvery: 250, timeout })
  }

  perform(name: string, value: unknown, here: () => unknown): unknown {
    if (name === 'stop') this.#isStopped = true
    else if (!releasesNothing.test(name)) this.#isStopped = false
    if (name === 'cancelQueued' && this.#early.cancel(value)) return this.#keepEarly()
    if (name !== 'send' || this.#isLoaded || this.#isNew) return this.#thread.perform(name, value, here)
    const item = value as QueuedMessage
    if (item.replaces !== undefined) return this.#thread.perform(name, value, here)
    this.#early.add(item)
    this.#keepEarly()
    return this.#thread.perform(name, value, async () => {
      // A message cancels the requests that its user can see. Those of a conversation that was not shown yet are still to be answered.
      if (this.#lacksLoad) await this.#thread.reload()
      return this.#early.send(item, !this.#lacksLoad, here)
    })
  }

  /** A page that is closed before it has loaded leaves its messages to the next one. */
  #keepEarly(): void {
    const save = () => this.#unsent.save(this.threadId, readRecord(this.#session.state), this.#removed)
    this.#stored = this.#stored.then(save, save)
  }

  enter(): Promise<unknown> {
    this.#shared.shown.add(this)
    if (!this.#stopPolling) {
      this.#stopPolling = this.#poll()
      if (this.#shown) void this.#look()
    }
    return this.#thread.enter()
  }

  keep(): Promise<boolean> {
    const { run } = this.#session.state
    if (run.phase !== 'idle' && run.runId !== this.#lastRun) this.#lastRun = this.#ownRun = run.runId
    this.#lock.update()
    if (run.phase === 'idle' && run.brokenOff) this.#isBehind = true
    if (run.phase === 'idle' && this.#isNewVersion) {
      // The page does not know all versions that there are now.
      this.#isNewVersion = false
      this.#isBehind = true
      void this.#look()
    }
    const kept = this.#thread.keep()
    if (this.#host.isUnused(0)) void kept.then(() => this.#handOver())
    return kept
  }

  /** What is kept of a client that no page shows is for the one that is shown in its place, also if that has loaded before. */
  #handOver(): void {
    for (const other of this.#shared.shown)
      if (other !== this && other.threadId === this.threadId) other.#left++
  }

  replace(): void {
    this.#isLoaded = true
    this.#thread.replace()
  }

  isElsewhere(toolCallId: string): boolean {
    return !this.#calls.has(toolCallId)
  }

  mayStart(): Promise<boolean> | undefined {
    return this.#lacksLoad || clientCalls(this.#session.state).length > 0 ? this.#loadToStart() : undefined
  }

  /** The conversation could not be loaded, and nothing was sent since. */
  get #lacksLoad(): boolean {
    const { run, error } = this.#session.state
    return !this.#isLoaded && error !== undefined && run.phase === 'idle' && !run.from
  }

  async #loadToStart(): Promise<boolean> {
    // What is loaded replaces what is shown: a client tool that runs would be closed as interrupted.
    if (this.#isBusy) return false
    const before = this.#loaded
    const lacked = this.#lacksLoad
    let isShown = false
    // What another page of this browser has begun is not begun again, also if that page is gone.
    const load = async (wasFree: boolean | undefined) => {
      await this.#thread.reload()
      // Something may have happened here meanwhile, such as `clearError()`.
      isShown = this.#loaded !== before && this.#loaded === this.#shown
      // Once the lock was given up, another page may have begun what is loaded as open.
      const isHeld = wasFree === undefined || this.#lock.isHeldFor(load)
      return isHeld && (await this.#lock.try()) !== false
    }
    const isFree = await this.#lock.during(load)
    const { run } = this.#loaded ?? {}
    // What a run that is open has not asked about yet may still need approval.
    const isBusy = (run && !run.lapsed) || !isFree
    if (isShown && isBusy) this.#session.failed(worksElsewhere())
    // Else something has begun here meanwhile, such as what the same command given twice has started.
    else if (!isShown && !this.#isBusy && lacked === this.#lacksLoad) this.#session.failed(notLoaded())
    return isShown && !isBusy && !this.#isUnread
  }

  get #isOwnRun(): boolean {
    const { run } = this.#session.state
    return run.phase !== 'idle' && this.#isOwn(run.runId)
  }

  #isOwn(runId: string): boolean {
    return runId === this.#ownRun || runId === this.#formerRun
  }

  /** The queue waits because the user called `stop()`. */
  get #isHeld(): boolean {
    return this.#isStopped && this.#isLoaded && this.#session.state.queue.length > 0
  }

  /** A run or a client tool of this page is under way, or a message waits to be sent. */
  get #isWorking(): boolean {
    const { executing, queue } = this.#session.state
    // What is queued where no page shows it is left to the next page: nobody could send it here.
    const isQueued = queue.length > 0 && !this.#host.isUnused(0)
    return this.#isOwnRun || executing.size > 0 || isQueued
  }

  leaveIfUnused(): void {
    if (!this.#host.isUnused(0)) return
    this.#shared.shown.delete(this)
    this.#stopPolling?.()
    this.#stopPolling = undefined
    this.#lock.release()
    this.#thread.leaveIfUnused()
  }

  /** On its first load, a page may have to continue a run that a reload interrupted. No other page may start work until all is read. */
  async #load(): Promise<ThreadRecord | undefined> {
    // What is loaded replaces what is shown. A reload that has waited for another one may find that a run was opened.
    if (this.#isBusy) return undefined
    if (this.#isLoaded) return this.#read(false)
    const first = () => this.#lock.during((isFree) => this.#read(true, isFree))
    const record = await first()
    // The page that worked is gone now, perhaps this one before its reload: read again, and take over what it left.
    return this.#leftRead === undefined && (await this.#lock.try()) ? first() : record
  }

  async #read(isFirst: boolean, wasFree?: boolean): Promise<ThreadRecord | undefined> {
    const { threadId } = this.#session
    this.#isUnread = false
    const left = this.#left
    const stored = await this.#unsent.load(threadId).catch((error: CountersignError) => {
      this.#isUnread = true
      this.#session.failed(error)
      return undefined
    })
    const { initialThread } = this.#session.options
    const given = isFirst ? initialThread : undefined
    // Until it can be loaded, what is given stays, and what was kept before.
    const loaded = await (given ? withAGUIMessages(given) : this.#fetch())
    this.#loaded = loaded
    // What another page works on is left to it. Stored before this page was loaded: by the same page, before a reload.
    const isFree = wasFree === false ? false : await this.#lock.try()
    const isAlone = isFree ?? isFirst
    this.#leftRead = isAlone || stored === undefined ? left : undefined
    if (this.#leftRead === undefined) this.#left++
    const unsent = this.#unsent.take(stored, isAlone)
    if (isFirst) this.#formerRun = unsent?.openRun
    else if (isFree === false) this.#formerRun = undefined
    if (!loaded && !unsent) {
      // An earlier load failed, but there is nothing to load.
      const isLate = this.#lacksLoad
      if (isLate) this.#session.dispatch({ type: 'clear-error' })
      this.#isLoaded = true
      if (isLate) this.#host.sendQueued()
      this.#leftShown = this.#leftRead ?? this.#leftShown
      return undefined
    }
    const isRejoined = this.#openRun !== undefined
    const thread = readServerThread(loaded ?? { messages: [] }, isRejoined, this.#stoppedAt)
    const known = new Set(thread.messages.map(({ id }) => id))
    const isLater = ({ id, role }: UIMessage) => isRejoined && role !== 'user' && !known.has(id)
    this.#unsent.postpone(unsent?.messages.filter(isLater) ?? [])
    return this.#early.withQueue(withUnsent(thread, unsent, (message) => this.#session.warn(message)))
  }

  /** The run that is open on the server and can be rejoined here. */
  get #openRun(): string | undefined {
    const { run, messages = [] } = this.#loaded ?? {}
    // Its reply would have to stand before the failed message, which waits for its user.
    if (hasFailed(this.#unsent.found, messages)) return undefined
    return run && !run.lapsed && this.#isToRejoin(run.runId) ? run.runId : undefined
  }

  async #rejoin(): Promise<void> {
    const runId = this.#openRun
    // What was queued while a run was open need not wait any longer, unless the user called `stop()`.
    if (runId === undefined) {
      this.#isStopped ||= this.#unsent.found.isHeld === true
      return this.#isStopped ? undefined : this.#host.sendQueued()
    }
    this.#lastRun = runId
    const cursor = { threadId: this.threadId, runId }
    if (!(await this.#host.rejoin({ cursor, isForeign: !this.#isOwn(runId) }))) {
      // It has ended meanwhile: the server has all of it. If that can't be shown yet, the next look does.
      this.#isBehind = true
      return this.#thread.reload()
    }
    if (!this.#unsent.hasLater) return
    this.#isBehind = true
    await this.#look()
  }

  async #fetch(since?: number): Promise<LoadedThread | undefined> {
    const { threadId, headers } = this.#session
    return this.#isNew ? undefined : this.#route.load(threadId, headers, since)
  }

  /** Nothing was said in it yet. */
  get #isNew(): boolean {
    return this.#session.options.threadId === undefined && this.#lastRun === undefined
  }

  /** Looks regularly, and when the user returns, whether something has changed elsewhere. Returns a function that ends it. */
  #poll(): () => void {
    const look = () => void this.#look()
    const timer: ReturnType<typeof setInterval> & { unref?(): void } = setInterval(look, this.#pollEvery)
    // A page that waits must not keep a process running.
    timer.unref?.()
    for (const type of returns) globalThis.addEventListener?.(type, look)
    return () => {
      clearInterval(timer)
      for (const type of returns) globalThis.removeEventListener?.(type, look)
    }
  }

  async #look(): Promise<void> {
    // Not `Date`: a clock may be set back.
    const since = performance.now()
    // A response may never arrive.
    if (since - this.#lookingSince < this.#timeout) return
    if (this.#isBusy || globalThis.document?.visibilityState === 'hidden') return
    this.#lookingSince = since
    try {
      const before = this.#shown
      const now = await this.#fetch(before?.version ?? 0)
      if (this.#isBusy) return
      const isLeft = this.#left !== this.#leftShown && (await this.#lock.try())
      // What this browser has kept is shown also where the server has no such conversation.
      if (!now) return this.#isLoaded && !isLeft ? undefined : await this.#thread.reload()
      // A conversation that began here may be shown as it is, unless something of it waits to be loaded.
      const isKnown = before ? before.createdAt === now.createdAt : this.#isLoaded
      // Where the head has moved to an older message, another version is shown.
      const isBranch = !before || before.head === now.head || now.messages.some(({ id }) => id === now.head)
      const isSame = isKnown && isBranch && !isLeft && !this.#isBehind && this.#shows(now)
      const { run } = now
      if (!isSame || (run && this.#isToRejoin(run.runId))) await this.#thread.reload()
      else this.#shown = now
    } catch {
      // The next look may succeed; a command shows what is wrong.
    } finally {
      if (this.#lookingSince === since) this.#lookingSince = -Infinity
    }
  }

  /** Shows the version that this message belongs to. */
  async showVersion(messageId: string): Promise<void> {
    if (this.#isBusy)
      throw new CountersignError('thread-busy', 'Wait for the end of the run, or stop it first.')
    const { threadId, headers } = this.#session
    await this.#route.show(threadId, messageId, headers)
    await this.#thread.reload()
  }

  get threadId(): string {
    return this.#session.threadId
  }

  #isToRejoin(runId: string): boolean {
    const { run } = this.#session.state
    return runId !== this.#lastRun || (run.phase === 'idle' && Boolean(run.brokenOff))
  }

  get #isBusy(): boolean {
    const { run, executing } = this.#session.state
    return run.phase !== 'idle' || executing.size > 0
  }

  /** Whether each of them is shown as it is on the server, behind the same message. Otherwise the page shows what is not there any more. */
  #shows({ messages, parents = [] }: LoadedThread): boolean {
    if (messages.length === 0) return true
    const shown = new Map<string, string>()
    let last: string | null = null
    for (const message of toAGUIMessages(readMessages(this.#session.state))) {
      shown.set(message.id, place(message, last))
      last = message.id
    }
    return messages.every((message, at) => shown.get(message.id) === place(message, parents[at] ?? null))
  }
}

function worksElsewhere(): CountersignError {
  const message =
    'Another page works on this conversation: a run or a tool is under way there, or a message is queued. Finish that there, or close it; then try again.'
  return new CountersignError('thread-busy', message)
}

function notLoaded(): CountersignError {
  const message = 'The conversation could not be loaded, so nothing was started. Try again.'
  return new CountersignError('persistence-unavailable', message)
}

function place({ content }: Message, parent: string | null): string {
  return JSON.stringify([parent, content])
}

async function withAGUIMessages(thread: InitialThread): Promise<LoadedThread> {
  return { ...thread, messages: toAGUIMessages(thread.messages) }
}
