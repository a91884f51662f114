import type { CreatePersistence, CreateRecordStore } from './persistence/bench.js'
import { damaging } from './persistence/damaging.js'
import { keeping } from './persistence/keeping.js'
import { versioning } from './persistence/versioning.js'
import type { SuiteRunner } from './runner.js'

export type {
  CreatePersistence,
  CreateRecordStore,
  PersistenceUnderTest,
  RecordStoreUnderTest,
} from './persistence/bench.js'

/**
 * The tests that every {@link Persistence} passes. Call it at the top of a test file with the runner's `test` and `expect`.
 *
 * @example
 * describePersistence('my persistence', () => ({ persistence: myPersistence() }), { test, expect })
 */
export function describePersistence(name: string, create: CreatePersistence, runner: SuiteRunner): void {
  keeping(registering(name, create, runner), runner.expect)
}

/**
 * {@link describePersistence}, plus tests for storages that keep records as text in the format of
 * `webStorage` and `indexedDb`: damaged data, older and newer versions, and a full storage.
 */
export function describeRecordStore(name: string, create: CreateRecordStore, runner: SuiteRunner): void {
  describePersistence(name, () => create({ migrate: undefined }), runner)
  damaging(
    registering(name, () => create({ migrate: undefined }), runner),
    runner.expect,
  )
  versioning((migrate) => registering(name, () => create({ migrate }), runner), runner.expect)
}

function registering<Made extends { close?(): Promise<void> | void }>(
  name: string,
  create: () => Promise<Made> | Made,
  runner: SuiteRunner,
) {
  return (sentence: string, run: (made: Made) => Promise<void>) =>
    runner.test(`${sentence} (${name})`, async () => {
      const made = await create()
      try {
        await run(made)
      } finally {
        await made.close?.()
      }
    })
}
