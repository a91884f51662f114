import type { AuditEntry, Ledger } from '@countersign/server'
import {
  boundOutcome,
  claimRow,
  completeRow,
  reclaimRow,
  renewRow,
  sameRecord,
} from '@countersign/server/ledger-kit'
import { redisApprovals } from './approvals.js'
import { redisGrants } from './grants.js'
import { itemsOf, openRedis, positive, type Redis, type RedisClient, type RedisOptions } from './redis.js'

export interface RedisLedgerOptions extends RedisOptions {
  /** Bound into tokens; the same on every server that shall accept them. Default: `redis:` and the prefix. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: the clock of Redis, so that the clocks of the servers need not agree on a lease. */
  readonly now?: (() => number) | undefined
  /** Grants kept for one owner; the oldest goes first. Default 1,000. */
  readonly maxGrantsPerOwner?: number | undefined
  /** Lifetime of a grant that names none, in milliseconds. Default seven days. */
  readonly grantTtl?: number | undefined
  /**
   * Bytes, as UTF-8, of the arguments of all open questions of one thread: each request that has calls reads them. What goes beyond it is
   * not asked. Default 4 MiB.
   */
  readonly maxOpenBytesPerThread?: number | undefined
  /** Lines of the audit trail kept, about; the oldest go first. Default 100,000. */
  readonly maxAuditEntries?: number | undefined
}

/**
 * A ledger in Redis, for servers on several machines. Every operation is atomic; records expire there by themselves. How durable
 * it is, is up to the server: keep `appendonly yes`, and `maxmemory-policy noeviction`, so that nothing live is evicted. What Redis
 * has forgotten is refused, never allowed. An operation that Redis does not answer in time rejects with `ledger-unavailable`, and the next
 * one works again when the client has reconnected.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * const client = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()
 * const agent = createAgent({ model, tools, approvals: { ledger: redisLedger(client), secret } })
 */
export function redisLedger(client: RedisClient, options: RedisLedgerOptions = {}): Ledger {
  const redis = openRedis(client, options, options.now)
  const maxOpenBytes = positive('maxOpenBytesPerThread', options.maxOpenBytesPerThread ?? 4 * 1024 * 1024)
  const approvals = redisApprovals(redis, maxOpenBytes)
  const grants = redisGrants(redis, {
    maxPerOwner: positive('maxGrantsPerOwner', options.maxGrantsPerOwner ?? 1000),
    ttl: positive('grantTtl', options.grantTtl ?? 7 * 24 * 60 * 60 * 1000),
  })
  const trail = auditTrail(redis, positive('maxAuditEntries', options.maxAuditEntries ?? 100_000))
  const time = () =>
    redis.within(async (ask) => {
      const [seconds, micros] = itemsOf(await ask(TIME, [redis.prefix]))
      return redis.timeOf(seconds, micros)
    })

  return {
    id: options.id ?? `redis:${redis.prefix}`,
    durable: true,

    async issue(record) {
      try {
        const known = await approvals.insert(record, await time())
        if (known === undefined) return { status: 'issued' }
        if (known === 'full') return { status: 'full' }
        return { status: sameRecord(known, record) ? 'unchanged' : 'conflict' }
      } catch (error) {
        if (isOutOfMemory(error)) return { status: 'full' }
        throw error
      }
    },
    lookup: approvals.lookup,
    unsettled: approvals.unsettled,
    settled: approvals.settled,
    claim: (ref, answer, holder, leaseMs) =>
      approvals.change(
        ref,
        { status: 'not-issued' },
        (row) => claimRow(row, answer, holder, { now: row.now, leaseMs, revision: row.revision }),
        { wantsRevision: answer.decision === 'approve', claimer: holder },
      ),
    renew: (ref, holder, leaseMs) =>
      approvals.change(ref, { status: 'lost' }, ({ state, now }) =>
        renewRow(state, holder, { now, leaseMs }),
      ),
    async complete(ref, holder, outcome) {
      const bounded = await boundOutcome(outcome)
      return approvals.change(ref, { status: 'not-issued' }, ({ state, now }) =>
        completeRow(state, holder, bounded, now),
      )
    },
    reclaim: (ref, holder, leaseMs) =>
      approvals.change(
        ref,
        { status: 'not-issued' },
        (row) => reclaimRow(row, holder, { now: row.now, leaseMs }),
        { claimer: holder },
      ),

    grant: async (request) => grants.grant(request, await time()),
    findGrant: grants.find,
    revoke: grants.revoke,
    list: grants.list,

    audit: trail.append,
    auditTrail: trail.entries,
  }
}

const TIME = `return redis.call('TIME')`

const APPEND = `return redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'entry', ARGV[2])`
const PAGE = `return redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', 256)`

function auditTrail(redis: Redis, max: number) {
  const key = `${redis.prefix}audit`
  return {
    append: (entry: AuditEntry): Promise<void> =>
      redis.within(async (ask) => {
        await ask(APPEND, [key], [String(max), JSON.stringify(entry)])
      }),
    async *entries(): AsyncIterable<AuditEntry> {
      for (let from = '-'; ; ) {
        const start = from
        const rows = itemsOf(await redis.within((ask) => ask(PAGE, [key], [start])))
        for (const row of rows) {
          const [id, fields] = itemsOf(row)
          const entry: AuditEntry = JSON.parse(String(itemsOf(fields)[1]))
          yield entry
          from = `(${String(id)}`
        }
        if (rows.length === 0) return
      }
    },
  }
}

function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && /\bOOM\b/.test(error.message)
}
