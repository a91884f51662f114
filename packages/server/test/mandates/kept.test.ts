import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApprovalRecord, type GrantRequest, type Ledger, memoryLedger } from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { record } from '../approval-record.js'
import { results } from '../support.js'
import { bill, openChat } from './chat.js'

const key = { owner: 'ann', threadId: 't', toolName: 'pay' }

const grant = (ledger: Ledger, n: number, to: string, approved: boolean, threadId = 't') =>
  ledger.grant({
    ...{ ...key, threadId, scopeKey: `terms ${n}`, approved },
    terms: {
      ...{ label: `Pay ${to}`, tool: 'v1', approvalId: `approval ${n}` },
      where: [{ field: 'to', is: to }],
    },
  })

const find = (ledger: Ledger, to: string) =>
  ledger.findMandate?.({ ...key, tool: 'v1', input: { to }, callKey: 'call', since: 0 }, 'look')

test('W12 of more mandates than are kept for a tool, the oldest is dropped, and no standing denial', async () => {
  const ledger = memoryLedger()
  await grant(ledger, 0, 'mallory', false)
  for (let n = 1; n <= 65; n++) await grant(ledger, n, `supplier ${n}`, true)
  expect(await ledger.list('ann', 't')).toHaveLength(65)
  expect(await find(ledger, 'mallory')).toMatchObject({ approved: false })
  expect(await find(ledger, 'supplier 1')).toBeUndefined()
  expect(await find(ledger, 'supplier 2')).toMatchObject({ approved: true })
})

test('W12 the reason of a standing denial is kept, and told the model, up to 4,096 characters', async () => {
  const ledger = memoryLedger()
  const chat = openChat({ ledger })
  await chat.reply(await chat.propose([bill(500, 'mallory')]), {
    ...{ approved: false, mandate: 'never' },
    reason: 'r'.repeat(100_000),
  })
  const [kept] = await ledger.list('ann', 'thread')
  expect(kept?.terms?.reason).toBe('r'.repeat(4096))
  const { results: refused } = await chat.propose([bill(1, 'mallory')])
  expect(JSON.stringify(refused).length).toBeLessThan(10_000)
})

test('W12 the conditions and reasons of the standing denials of a tool are kept up to 65,536 characters: one more is refused', async () => {
  const ledger = memoryLedger()
  const long = (n: number) => `${n}${'x'.repeat(16_000)}`
  for (let n = 0; n < 4; n++)
    expect(await grant(ledger, n, long(n), false)).toMatchObject({ status: 'granted' })
  expect(await grant(ledger, 4, long(4), false)).toEqual({ status: 'full' })
  expect(await find(ledger, long(0))).toMatchObject({ approved: false })
  expect(await grant(ledger, 5, 'eve', false)).toMatchObject({ status: 'granted' })
})

test('W12 of mandates whose conditions are too long together, the oldest is dropped, as many as need be', async () => {
  const ledger = memoryLedger()
  const long = (n: number, length = 16_000) => `${n}${'x'.repeat(length)}`
  for (let n = 0; n < 4; n++) await grant(ledger, n, long(n), true)
  expect(await grant(ledger, 4, long(4, 30_000), true)).toMatchObject({ status: 'granted' })
  expect((await ledger.list('ann', 't')).map(({ scopeKey }) => scopeKey)).toEqual([
    'terms 2',
    'terms 3',
    'terms 4',
  ])
  // what never fits drops nothing
  expect(await grant(ledger, 5, long(5, 70_000), true)).toEqual({ status: 'full' })
  expect(await ledger.list('ann', 't')).toHaveLength(3)
})

test('W12 maxGrantsPerOwner drops no standing denial: it refuses one for a conversation too many', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kept-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const limits = { maxGrantsPerOwner: 3 }
  const file = await fileLedger(join(folder, 'ledger.sqlite'), limits)
  onTestFinished(() => file.close())
  for (const ledger of [memoryLedger(limits), file]) {
    await grant(ledger, 0, 'mallory', false)
    for (let n = 1; n <= 4; n++)
      await ledger.grant({ ...key, threadId: `t${n}`, scopeKey: 'pay', approved: true })
    expect(await find(ledger, 'mallory')).toMatchObject({ approved: false })
    await grant(ledger, 1, 'mallory', false, 't1')
    await grant(ledger, 2, 'mallory', false, 't2')
    expect(await grant(ledger, 3, 'mallory', false, 't3')).toEqual({ status: 'full' })
    // A conversation that has one has room for another.
    expect(await grant(ledger, 4, 'eve', false)).toMatchObject({ status: 'granted' })
    expect(await find(ledger, 'mallory')).toMatchObject({ approved: false })
  }
})

test('W12 a full memory ledger keeps its standing denials, and takes no other', async () => {
  const ledger = memoryLedger({ maxRecordsPerOwner: 4 })
  await grant(ledger, 0, 'mallory', false)
  const ask = (n: number) => {
    const record: ApprovalRecord = {
      ...{ ...key, approvalId: `a${n}`, runId: 'r', toolCallId: `c${n}`, arguments: '{}' },
      ...{ scopes: ['once'], edits: false, idempotent: false, token: 'cs1.k.p.m' },
      ...{ issuedAt: 0, expiresAt: Number.MAX_SAFE_INTEGER / 2 },
    }
    return ledger.issue(record)
  }
  const issued = await Promise.all([1, 2, 3, 4].map(ask))
  expect(issued.map(({ status }) => status)).toEqual(['issued', 'issued', 'issued', 'full'])
  expect(await grant(ledger, 1, 'mallory', false, 't1')).toEqual({ status: 'full' })
  expect(await find(ledger, 'mallory')).toMatchObject({ approved: false })
})

/** A mandate for two payments, chosen with one of them. */
const give = (ledger: Ledger, to: string, more: Partial<GrantRequest> = {}) =>
  ledger.grant({
    ...{ ...key, scopeKey: to, approved: true, uses: 2, ...more },
    terms: { label: 'Pay', where: [{ field: 'to', is: to }], tool: 'v1', approvalId: 'approval' },
    call: { ...key, tool: 'v1', input: { to }, callKey: 'approval', since: 0 },
  })

test('W9 a mandate with limits for which a memory ledger has no room is not reported as given', async () => {
  const to = 'x'.repeat(2000)
  const [small, large] = [memoryLedger({ maxSizePerOwner: 1000 }), memoryLedger({ maxSizePerOwner: 10_000 })]
  expect(await give(small, to)).toEqual({ status: 'uncounted' })
  expect(await give(large, to)).toMatchObject({ status: 'granted', grant: { usesLeft: 1 } })
  // Nothing is to be counted.
  expect(await give(small, to, { uses: undefined })).toEqual({ status: 'full' })
})

test('W9 mandates with limits that fill the share of a user can be revoked to make room', async () => {
  const ledger = memoryLedger({ maxRecords: 40, maxRecordsPerOwner: 4 })
  for (let n = 0; n < 4; n++) await give(ledger, 'acme', { threadId: `t${n}` })
  const ask = (id: string, owner: string) => ledger.issue(record(id, { owner }))
  expect([await ask('a', 'ann'), await ask('b', 'bob')]).toEqual([{ status: 'full' }, { status: 'issued' }])
  const [oldest] = await ledger.list('ann')
  await ledger.revoke({ owner: 'ann', id: oldest?.id })
  expect(await ask('a', 'ann')).toEqual({ status: 'issued' })
})

test('W9 that a full ledger could not count a call is what the model reads, also later', async () => {
  const ledger = memoryLedger({ maxRecordsPerOwner: 2 })
  const chat = openChat({ ledger })
  const { asked } = await chat.propose([bill(), bill()])
  const reason = expect.stringContaining('could not be stored, so it was not started; ask again.')
  for (const request of asked) {
    const told = await chat.reply({ asked: [request] }, { approved: true, mandate: 'acme' })
    // Only this one: no other result is corrected.
    expect(results(told.events).map(({ content }) => content)).toEqual([
      { type: 'execution-cancelled', reason },
    ])
  }
  const again = await chat.reply({ asked }, { approved: true, mandate: 'acme' })
  for (const { content } of results(again.events)) expect(content).toMatchObject({ reason })
  expect(chat.runs).toEqual([])
})

test('W9 a mandate with limits stays until it ends: beyond maxGrantsPerOwner, another is not given, and session approvals are', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kept-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  let now = Date.now()
  const limits = { maxGrantsPerOwner: 2, now: () => now }
  const file = await fileLedger(join(folder, 'ledger.sqlite'), limits)
  onTestFinished(() => file.close())
  for (const ledger of [memoryLedger(limits), file]) {
    for (const threadId of ['t', 't1']) await give(ledger, 'acme', { threadId, ttl: 1000 })
    for (const n of [1, 2, 3])
      await ledger.grant({ ...key, threadId: `t${n}`, scopeKey: 'pay', approved: true })
    expect(await give(ledger, 'acme', { threadId: 't2' })).toEqual({ status: 'uncounted' })
    expect(await find(ledger, 'acme')).toMatchObject({ usesLeft: 1 })
    expect((await ledger.list('ann')).filter(({ terms }) => terms === undefined)).toHaveLength(2)
    // A conversation that has one has room for another.
    expect(await give(ledger, 'eve')).toMatchObject({ status: 'granted' })
    now += 1000
    expect(await give(ledger, 'acme', { threadId: 't2' })).toMatchObject({ status: 'granted' })
  }
})

test.each<[string, Parameters<typeof memoryLedger>[0], (ledger: Ledger, n: number) => Promise<unknown>]>([
  [
    'another user fills the ledger',
    { maxSize: 30_000, maxSizePerOwner: 30_000 },
    async (ledger, n) => {
      for (let size = 8000; size > 0; size = Math.floor(size / 2))
        for (let at = 0; at < 4; at++)
          await ledger.issue(record(`${n} ${size} ${at}`, { owner: 'bob', arguments: 'x'.repeat(size) }))
    },
  ],
  [
    'the user gives other approvals',
    { maxGrantsPerOwner: 1 },
    (ledger, n) => ledger.grant({ ...key, threadId: `other ${n}`, scopeKey: 'pay', approved: true }),
  ],
  [
    'the user chooses other mandates',
    {},
    async (ledger, n) => {
      for (let at = 0; at < 64; at++) await give(ledger, `${n} ${at}`, { threadId: 'thread' })
    },
  ],
])(
  'W9 of requests that were open already, what one mandate starts never exceeds its budget, also if between two answers %s',
  async (_, limits, fill) => {
    const ledger = memoryLedger(limits)
    const chat = openChat({ ledger })
    const { asked } = await chat.propose(Array.from({ length: 5 }, () => bill(100)))
    const reasons: unknown[] = []
    for (const [n, request] of asked.entries()) {
      const told = await chat.reply({ asked: [request] }, { approved: true, mandate: 'acme' })
      reasons.push(Object(results(told.events).at(-1)?.content).reason)
      await fill(ledger, n)
    }
    expect(chat.runs).toHaveLength(2)
    expect(reasons.slice(2)).toEqual(Array(3).fill(expect.stringContaining('does not cover them all')))
    expect(await chat.list()).toContainEqual(
      expect.objectContaining({ terms: expect.objectContaining({ used: 2, spent: 200 }) }),
    )
  },
)
