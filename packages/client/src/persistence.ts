import { mirrorSteps, restoreSteps } from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { invalid } from './persistence/failures.js'
import type { Persistence, Persistent, PersistentOptions } from './persistence/persistence.js'
import { Thread } from './persistence/thread.js'

export type { Persistence, Persistent, PersistentOptions } from './persistence/persistence.js'

/**
 * Makes a storage of your own one that a client can keep its conversation in: it loads the thread once, then saves what changed, one save
 * at a time and the newest state last: every `saveEvery` while a text grows, at once where something is answered and at the start and end
 * of each run. A storage that fails, or does not settle within `timeout`, is told of by `onError`; the chat goes on.
 *
 * Throws `invalid-option` where an option is no number of milliseconds.
 *
 * @example new ChatClient({ connection, threadId, persistence: persistent({ load, save, remove }) })
 */
export function persistent(storage: Persistence, options: PersistentOptions = {}): Persistent {
  const { saveEvery = 2000, timeout = 10_000 } = options
  for (const [option, value] of Object.entries({ saveEvery, timeout })) {
    if (typeof value !== 'number' || !(value >= 0)) throw invalid(option, 'a number of milliseconds')
  }
  return {
    load: (threadId) => storage.load(threadId),
    save: (threadId, record) => storage.save(threadId, record),
    remove: (threadId) => storage.remove(threadId),
    // What another tab has taken is taken here at once.
    steps: { ...fullSteps, ...restoreSteps, ...mirrorSteps },
    open: (session, host) => new Thread(session, host, storage, { saveEvery, timeout }),
  }
}
