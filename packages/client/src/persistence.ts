import { mirrorSteps, restoreSteps } from '@countersign/core'
import type { Persistence, Persistent } from './persistence/persistence.js'
import { Thread } from './persistence/thread.js'

export type { Persistence, Persistent } from './persistence/persistence.js'

/**
 * Makes a storage of your own one that a client can keep its conversation in: it loads the thread once, then saves what changed, one save
 * at a time and the newest state last. A storage that fails is told of by `onError`; the chat goes on.
 *
 * @example new ChatClient({ connection, threadId, persistence: persistent({ load, save, remove }) })
 */
export function persistent(storage: Persistence): Persistent {
  return {
    load: (threadId) => storage.load(threadId),
    save: (threadId, record) => storage.save(threadId, record),
    remove: (threadId) => storage.remove(threadId),
    steps: { ...restoreSteps, ...mirrorSteps },
    open: (session, host) => new Thread(session, host, storage),
  }
}
