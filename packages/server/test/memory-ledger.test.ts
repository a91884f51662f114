import { expect, test } from 'vitest'
import { usableIds } from '../src/encoding/ids.js'
import { claimAndWait } from '../src/ledger/claim-and-wait.js'
import { type ApprovalRecord, CLOCK_SKEW_MS, type Ledger, ledgerKey } from '../src/ledger/ledger.js'
import { memoryLedger } from '../src/ledger/memory-ledger.js'
import { statelessLedger } from '../src/ledger/stateless-ledger.js'
import { record as anyRecord } from './approval-record.js'

const approve = { decision: 'approve', scope: 'once' } as const
const EXPIRY = 10_000

const record = (approvalId: string, more: Partial<ApprovalRecord> = {}) =>
  anyRecord(approvalId, { expiresAt: EXPIRY, ...more })

async function run(ledger: Ledger, ref: ApprovalRecord, content: string) {
  await ledger.claim(ref, approve, 'h', 1000)
  return ledger.complete(ref, 'h', { type: 'result', content })
}

test('each memory ledger has an id of its own', () => {
  expect(memoryLedger().id).not.toBe(memoryLedger().id)
  expect(memoryLedger({ id: 'mine' }).id).toBe('mine')
  expect(memoryLedger().durable).toBe(false)
})

test('a new ledger refuses what another one issued', async () => {
  await memoryLedger({ id: 'same' }).issue(record('a'))
  expect(await memoryLedger({ id: 'same' }).claim(record('a'), approve, 'h', 1000)).toEqual({
    status: 'not-issued',
  })
})

test('when full it refuses to issue, and evicts nothing that is live', async () => {
  let now = 0
  const ledger = memoryLedger({ maxRecords: 3, maxRecordsPerOwner: 3, now: () => now })
  for (const id of ['a', 'b', 'c']) expect(await ledger.issue(record(id))).toEqual({ status: 'issued' })
  await run(ledger, record('a'), 'done')
  expect(await ledger.issue(record('d'))).toEqual({ status: 'full' })
  expect(await ledger.issue(record('b'))).toEqual({ status: 'unchanged' })
  now = EXPIRY + CLOCK_SKEW_MS - 1
  expect(await ledger.issue(record('d'))).toEqual({ status: 'full' })
  expect((await ledger.claim(record('a'), approve, 'h', 1000)).status).toBe('repeat')
  now += 1
  expect(await ledger.issue(record('d', { expiresAt: now + 1 }))).toEqual({ status: 'issued' })
  expect(await ledger.claim(record('a'), approve, 'h', 1000)).toEqual({ status: 'not-issued' })
  expect(await ledger.unsettled('alice', 'thread')).toHaveLength(1)
})

test('a claim whose lease holds outlives its expiry', async () => {
  let now = 0
  const ledger = memoryLedger({ maxRecords: 1, now: () => now })
  await ledger.issue(record('a'))
  await ledger.claim(record('a'), approve, 'h', 10 * CLOCK_SKEW_MS)
  now = EXPIRY + CLOCK_SKEW_MS
  expect(await ledger.issue(record('b', { expiresAt: now + 1 }))).toEqual({ status: 'full' })
  expect((await ledger.complete(record('a'), 'h', { type: 'result', content: '1' })).status).toBe('recorded')
  expect(await ledger.issue(record('b', { expiresAt: now + 1 }))).toEqual({ status: 'issued' })
})

test('when its size is reached, stored outcomes go first, oldest first, and leave hash and size', async () => {
  const ledger = memoryLedger({ maxSize: 10_000, maxSizePerOwner: 10_000, now: () => 0 })
  const outcomeOf = async (id: string) => {
    const result = await ledger.claim(record(id), approve, 'h', 1000)
    return result.status === 'repeat' ? result.outcome : expect.unreachable(result.status)
  }
  for (const id of ['a', 'b']) {
    await ledger.issue(record(id))
    expect(await run(ledger, record(id), id.repeat(3000))).toEqual({ status: 'recorded', late: false })
  }
  expect((await outcomeOf('a')).type).toBe('result')
  expect(await ledger.issue(record('c', { arguments: 'x'.repeat(1750) }))).toEqual({ status: 'issued' })
  expect(await outcomeOf('a')).toEqual({
    type: 'unavailable',
    of: 'result',
    hash: expect.stringMatching(/^[\w-]{43}$/),
    bytes: JSON.stringify({ type: 'result', content: 'a'.repeat(3000) }).length,
  })
  expect((await outcomeOf('b')).type).toBe('result')
  expect(await ledger.issue(record('d', { arguments: 'x'.repeat(1750) }))).toEqual({ status: 'full' })
})

test('an outcome for which there is no room is kept as hash and size', async () => {
  const ledger = memoryLedger({ maxSize: 5000, maxSizePerOwner: 5000, now: () => 0 })
  await ledger.issue(record('a', { arguments: 'x'.repeat(1000) }))
  expect(await run(ledger, record('a'), 'y'.repeat(8000))).toEqual({ status: 'recorded', late: false })
  const repeat = await ledger.claim(record('a'), approve, 'h', 1000)
  expect(repeat).toMatchObject({ status: 'repeat', outcome: { type: 'unavailable', of: 'result' } })
})

test('edited arguments for which there is no room change nothing', async () => {
  const ledger = memoryLedger({ maxSize: 2000, maxSizePerOwner: 2000, now: () => 0 })
  await ledger.issue(record('a'))
  const edited = { ...approve, arguments: 'x'.repeat(3000) }
  expect(await ledger.claim(record('a'), edited, 'h', 1000)).toEqual({ status: 'full' })
  expect((await ledger.claim(record('a'), approve, 'h', 1000)).status).toBe('claimed')
})

const mostFilled = new Map<string, number>()

/** A ledger in which a request of Alice's is open, and Bob's could have been at most `left` characters longer. */
async function almostFull(left: number, more: Partial<ApprovalRecord> = {}) {
  const open = record('a', more)
  const filled = async (size: number) => {
    const ledger = memoryLedger({ maxSize: 200_000, maxSizePerOwner: 200_000, now: () => 0 })
    await ledger.issue(open)
    const { status } = await ledger.issue(record('b', { owner: 'bob', arguments: 'x'.repeat(size) }))
    return status === 'full' ? undefined : ledger
  }
  const named = JSON.stringify(more)
  let [fits, tooLong] = [mostFilled.get(named) ?? 0, 200_000]
  while (!mostFilled.has(named) && tooLong - fits > 1) {
    const size = Math.floor((fits + tooLong) / 2)
    if ((await filled(size)) === undefined) tooLong = size
    else fits = size
  }
  mostFilled.set(named, fits)
  const ledger = (await filled(fits - left)) ?? expect.unreachable()
  const outcomeOf = async () => {
    const { state } = (await ledger.lookup(open)) ?? {}
    return state?.phase === 'done' ? state.outcome : state?.phase
  }
  return { ledger, open, outcomeOf }
}

test.each([0, 1, 20, 26, 27, 200])(
  'whatever settles an open request fits in a ledger with %d characters left',
  async (left) => {
    const reason = 'user moved on'
    const long = '\u0001'.repeat(4096)
    for (const [answer, outcome] of [
      [
        { decision: 'cancel', reason },
        { type: 'cancelled', reason },
      ],
      [{ decision: 'cancel', reason: long }, { type: 'cancelled' }],
      [
        { decision: 'deny', reason },
        { type: 'denied', reason },
      ],
      [{ decision: 'deny', reason: long }, { type: 'denied' }],
      [{ decision: 'expire' }, { type: 'cancelled', code: 'approval-expired' }],
      [{ ...approve, reason: long, sentIn: '"'.repeat(256) }, 'claimed'],
      [{ ...approve, reason: long, arguments: '{"path":"b"}' }, 'claimed'],
    ] as const) {
      const { ledger, open, outcomeOf } = await almostFull(left)
      expect((await ledger.claim(open, answer, 'h', 1000)).status).toBe('claimed')
      expect(await outcomeOf()).toEqual(outcome)
    }
  },
)

test.each([0, 1, 20, 26, 27, 200])(
  'the outcome of an approved call fits in a ledger with %d characters left',
  async (left) => {
    const long = { arguments: `"${'"'.repeat(5000)}"` }
    const outcomes = [
      ...[200, 300, 600, 900, 1100, 5000].map(
        (size) => ({ type: 'result', content: 'r'.repeat(size) }) as const,
      ),
      { type: 'denied', reason: 'r'.repeat(3000) },
      { type: 'cancelled', reason: 'r'.repeat(3000), code: 'approval-stale', next: 'approval_2' },
      { type: 'handed-out', ...long },
      { type: 'interrupted' },
    ] as const
    for (const [more, answer] of [
      [{}, { ...approve, sentIn: '"'.repeat(256) }],
      [long, approve],
      [
        { arguments: '"first"', token: 'x'.repeat(10_000) },
        { ...approve, ...long },
      ],
    ] as const) {
      for (const outcome of outcomes) {
        if (outcome.type === 'handed-out' && more.arguments === undefined) continue
        const { ledger, open } = await almostFull(left, more)
        expect((await ledger.claim(open, answer, 'h', 1000)).status).toBe('claimed')
        expect(await ledger.complete(open, 'h', outcome)).toEqual({ status: 'recorded', late: false })
      }
    }
  },
)

test("a provider's call can be approved, and reported to the provider, in a ledger that is full", async () => {
  const { ledger, open } = await almostFull(0, { providerExecuted: true, arguments: 'x'.repeat(5000) })
  expect((await ledger.claim(open, approve, 'h', 1000)).status).toBe('claimed')
  const handedOut = { type: 'handed-out', arguments: open.arguments } as const
  expect((await ledger.complete(open, 'h', handedOut)).status).toBe('recorded')
  await ledger.issue(record('c', { owner: 'carl', arguments: 'x'.repeat(4000), edits: false }))
  expect((await ledger.reclaim(open, 'h2', 1000)).status).toBe('claimed')
  expect((await ledger.complete(open, 'h2', { type: 'result', content: '1' })).status).toBe('recorded')
})

test('a denial whose reason was dropped for want of room is no call that ran', async () => {
  const ledger = memoryLedger({ maxSize: 8000, maxSizePerOwner: 8000, now: () => 0 })
  await ledger.issue(record('a'))
  await ledger.claim(record('a'), { decision: 'deny', reason: 'r'.repeat(2000) }, 'h', 1000)
  expect(await ledger.issue(record('b', { arguments: 'x'.repeat(2000) }))).toEqual({ status: 'issued' })
  expect(await ledger.claim(record('a'), { decision: 'deny' }, 'h', 1000)).toEqual({
    status: 'repeat',
    outcome: { type: 'denied' },
    late: false,
  })
})

test('W9 a mandate counts its uses while the ledger is full, and what it can not count does not start', async () => {
  const ledger = memoryLedger({ maxSize: 10_000, maxSizePerOwner: 10_000, now: () => 0 })
  const tool = { owner: 'alice', threadId: 'thread', toolName: 'pay' }
  const terms = { label: 'Pay', where: [], tool: 'v1', approvalId: 'a1' }
  await ledger.grant({ ...tool, scopeKey: 'pay', approved: true, terms, uses: 40 })
  for (let size = 5000; size >= 0; size--)
    await ledger.issue(record(`${size}`, { owner: 'bob', edits: false, arguments: 'x'.repeat(size) }))
  const use = async (callKey: string) => {
    const call = { ...tool, tool: 'v1', input: {}, since: 0, callKey }
    return (await ledger.findMandate?.(call, 'use'))?.approved
  }
  await expect(use('k'.repeat(2000))).rejects.toMatchObject({ code: 'ledger-unavailable' })
  const uses = []
  for (let at = 0; at < 50; at++) uses.push(await use(`${at} ${'k'.repeat(20)}`))
  expect(uses.filter((approved) => approved === true)).toHaveLength(40)
  expect(await ledger.list('alice')).toEqual([])
})

test('a long reason is cut', async () => {
  const ledger = memoryLedger({ now: () => 0 })
  await ledger.issue(record('a'))
  await ledger.claim(record('a'), { decision: 'deny', reason: 'x'.repeat(10_000) }, 'h', 1000)
  const state = (await ledger.lookup(record('a')))?.state
  expect(state?.phase === 'done' && state.outcome).toEqual({ type: 'denied', reason: 'x'.repeat(4096) })
})

test('two thousand expired records make room for as many again', async () => {
  let now = 0
  const ledger = memoryLedger({ maxRecords: 2000, maxRecordsPerOwner: 2000, now: () => now })
  for (let round = 0; round < 3; round++) {
    for (let index = 0; index < 2000; index++) {
      const threadId = `thread ${index % 2}`
      const expiresAt = now + EXPIRY
      const { status } = await ledger.issue(record(`${round}-${index}`, { expiresAt, threadId }))
      if (status !== 'issued') expect.unreachable(`${status} at ${round}-${index}`)
    }
    now += EXPIRY + CLOCK_SKEW_MS
  }
  expect(await ledger.unsettled('alice', 'thread 1')).toHaveLength(1000)
})

test('what a caller does with its record later does not reach the ledger', async () => {
  const ledger = memoryLedger({ now: () => 0 })
  const scopes: ('once' | 'session')[] = ['once']
  await ledger.issue(record('a', { scopes }))
  scopes.push('session')
  expect((await ledger.lookup(record('a')))?.record.scopes).toEqual(['once'])
})

test('S3.23 grants give way to approvals where there is no room, and are then asked about again', async () => {
  const ledger = memoryLedger({ maxRecords: 4, maxRecordsPerOwner: 3, now: () => 0 })
  const key = { owner: 'alice', threadId: 'thread', toolName: 'a', scopeKey: 'a' }
  for (const toolName of ['a', 'b', 'c']) await ledger.grant({ ...key, toolName, approved: true })
  expect(await ledger.issue(record('a'))).toEqual({ status: 'issued' })
  expect((await ledger.list('alice')).map(({ toolName }) => toolName)).toEqual(['b', 'c'])
  expect(await ledger.findGrant(key, 'use')).toBeUndefined()
  for (const id of ['b', 'c']) expect(await ledger.issue(record(id))).toEqual({ status: 'issued' })
  expect(await ledger.list('alice')).toEqual([])
  expect(await ledger.issue(record('d'))).toEqual({ status: 'full' })
})

test('D23 a revocation that is no longer remembered still wins over grants in flight', async () => {
  const ledger = memoryLedger({ maxRecords: 2, maxRecordsPerOwner: 2, now: () => 0 })
  await ledger.issue(record('a'))
  const claim = await ledger.claim(record('a'), approve, 'h', 1000)
  const revision = claim.status === 'claimed' ? claim.revision : undefined
  await ledger.revoke({ owner: 'alice' })
  for (const id of ['b', 'c']) {
    await ledger.issue(record(id, { owner: id }))
    await ledger.claim(record(id, { owner: id }), approve, 'h', 1000)
  }
  const key = { owner: 'alice', threadId: 'thread', toolName: 'remove', scopeKey: 'remove' }
  expect(await ledger.grant({ ...key, approved: true, revision })).toEqual({ status: 'revoked' })
})

test('the audit trail keeps the newest lines', async () => {
  const ledger = memoryLedger({ maxAuditEntries: 3 })
  for (let at = 0; at < 20; at++) await ledger.audit({ at, event: 'issued', ownerHash: 'h', threadId: 't' })
  const kept = []
  for await (const entry of ledger.auditTrail()) kept.push(entry.at)
  expect(kept).toEqual([17, 18, 19])
})

test('the audit trail in memory has at most 8 Mi characters: long lines of one user leave those of others', async () => {
  const ledger = memoryLedger()
  const line = (ownerHash: string, at: number, view: string) =>
    ledger.audit({ at, event: 'issued', ownerHash, threadId: 't', view })
  for (let at = 0; at < 10; at++) await line('ann', at, 'short')
  for (let at = 10; at < 60; at++) await line('mallory', at, 'x'.repeat(1024 * 1024))
  const kept: number[] = []
  let size = 0
  for await (const entry of ledger.auditTrail()) {
    kept.push(entry.at)
    size += JSON.stringify(entry).length
  }
  expect(kept).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 53, 54, 55, 56, 57, 58, 59])
  expect(size).toBeLessThanOrEqual(8 * 1024 * 1024)
})

test('of a text with any character beyond Latin-1, each takes two bytes, and counts twice', async () => {
  const issue = async (letter: string) => {
    const ledger = memoryLedger({ maxSize: 200_000, maxSizePerOwner: 200_000, now: () => 0 })
    let count = 0
    const ask = (n: number) =>
      ledger.issue(record(`a${n}`, { arguments: JSON.stringify({ x: letter.repeat(1000) }), edits: false }))
    while ((await ask(count)).status === 'issued') count++
    return count
  }
  const [latin, cyrillic] = [await issue('é'), await issue('я')]
  expect(cyrillic).toBeGreaterThan(10)
  expect(Math.abs(latin - 2 * cyrillic)).toBeLessThanOrEqual(2)
})

test.each(['maxRecords', 'maxSize', 'maxOpenPerThread', 'maxGrantsPerOwner', 'grantTtl', 'maxAuditEntries'])(
  'memoryLedger refuses a %s that is not a positive integer',
  (option) => {
    for (const value of [0, -1, 1.5, Number.NaN]) {
      expect(() => memoryLedger({ [option]: value })).toThrow(option)
    }
  },
)

test('claimAndWait resolves with the outcome of the holder that was first', async () => {
  const ledger = memoryLedger()
  const open = record('a', { expiresAt: Date.now() + 60_000 })
  await ledger.issue(open)
  await ledger.claim(open, approve, 'first', 30_000)
  const waiting = [1, 2, 3].map((index) =>
    claimAndWait(ledger, open, approve, `later-${index}`, { leaseMs: 30_000, waitMs: 20_000 }),
  )
  await ledger.complete(open, 'first', { type: 'result', content: 'done' })
  for (const result of await Promise.all(waiting)) {
    expect(result).toEqual({ status: 'repeat', outcome: { type: 'result', content: 'done' }, late: false })
  }
})

test('claimAndWait polls a ledger that announces no changes, and one whose announcements fail', async () => {
  for (const changed of [undefined, () => Promise.reject(new Error('down'))]) {
    const ledger: Ledger = { ...memoryLedger(), changed }
    const open = record('a', { expiresAt: Date.now() + 60_000 })
    await ledger.issue(open)
    await ledger.claim(open, approve, 'first', 30_000)
    const waiting = claimAndWait(ledger, open, approve, 'later', { leaseMs: 30_000, waitMs: 20_000 })
    await ledger.complete(open, 'first', { type: 'result', content: 'done' })
    expect((await waiting).status).toBe('repeat')
  }
})

test('claimAndWait gives up at its bound and at an abort, and notices a lapsed lease', async () => {
  let now = 0
  const ledger = memoryLedger({ now: () => now })
  await ledger.issue(record('a'))
  await ledger.claim(record('a'), approve, 'first', 1000)
  const options = { leaseMs: 1000, waitMs: 20_000 }
  expect(await claimAndWait(ledger, record('a'), approve, 'later', { ...options, waitMs: 1 })).toEqual({
    status: 'in-progress',
  })
  const abort = new AbortController()
  const waiting = claimAndWait(ledger, record('a'), approve, 'later', { ...options, signal: abort.signal })
  abort.abort()
  expect(await waiting).toEqual({ status: 'in-progress' })
  const noticing = claimAndWait(ledger, record('a'), approve, 'later', options)
  now = 1000
  expect(await noticing).toEqual({ status: 'interrupted' })
})

test('statelessLedger is refused without the literal acceptance of replay', () => {
  // @ts-expect-error the option is required
  expect(() => statelessLedger()).toThrow('acceptReplay')
  // @ts-expect-error and has one value
  expect(() => statelessLedger({ acceptReplay: false })).toThrow('replayed until it expires')
  // @ts-expect-error a truthy value is not the literal
  expect(() => statelessLedger({ acceptReplay: 'yes' })).toThrow('acceptReplay')
})

test('statelessLedger remembers nothing: every verified answer is carried out, no grant is kept', async () => {
  const ledger = statelessLedger({ acceptReplay: true })
  expect(ledger.id).toBe(statelessLedger({ acceptReplay: true }).id)
  expect(await ledger.issue(record('a'))).toEqual({ status: 'issued' })
  expect(await ledger.lookup(record('a'))).toBeUndefined()
  expect((await ledger.claim(record('a'), approve, 'h', 1000)).status).toBe('claimed')
  expect((await ledger.claim(record('a'), { decision: 'deny' }, 'h', 1000)).status).toBe('claimed')
  const key = { owner: 'alice', threadId: 'thread', toolName: 'remove', scopeKey: 'remove' }
  expect(await ledger.grant({ ...key, approved: true })).toEqual({ status: 'unsupported' })
  expect(await ledger.findGrant(key, 'use')).toBeUndefined()
  expect(await ledger.reclaim(record('a'), 'h', 1000)).toEqual({ status: 'refused' })
})

test('D2 approval ids hold 128 random bits behind their prefix', () => {
  const ids = new Set(Array.from({ length: 1000 }, usableIds(undefined, 'approval_')))
  expect(ids.size).toBe(1000)
  for (const id of ids) expect(id).toMatch(/^approval_[\w-]{22}$/)
})

test('parts of a key never run into one another', () => {
  expect(ledgerKey('a', 'bc')).not.toBe(ledgerKey('ab', 'c'))
  expect(ledgerKey(null, 'a')).not.toBe(ledgerKey('-', 'a'))
  expect(ledgerKey('1:a')).not.toBe(ledgerKey('a'))
  expect(ledgerKey('', '')).not.toBe(ledgerKey('0:'))
  expect(ledgerKey('a', null)).not.toBe(ledgerKey('a'))
})
