import { corrupt, invalid, newerVersion, storageFailure } from './failures.js'
import type { Persistence } from './persistence.js'
import { isNewer, type MigrateRecord, readRecordText, versionOf, writeRecordText } from './record-text.js'

/** Where texts are kept by key. Each method is one step: no other tab's command comes in between. */
export interface TextStore {
  /** `undefined` where nothing stands. */
  read(key: string): Promise<unknown>
  /** Puts `text` under `key`, unless `guard` throws at what stands there. */
  write(key: string, text: string, guard: (present: unknown) => void): Promise<void>
  /** Adds what stands under `key`, if it is still `value`, to what lies under `aside`. */
  moveAside(key: string, value: unknown, aside: string): Promise<void>
  remove(keys: readonly string[]): Promise<void>
}

export interface TextPersistenceOptions {
  readonly prefix: string
  readonly migrate: MigrateRecord | undefined
  /** Another place for what does not fit, as the end of the sentence "Make room with ...". */
  readonly instead: string
}

/** Keeps records as versioned text. Both stores hold the same text, so that one reader serves both. */
export function textPersistence(store: TextStore, options: TextPersistenceOptions): Persistence {
  const { prefix, migrate, instead } = options
  if (typeof prefix !== 'string') throw invalid('prefix', 'a string')
  if (migrate !== undefined && typeof migrate !== 'function') throw invalid('migrate', 'a function')
  const keyOf = (threadId: string) => prefix + escapeKey(threadId)
  const asideOf = (threadId: string) => `${keyOf(threadId)}.corrupt`

  async function attempt<Result>(threadId: string, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw storageFailure(error, threadId, instead)
    }
  }

  return {
    load: (threadId) =>
      attempt(threadId, async () => {
        const key = keyOf(threadId)
        const stored = await store.read(key)
        if (stored === undefined) return undefined
        const reading = readRecordText(stored, migrate)
        switch (reading.status) {
          case 'record':
            return reading.record
          case 'newer':
            throw newerVersion(threadId, reading.version)
          case 'damaged':
            await store.moveAside(key, stored, asideOf(threadId))
            throw corrupt(threadId, asideOf(threadId), reading.damage, reading.cause)
          default:
            return reading satisfies never
        }
      }),
    save: (threadId, record) =>
      attempt(threadId, () =>
        store.write(keyOf(threadId), writeRecordText(record), (present) => {
          const version = versionOf(present)
          if (isNewer(version)) throw newerVersion(threadId, version)
        }),
      ),
    remove: (threadId) => attempt(threadId, () => store.remove([keyOf(threadId), asideOf(threadId)])),
  }
}

/** No escaped id holds a dot, so none ends like the key of what was moved aside; lone surrogates do not survive in every storage. */
function escapeKey(threadId: string): string {
  return threadId.replace(
    /[%.\p{Surrogate}]/gu,
    (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
