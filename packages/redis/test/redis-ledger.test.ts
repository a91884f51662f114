import { type RedisClient, redisLedger } from '@countersign/redis'
import type { ApprovalRecord } from '@countersign/server'
import { describeLedger } from '@countersign/testing/suites'
import { expect } from 'vitest'
import { HOUR, record, usesUnlessDenied } from '../../server/test/approval-record.js'
import { useRedis } from './server.js'

const { test, connect, newPrefix } = await useRedis('the ledger in Redis')

const approve = { decision: 'approve', scope: 'once' } as const

describeLedger(
  'redisLedger',
  async ({ now }) => {
    const prefix = newPrefix()
    const [one, other] = [await connect(), await connect()]
    return { ledger: redisLedger(one, { prefix, now }), another: redisLedger(other, { prefix, now }) }
  },
  { test, expect },
)

test('without a clock of its own the ledger uses the clock of Redis', async () => {
  const ledger = redisLedger(await connect(), { prefix: newPrefix() })
  await ledger.issue(record('a'))
  expect((await ledger.claim(record('a'), approve, 'h1', 30_000)).status).toBe('claimed')
  const row = await ledger.lookup(record('a'))
  const until = row?.state.phase === 'claimed' ? row.state.leaseUntil : 0
  expect(Math.abs(until - Date.now()) < 60_000).toBe(true)
})

test('every key of the ledger expires with what it holds', async () => {
  const client = await connect()
  const prefix = newPrefix()
  const ledger = redisLedger(client, { prefix })
  await ledger.issue(record('a'))
  await ledger.claim(record('a'), approve, 'h1', 1000)
  await ledger.grant({ owner: 'alice', threadId: 't', toolName: 'a', scopeKey: 'a', approved: true })
  await ledger.revoke({ owner: 'bob' })
  const keys = await client.keys(`${prefix}*`)
  const lives = await Promise.all(keys.map((key) => client.pTTL(key)))
  expect([keys.length > 4, lives.every((life) => life > 0)]).toEqual([true, true])
  expect(Math.min(...lives) > HOUR).toBe(true)
})

test('a call is found by its id as long as its record is kept after the answer: a day, or a week if its approval never expired', async () => {
  const client = await connect()
  for (const [expiresAt, days] of [
    [Date.now() + 300_000, 1],
    [8_640_000_000_000_000, 7],
  ] as const) {
    const prefix = newPrefix()
    const ledger = redisLedger(client, { prefix })
    await ledger.issue(record('a', { expiresAt }))
    await ledger.claim(record('a'), { ...approve, at: Date.now() }, 'h1', 1000)
    await ledger.complete(record('a'), 'h1', { type: 'result', content: '1' })
    const lives = await Promise.all((await client.keys(`${prefix}*`)).map((key) => client.pTTL(key)))
    expect(lives.map((life) => Math.round(life / (24 * HOUR)))).toEqual([days, days])
  }
})

test('what has expired in Redis is refused, and leaves the list of what is open', async () => {
  const ledger = redisLedger(await connect(), { prefix: newPrefix() })
  const short = record('a', { expiresAt: Date.now() - 60_000 + 50 })
  await ledger.issue(short)
  await ledger.issue(record('b'))
  while ((await ledger.lookup(short)) !== undefined) await new Promise((resolve) => setTimeout(resolve, 20))
  expect((await ledger.claim(short, approve, 'h1', 1000)).status).toBe('not-issued')
  expect((await ledger.unsettled('alice', 'thread')).map((entry) => entry.record.approvalId)).toEqual(['b'])
})

test('W12 the first standing denial stops a use that was decided before', async () => {
  const prefix = newPrefix()
  const client = await connect()
  const denying = redisLedger(await connect(), { prefix })
  let between: (() => Promise<unknown>) | undefined
  const paused: RedisClient = {
    eval: async (script, options) => {
      const work = script.includes('swapped') ? between : undefined
      if (work !== undefined) between = undefined
      await work?.()
      return client.eval(script, options)
    },
  }
  await usesUnlessDenied(redisLedger(paused, { prefix }), denying, (work) => {
    between = work
  })
})

test('two prefixes are two ledgers', async () => {
  const client = await connect()
  const [one, other] = [newPrefix(), newPrefix()].map((prefix) => redisLedger(client, { prefix }))
  await one?.issue(record('a'))
  expect(one?.id === other?.id).toBe(false)
  expect((await other?.claim(record('a'), approve, 'h', 1000))?.status).toBe('not-issued')
})

test('S3.23 grants of one owner are bounded: the oldest goes, and is asked about again', async () => {
  let now = 0
  const ledger = redisLedger(await connect(), { prefix: newPrefix(), now: () => now, maxGrantsPerOwner: 3 })
  for (const toolName of ['a', 'b', 'c', 'd']) {
    now++
    await ledger.grant({ owner: 'alice', threadId: 't', toolName, scopeKey: toolName, approved: true })
  }
  expect((await ledger.list('alice')).map(({ toolName }) => toolName)).toEqual(['b', 'c', 'd'])
})

test('texts that are not well-formed Unicode stay apart', async () => {
  const ledger = redisLedger(await connect(), { prefix: newPrefix() })
  await ledger.issue(record('a', { threadId: '\ud800' }))
  expect(await ledger.lookup(record('a', { threadId: '\ud801' }))).toBeUndefined()
  expect((await ledger.lookup(record('a', { threadId: '\ud800' })))?.record.threadId).toBe('\ud800')
})

test('the audit trail is read whole however long it is', async () => {
  const ledger = redisLedger(await connect(), { prefix: newPrefix() })
  for (let at = 1; at <= 600; at++) {
    await ledger.audit({ at, event: 'issued', ownerHash: 'h', threadId: 't' })
  }
  const read: number[] = []
  for await (const entry of ledger.auditTrail()) read.push(entry.at)
  expect([read.length, read[0], read.at(-1)]).toEqual([600, 1, 600])
})

test('F4 a thread has at most 1,024 open questions, and a new one where one of them has ended', async () => {
  const ledger = redisLedger(await connect(), { prefix: newPrefix() })
  const records = Array.from({ length: 1024 }, (_, index) => record(`a${index}`))
  const issued = await Promise.all(records.map((one) => ledger.issue(one)))
  expect(new Set(issued.map(({ status }) => status))).toEqual(new Set(['issued']))
  expect(await ledger.issue(record('more'))).toEqual({ status: 'full' })
  expect(await ledger.issue(records[0] ?? record(''))).toEqual({ status: 'unchanged' })
  expect(await ledger.issue(record('other', { threadId: 'other' }))).toEqual({ status: 'issued' })
  await ledger.claim(record('a0'), { decision: 'deny' }, 'h1', 1000)
  expect(await ledger.issue(record('more'))).toEqual({ status: 'issued' })
})

test('open questions of a thread have up to a size together, and new ones fit where some have ended', async () => {
  const prefix = newPrefix()
  const client = await connect()
  const expiresAt = Date.now() + HOUR
  // two bytes each in UTF-8
  const large = (id: string, more: Partial<ApprovalRecord> = {}) =>
    record(id, { arguments: `"${'\u00e9'.repeat(199)}"`, expiresAt, ...more })
  const soon = Date.now() - 60_000 + 1000
  const small = record('small', { arguments: `"${'x'.repeat(198)}"` })
  const bytes = [large('a'), large('b'), small].map((one) => Buffer.byteLength(JSON.stringify(one)))
  const maxOpenBytesPerThread = bytes.reduce((sum, one) => sum + one)
  const ledger = redisLedger(client, { prefix, maxOpenBytesPerThread })
  expect(await ledger.issue(large('a'))).toEqual({ status: 'issued' })
  expect(await ledger.issue(large('b', { expiresAt: soon }))).toEqual({ status: 'issued' })
  expect(await ledger.issue(large('c'))).toEqual({ status: 'full' })
  expect(await ledger.issue(large('a'))).toEqual({ status: 'unchanged' })
  expect(await ledger.issue(small)).toEqual({ status: 'issued' })
  expect(await ledger.issue(record('d', { arguments: '1' }))).toEqual({ status: 'full' })
  expect(await ledger.issue(large('c', { threadId: 'other' }))).toEqual({ status: 'issued' })
  expect(await ledger.issue(large('c', { owner: 'bob' }))).toEqual({ status: 'issued' })
  await ledger.claim(large('a'), { decision: 'deny' }, 'h1', 1000)
  expect(await ledger.issue(large('c'))).toEqual({ status: 'issued' })
  expect(await ledger.issue(large('e'))).toEqual({ status: 'full' })
  while ((await ledger.lookup(large('b'))) !== undefined)
    await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await ledger.issue(large('e'))).toEqual({ status: 'issued' })
  expect((await ledger.unsettled('alice', 'thread')).length).toBe(3)
})

test('a thread whose questions are about 0.9 MB each has four of them open, unless more is allowed', async () => {
  const client = await connect()
  const ledger = redisLedger(client, { prefix: newPrefix() })
  const large = Array.from({ length: 6 }, (_, index) =>
    record(`a${index}`, { arguments: `"${'x'.repeat(900_000)}"` }),
  )
  const issued: string[] = []
  for (const one of large) issued.push((await ledger.issue(one)).status)
  expect(issued).toEqual(['issued', 'issued', 'issued', 'issued', 'full', 'full'])
  expect(() => redisLedger(client, { maxOpenBytesPerThread: 0 })).toThrow('maxOpenBytesPerThread')
})

test('what is read of the open rows of a thread does not grow with the words of their answers', async () => {
  const ledger = redisLedger(await connect(), { prefix: newPrefix() })
  const words = { reason: 'r'.repeat(4096), arguments: JSON.stringify({ a: '"'.repeat(100_000) }) }
  const edited = { ...approve, ...words }
  for (let index = 0; index < 20; index++) {
    await ledger.issue(record(`a${index}`))
    await ledger.claim(record(`a${index}`), edited, `h${index}`, HOUR)
    if (index > 9) await ledger.complete(record(`a${index}`), `h${index}`, { type: 'interrupted' })
  }
  const open = await ledger.unsettled('alice', 'thread')
  expect(open.map(({ state }) => state.phase)).toEqual([
    ...Array.from({ length: 10 }, () => 'claimed'),
    ...Array.from({ length: 10 }, () => 'interrupted'),
  ])
  expect(JSON.stringify(open).length).toBeLessThan(20_000)
  expect((await ledger.lookup(record('a19')))?.state).toMatchObject({ phase: 'interrupted', answer: edited })
  expect(await ledger.claim(record('a19'), edited, 'h', HOUR)).toEqual({ status: 'interrupted' })
  expect((await ledger.claim(record('a19'), approve, 'h', HOUR)).status).toBe('conflict')
})

test('the settled calls of a thread come without the words of their answers, and say that there was an edit', async () => {
  const ledger = redisLedger(await connect(), { prefix: newPrefix() })
  const edited = { ...approve, reason: 'r'.repeat(4096), arguments: `"${'x'.repeat(100_000)}"` }
  await ledger.issue(record('a'))
  await ledger.claim(record('a'), edited, 'h1', HOUR)
  await ledger.complete(record('a'), 'h1', { type: 'result', content: '1' })
  const settled = (await ledger.settled?.('alice', 'thread', ['call'])) ?? []
  expect(settled.map(({ state }) => state)).toEqual([
    {
      phase: 'done',
      answer: { ...approve, arguments: '' },
      outcome: { type: 'result', content: '1' },
      late: false,
    },
  ])
  expect((await ledger.claim(record('a'), edited, 'h2', HOUR)).status).toBe('repeat')
})
