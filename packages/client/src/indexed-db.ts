import { createStore, delMany, get, promisifyRequest, type UseStore } from 'idb-keyval'
import { checkKinds } from './kinds.js'
import { missing } from './persistence/failures.js'
import type { Persistent } from './persistence/persistence.js'
import type { MigrateRecord } from './persistence/record-text.js'
import { type TextStore, textPersistence } from './persistence/text-persistence.js'
import { persistent } from './persistence.js'

export type { Persistence, Persistent } from './persistence/persistence.js'
export type { MigrateRecord } from './persistence/record-text.js'

export interface IndexedDbOptions {
  /** The database, created if needed. Use a separate one for each application, or signed-in user, of an origin. Default: `countersign`. */
  name?: string | undefined
  /** Converts what an older version of this package stored. */
  migrate?: MigrateRecord | undefined
  /** Minimum milliseconds between saves while texts grow. Default 250. */
  saveEvery?: number | undefined
}

/**
 * Stores conversations in IndexedDB: it holds far more than Web Storage and never blocks the page, but a save that
 * starts while the page closes may not finish. A thread is JSON text in the object store `threads` under its id,
 * with `%`, `.` and lone surrogates of the id written as `%` and four hexadecimal digits.
 *
 * The messages contain the approval tokens, because an approval can be answered after a reload only with its token.
 * Any script of the origin can read them, and the conversation: call `remove(threadId)` when the user signs out.
 *
 * Rejections are CountersignErrors:
 * - `persistence-corrupt`: the stored data is no record. It was moved to `<key>.corrupt`, an array of all such
 *   data, and the next load finds nothing.
 * - `persistence-full`: the record does not fit; the earlier one is kept.
 * - `persistence-unavailable`: there is no IndexedDB, or the browser blocks it; or a newer version of this package
 *   stored the data, and neither load nor save touches it.
 * - `invalid-argument`: the record is invalid, or cannot be written as JSON.
 *
 * `remove` deletes the thread whatever its version, including what was moved aside.
 *
 * @example new ChatClient({ connection, threadId, persistence: indexedDb() })
 */
export function indexedDb(options: IndexedDbOptions = {}): Persistent {
  const { name = 'countersign', migrate, saveEvery = 250 } = options
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('indexedDb', options, {
      name: 'string',
      migrate: 'function',
      saveEvery: 'number of milliseconds',
    })
  const texts = textsOf(createStore(name, 'threads'))
  return persistent(textPersistence(texts, { prefix: '', migrate, instead: '' }), { saveEvery })
}

function textsOf(store: UseStore): TextStore {
  const opened: UseStore = async (mode, work) => {
    if (typeof indexedDB === 'undefined') throw missing('IndexedDB')
    return store(mode, work)
  }
  return {
    read: (key) => get<unknown>(key, opened),
    write: (key, next) =>
      opened('readwrite', (texts) =>
        committed(texts, async () => {
          const text = next(await promisifyRequest<unknown>(texts.get(key)))
          if (text === undefined) texts.delete(key)
          else texts.put(text, key)
        }),
      ),
    moveAside: (key, value, aside) =>
      opened('readwrite', (texts) =>
        committed(texts, async () => {
          const present = await promisifyRequest<unknown>(texts.get(key))
          if (present !== value) return
          const earlier = await promisifyRequest<unknown>(texts.get(aside))
          texts.put([...(Array.isArray(earlier) ? earlier : []), present], aside)
          texts.delete(key)
        }),
      ),
    remove: (keys) => delMany([...keys], opened),
  }
}

/** Waits for the end of the transaction. Only its `abort` event has the reason; its `error` event fires before the reason is set. */
async function committed({ transaction }: IDBObjectStore, work: () => Promise<void>): Promise<void> {
  const ended = new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () => reject(transaction.error)
  })
  await Promise.all([work(), ended])
}
