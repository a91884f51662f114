import { getCountersignMetadata, isCountersignError, type Message } from '@countersign/core'
import { branchOf } from '../conversation/branch.js'
import { leaveThread } from '../conversation/thread-writer.js'
import { randomId } from '../encoding/ids.js'
import type { ThreadKey, ThreadStore } from '../threads/thread-store.js'

/** The most threads that a store lists at once. */
export const MOST_AT_ONCE = 1000

/**
 * Ends abandoned runs, one after the other: `close` takes the thread from a run, if that still has it, closes what it left open, and resolves
 * to the version of the thread then. A thread that its user has gone on with meanwhile is left as it is, and one that can't be read or closed is
 * reported to `warn`. Returns how many it has ended.
 *
 * @throws CountersignError `shutting-down`, `ledger-unavailable`
 */
export async function recoverThreads(
  threads: ThreadStore,
  limit: number,
  close: (key: ThreadKey, runId: string) => Promise<number>,
  warn: (message: string, error: unknown) => void,
): Promise<number> {
  let ended = 0
  const tried = new Set<string>()
  for (let most = limit; most > 0; ) {
    const found = await threads.abandoned(most)
    const news = found.filter(({ owner, threadId }) => !tried.has(JSON.stringify([owner, threadId])))
    for (const { owner, threadId, runId } of news.slice(0, limit - ended)) {
      const key = { owner, threadId }
      tried.add(JSON.stringify([owner, threadId]))
      try {
        await markCut(threads, key, await close(key, runId))
        ended++
      } catch (error) {
        const code = codeOf(error)
        if (code === 'shutting-down') throw error
        // Another process has the thread now, or may still run a call of it, or its user has removed it.
        if (code === 'thread-busy' || code === 'thread-unknown') continue
        warn(`The run of the thread ${JSON.stringify(threadId)} could not be recovered.`, error)
        await markCut(threads, key).catch(() => {})
      }
    }
    // Those that could not be ended are still the oldest: the next ones are behind them.
    const isLast = news.length === 0 || found.length < most || ended >= limit
    most = isLast ? 0 : Math.min(MOST_AT_ONCE, limit - ended + tried.size - ended)
  }
  return ended
}

/** The code of an error, or of the error that ended a run. */
function codeOf(error: unknown): unknown {
  if (!isCountersignError(error)) return undefined
  return error.code === 'run-error' ? error.data.code : error.code
}

/** Milliseconds to mark a message. */
const MARK_MS = 5000

/**
 * Marks the last message of a conversation whose reply was cut off, so that a page which loads it can say so and offer to continue. A
 * conversation that waits for its user is not cut off. If another run has had the thread since `version`, it has continued the reply:
 * nothing is marked.
 */
async function markCut(threads: ThreadStore, key: ThreadKey, version?: number): Promise<void> {
  const thread = await threads.load(key)
  const last = thread && branchOf(thread).at(-1)
  if (thread === undefined || last === undefined || thread.run !== undefined) return
  if (version !== undefined && version !== thread.version) return
  const message: Message = JSON.parse(last.message)
  if (message.role === 'assistant' && (message.toolCalls ?? []).length > 0) return
  const metadata = {
    ...message.metadata,
    countersign: { ...getCountersignMetadata(message.metadata), cut: true },
  }
  const marked = { ...last, message: JSON.stringify({ ...message, metadata }) }
  // Held meanwhile, so that it changes nothing below a run which begins now. Runs that were interrupted since stay known: the hold lapses.
  const run = { runId: randomId('recovery_'), holder: randomId('holder_') }
  const held = await threads.hold(key, run, MARK_MS)
  if (held.status !== 'held') return
  const { version: now, interrupted } = held
  const change = { version: now, run, messages: [marked], head: thread.head, release: true }
  const isMarked = now === thread.version && (await threads.append(key, change)).status === 'appended'
  if (!isMarked) await leaveThread(threads, key, run, interrupted)
}
