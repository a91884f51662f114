import { expect, test } from 'vitest'
import { ApprovalCache, approvalCache, defaultLedger } from '../src/ledger/approval-cache.js'
import { memoryLedger } from '../src/ledger/memory-ledger.js'
import { statelessLedger } from '../src/ledger/stateless-ledger.js'

function cacheAt(start: number) {
  let now = start
  const ledger = memoryLedger({ now: () => now })
  return { ledger, cache: new ApprovalCache({ ledger }), advance: (ms: number) => (now += ms) }
}

test('S3.6 what was set true is true, what was not set is unknown', async () => {
  const { cache } = cacheAt(0)
  await cache.set('t', 'remove', true)
  expect(await cache.get('t', 'remove')).toBe(true)
  expect(await cache.get('t', 'write')).toBeUndefined()
})

test('S3.7 a no is remembered and approves nothing', async () => {
  const { cache, ledger } = cacheAt(0)
  await cache.set('t', 'remove', false)
  expect(await cache.get('t', 'remove')).toBe(false)
  const key = { owner: 'single-user', threadId: 't', toolName: 'remove', scopeKey: 'remove' }
  expect(await ledger.findGrant(key, 'use')).toBeUndefined()
})

test('S3.8 has is about existence', async () => {
  const { cache } = cacheAt(0)
  await cache.set('t', 'yes', true)
  await cache.set('t', 'no', false)
  expect([await cache.has('t', 'yes'), await cache.has('t', 'no'), await cache.has('t', 'none')]).toEqual([
    true,
    true,
    false,
  ])
})

test('S3.9 S3.10 an entry has value and time, and setting again replaces both', async () => {
  const { cache, advance } = cacheAt(1000)
  await cache.set('t', 'remove', true)
  expect(await cache.entry('t', 'remove')).toEqual({ approved: true, timestamp: 1000 })
  advance(500)
  await cache.set('t', 'remove', false)
  expect(await cache.entry('t', 'remove')).toEqual({ approved: false, timestamp: 1500 })
  expect(await cache.list('t')).toHaveLength(1)
})

test('S3.11 the same tool in two threads is two tools', async () => {
  const { cache } = cacheAt(0)
  await cache.set('a', 'remove', true)
  await cache.set('b', 'remove', false)
  expect([await cache.get('a', 'remove'), await cache.get('b', 'remove')]).toEqual([true, false])
})

test('S3.12 S3.13 clear ends one thread, clearAll everything', async () => {
  const { cache } = cacheAt(0)
  await cache.set('a', 'remove', true)
  await cache.set('b', 'remove', true)
  await cache.clear('nowhere')
  await cache.clear('a')
  expect([await cache.has('a', 'remove'), await cache.has('b', 'remove')]).toEqual([false, true])
  await cache.clearAll()
  expect(await cache.list()).toEqual([])
})

test('S3.14 an empty thread id or tool name is refused by set and unknown to get', async () => {
  const { cache } = cacheAt(0)
  for (const [thread, tool] of [
    ['', 'remove'],
    ['t', ''],
    ['t', { name: '' }],
  ] as const) {
    await expect(cache.set(thread, tool, true)).rejects.toMatchObject({ code: 'invalid-argument' })
    expect(await cache.get(thread, tool)).toBeUndefined()
    expect(await cache.has(thread, tool)).toBe(false)
  }
})

test('S3.15 namespaced names work, and two servers with one tool name do not share', async () => {
  const { cache } = cacheAt(0)
  await cache.set('t', 'mcp__files__read', true)
  expect(await cache.get('t', 'mcp__files__read')).toBe(true)
  await cache.set('t', { name: 'read', server: 'files' }, true)
  expect(await cache.get('t', { name: 'read', server: 'files' })).toBe(true)
  expect(await cache.get('t', { name: 'read', server: 'mail' })).toBeUndefined()
  expect(await cache.get('t', 'read')).toBeUndefined()
})

test('S3.16 entries are listed by thread and counted', async () => {
  const { cache } = cacheAt(0)
  await cache.set('a', 'remove', true)
  await cache.set('a', 'write', false)
  await cache.set('b', 'remove', true)
  expect((await cache.list('a')).map((grant) => grant.toolName)).toEqual(['remove', 'write'])
  expect(await cache.stats()).toEqual({ threads: 2, entries: 3, approved: 2, refused: 1 })
})

test('S3.17 the shared instance sits on the default ledger, others are isolated from it', async () => {
  const { cache } = cacheAt(0)
  await approvalCache.set('shared', 'remove', true)
  expect(await new ApprovalCache({ ledger: defaultLedger() }).get('shared', 'remove')).toBe(true)
  expect(await cache.get('shared', 'remove')).toBeUndefined()
  expect(await new ApprovalCache({ subject: 'bob' }).get('shared', 'remove')).toBeUndefined()
  await approvalCache.clearAll()
})

test('S3.18 revoke ends one tool in one thread', async () => {
  const { cache } = cacheAt(0)
  await cache.set('t', 'remove', true)
  await cache.set('t', { name: 'remove', scopeKey: 'drafts' }, true)
  await cache.set('t', 'write', true)
  await cache.revoke('t', 'remove')
  expect((await cache.list('t')).map((grant) => grant.toolName)).toEqual(['write'])
})

test('S3.22 a scope key covers only itself; without one it is the name of the tool', async () => {
  const { cache } = cacheAt(0)
  await cache.set('t', { name: 'write', scopeKey: 'drafts/*' }, true)
  expect(await cache.get('t', { name: 'write', scopeKey: 'drafts/*' })).toBe(true)
  expect(await cache.get('t', { name: 'write', scopeKey: 'secrets/*' })).toBeUndefined()
  expect(await cache.get('t', 'write')).toBeUndefined()
})

test('S3.23 an entry ends with its time', async () => {
  let now = 0
  const ledger = memoryLedger({ now: () => now })
  const cache = new ApprovalCache({ ledger, ttl: 1000 })
  await cache.set('t', 'remove', true)
  now = 1000
  expect(await cache.get('t', 'remove')).toBeUndefined()
})

test('U.11 names of members of Object.prototype are names like any other', async () => {
  const { cache } = cacheAt(0)
  for (const name of ['__proto__', 'constructor', 'toString']) {
    expect(await cache.get(name, name)).toBeUndefined()
    await cache.set(name, name, true)
    expect(await cache.get(name, name)).toBe(true)
  }
})

test('an empty subject is refused, and a ledger that keeps no grants says so', async () => {
  expect(() => new ApprovalCache({ subject: '' })).toThrow('subject')
  const cache = new ApprovalCache({ ledger: statelessLedger({ acceptReplay: true }) })
  await expect(cache.set('t', 'remove', true)).rejects.toMatchObject({ code: 'invalid-argument' })
})
