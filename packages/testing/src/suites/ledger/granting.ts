import type { GrantKey } from '@countersign/server'
import { approve, atOnce, type Expect, LEASE, type Spec } from './bench.js'

export function granting(spec: Spec, expect: Expect): void {
  const key: GrantKey = { owner: 'alice', threadId: 'thread', toolName: 'remove', scopeKey: 'remove' }

  spec('a grant covers exactly its owner, thread, tool, server and scope key', async ({ ledger }) => {
    const covered = { ...key, toolServer: 'files', scopeKey: 'drafts' }
    await ledger.grant({ ...covered, approved: true, tool: 'digest' })
    for (const purpose of ['look', 'use'] as const) {
      const { approved, tool } = (await ledger.findGrant(covered, purpose)) ?? {}
      expect([approved, tool]).toEqual([true, 'digest'])
    }
    expect((await ledger.list('alice'))[0]?.tool).toEqual('digest')
    for (const other of [
      { ...covered, owner: 'bob' },
      { ...covered, threadId: 'other' },
      { ...covered, toolName: 'write' },
      { ...covered, toolServer: 'mail' },
      { ...covered, toolServer: undefined },
      { ...covered, scopeKey: 'secrets' },
    ]) {
      expect(await ledger.findGrant(other, 'use')).toEqual(undefined)
    }
  })

  spec('a remembered no is shown and never used', async ({ ledger }) => {
    await ledger.grant({ ...key, approved: false })
    expect((await ledger.findGrant(key, 'look'))?.approved).toEqual(false)
    expect(await ledger.findGrant(key, 'use')).toEqual(undefined)
    await ledger.grant({ ...key, approved: true })
    expect((await ledger.findGrant(key, 'use'))?.approved).toEqual(true)
    expect((await ledger.list('alice')).length).toEqual(1)
  })

  spec('a grant ends with its time and with its uses', async (bench) => {
    const { ledger, others } = bench
    await ledger.grant({ ...key, approved: true, ttl: 1000, uses: 3 })
    expect((await ledger.findGrant(key, 'look'))?.usesLeft).toEqual(3)
    const used = await atOnce(20, (index) => others[index % others.length]?.findGrant(key, 'use'))
    expect(used.filter((grant) => grant !== undefined).length).toEqual(3)
    expect(await ledger.list('alice')).toEqual([])
    await ledger.grant({ ...key, approved: true, ttl: 1000 })
    bench.advance(999)
    expect((await ledger.findGrant(key, 'use'))?.toolName).toEqual('remove')
    bench.advance(1)
    expect(await ledger.findGrant(key, 'use')).toEqual(undefined)
    expect(await ledger.list('alice', 'thread')).toEqual([])
    await ledger.grant({ ...key, approved: true, ttl: 1000 })
    expect((await ledger.list('alice')).length).toEqual(1)
  })

  spec('grants are listed by owner and thread and revoked by what they match', async (bench) => {
    const { ledger } = bench
    const grants = [
      key,
      { ...key, toolName: 'write' },
      { ...key, threadId: 'other' },
      { ...key, owner: 'bob' },
    ]
    for (const grant of grants) {
      await ledger.grant({ ...grant, approved: true })
      bench.advance(1)
    }
    const tools = async (owner: string, threadId?: string) =>
      (await ledger.list(owner, threadId)).map((grant) => `${grant.threadId}/${grant.toolName}`)
    expect(await tools('alice')).toEqual(['thread/remove', 'thread/write', 'other/remove'])
    expect(await tools('alice', 'thread')).toEqual(['thread/remove', 'thread/write'])
    expect(await ledger.revoke({ owner: 'alice', threadId: 'nowhere' })).toEqual(0)
    expect(await ledger.revoke({ owner: 'alice', threadId: 'thread', toolName: 'write' })).toEqual(1)
    expect(await tools('alice')).toEqual(['thread/remove', 'other/remove'])
    const [first] = await ledger.list('alice', 'thread')
    expect(await ledger.revoke({ owner: 'bob', id: first?.id })).toEqual(0)
    expect(await ledger.revoke({ owner: 'alice', id: first?.id })).toEqual(1)
    expect(await ledger.findGrant(key, 'use')).toEqual(undefined)
    expect(await ledger.revoke({ owner: 'alice' })).toEqual(1)
    expect(await tools('alice')).toEqual([])
    expect(await tools('bob')).toEqual(['thread/remove'])
  })

  spec('D23 a revocation wins over a grant in flight', async (bench) => {
    const { ledger, record } = bench
    await ledger.issue(record)
    const claim = await ledger.claim(record, { ...approve, scope: 'session' }, 'h1', LEASE)
    const revision = claim.status === 'claimed' ? claim.revision : undefined
    await ledger.revoke({ owner: 'bob' })
    expect((await ledger.grant({ ...key, approved: true, revision })).status).toEqual('granted')
    await ledger.revoke({ owner: 'alice', threadId: 'thread' })
    expect(await ledger.grant({ ...key, approved: true, revision })).toEqual({ status: 'revoked' })
    expect(await ledger.findGrant(key, 'use')).toEqual(undefined)
    const next = await bench.issueAnother()
    const later = await ledger.claim(next, { ...approve, scope: 'session' }, 'h1', LEASE)
    const since = later.status === 'claimed' ? later.revision : undefined
    expect((await ledger.grant({ ...key, approved: true, revision: since })).status).toEqual('granted')
  })

  spec('D23 a revocation also wins when the call is reclaimed after it', async (bench) => {
    const { ledger } = bench
    const record = { ...bench.record, idempotent: true }
    await ledger.issue(record)
    await ledger.claim(record, { ...approve, scope: 'session' }, 'h1', LEASE)
    await ledger.revoke({ owner: 'alice' })
    bench.advance(LEASE)
    const again = await ledger.reclaim(record, 'h2', LEASE)
    const revision = again.status === 'claimed' ? again.revision : undefined
    expect(revision === undefined).toEqual(false)
    expect(await ledger.grant({ ...key, approved: true, revision })).toEqual({ status: 'revoked' })
  })
}
