import { checkKinds, invalidOption } from './kinds.js'
import { missing } from './persistence/failures.js'
import type { Persistent } from './persistence/persistence.js'
import type { MigrateRecord } from './persistence/record-text.js'
import { type TextStore, textPersistence } from './persistence/text-persistence.js'
import { persistent } from './persistence.js'

export type { Persistence, Persistent } from './persistence/persistence.js'
export type { MigrateRecord } from './persistence/record-text.js'

export interface WebStorageOptions {
  /** Default: `localStorage`, looked up on use. */
  storage?: Storage | undefined
  /** Prefix of every key. Use a separate one for each application, or signed-in user, of an origin. Default: `countersign:`. */
  prefix?: string | undefined
  /** Converts what an older version of this package stored. */
  migrate?: MigrateRecord | undefined
  /** Minimum milliseconds between saves while texts grow. Default 250. */
  saveEvery?: number | undefined
}

/**
 * Stores conversations in Web Storage: synchronous, even while a page closes, but limited to some 5 million characters
 * for the whole origin. A thread is JSON text under `<prefix><threadId>`, with `%`, `.` and lone surrogates of the id
 * written as `%` and four hexadecimal digits. Files in messages count too; for long conversations use `indexedDb()`.
 *
 * The messages contain the approval tokens, because an approval can be answered after a reload only with its token. Any
 * script of the origin can read them, and the conversation: call `remove(threadId)` when the user signs out.
 *
 * Rejections are CountersignErrors:
 * - `persistence-corrupt`: the stored data is no record. It was moved to `<key>.corrupt`, a new line for each, and the
 *   next load finds nothing.
 * - `persistence-full`: the record does not fit; the earlier one is kept.
 * - `persistence-unavailable`: there is no storage, or the browser blocks it; or a newer version of this package stored
 *   the data, and neither load nor save touches it.
 * - `invalid-argument`: the record is invalid, or cannot be written as JSON.
 *
 * `remove` deletes the thread whatever its version, including what was moved aside.
 *
 * @example new ChatClient({ connection, threadId, persistence: webStorage() })
 */
export function webStorage(options: WebStorageOptions = {}): Persistent {
  const { storage, prefix = 'countersign:', migrate, saveEvery = 250 } = options
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('webStorage', options, {
      storage: 'object',
      prefix: 'text',
      migrate: 'function',
      saveEvery: 'number of milliseconds',
    })
  const instead = ', keep files out of the messages, or use `indexedDb()`, which holds far more'
  if (storage && typeof storage.getItem !== 'function')
    throw invalidOption('webStorage', 'storage', 'a Storage')
  const texts = textsOf(() => storage ?? localStorageHere())
  return persistent(textPersistence(texts, { prefix, migrate, instead }), { saveEvery })
}

/** `null` or `undefined` outside browsers and in some web views. The getter throws if the browser blocks it. */
function localStorageHere(): Storage {
  const storage: Storage | null | undefined = globalThis.localStorage
  if (!storage) throw missing('localStorage')
  return storage
}

/** Nothing is awaited, so a save has been written by the time its promise is returned. */
function textsOf(open: () => Storage): TextStore {
  return {
    read: async (key) => open().getItem(key) ?? undefined,
    write: async (key, next) => {
      const storage = open()
      const text = next(storage.getItem(key) ?? undefined)
      if (text === undefined) storage.removeItem(key)
      else storage.setItem(key, text)
    },
    moveAside: async (key, value, aside) => {
      const storage = open()
      const present = storage.getItem(key)
      if (present === null || present !== value) return
      const earlier = storage.getItem(aside)
      // Removed first, because both copies may not fit at the same time.
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
