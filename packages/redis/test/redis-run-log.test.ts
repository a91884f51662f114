import { type RedisRunLogOptions, redisRunLog } from '@countersign/redis'
import { describeRunLog } from '@countersign/testing/suites'
import { expect } from 'vitest'
import { useRedis } from './server.js'

const { test, connect, newPrefix } = await useRedis('the run log in Redis')

async function logs(options: RedisRunLogOptions = {}) {
  const prefix = newPrefix()
  const [log, another] = [
    redisRunLog(await connect(), { prefix, ...options }),
    redisRunLog(await connect(), { prefix }),
  ]
  const close = () => {
    log.close()
    another.close()
  }
  return { log, another, prefix, close }
}

describeRunLog('redisRunLog', logs, { test, expect })

test('a run that says more than is kept is dropped whole, and its readers end', async () => {
  const { log, another, close } = await logs({ maxRunSize: 100 })
  const writer = await log.begin('run')
  await writer.append(['a'.repeat(60)])
  const stop = new AbortController()
  const reading = await another.read('run', 1, stop.signal)
  const read: unknown[] = []
  const ended = (async () => {
    for await (const batch of reading ?? []) read.push(...batch)
  })()
  await writer.append(['b'.repeat(60)])
  await writer.append(['c'])
  await ended
  expect(read).toEqual([])
  expect(await another.read('run', 0, stop.signal)).toBeUndefined()
  close()
})

test('a run is forgotten some time after its end', async () => {
  const { log, another, close } = await logs({ keepFor: 30 })
  const writer = await log.begin('run')
  await writer.append(['a'])
  await writer.end()
  const { signal } = new AbortController()
  while ((await another.read('run', 0, signal)) !== undefined)
    await new Promise((resolve) => setTimeout(resolve, 10))
  close()
})

test('a run whose server is gone is over for its readers with its lease, and is read without waiting for keepFor', async () => {
  const { log, another, prefix, close } = await logs({ keepFor: 60_000 })
  const writer = await log.begin('run')
  await writer.append(['a'])
  const { signal } = new AbortController()
  const read: unknown[] = []
  const ended = (async () => {
    for await (const batch of (await another.read('run', 1, signal)) ?? []) read.push(...batch)
  })()
  const expire = async (ms: number) => {
    const script = `for _, key in ipairs(redis.call('KEYS', ARGV[2])) do redis.call('PEXPIRE', key, ARGV[1]) end`
    await (await connect()).eval(script, { keys: [], arguments: [String(ms), `${prefix}*`] })
  }
  await expire(60_000)
  await ended
  expect(read).toEqual([])
  expect(await another.read('run', 0, signal)).toBeUndefined()
  for await (const batch of (await another.read('run', 0, signal, { wait: false })) ?? []) read.push(...batch)
  expect(read).toEqual([{ n: 1, data: 'a' }])
  await expire(0)
  expect(await another.read('run', 0, signal, { wait: false })).toBeUndefined()
  await writer.end()
  close()
})

test('a run that is open and silent is kept as long as its server lives', async () => {
  const { log, another, close } = await logs({ lease: 2000 })
  const writer = await log.begin('run')
  await writer.append(['a'])
  // longer than the lease, which is long enough for a machine that is busy with other work
  await new Promise((resolve) => setTimeout(resolve, 3000))
  const { signal } = new AbortController()
  expect(await another.read('run', 1, signal)).toBeDefined()
  await writer.end()
  close()
})
