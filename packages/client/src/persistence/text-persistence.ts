import { corrupt, newerVersion, storageFailure } from './failures.js'
import type { Persistence } from './persistence.js'
import { isNewer, type MigrateRecord, readRecordText, versionOf, writeRecordText } from './record-text.js'

/** A key-value store of texts. Each method is atomic: commands of other tabs cannot interleave. */
export interface TextStore {
  /** `undefined` if there is nothing. */
  read(key: string): Promise<unknown>
  /** Replaces the value of `key` by what `next` makes of it, `undefined` removes it. If `next` throws, it stays. */
  write(key: string, next: (present: unknown) => string | undefined): Promise<void>
  /** Appends the value of `key` to what is stored under `aside`, if it is still `value`, and removes it from `key`. */
  moveAside(key: string, value: unknown, aside: string): Promise<void>
  remove(keys: readonly string[]): Promise<void>
}

export interface TextPersistenceOptions {
  readonly prefix: string
  readonly migrate: MigrateRecord | undefined
  /** Suggests another place for data that does not fit, as the end of the sentence "Make room with ...". */
  readonly instead: string
}

/** Stores records as versioned text. Both storages use the same format, so they share this code. */
export function textPersistence(store: TextStore, options: TextPersistenceOptions): Persistence {
  const { prefix, migrate, instead } = options
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
      attempt(threadId, async () => {
        const text = writeRecordText(record)
        await store.write(keyOf(threadId), (present) => {
          mustNotBeNewer(threadId, present)
          return text
        })
      }),
    update: (threadId, change) =>
      attempt(threadId, () =>
        store.write(keyOf(threadId), (present) => {
          mustNotBeNewer(threadId, present)
          const reading = readRecordText(present, migrate)
          const record = change(reading.status === 'record' ? reading.record : undefined)
          return record && writeRecordText(record)
        }),
      ),
    remove: (threadId) => attempt(threadId, () => store.remove([keyOf(threadId), asideOf(threadId)])),
  }
}

function mustNotBeNewer(threadId: string, present: unknown): void {
  const version = versionOf(present)
  if (isNewer(version)) throw newerVersion(threadId, version)
}

/** Escaped ids contain no dot, so none can end like the key of data moved aside. Some storages do not preserve lone surrogates. */
function escapeKey(threadId: string): string {
  return threadId.replace(
    /[%.\p{Surrogate}]/gu,
    (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
