import { memoryThreads } from '@countersign/server'
import { expect, test } from 'vitest'
import { describeThreads } from '../../testing/src/suites/threads.js'

describeThreads('memoryThreads', (options) => ({ store: memoryThreads(options) }), { test, expect })

const message = (size: number) => [{ id: 'm', parent: null, message: `"${'x'.repeat(size - 2)}"` }]
const storeIsFull = { status: 'full', limit: 'store' }

test('each memory store has an id of its own, and does not outlive its process', () => {
  const [one, other] = [memoryThreads(), memoryThreads()]
  const { id } = one
  expect([one.id === id, other.id === id, one.durable]).toEqual([true, false, false])
})

test('beyond maxThreads nothing new is stored or held, and nothing that is stored is dropped', async () => {
  const store = memoryThreads({ maxThreads: 2 })
  const of = (owner: string) => ({ owner, threadId: 'thread' })
  await store.append(of('alice'), { version: 0 })
  await store.hold(of('bob'), { runId: 'r', holder: 'h' }, 1000)
  expect(await store.append(of('carol'), { version: 0 })).toEqual(storeIsFull)
  expect(await store.hold(of('carol'), { runId: 'r', holder: 'h' }, 1000)).toEqual(storeIsFull)
  expect((await store.load(of('alice')))?.version).toBe(1)
  await store.release(of('bob'), { runId: 'r', holder: 'h' })
  expect((await store.append(of('carol'), { version: 0 })).status).toBe('appended')
})

test('maxBytes bounds all threads together, maxBytesPerOwner those of one owner; what is removed makes room', async () => {
  const store = memoryThreads({ maxBytes: 100_000, maxBytesPerOwner: 60_000 })
  const append = (owner: string, threadId: string, size: number) =>
    store.append({ owner, threadId }, { version: 0, messages: message(size) })
  expect((await append('alice', 'a', 40_000)).status).toBe('appended')
  expect(await append('alice', 'b', 40_000)).toEqual(storeIsFull)
  expect((await append('bob', 'a', 40_000)).status).toBe('appended')
  expect(await append('carol', 'a', 40_000)).toEqual(storeIsFull)
  const key = { owner: 'alice', threadId: 'a' }
  expect((await store.hold(key, { runId: 'r'.repeat(60_000), holder: 'h' }, 1000)).status).toBe('held')
  expect(await store.rename(key, 'Title')).toBe(true)
  await store.remove(key)
  expect((await append('carol', 'a', 40_000)).status).toBe('appended')
})

test.each([
  'maxMessages',
  'maxMessageBytes',
  'maxThreadBytes',
  'maxThreadsPerOwner',
  'maxThreads',
  'maxBytes',
  'maxBytesPerOwner',
])('%s must be a positive integer', (option) => {
  for (const value of [0, -1, 1.5, Number.NaN])
    expect(() => memoryThreads({ [option]: value })).toThrow(option)
})

test('the pages of a list go on where the clock counts fractions of milliseconds', async () => {
  let time = 1000
  const store = memoryThreads({ now: () => (time += 0.3) })
  const ids = ['a', 'b', 'c', 'd']
  for (const threadId of ids) await store.append({ owner: 'ann', threadId }, { version: 0 })
  const listed: string[] = []
  for (let cursor: string | undefined, isLast = false; !isLast; isLast = cursor === undefined) {
    const page = await store.list('ann', { limit: 1, cursor })
    listed.push(...page.threads.map(({ threadId }) => threadId))
    cursor = page.cursor
  }
  expect(listed.toSorted()).toEqual(ids)
})

test('without a clock of its own the store uses the clock of the process', async () => {
  const store = memoryThreads()
  const [alice, bob] = ['alice', 'bob'].map((owner) => ({ owner, threadId: 'thread' }))
  if (alice === undefined || bob === undefined) return
  await store.hold(alice, { runId: 'r1', holder: 'h1' }, 1)
  await store.hold(bob, { runId: 'r1', holder: 'h1' }, 60 * 60 * 1000)
  while ((await store.abandoned(10)).length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  expect(await store.abandoned(10)).toEqual([{ ...alice, runId: 'r1' }])
  expect((await store.hold(alice, { runId: 'r2', holder: 'h2' }, 1)).status).toBe('held')
})
