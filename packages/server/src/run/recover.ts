import { getCountersignMetadata, isCountersignError, type Message } from '@countersign/core'
import { branchOf } from '../conversation/branch.js'
import { randomId } from '../encoding/ids.js'
import type { RunContext } from '../scope/run-context.js'
import type { ThreadKey, ThreadStore } from '../threads/thread-store.js'
import type { RunInput } from './run.js'

/**
 * Ends abandoned runs, one after the other: `close` closes what a run left open. A thread that another process takes meanwhile is left
 * to it, and one that can't be read or closed is reported to `warn`. Returns how many it has ended.
 *
 * @throws CountersignError `shutting-down`, `ledger-unavailable`
 */
export async function recoverThreads(
  threads: ThreadStore,
  limit: number,
  close: (input: RunInput, context: RunContext) => Promise<unknown>,
  warn: (message: string, error: unknown) => void,
): Promise<number> {
  let ended = 0
  for (const { owner, threadId, runId } of await threads.abandoned(limit)) {
    const key = { owner, threadId }
    try {
      // While the others were recovered, its user may have gone on with it.
      const { run } = (await threads.load(key)) ?? {}
      if (run?.runId !== runId || !run.lapsed) continue
      const input = { threadId, runId: randomId('recovery_'), messages: [] }
      await close(input, owner === null ? {} : { subject: owner })
      await markCut(threads, key)
      ended++
    } catch (error) {
      const code = codeOf(error)
      if (code === 'shutting-down') throw error
      // Another process has the thread now, or its user has removed it.
      if (code === 'thread-busy' || code === 'thread-unknown') continue
      warn(`The run of the thread ${JSON.stringify(threadId)} could not be recovered.`, error)
      await markCut(threads, key).catch(() => {})
    }
  }
  return ended
}

/** The code of an error, or of the error that ended a run. */
function codeOf(error: unknown): unknown {
  if (!isCountersignError(error)) return undefined
  return error.code === 'run-error' ? error.data.code : error.code
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
