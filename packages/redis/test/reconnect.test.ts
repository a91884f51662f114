import { type RedisClient, redisAnswerChannel, redisLedger, redisRunLog } from '@countersign/redis'
import type { ApprovalRecord } from '@countersign/server'
import { createClient } from 'redis'
import { afterAll, test as anyTest, expect } from 'vitest'
import { findRedisServer, startRedis } from '../../../scripts/redis.mjs'

// these tests end the server, so it is never the one of REDIS_URL
const command = findRedisServer()
if (command === undefined) {
  console.warn(
    '\nNOT TESTED: a Redis that fails and comes back. Install redis-server and run the tests again.\n',
  )
}
const test = anyTest.skipIf(command === undefined)
const closers: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

const record: ApprovalRecord = {
  ...{ owner: 'alice', threadId: 'thread', approvalId: 'a', runId: 'run', toolCallId: 'call' },
  ...{ toolName: 'remove', arguments: '{}', scopes: ['once'], edits: true, idempotent: false },
  ...{ token: 'cs1.k.p.m', issuedAt: 0, expiresAt: Date.now() + 60 * 60 * 1000 },
}
const approve = { decision: 'approve', scope: 'once' } as const
const outcome = { type: 'result', content: 'done' } as const

async function start() {
  const server = await startRedis(command ?? '', { keep: true })
  closers.push(server.stop)
  return { server, client: await connect(server.url) }
}

async function connect(url: string, socket: { reconnectStrategy?: false } = {}) {
  const client = createClient({ url, socket }).on('error', () => {})
  await client.connect()
  closers.push(() => client.destroy())
  return client
}

test('Redis fails between claim and outcome: ledger-unavailable, and after its restart the outcome is recorded', async () => {
  const { server, client } = await start()
  const ledger = redisLedger(client, { timeout: 500 })
  await ledger.issue(record)
  expect((await ledger.claim(record, approve, 'h1', 600_000)).status).toBe('claimed')
  await ledger.grant({ owner: 'alice', threadId: 't', toolName: 'a', scopeKey: 'a', approved: true })
  await server.kill()
  await expect(ledger.complete(record, 'h1', outcome)).rejects.toMatchObject({ code: 'ledger-unavailable' })
  await expect(ledger.claim(record, approve, 'h2', 1000)).rejects.toMatchObject({
    code: 'ledger-unavailable',
  })
  await server.restart()
  const patient = redisLedger(client, { timeout: 10_000 })
  expect((await patient.claim(record, approve, 'h2', 1000)).status).toBe('in-progress')
  expect(await ledger.complete(record, 'h1', outcome)).toEqual({ status: 'recorded', late: false })
  expect((await ledger.claim(record, approve, 'h2', 1000)).status).toBe('repeat')
  expect((await ledger.list('alice')).length).toBe(1)
})

test('what waited for Redis and was given up is not done when it comes back', async () => {
  const { server, client } = await start()
  const ledger = redisLedger(client, { timeout: 300 })
  await ledger.issue(record)
  await server.kill()
  await expect(ledger.claim(record, approve, 'h1', 600_000)).rejects.toMatchObject({
    code: 'ledger-unavailable',
  })
  await server.restart()
  const patient = redisLedger(client, { timeout: 10_000 })
  expect((await patient.lookup(record))?.state).toEqual({ phase: 'issued' })
  expect((await patient.claim(record, approve, 'h2', 1000)).status).toBe('claimed')
})

test('open runs and readers hear again after Redis has come back', async () => {
  const { server, client } = await start()
  const log = redisRunLog(client, { timeout: 10_000 })
  const channel = redisAnswerChannel(client, { timeout: 10_000 })
  closers.push(log.close, channel.close)
  await channel.open('run', async () => ({ status: 'taken' }))
  const writer = await log.begin('run')
  await writer.append(['a'])
  await server.restart()
  await writer.append(['b'])
  await writer.end()
  const read: string[] = []
  for await (const batch of (await log.read('run', 0, new AbortController().signal)) ?? []) {
    read.push(...batch.map(({ data }) => data))
  }
  expect(read).toEqual(['a', 'b'])
  const deliver = () => channel.deliver('run', [{ interruptId: 'a', status: 'resolved', payload: {} }])
  // the connection that listens comes back by itself, in its own time
  let delivery = await deliver()
  while (delivery.status === 'refused') {
    await new Promise((resolve) => setTimeout(resolve, 50))
    delivery = await deliver()
  }
  expect(delivery).toEqual({ status: 'taken' })
})

test('a run hears its answer also after the connection that listens was given up, once Redis and its client are back', async () => {
  const { server, client: other } = await start()
  const client = await connect(server.url, { reconnectStrategy: false })
  const channel = redisAnswerChannel(client, { timeout: 2000 })
  const elsewhere = redisAnswerChannel(other, { timeout: 10_000 })
  closers.push(channel.close, elsewhere.close)
  await channel.open('run', async () => ({ status: 'taken' }))
  const answer = [{ interruptId: 'a', status: 'resolved', payload: {} }] as const
  await server.kill()
  await expect
    .poll(() => channel.deliver('run', answer).catch(({ code, message }) => `${code}: ${message}`))
    .toMatch(/^ledger-unavailable: .*given up the connection that listens .*ECONNREFUSED/)
  await server.restart()
  await client.connect()
  const outcome = (from: typeof channel) => async () =>
    (await from.deliver('run', answer).catch(({ code }) => ({ status: code }))).status
  await expect.poll(outcome(elsewhere), { timeout: 15_000 }).toBe('taken')
  await expect.poll(outcome(channel), { timeout: 15_000 }).toBe('taken')
})

for (const [what, happens] of [
  ['a claim whose confirmation is lost', 'after'],
  ['a claim that is lost on its way', 'before'],
] as const) {
  test(`${what} is made once, and by this holder`, async () => {
    const { client } = await start()
    let broken = 0
    const unreliable: RedisClient = {
      async eval(script, options) {
        const isChange = script.includes('ERR too late')
        if (!isChange || broken++ > 0) return client.eval(script, options)
        if (happens === 'after') await client.eval(script, options)
        throw new Error('Socket closed unexpectedly')
      },
    }
    const ledger = redisLedger(unreliable)
    await ledger.issue(record)
    expect((await ledger.claim(record, approve, 'h1', 600_000)).status).toBe('claimed')
    expect(broken > 0).toBe(true)
    expect((await ledger.claim(record, approve, 'h2', 600_000)).status).toBe('in-progress')
    expect((await ledger.complete(record, 'h1', outcome)).status).toBe('recorded')
  })
}
