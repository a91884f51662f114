import {
  type ChatState,
  type CountersignError,
  type ThreadRecord,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import type { EarlyMessages } from './early-messages.js'
import type { OwnRuns } from './own-runs.js'
import type { InitialThread, KeptSession, ThreadHost } from './persistence.js'
import { ServerCopy } from './server-copy.js'
import { hasUnsentMessage, readServerThread, withUnsent } from './server-record.js'
import type { LoadedThread, ThreadRoute } from './thread-route.js'
import type { Unsent } from './unsent.js'
import type { UserStop } from './user-stop.js'
import type { WorkLock } from './work-lock.js'

/** What was read last. It is shown, unless something has happened here meanwhile. */
interface Reading {
  readonly thread: LoadedThread | undefined
  /** The run that is open on the server and is rejoined. */
  readonly openRun: string | undefined
  /** How often something had been left for this page; undefined while another page works on what is stored. */
  readonly left: number | undefined
  /** What this browser has stored was not read: another page may have begun what it tells of. */
  readonly isUnread: boolean
}

/** Reads a conversation from its server, and what this browser has kept of it. */
export function createServerLoad(
  session: KeptSession,
  host: ThreadHost,
  route: ThreadRoute,
  unsent: Unsent,
  early: EarlyMessages,
  runs: OwnRuns,
  lock: WorkLock,
  stop: () => UserStop,
) {
  const { state, options } = session
  const copy = new ServerCopy()
  // A copy: it is shown once this page enters the conversation.
  const given: InitialThread | undefined =
    options.initialThread && JSON.parse(JSON.stringify(options.initialThread))
  let reading: Reading = { thread: undefined, openRun: undefined, left: 0, isUnread: false }
  /** How often something was left in the storage for this page, and how much of that it has shown. */
  let left = 0
  let leftShown = 0

  /** The conversation could not be loaded, and nothing was sent since. */
  const isLacking = () =>
    !copy.isLoaded && state.error !== undefined && state.run.phase === 'idle' && !state.run.from

  /** Nothing was said in it yet. */
  const isNew = () => options.threadId === undefined && runs.isFirst

  const fetch = async (since?: number): Promise<LoadedThread | undefined> =>
    isNew() ? undefined : route.load(session.threadId, session.headers, since)

  async function read(isFirst: boolean, wasFree?: boolean): Promise<ThreadRecord | undefined> {
    const leftBefore = left
    let isUnread = false
    const stored = await unsent.load().catch((error: CountersignError) => {
      isUnread = true
      session.failed(error)
      return unsent.own
    })
    // Until it can be loaded, what is given stays, and what was kept before.
    const thread = isFirst && given ? { ...given, messages: toAGUIMessages(given.messages) } : await fetch()
    // What another page works on is left to it. Stored before this page was loaded: by the same page, before a reload.
    const isFree = wasFree === false ? false : await lock.try()
    const isAlone = isFree ?? isFirst
    const isTaken = isAlone || stored === undefined
    if (!isTaken) left++
    const own = unsent.take(stored, isAlone)
    if (isFirst) runs.former = own?.openRun
    else if (isFree === false) runs.former = undefined
    const openRun = runToRejoin(thread, unsent.found, runs)
    reading = { thread, openRun, left: isTaken ? leftBefore : undefined, isUnread }
    if (!thread && !own) {
      // An earlier load failed, but there is nothing to load.
      const isLate = isLacking()
      if (isLate) session.dispatch({ type: 'clear-error' })
      copy.replaced()
      early.leaveQueue()
      if (isLate && !stop().holdsQueue) host.sendQueued()
      leftShown = reading.left ?? leftShown
      return undefined
    }
    const server = readServerThread(thread ?? { messages: [] }, openRun !== undefined, stop().at)
    const known = new Set(server.messages.map(({ id }) => id))
    const isLater = ({ id, role }: UIMessage) => openRun !== undefined && role !== 'user' && !known.has(id)
    unsent.postpone(own?.messages.filter(isLater) ?? [])
    return early.withQueue(withUnsent(server, own, (message) => session.warn(message)))
  }

  return {
    copy,
    isLacking,
    isNew,
    /** What is shown was read together with what this browser has stored. */
    isWhole: () => !reading.isUnread,
    /** Something was left in the storage for this page. */
    leave: () => void left++,
    /** It is not shown yet. */
    isLeft: () => left !== leftShown,

    /** On its first load, a page may have to continue a run that a reload interrupted. No other page may start work until all is read. */
    async load(): Promise<ThreadRecord | undefined> {
      // What is loaded replaces what is shown. A reload that has waited for another one may find that a run was opened.
      if (isBusy(state)) return undefined
      if (copy.isLoaded) return read(false)
      const first = () => lock.during((isFree) => read(true, isFree))
      const record = await first()
      // The page that worked is gone now, perhaps this one before its reload: read again, and take over what it left.
      return reading.left === undefined && (await lock.try()) ? first() : record
    },

    /** What was read last is shown now. */
    restored(): Reading {
      const { thread, openRun } = reading
      const isBehind = thread?.run && !thread.run.lapsed && openRun === undefined
      copy.show(thread, thread?.run?.isVersion ? 'new-version' : isBehind ? 'behind' : 'current')
      leftShown = reading.left ?? leftShown
      return reading
    },

    /** Whether the server has something that is not shown, or this browser, where no other page works on it. */
    async hasNews(): Promise<boolean> {
      if (isBusy(state)) return false
      const now = await fetch(copy.thread?.version ?? 0)
      if (isBusy(state)) return false
      const isLeft = left !== leftShown && (await lock.try()) === true
      // What this browser has kept is shown also where the server has no such conversation.
      if (!now || isLeft) return isLeft || !copy.isLoaded
      if (!copy.isCurrent(now, state) || (now.run && runs.isToRejoin(now.run.runId))) return true
      copy.show(now, 'current')
      return false
    },
  }
}

export function isBusy({ run, executing }: ChatState): boolean {
  return run.phase !== 'idle' || executing.size > 0
}

/** The run that is open on the server and can be rejoined here. */
function runToRejoin(
  thread: LoadedThread | undefined,
  unsent: ThreadRecord,
  runs: OwnRuns,
): string | undefined {
  const { run, messages = [] } = thread ?? {}
  // Its reply would have to stand before the failed message, which waits for its user.
  if (hasUnsentMessage(unsent, messages)) return undefined
  return run && !run.lapsed && runs.isToRejoin(run.runId) ? run.runId : undefined
}
