import { indexedDb } from '../../packages/client/src/indexed-db.js'
import type { MigrateRecord } from '../../packages/client/src/persistence/record-text.js'
import { webStorage } from '../../packages/client/src/web-storage.js'
import { rich } from '../../packages/testing/src/suites/persistence/bench.js'
import {
  describeRecordStore,
  type RecordStoreUnderTest,
} from '../../packages/testing/src/suites/persistence.js'

/** What the page of persistence.test.ts offers to the test. */
interface PersistencePage {
  /** Runs a case of the suite by its name; rejects where it fails. */
  run(name: string): Promise<void>
  save(store: StoreName, threadId: string): Promise<void>
  /** Whether the record comes back as `save` saved it. */
  loads(store: StoreName, threadId: string): Promise<boolean>
  /** The codes that loading, saving and removing reject with. */
  codes(store: StoreName): Promise<unknown[]>
}

export type StoreName = 'localStorage' | 'IndexedDB'

declare global {
  var persistencePage: PersistencePage
  /** Of the test: gives the origin so many bytes in all. */
  var limitStorage: (bytes: number) => Promise<void>
}

const cases = new Map<string, () => Promise<void>>()
const runner = {
  test: (name: string, run: () => Promise<void>) => {
    cases.set(name, run)
  },
  expect: (actual: unknown) => ({
    // all that the suite compares is JSON or undefined, with its members in the same order
    toEqual: (expected: unknown) => {
      const [is, should] = [JSON.stringify(actual), JSON.stringify(expected)]
      if (is !== should) throw new Error(`expected ${should?.slice(0, 300)}, got ${is?.slice(0, 300)}`)
    },
  }),
}

describeRecordStore('localStorage', ({ migrate }) => inLocalStorage(migrate), runner)
describeRecordStore('IndexedDB', ({ migrate }) => inIndexedDb(migrate), runner)

function inLocalStorage(migrate: MigrateRecord | undefined): RecordStoreUnderTest {
  localStorage.clear()
  return {
    persistence: webStorage({ migrate }),
    stored: async (threadId) => localStorage.getItem(`countersign:${threadId}`) ?? undefined,
    plant: async (threadId, text) => localStorage.setItem(`countersign:${threadId}`, text),
    aside: async (threadId) => localStorage.getItem(`countersign:${threadId}.corrupt`)?.split('\n') ?? [],
    fill: async () => {
      for (const size of [1_000_000, 100_000, 10_000, 1000]) fillWith('x'.repeat(size))
    },
    close: () => localStorage.clear(),
  }
}

function fillWith(filler: string): void {
  try {
    for (let count = 0; count < 100; count += 1)
      localStorage.setItem(`filler ${filler.length} ${count}`, filler)
  } catch {
    return
  }
  throw new Error('This browser gives localStorage more room than expected')
}

async function inIndexedDb(migrate: MigrateRecord | undefined): Promise<RecordStoreUnderTest> {
  await giveRoom()
  const name = crypto.randomUUID()
  return {
    persistence: indexedDb({ name, migrate }),
    stored: (threadId) => request(name, 'readonly', (texts) => texts.get(threadId)),
    plant: async (threadId, text) => {
      await request(name, 'readwrite', (texts) => texts.put(text, threadId))
    },
    aside: async (threadId) =>
      (await request(name, 'readonly', (texts) => texts.get(`${threadId}.corrupt`))) ?? [],
    fill: async () => {
      for (const size of [1_000_000, 100_000, 10_000]) await fillDatabase(size)
    },
    close: giveRoom,
  }
}

/** With random bytes, since what stands on the disk may be compressed. */
async function fillDatabase(size: number): Promise<void> {
  const filler = new Uint8Array(size)
  for (let start = 0; start < size; start += 10_000)
    crypto.getRandomValues(filler.subarray(start, start + 10_000))
  try {
    for (let count = 0; count < 100; count += 1) {
      await request('fillers', 'readwrite', (texts) => texts.put(filler, crypto.randomUUID()))
    }
  } catch {
    return
  }
  throw new Error('This browser gives IndexedDB more room than it was told to')
}

/** Chromium looks at the limit again only when it seems reached: so it is never lowered, but filled up to. */
async function giveRoom(): Promise<void> {
  const { usage = 0 } = await navigator.storage.estimate()
  await limitStorage(usage + 20_000_000)
}

async function request<Result>(
  name: string,
  mode: IDBTransactionMode,
  act: (texts: IDBObjectStore) => IDBRequest<Result>,
): Promise<Result> {
  const opening = indexedDB.open(name)
  opening.onupgradeneeded = () => opening.result.createObjectStore('threads')
  const database = await settled(opening)
  try {
    const transaction = database.transaction('threads', mode)
    const ended = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve()
      transaction.onabort = () => reject(transaction.error)
    })
    const [result] = await Promise.all([settled(act(transaction.objectStore('threads'))), ended])
    return result
  } finally {
    database.close()
  }
}

function settled<Result>(request: IDBRequest<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

const stores = { localStorage: () => webStorage(), IndexedDB: () => indexedDb() }

globalThis.persistencePage = {
  run: async (name) => {
    const run = cases.get(name)
    if (!run) throw new Error(`No case is named ${name}`)
    await run()
  },
  save: (store, threadId) => stores[store]().save(threadId, rich),
  loads: async (store, threadId) =>
    JSON.stringify(await stores[store]().load(threadId)) === JSON.stringify(rich),
  codes: async (store) => {
    const { load, save, remove } = stores[store]()
    const results = await Promise.allSettled([load('a'), save('a', rich), remove('a')])
    return results.map((result) => (result.status === 'rejected' ? result.reason.code : 'no error'))
  },
}
