import { redisLedger } from '@countersign/redis'
import { createClient } from 'redis'
import { afterAll, test as anyTest, expect } from 'vitest'
import { findRedisServer, startRedis } from '../../../scripts/redis.mjs'

// this test sets the memory of the server, so it is never the one of REDIS_URL
const command = findRedisServer()
if (command === undefined) {
  console.warn('\nNOT TESTED: a Redis that is full. Install redis-server and run the tests again.\n')
}
const test = anyTest.skipIf(command === undefined)
const closers: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

async function startFilling() {
  const server = await startRedis(command ?? '')
  closers.push(server.stop)
  const client = createClient({ url: server.url }).on('error', () => {})
  await client.connect()
  closers.push(() => client.destroy())
  const fill = async () => {
    await client.set('fill', 'x'.repeat(3_000_000))
    await client.configSet('maxmemory-policy', 'noeviction')
    await client.configSet('maxmemory', '1mb')
  }
  return { client, fill }
}

const record = (approvalId: string) => ({
  ...{ owner: 'alice', threadId: 't', approvalId, runId: 'run', toolCallId: approvalId },
  ...{ toolName: 'b', arguments: '{}', edits: true, idempotent: true },
  ...{ token: 'cs1.k.p.m', issuedAt: 0, expiresAt: Date.now() + 60 * 60 * 1000 },
  scopes: ['once', 'session'] as const,
})

test('a standing approval can be ended while Redis is full, also one that is on its way', async () => {
  const { client, fill } = await startFilling()
  const ledger = redisLedger(client)
  const grant = { owner: 'alice', threadId: 't', toolName: 'a', scopeKey: 'a', approved: true } as const
  await ledger.grant(grant)
  await ledger.issue(record('a'))
  const claim = await ledger.claim(record('a'), { decision: 'approve', scope: 'session' }, 'h1', 60_000)
  const revision = claim.status === 'claimed' ? claim.revision : 0
  await fill()
  expect(await ledger.revoke({ owner: 'alice' })).toBe(1)
  expect(await ledger.list('alice')).toEqual([])
  await client.configSet('maxmemory', '0')
  expect(await ledger.grant({ ...grant, toolName: 'b', revision })).toEqual({ status: 'revoked' })
})

test('whatever settles an open request, and its outcome, fit while Redis is full', async () => {
  const { client, fill } = await startFilling()
  const ledger = redisLedger(client)
  const edited = { decision: 'approve', scope: 'once', arguments: '{"n":1}', reason: 'yes' } as const
  const answers = {
    moved: { decision: 'cancel', reason: 'user moved on' },
    expired: { decision: 'expire' },
    denied: { decision: 'deny', reason: 'r'.repeat(4096) },
    once: { decision: 'approve', scope: 'once' },
    session: { decision: 'approve', scope: 'session' },
    edited,
  } as const
  for (const id of Object.keys(answers)) await ledger.issue(record(id))
  await fill()
  expect(await ledger.issue(record('more'))).toEqual({ status: 'full' })
  const long = { ...edited, arguments: `{"n":"${'x'.repeat(40_000)}"}` }
  expect(await ledger.claim(record('edited'), long, 'h', 60_000)).toEqual({ status: 'full' })
  for (const [id, answer] of Object.entries(answers)) {
    expect([id, (await ledger.claim(record(id), answer, 'h', 60_000)).status]).toEqual([id, 'claimed'])
    if (answer.decision !== 'approve') continue
    expect(await ledger.renew(record(id), 'h', 60_000)).toEqual({ status: 'renewed' })
    await ledger.complete(record(id), 'h', { type: 'interrupted' })
    expect((await ledger.reclaim(record(id), 'h2', 60_000)).status).toBe('claimed')
    const outcome = { type: 'result', content: 'r'.repeat(1000) } as const
    expect(await ledger.complete(record(id), 'h2', outcome)).toEqual({ status: 'recorded', late: false })
    expect(await ledger.claim(record(id), answer, 'h3', 60_000)).toMatchObject({ status: 'repeat', outcome })
  }
  expect((await ledger.lookup(record('edited')))?.state).toMatchObject({ answer: edited })
  expect(await ledger.unsettled('alice', 't')).toEqual([])
})
