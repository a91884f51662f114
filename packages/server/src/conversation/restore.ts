import type { AGUIEvent, Message } from '@countersign/core'
import { readCalls } from '../history/history.js'
import { runKey } from '../scope/run-context.js'
import type { AgentSettings } from '../scope/settings.js'
import type { KnownThread, KnownThreads } from '../threads/known-threads.js'
import type { InterruptedRun, RunHold, StoredMessage, ThreadKey } from '../threads/thread-store.js'
import { branchOf } from './branch.js'
import { withoutMark } from './cut-mark.js'
import { RecordedBranch } from './recorded-branch.js'
import { isFull, isLost, ThreadWriter } from './thread-writer.js'

/** Milliseconds to wait for a run log. */
const READ_MS = 5000

type Tree = Pick<KnownThread, 'version' | 'head' | 'messages' | 'byId'>

/** A thread that nobody has appended to. */
const EMPTY: Tree = { version: 0, head: null, messages: [], byId: new Map() }

/**
 * Stores what the logs of interrupted runs have and their thread lacks: what was sent after the last save of a process that was killed.
 * Returns whether it has stored anything. If it fails, it reports that to `warn`, and the thread stays as it is: a user waits for this run.
 * Nobody waits for a recovery, and the next one can store it.
 *
 * @throws CountersignError `thread-busy` or `thread-unknown` if `run` does not hold the thread any more; in a recovery, `ledger-unavailable`
 */
export async function restoreRuns(
  threads: KnownThreads,
  { runLog, limits, warn }: Pick<AgentSettings, 'runLog' | 'limits' | 'warn'>,
  key: ThreadKey,
  run: RunHold,
  interrupted: readonly InterruptedRun[],
  isRecovery = false,
): Promise<boolean> {
  // A run without an owner has no log.
  if (key.owner === null) return false
  let isRestored = false
  // A run that has stored something has first restored the runs before it. The log of a run is that of its last attempt.
  const from = interrupted.findLastIndex(({ cursor }) => cursor !== undefined)
  const runs = new Map(interrupted.slice(Math.max(from, 0)).map(({ runId, cursor }) => [runId, cursor]))
  for (const [runId, cursor] of runs) {
    const thread = (await threads.open(key, limits.cachedThreadBytes)) ?? EMPTY
    let isRead = false
    try {
      const name = runKey({ kind: 'subject', id: key.owner }, key.threadId, runId)
      const batches = await runLog.read(name, 0, AbortSignal.timeout(READ_MS), { wait: false })
      const events: AGUIEvent[] = []
      for await (const batch of batches ?? []) events.push(...batch.map(({ data }) => JSON.parse(data)))
      // A run without a cursor has stored nothing: it began at the head.
      const { messages, head } = lacking(thread, cursor === undefined ? thread.head : cursor || null, events)
      isRead = true
      if (messages.length === 0) continue
      await new ThreadWriter(threads, key, run, thread.version, head ?? '').append({ messages, head })
      isRestored = true
    } catch (error) {
      if (isLost(error) || (isRecovery && isRead && !isFull(error))) throw error
      warn('What an interrupted run had sent last could not be restored.', error)
    }
  }
  return isRestored
}

/** What the thread lacks of a run that began behind the message `start`. Nothing, if it has more of the run than the log. */
function lacking(thread: Tree, start: string | null, events: readonly AGUIEvent[]) {
  const nothing = { messages: [] as StoredMessage[], head: start }
  const before = branchOf({ ...thread, head: start })
  const messages = before.map(({ message }) => message)
  const ids = new Set([...before.map(({ id }) => id), ...readCalls(messages).map(({ call }) => call.id)])
  if (start !== null && !ids.has(start)) return nothing
  const branch = new RecordedBranch(messages)
  for (const event of events) {
    // The log is that of an attempt before, which is stored already.
    if (ids.has(startedBy(event) ?? '')) return nothing
    // These two are sent, but not recorded.
    if (event.type !== 'RUN_STARTED' && event.type !== 'MESSAGES_SNAPSHOT') branch.dispatch(event)
  }
  const { messages: logged, head } = branch.change()
  const sizes = new Map(logged.map(({ id, message }) => [id, message.length]))
  // What is shown behind `start` is another version, if the log has none of it. The log may have failed before the run did.
  const own = branchOf(thread).filter((message) => !before.includes(message))
  const hasMore =
    logged.every(({ id }) => thread.byId.has(id)) &&
    own.some(({ id }) => sizes.has(id)) &&
    // Data of an activity is replaced; everything else grows.
    own.some(
      ({ id, message }) => message.role !== 'activity' && textOf(message).length > (sizes.get(id) ?? 0),
    )
  const stored = new Set(
    logged.flatMap(({ id, parent, message }) => {
      const known = thread.byId.get(id)
      return known?.parent === parent && textOf(known.message) === message ? id : []
    }),
  )
  const { messages: marked } = branch.change({ isUnfinished: true })
  return hasMore ? nothing : { messages: marked.filter(({ id }) => !stored.has(id)), head }
}

function textOf(message: Message): string {
  return JSON.stringify(withoutMark(message))
}

function startedBy(event: AGUIEvent): string | undefined {
  if (event.type === 'TOOL_CALL_START') return event.toolCallId
  return event.type === 'TEXT_MESSAGE_START' || event.type === 'REASONING_MESSAGE_START'
    ? event.messageId
    : undefined
}
