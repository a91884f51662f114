import { type RedisClient, redisThreads } from '@countersign/redis'
import { describeThreads } from '@countersign/testing/suites'
import { expect } from 'vitest'
import { useRedis } from './server.js'

const { test, connect, newPrefix } = await useRedis('threads in Redis')

const key = { owner: 'alice', threadId: 'thread' }
const r1 = { runId: 'r1', holder: 'h1' }
const message = (id: string) => ({ id, parent: null, message: JSON.stringify({ id }) })

describeThreads(
  'redisThreads',
  async (options) => {
    const prefix = newPrefix()
    const [one, other] = [await connect(), await connect()]
    return {
      store: redisThreads(one, { prefix, ...options }),
      another: redisThreads(other, { prefix, ...options }),
    }
  },
  { test, expect },
)

/** A client that loses the first write of a thread: before it reaches Redis, or its reply. */
function lossy(inner: RedisClient, what: 'script' | 'reply'): RedisClient {
  let isLost = false
  return {
    async eval(script, options) {
      if (isLost || !script.includes("return 'changed'")) return inner.eval(script, options)
      isLost = true
      if (what === 'reply') await inner.eval(script, options)
      throw new Error('Socket closed unexpectedly')
    },
  }
}

for (const what of ['script', 'reply'] as const) {
  test(`T3 a change whose ${what} is lost with its connection is made once`, async () => {
    const prefix = newPrefix()
    const client = await connect()
    const losing = () => redisThreads(lossy(client, what), { prefix })
    const store = redisThreads(client, { prefix })
    expect(await losing().hold(key, r1, 60_000)).toEqual({ status: 'held', version: 0, interrupted: [] })
    const change = { version: 0, run: r1, messages: [message('m1')], release: true }
    expect(await losing().append(key, change)).toEqual({ status: 'appended', version: 1 })
    expect(await losing().rename(key, 'Title')).toBe(true)
    expect(await store.load(key)).toMatchObject({ version: 1, title: 'Title', messages: [message('m1')] })
    expect(await losing().remove(key)).toBe(true)
    expect(await store.load(key)).toBeUndefined()
  })
}

test('T3 a change that was reported as failed and was made even so is told as appended when it is sent again', async () => {
  const prefix = newPrefix()
  const client = await connect()
  const store = redisThreads(client, { prefix })
  const change = { version: 0, messages: [message('m1')] }
  let isBroken = false
  const breaking: RedisClient = {
    async eval(script, options) {
      const reply = isBroken ? undefined : await client.eval(script, options)
      isBroken ||= script.includes("return 'changed'")
      if (isBroken) throw new Error('Socket closed unexpectedly')
      return reply
    },
  }
  const failing = redisThreads(breaking, { prefix })
  await expect(failing.append(key, change)).rejects.toMatchObject({ code: 'ledger-unavailable' })
  expect(await store.append(key, change)).toEqual({ status: 'appended', version: 1 })
  expect((await store.load(key))?.messages).toEqual([message('m1')])
})

test('an append costs two scripts, which carry nothing of the messages that are there already', async () => {
  const prefix = newPrefix()
  const client = await connect()
  const messages = Array.from({ length: 2000 }, (_, n) => message(`m${n}`))
  await redisThreads(client, { prefix }).append(key, { version: 0, messages })
  const sizes: number[] = []
  const counting: RedisClient = {
    async eval(script, options) {
      const reply = await client.eval(script, options)
      sizes.push(JSON.stringify([options, reply]).length)
      return reply
    },
  }
  const counted = redisThreads(counting, { prefix })
  expect((await counted.append(key, { version: 1, messages: [message('more')] })).status).toBe('appended')
  expect([sizes.length, sizes.every((size) => size < 3000)]).toEqual([2, true])
  sizes.length = 0
  expect((await counted.load(key, 1))?.messages).toEqual([message('more')])
  expect([sizes.length, sizes.every((size) => size < 3000)]).toEqual([1, true])
})

test('T5 no key is left of a thread that was removed or only held, and all keys of an owner are in one slot', async () => {
  const prefix = newPrefix()
  const client = await connect()
  const store = redisThreads(client, { prefix })
  await store.append(key, { version: 0, messages: [message('m1')], usage: { runId: 'r1', usage: [] } })
  await store.hold(key, r1, 60_000)
  const keys = await client.keys(`${prefix}*`)
  const slots = keys.filter((one) => !one.endsWith('threads:held')).map((one) => /\{(.*)\}/.exec(one)?.[1])
  expect([slots.length, new Set(slots).size, keys.length]).toEqual([5, 1, 6])
  await store.hold({ ...key, threadId: 'held' }, r1, 60_000)
  await store.release({ ...key, threadId: 'held' }, r1)
  await store.remove(key)
  expect(await client.keys(`${prefix}*`)).toEqual([])
})

test('without a clock of its own the store uses the clock of Redis', async () => {
  const store = redisThreads(await connect(), { prefix: newPrefix() })
  await store.append(key, { version: 0 })
  const { createdAt = 0, updatedAt } = (await store.load(key)) ?? {}
  expect([createdAt === updatedAt, Number.isInteger(createdAt)]).toEqual([true, true])
  expect(Math.abs(createdAt - Date.now()) < 60 * 60 * 1000).toBe(true)
  await store.hold(key, r1, 1)
  await store.hold({ ...key, threadId: 'long' }, r1, 60 * 60 * 1000)
  while ((await store.abandoned(10)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  expect(await store.abandoned(10)).toEqual([{ ...key, runId: 'r1' }])
  const held = await store.hold(key, { runId: 'r2', holder: 'h2' }, 60_000)
  expect(held).toMatchObject({ status: 'held', interrupted: [{ runId: 'r1' }] })
})
