import { createChatState, isCountersignError, readRecord, type ThreadRecord } from '@countersign/core'
import { expect, test, vi } from 'vitest'
import { describeRecordStore } from '../../testing/src/suites/persistence.js'
import { webStorage } from '../src/web-storage.js'
import { MemoryStorage } from './memory-storage.js'

const record: ThreadRecord = {
  ...readRecord(createChatState()),
  messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'a secret' }] }],
}

describeRecordStore(
  'webStorage in memory',
  ({ migrate }) => {
    const storage = new MemoryStorage()
    return {
      persistence: webStorage({ storage, migrate }),
      stored: async (threadId) => storage.getItem(`countersign:${threadId}`) ?? undefined,
      plant: async (threadId, text) => storage.setItem(`countersign:${threadId}`, text),
      aside: async (threadId) => storage.getItem(`countersign:${threadId}.corrupt`)?.split('\n') ?? [],
      fill: async () => {
        storage.quota = storage.used + 40
      },
    }
  },
  { test, expect },
)

async function errorOf(act: Promise<unknown>) {
  const error = await act.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!isCountersignError(error)) throw new Error(`no CountersignError: ${String(error)}`)
  return error
}

test('neither the import nor webStorage() touches the storage of the page', async () => {
  const touched = vi.fn()
  Object.defineProperty(globalThis, 'localStorage', { configurable: true, get: touched })
  try {
    const persistence = webStorage()
    expect(touched).not.toHaveBeenCalled()
    expect((await errorOf(persistence.load('a'))).code).toBe('persistence-unavailable')
    expect(touched).toHaveBeenCalled()
  } finally {
    Reflect.deleteProperty(globalThis, 'localStorage')
  }
})

test('the localStorage of the page is the default and is looked for anew each time', async () => {
  const persistence = webStorage()
  vi.stubGlobal('localStorage', undefined)
  expect((await errorOf(persistence.save('a', record))).code).toBe('persistence-unavailable')
  const storage = new MemoryStorage()
  vi.stubGlobal('localStorage', storage)
  await persistence.save('a', record)
  expect(storage.key(0)).toBe('countersign:a')
  vi.unstubAllGlobals()
})

test('a storage that the browser blocks is reported with the reason', async () => {
  const blocked = new DOMException('Access is denied', 'SecurityError')
  const get = () => {
    throw blocked
  }
  Object.defineProperty(globalThis, 'localStorage', { configurable: true, get })
  try {
    const { load, save, remove } = webStorage()
    for (const act of [() => load('a'), () => save('a', record), () => remove('a')]) {
      const error = await errorOf(act())
      expect(error).toMatchObject({
        code: 'persistence-unavailable',
        data: { threadId: 'a' },
        cause: blocked,
      })
    }
  } finally {
    Reflect.deleteProperty(globalThis, 'localStorage')
  }
})

test('a save has been written when it returns its promise', async () => {
  const storage = new MemoryStorage()
  const saving = webStorage({ storage }).save('a', record)
  expect(storage.getItem('countersign:a')).toBe(JSON.stringify({ version: 1, record }))
  await saving
})

test('two prefixes in one storage share nothing', async () => {
  const storage = new MemoryStorage()
  const [alice, bob] = [webStorage({ storage, prefix: 'alice:' }), webStorage({ storage, prefix: 'bob:' })]
  await alice.save('a', record)
  expect(await bob.load('a')).toBeUndefined()
  await bob.remove('a')
  expect(await alice.load('a')).toEqual(record)
})

test('a full storage is reported with the ways out and what the storage threw', async () => {
  const error = await errorOf(webStorage({ storage: new MemoryStorage(10) }).save('a', record))
  expect(error).toMatchObject({ code: 'persistence-full', cause: { name: 'QuotaExceededError' } })
  expect(error.message).toContain('remove(threadId)')
  expect(error.message).toContain('indexedDb()')
})

test('the error about a damaged record says where it lies now and quotes nothing of it', async () => {
  const storage = new MemoryStorage()
  storage.setItem('countersign:a%002eb', '{"version":1, a secret')
  const error = await errorOf(webStorage({ storage }).load('a.b'))
  expect(error.data).toEqual({
    threadId: 'a.b',
    movedTo: 'countersign:a%002eb.corrupt',
    reason: 'not-json',
  })
  expect(`${error.message}${String(error.cause)}`).not.toContain('secret')
})

test('a damaged record is moved aside also where there is no room for it twice', async () => {
  const storage = new MemoryStorage()
  storage.setItem('countersign:a', 'x'.repeat(1000))
  storage.quota = storage.used + '.corrupt'.length
  expect((await errorOf(webStorage({ storage }).load('a'))).code).toBe('persistence-corrupt')
  expect(storage.getItem('countersign:a')).toBeNull()
  expect(storage.getItem('countersign:a.corrupt')).toBe('x'.repeat(1000))
})

test('a damaged record that cannot be moved stays where it is', async () => {
  const storage = new MemoryStorage()
  storage.setItem('countersign:a', 'damaged')
  storage.quota = storage.used
  expect((await errorOf(webStorage({ storage }).load('a'))).code).toBe('persistence-full')
  expect(storage.getItem('countersign:a')).toBe('damaged')
})

test('a wrong option is named at construction', () => {
  const wrong = JSON.parse('{"storage":{},"prefix":7,"migrate":"x"}')
  for (const option of ['storage', 'prefix', 'migrate']) {
    const make = () => webStorage({ [option]: wrong[option] })
    expect(make).toThrow(expect.objectContaining({ code: 'invalid-option', data: { option } }))
  }
})
