import { getCountersignMetadata, isCountersignError, type Message } from '@countersign/core'
import { branchOf } from '../conversation/branch.js'
import { randomId } from '../encoding/ids.js'
import type { RunContext } from '../scope/run-context.js'
import type { ThreadKey, ThreadStore } from '../threads/thread-store.js'
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
      await markCut(threads, { owner, threadId })
      ended++
    } catch (error) {
      if (!isCountersignError(error) || error.code !== 'thread-busy') throw error
    }
  }
  return ended
}

/**
 * Marks the last message of a conversation whose reply was cut off, so that a page which loads it can say so and offer to continue. A
 * conversation that waits for its user is not cut off. If another run has the thread by now, it continues the reply: nothing is marked.
 */
async function markCut(threads: ThreadStore, key: ThreadKey): Promise<void> {
  const thread = await threads.load(key)
  const last = thread && branchOf(thread).at(-1)
  if (thread === undefined || last === undefined || thread.run !== undefined) return
  const message: Message = JSON.parse(last.message)
  if (message.role === 'assistant' && (message.toolCalls ?? []).length > 0) return
  const metadata = {
    ...message.metadata,
    countersign: { ...getCountersignMetadata(message.metadata), cut: true },
  }
  const marked = { ...last, message: JSON.stringify({ ...message, metadata }) }
  await threads.append(key, { version: thread.version, messages: [marked], head: thread.head })
}
