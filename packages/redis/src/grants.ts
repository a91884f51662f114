import type { Grant, GrantKey, GrantRequest, GrantResult, GrantSelector } from '@countersign/server'
import { isLive, matches, newGrant, takeGrant } from '@countersign/server/ledger-kit'
import { ownerKey, revisionKey } from './approvals.js'
import { type Ask, digest, itemsOf, type Redis, textOf } from './redis.js'

/** KEYS: grants. ARGV: one grant's name. */
const FIND = `
local time = redis.call('TIME')
return { redis.call('HGET', KEYS[1], ARGV[1]), time[1], time[2] }`

/** KEYS: grants. */
const ALL = `
local time = redis.call('TIME')
return { time[1], time[2], redis.call('HGETALL', KEYS[1]) }`

/** KEYS: grants, revision. ARGV: the revision that must stand, or nothing; name, grant, lifetime. Answers how many grants there are. */
const PUT = `
if ARGV[1] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[1], ARGV[4]) end
return redis.call('HLEN', KEYS[1])`

/** KEYS: grants. ARGV: name, the grant to replace, the new one. */
const REPLACE = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`

/** KEYS: grants. ARGV: names and the grants that must stand there, in turn. Answers the names that were removed. */
const REMOVE = `
local removed = {}
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
    removed[#removed + 1] = ARGV[i]
  end
end
return removed`

/**
 * KEYS: revision. What was forgotten differs from what was read, and the next one to be read is new. A Redis that is full refuses to write a
 * new one here, but forgets.
 */
const REVISE = `return redis.call('DEL', KEYS[1])`

interface Stored {
  readonly name: string
  readonly text: string
  readonly grant: Grant
}

export interface GrantLimits {
  readonly maxPerOwner: number
  /** Default lifetime of a grant, in milliseconds. */
  readonly ttl: number
}

/** The grants of a Redis ledger: one hash for each owner. What does not fit is removed, oldest first: it is asked about again. */
export function redisGrants(redis: Redis, limits: GrantLimits) {
  const { prefix, timeOf } = redis
  const grantsKey = (owner: string) => ownerKey(prefix, owner, 'grants')

  async function all(ask: Ask, owner: string): Promise<{ now: number; grants: Stored[] }> {
    const [seconds, micros, flat] = itemsOf(await ask(ALL, [grantsKey(owner)]))
    const items = itemsOf(flat).map(String)
    const grants = Array.from({ length: items.length / 2 }, (_, index) => {
      const [name = '', text = ''] = items.slice(2 * index, 2 * index + 2)
      return { name, text, grant: JSON.parse(text) }
    })
    return { now: timeOf(seconds, micros), grants }
  }

  /** Those of them that were removed: not those that have changed or gone since they were read. */
  async function remove(ask: Ask, owner: string, grants: readonly Stored[]): Promise<Stored[]> {
    if (grants.length === 0) return []
    const values = grants.flatMap(({ name, text }) => [name, text])
    const names = new Set(itemsOf(await ask(REMOVE, [grantsKey(owner)], values)).map(String))
    return grants.filter(({ name }) => names.has(name))
  }

  async function evict(ask: Ask, owner: string): Promise<void> {
    const { now, grants } = await all(ask, owner)
    const live = grants.filter(({ grant }) => isLive(grant, now)).sort(byAge)
    const kept = new Set(live.slice(-limits.maxPerOwner))
    const others = grants.filter((stored) => !kept.has(stored))
    await remove(ask, owner, others)
  }

  return {
    grant: (request: GrantRequest, at: number): Promise<GrantResult> =>
      redis.within(async (ask) => {
        const { owner } = request
        const grant = newGrant(request, at, limits.ttl)
        const keys = [grantsKey(owner), revisionKey(prefix, owner)]
        const life = String(Math.max(1, grant.expiresAt - at))
        const values = [String(request.revision ?? ''), nameOf(grant), JSON.stringify(grant), life]
        const count = Number(await ask(PUT, keys, values))
        if (count === 0) return { status: 'revoked' }
        if (count > limits.maxPerOwner) await evict(ask, owner)
        return { status: 'granted', grant }
      }),

    find: (key: GrantKey, purpose: 'look' | 'use'): Promise<Grant | undefined> =>
      redis.within(async (ask) => {
        const name = nameOf(key)
        for (;;) {
          const [body, ...time] = itemsOf(await ask(FIND, [grantsKey(key.owner)], [name]))
          const text = textOf(body)
          if (text === undefined) return undefined
          const { found, left } = takeGrant(JSON.parse(text), purpose, timeOf(time[0], time[1]))
          if (left === undefined) return found
          const values = [name, text, JSON.stringify(left)]
          if ((await ask(REPLACE, [grantsKey(key.owner)], values)) === 1) return found
        }
      }),

    revoke: (selector: GrantSelector): Promise<number> =>
      redis.within(async (ask) => {
        const { owner } = selector
        await ask(REVISE, [revisionKey(prefix, owner)])
        for (let removed = 0; ; ) {
          const { now, grants } = await all(ask, owner)
          const named = grants.filter(({ grant }) => matches(grant, selector))
          const gone = await remove(ask, owner, named)
          removed += gone.filter(({ grant }) => isLive(grant, now)).length
          if (gone.length === named.length) return removed
        }
      }),

    list: (owner: string, threadId: string | undefined): Promise<Grant[]> =>
      redis.within(async (ask) => {
        const { now, grants } = await all(ask, owner)
        return grants
          .filter(({ grant }) => isLive(grant, now))
          .filter(({ grant }) => threadId === undefined || grant.threadId === threadId)
          .sort(byAge)
          .map(({ grant }) => grant)
      }),
  }
}

function byAge(one: Stored, other: Stored): number {
  return one.grant.grantedAt - other.grant.grantedAt
}

function nameOf({ threadId, toolServer, toolName, scopeKey }: Omit<GrantKey, 'owner'>): string {
  return digest(threadId, toolServer, toolName, scopeKey)
}
