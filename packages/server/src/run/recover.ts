import { isCountersignError } from '@countersign/core'
import { randomId } from '../encoding/ids.js'
import type { RunContext } from '../scope/run-context.js'
import type { ThreadStore } from '../threads/thread-store.js'
import type { RunInput } from './run.js'

/**
 * Ends abandoned runs, one after the other: `close` closes what a run left open. A thread that another process takes meanwhile is left
 * to it. Returns how many it has ended.
 */
export async function recoverThreads(
  threads: ThreadStore,
  limit: number,
  close: (input: RunInput, context: RunContext) => Promise<void>,
): Promise<number> {
  let ended = 0
  for (const { owner, threadId } of await threads.abandoned(limit)) {
    try {
      const input = { threadId, runId: randomId('recovery_'), messages: [] }
      await close(input, owner === null ? {} : { subject: owner })
      ended++
    } catch (error) {
      if (!isCountersignError(error) || error.code !== 'thread-busy') throw error
    }
  }
  return ended
}
