import { mirrorSteps, restoreSteps } from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { checkKinds } from './kinds.js'
import { LeftRuns } from './persistence/left-runs.js'
import type { Persistence, Persistent, PersistentOptions } from './persistence/persistence.js'
import { Thread } from './persistence/thread.js'

export type { Persistence, Persistent, PersistentOptions } from './persistence/persistence.js'

/**
 * Turns your own storage into one that a client can use. It loads the thread once, then saves changes, one save at a time
 * and the newest state last: every `saveEvery` while a text grows, and at once after user actions, for new requests, and at the
 * start and end of each run. If the storage fails, or does not settle within `timeout`, `onError` is called and the chat continues.
 *
 * In development, throws `invalid-option` if an option is not a number of milliseconds.
 *
 * @example new ChatClient({ connection, threadId, persistence: persistent({ load, save, remove }) })
 */
export function persistent(storage: Persistence, options: PersistentOptions = {}): Persistent {
  const { saveEvery = 2000, timeout = 10_000 } = options
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('persistent', options, { saveEvery: 'number of milliseconds', timeout: 'number' })
  return {
    load: (threadId) => storage.load(threadId),
    save: (threadId, record) => storage.save(threadId, record),
    remove: (threadId) => storage.remove(threadId),
    ...(storage.update && { update: storage.update.bind(storage) }),
    // Included up front, because steps of another tab are applied synchronously.
    steps: { ...fullSteps, ...restoreSteps, ...mirrorSteps },
    open(session, host) {
      const left = new LeftRuns(session, host, storage, timeout)
      return new Thread(session, host, storage, { saveEvery, timeout }, left)
    },
  }
}
