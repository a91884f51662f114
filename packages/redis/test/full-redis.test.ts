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

test('a standing approval can be ended while Redis is full, also one that is on its way', async () => {
  const server = await startRedis(command ?? '')
  closers.push(server.stop)
  const client = createClient({ url: server.url }).on('error', () => {})
  await client.connect()
  closers.push(() => client.destroy())
  const ledger = redisLedger(client)
  const grant = { owner: 'alice', threadId: 't', toolName: 'a', scopeKey: 'a', approved: true } as const
  await ledger.grant(grant)
  const record = {
    ...{ owner: 'alice', threadId: 't', approvalId: 'a', runId: 'run', toolCallId: 'call' },
    ...{ toolName: 'b', arguments: '{}', edits: true, idempotent: false },
    ...{ token: 'cs1.k.p.m', issuedAt: 0, expiresAt: Date.now() + 60 * 60 * 1000 },
    scopes: ['once', 'session'] as const,
  }
  await ledger.issue(record)
  const claim = await ledger.claim(record, { decision: 'approve', scope: 'session' }, 'h1', 60_000)
  const revision = claim.status === 'claimed' ? claim.revision : 0
  await client.set('fill', 'x'.repeat(3_000_000))
  await client.configSet('maxmemory-policy', 'noeviction')
  await client.configSet('maxmemory', '1mb')
  expect(await ledger.revoke({ owner: 'alice' })).toBe(1)
  expect(await ledger.list('alice')).toEqual([])
  await client.configSet('maxmemory', '0')
  expect(await ledger.grant({ ...grant, toolName: 'b', revision })).toEqual({ status: 'revoked' })
})
