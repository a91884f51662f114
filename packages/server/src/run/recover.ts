import { isCountersignError } from '@countersign/core'
import type { ThreadKey, ThreadStore } from '../threads/thread-store.js'

/** The most threads that a store lists at once. */
export const MOST_AT_ONCE = 1000

/**
 * Ends abandoned runs, one after the other: `close` takes the thread from a run, if that still has it, and closes what it left open. A thread
 * that its user has gone on with meanwhile is left as it is, and one that can't be read or closed is reported to `warn`. Returns how many it has
 * ended.
 *
 * @throws CountersignError `shutting-down`, `ledger-unavailable`
 */
export async function recoverThreads(
  threads: ThreadStore,
  limit: number,
  close: (key: ThreadKey, runId: string) => Promise<void>,
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
        await close(key, runId)
        ended++
      } catch (error) {
        const code = codeOf(error)
        if (code === 'shutting-down') throw error
        // Another process has the thread now, or may still run a call of it, or its user has removed it.
        if (code === 'thread-busy' || code === 'thread-unknown') continue
        warn(`The run of the thread ${JSON.stringify(threadId)} could not be recovered.`, error)
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
