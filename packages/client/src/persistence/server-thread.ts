import {
  CountersignError,
  clientCalls,
  type QueuedMessage,
  readRecord,
  type ThreadRecord,
} from '@countersign/core'
import { EarlyMessages } from './early-messages.js'
import { loadsNothing, worksElsewhere } from './failures.js'
import { OwnRuns } from './own-runs.js'
import type { KeptSession, KeptThread, Persistence, Step, ThreadHost } from './persistence.js'
import { type Replaced, Replacement } from './replacement.js'
import { createServerLoad, isBusy } from './server-load.js'
import { Thread } from './thread.js'
import type { ThreadRoute } from './thread-route.js'
import { Unsent } from './unsent.js'
import { afterCommand, afterStep, type UserStop } from './user-stop.js'
import { createWatch } from './watch.js'
import { type Locks, WorkLock } from './work-lock.js'

/** What the conversations of one `serverThreads` share. */
export interface ServerThreadsShared {
  readonly route: ThreadRoute
  /** Where what the server was not sent is kept. */
  readonly local: Persistence
  /** What an open run's request replaces. */
  readonly replaced: Map<string, Replaced>
  /** The conversations that a page shows. */
  readonly shown: Set<ServerThread>
  readonly locks: Locks | undefined
  /** Names the locks. */
  readonly place: string
  /** Milliseconds between two requests for what has changed elsewhere. */
  readonly pollEvery: number
  readonly timeout: number
}

export interface ServerThread extends KeptThread {
  readonly threadId: string
  /** Shows the version that this message belongs to. */
  showVersion(messageId: string): Promise<void>
  /** Something was left in the storage for this page. */
  leave(): void
}

/** One client's conversation, kept by its server. */
export function openServerThread(
  session: KeptSession,
  host: ThreadHost,
  { route, local, replaced, shown, locks, place, pollEvery, timeout }: ServerThreadsShared,
): ServerThread {
  const { state } = session
  const unsent = new Unsent(session, local)
  const early = new EarlyMessages(session, () => saveUnsent(readRecord(state)))
  const runs = new OwnRuns(state)
  const replacement = new Replacement(state, replaced)
  let stop: UserStop = { holdsQueue: false }
  const lock = new WorkLock({
    locks,
    name: () => `countersign-unsent:${place} ${session.threadId}`,
    // What is queued where no page shows it is left to the next page: nobody could send it here.
    isWorking: () => runs.isOpen || state.executing.size > 0 || (state.queue.length > 0 && !host.isUnused(0)),
    isGone: () => host.isUnused(1),
    timeout,
  })
  const server = createServerLoad(session, host, route, unsent, early, runs, lock, () => stop)
  const { copy } = server
  const storage = { merges: true, load: server.load, save, restored }
  // Only what was not sent is saved, so a save costs little.
  const thread = new Thread(session, host, storage, { saveEvery: 250, timeout })
  const look = async () => {
    if (await server.hasNews()) await thread.reload()
  }
  const watch = createWatch(look, pollEvery, timeout)

  session.onStep = (step: Step) => {
    stop = afterStep(stop, step, runs.isOpen ? state.order.at(-1)?.id : undefined)
    unsent.left.follow(step)
    runs.follow(step)
    // What the server has may differ from what is shown, such as how a call has ended. A run that has ended may be on another version.
    const isOver = step.type === 'run-rejoined' && step.runId !== copy.thread?.run?.runId
    if (step.type === 'MESSAGES_SNAPSHOT' || isOver) copy.grows('behind')
    if (replacement.follow(step)) copy.grows('new-version')
  }

  async function save(_: string, record: ThreadRecord): Promise<void> {
    await early.stored.catch(() => {})
    await saveUnsent(record)
  }

  function saveUnsent({ openRun, openRunFrom, ...record }: ThreadRecord): Promise<void> {
    const isHeld = stop.holdsQueue && record.queue.length > 0
    // A run that is only followed belongs to another page, also after a reload of this one.
    return unsent.save({ ...record, isHeld, ...(runs.isOwn(openRun) && { openRun }) })
  }

  function restored(): void {
    const { thread: { messages = [] } = {}, openRun } = server.restored()
    unsent.shown(messages)
    replacement.loaded(messages)
    void rejoin(openRun)
  }

  async function rejoin(runId: string | undefined): Promise<void> {
    if (unsent.found.isHeld) {
      stop = { ...stop, holdsQueue: true }
      // The end of a run that is still open does not send it either.
      void host.perform('stop', undefined)
    }
    // What was queued while a run was open need not wait any longer, unless the user called `stop()`.
    if (runId === undefined) return stop.holdsQueue ? undefined : host.sendQueued()
    const cursor = { threadId: session.threadId, runId }
    if (!(await host.rejoin({ cursor, isForeign: !runs.isOwn(runId) }))) {
      // It has ended meanwhile: the server has all of it. If that can't be shown yet, the next look does.
      copy.grows('behind')
      await thread.reload()
    } else if (unsent.hasLater) {
      copy.grows('behind')
      await watch.now()
    }
  }

  /** What could not be sent goes along with the next message, unless another page has sent it. */
  function hasFailed(): boolean {
    const isIdle = state.run.phase === 'idle' && state.error !== undefined
    return isIdle && unsent.own.messages.some(({ role }) => role === 'user')
  }

  async function loadToStart(): Promise<boolean> {
    // What is loaded replaces what is shown: a client tool that runs would be closed as interrupted.
    if (isBusy(state)) return false
    const lacked = server.isLacking()
    let isShown = false
    // What another page of this browser has begun is not begun again, also if that page is gone.
    const load = async (wasFree: boolean | undefined) => {
      // Something may have happened here meanwhile, such as `clearError()`.
      isShown = await thread.reload()
      // Once the lock was given up, another page may have begun what is loaded as open.
      return (wasFree === undefined || lock.isHeldFor(load)) && (await lock.try()) !== false
    }
    const isFree = await lock.during(load)
    const run = copy.thread?.run
    // What a run that is open has not asked about yet may still need approval.
    const worksThere = (run && !run.lapsed) || !isFree
    if (isShown && worksThere) session.failed(worksElsewhere())
    // Else something has begun here meanwhile, such as what the same command given twice has started.
    else if (!isShown && !isBusy(state) && lacked === server.isLacking()) session.failed(loadsNothing())
    return isShown && !worksThere && server.isWhole()
  }

  /** What is kept of a client that no page shows is for the one that is shown in its place, also if that has loaded before. */
  function handOver(): void {
    for (const other of shown) if (other !== self && other.threadId === self.threadId) other.leave()
  }

  const self: ServerThread = {
    get threadId() {
      return session.threadId
    },
    leave: server.leave,

    perform(name, value, here) {
      stop = afterCommand(stop, name)
      if (name === 'stop') early.hold()
      if (name === 'cancelQueued' && early.cancel(value)) return
      const item = value as QueuedMessage
      // Behind what an earlier page has left, in the order in which it was said.
      const isLate = copy.isLoaded ? server.isLeft() || hasFailed() : !server.isNew()
      const isEarly = name === 'send' && isLate
      if (!isEarly || item.replaces !== undefined) return thread.perform(name, value, here)
      early.add(item)
      return thread.perform(name, value, async () => {
        // A message cancels the requests that its user can see. Those of a conversation that was not shown yet are still to be answered.
        if (server.isLacking() || server.isLeft() || (await unsent.hasChanged())) await thread.reload()
        // Nor does it close the calls that wait for a client tool.
        return early.send(item, !server.isLacking() && clientCalls(state).length === 0, here)
      })
    },

    enter() {
      shown.add(self)
      if (watch.begin() && copy.thread) void watch.now()
      return thread.enter()
    },

    keep() {
      lock.update()
      if (state.run.phase === 'idle') {
        // A request may not have arrived: its error stays until the server has something new.
        if (state.run.brokenOff && !runs.isUnheard) copy.grows('behind')
        if (copy.runEnded()) void watch.now()
      }
      const kept = thread.keep()
      if (host.isUnused(0)) void kept.then(handOver)
      return kept
    },

    replace() {
      copy.replaced()
      thread.replace()
    },

    isElsewhere: (toolCallId) => !runs.made(toolCallId),

    mayStart: () =>
      server.isLacking() || clientCalls(state).length > 0
        ? loadToStart()
        : unsent.hasChanged()?.then((hasChanged) => !hasChanged || loadToStart()),

    leaveIfUnused() {
      if (!host.isUnused(0)) return
      shown.delete(self)
      watch.end()
      lock.release()
      thread.leaveIfUnused()
    },

    async showVersion(messageId) {
      if (isBusy(state))
        throw new CountersignError('thread-busy', 'Wait for the end of the run, or stop it first.')
      await route.show(session.threadId, messageId, session.headers)
      await thread.reload()
    },
  }
  return self
}
