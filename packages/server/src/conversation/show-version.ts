import { CountersignError } from '@countersign/core'
import { newIds, randomId } from '../encoding/ids.js'
import type { AgentSettings } from '../scope/settings.js'
import type { KnownThreads } from '../threads/known-threads.js'
import type { ThreadKey } from '../threads/thread-store.js'
import { branchOf, type CloseCalls, headOf, leaveBranch } from './branch.js'
import { restoreRuns } from './restore.js'
import { ThreadWriter, takeThread } from './thread-writer.js'

/**
 * Shows the branch that a message is on, from now on, and closes what is open on the branch that was shown.
 *
 * @throws CountersignError `thread-unknown` (404), `thread-busy` (409), `thread-full` (507), `ledger-unavailable`
 */
export async function showVersion(
  threads: KnownThreads,
  key: ThreadKey,
  messageId: string,
  settings: Pick<AgentSettings, 'approvals' | 'limits' | 'runLog' | 'warn' | 'generateId'>,
  closeCalls: CloseCalls,
): Promise<void> {
  const run = { runId: randomId('version_'), holder: randomId('holder_') }
  const interrupted = await takeThread(threads, key, run, settings.approvals.leaseMs)
  try {
    await restoreRuns(threads, settings, key, run, interrupted)
    const thread = await threads.open(key, settings.limits.cachedThreadBytes)
    const head = thread && headOf(thread.messages, messageId)
    if (thread === undefined || head === undefined) {
      const message = 'There is no such thread, or no such message in it.'
      throw new CountersignError('thread-unknown', message, { status: 404 })
    }
    const shown = branchOf(thread)
    if (shown.some(({ id }) => id === messageId)) return
    const newId = newIds(settings.generateId, (id) => thread.byId.has(id))
    const closed = await leaveBranch(shown, branchOf({ ...thread, head }), closeCalls, newId)
    await new ThreadWriter(threads, key, run, thread.version, head).append({ messages: closed, head })
  } finally {
    // If that fails, the lease ends by itself.
    await threads.release(key, run).catch(() => {})
  }
}
