import { createStore, delMany, get, promisifyRequest, type UseStore } from 'idb-keyval'
import { invalid, missing } from './persistence/failures.js'
import type { Persistent } from './persistence/persistence.js'
import type { MigrateRecord } from './persistence/record-text.js'
import { type TextStore, textPersistence } from './persistence/text-persistence.js'
import { persistent } from './persistence.js'

export type { Persistence, Persistent } from './persistence/persistence.js'
export type { MigrateRecord } from './persistence/record-text.js'

export interface IndexedDbOptions {
  /** The database, which is made where there is none. Give each application, or each signed-in user, of an origin one of its own. Default: `countersign`. */
  name?: string | undefined
  /** Reads what an older version of this package stored. */
  migrate?: MigrateRecord | undefined
  /** While texts grow the record is saved no more often than this, in milliseconds. Default 250. */
  saveEvery?: number | undefined
}

/**
 * Keeps conversations in IndexedDB: far more room than Web Storage, and nothing blocks the page; but a save begun while a page goes away
 * may not be finished. A thread lies as JSON text in the object store `threads` under its id, with `%`, `.` and lone surrogates of
 * the id written as `%` and four hexadecimal digits.
 *
 * The messages hold the approval tokens, since an approval can be answered after a reload only with its token. Any script of the origin
 * can read them, and the conversation: `remove(threadId)` when the person signs out.
 *
 * Rejections are CountersignErrors:
 * - `persistence-corrupt`: what is stored is no record. It was moved to `<key>.corrupt`, an array of all that was, and the next load finds nothing.
 * - `persistence-full`: the record does not fit; the earlier one stands.
 * - `persistence-unavailable`: there is no IndexedDB or the browser blocks it; or what is stored is of a newer version than this package
 *   knows, and neither load nor save touches it.
 * - `invalid-argument`: the record is none, or is not JSON.
 *
 * `remove` deletes the thread whatever its version, and what was moved aside of it.
 *
 * @example new ChatClient({ connection, threadId, persistence: indexedDb() })
 */
export function indexedDb(options: IndexedDbOptions = {}): Persistent {
  const { name = 'countersign', migrate, saveEvery = 250 } = options
  if (typeof name !== 'string' || name === '') throw invalid('name', 'the name of a database')
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
    write: (key, text, guard) =>
      opened('readwrite', (texts) =>
        committed(texts, async () => {
          guard(await promisifyRequest<unknown>(texts.get(key)))
          texts.put(text, key)
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

/** Waits for the end of the transaction: only its `abort` tells why, its `error` event comes before the reason is set. */
async function committed({ transaction }: IDBObjectStore, work: () => Promise<void>): Promise<void> {
  const ended = new Promise<void>((resolve, reject) => {
    transaction.oncomplete = () => resolve()
    transaction.onabort = () => reject(transaction.error)
  })
  await Promise.all([work(), ended])
}
