import { redisLedger } from '@countersign/redis'
import type { ApprovalRecord, Ledger } from '@countersign/server'
import { createClient, createClientPool, createCluster } from 'redis'
import { afterAll, test as anyTest, expect } from 'vitest'
import { findRedisServer, startRedis } from '../../../scripts/redis.mjs'

const command = findRedisServer()
if (command === undefined) {
  console.warn(
    '\nNOT TESTED: the ledger on pools and clusters. Install redis-server and run the tests again.\n',
  )
}
const test = anyTest.skipIf(command === undefined)
const closers: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

async function start(cluster: boolean) {
  const server = await startRedis(command ?? '', { cluster })
  closers.push(server.stop)
  return server.url
}

const record: ApprovalRecord = {
  ...{ owner: 'alice', threadId: 'thread', approvalId: 'a', runId: 'run', toolCallId: 'call' },
  ...{ toolName: 'remove', arguments: '{}', scopes: ['once'], edits: true, idempotent: false },
  ...{ token: 'cs1.k.p.m', issuedAt: 0, expiresAt: Date.now() + 60 * 60 * 1000 },
}

async function useEverything(ledger: Ledger): Promise<unknown[]> {
  const grant = { owner: 'alice', threadId: 'thread', toolName: 'remove', scopeKey: 'remove' }
  await ledger.issue(record)
  const open = await ledger.unsettled('alice', 'thread')
  const claim = await ledger.claim(record, { decision: 'approve', scope: 'session' }, 'h1', 60_000)
  const revision = claim.status === 'claimed' ? claim.revision : undefined
  const granted = await ledger.grant({ ...grant, approved: true, uses: 2, revision })
  const used = await ledger.findGrant(grant, 'use')
  const completed = await ledger.complete(record, 'h1', { type: 'result', content: '1' })
  const revoked = await ledger.revoke({ owner: 'alice' })
  await ledger.audit({ at: 1, event: 'issued', ownerHash: 'h', threadId: 't' })
  return [open.length, claim.status, granted.status, used?.usesLeft, completed.status, revoked]
}

const everything = [1, 'claimed', 'granted', 2, 'recorded', 1]

test('the ledger works on a pool of connections', async () => {
  const pool = createClientPool({ url: await start(false) }).on('error', () => {})
  await pool.connect()
  closers.push(() => pool.destroy())
  expect(await useEverything(redisLedger(pool))).toEqual(everything)
})

test('the ledger works on a cluster: each script keeps to one slot', async () => {
  const url = await start(true)
  const node = await createClient({ url })
    .on('error', () => {})
    .connect()
  await node.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', '0', '16383'])
  while (!String(await node.sendCommand(['CLUSTER', 'INFO'])).includes('cluster_state:ok')) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  node.destroy()
  const cluster = createCluster({ rootNodes: [{ url }] }).on('error', () => {})
  await cluster.connect()
  closers.push(() => cluster.destroy())
  expect(await useEverything(redisLedger(cluster))).toEqual(everything)
})
