import { invalid, missing } from './persistence/failures.js'
import type { Persistent } from './persistence/persistence.js'
import type { MigrateRecord } from './persistence/record-text.js'
import { type TextStore, textPersistence } from './persistence/text-persistence.js'
import { persistent } from './persistence.js'

export type { Persistence, Persistent } from './persistence/persistence.js'
export type { MigrateRecord } from './persistence/record-text.js'

export interface WebStorageOptions {
  /** Default: `localStorage`, read when it is used. */
  storage?: Storage | undefined
  /** Stands before every key. Give each application, or each signed-in user, of an origin one of its own. Default: `countersign:`. */
  prefix?: string | undefined
  /** Reads what an older version of this package stored. */
  migrate?: MigrateRecord | undefined
  /** While texts grow the record is saved no more often than this, in milliseconds. Default 250. */
  saveEvery?: number | undefined
}

/**
 * Keeps conversations in Web Storage: at once, also while a page goes away, but some 5 million characters for the whole origin. A thread
 * lies as JSON text under `<prefix><threadId>`, with `%`, `.` and lone surrogates of the id written as `%` and four hexadecimal digits.
 * The files that messages carry count too; for long conversations take `indexedDb()`.
 *
 * The messages hold the approval tokens, since an approval can be answered after a reload only with its token. Any script of the origin
 * can read them, and the conversation: `remove(threadId)` when the person signs out.
 *
 * Rejections are CountersignErrors:
 * - `persistence-corrupt`: what is stored is no record. It was moved to `<key>.corrupt`, a new line for each, and the next load finds nothing.
 * - `persistence-full`: the record does not fit; the earlier one stands.
 * - `persistence-unavailable`: there is no storage or the browser blocks it; or what is stored is of a newer version than this package
 *   knows, and neither load nor save touches it.
 * - `invalid-argument`: the record is none, or is not JSON.
 *
 * `remove` deletes the thread whatever its version, and what was moved aside of it.
 *
 * @example new ChatClient({ connection, threadId, persistence: webStorage() })
 */
export function webStorage(options: WebStorageOptions = {}): Persistent {
  const { storage, prefix = 'countersign:', migrate, saveEvery = 250 } = options
  if (storage !== undefined && typeof storage?.getItem !== 'function') throw invalid('storage', 'a Storage')
  const instead = ', keep files out of the messages, or use `indexedDb()`, which holds far more'
  const texts = textsOf(() => storage ?? localStorageHere())
  return persistent(textPersistence(texts, { prefix, migrate, instead }), { saveEvery })
}

/** `null` or `undefined` outside browsers and in some web views; the getter throws where the browser blocks it. */
function localStorageHere(): Storage {
  const storage: Storage | null | undefined = globalThis.localStorage
  if (!storage) throw missing('localStorage')
  return storage
}

/** Nothing is awaited, so a save has been written when it returns its promise. */
function textsOf(open: () => Storage): TextStore {
  return {
    read: async (key) => open().getItem(key) ?? undefined,
    write: async (key, text, guard) => {
      const storage = open()
      guard(storage.getItem(key) ?? undefined)
      storage.setItem(key, text)
    },
    moveAside: async (key, value, aside) => {
      const storage = open()
      const present = storage.getItem(key)
      if (present === null || present !== value) return
      const earlier = storage.getItem(aside)
      // removed first, because both may not fit side by side
      storage.removeItem(key)
      try {
        storage.setItem(aside, earlier === null ? present : `${earlier}\n${present}`)
      } catch (error) {
        storage.setItem(key, present)
        throw error
      }
    },
    remove: async (keys) => {
      for (const key of keys) open().removeItem(key)
    },
  }
}
