import type { Ledger } from '@countersign/server'
import {
  checkOptions,
  createLedger,
  type LedgerLimits,
  ledgerLimitRules,
  method,
  text,
  wholeNumber,
} from '@countersign/server/ledger-kit'
import { openRedis, type RedisClient, type RedisOptions, redisRules } from './redis.js'
import { redisRows } from './redis-rows.js'

export interface RedisLedgerOptions extends RedisOptions, LedgerLimits {
  /** Bound into tokens; must be the same on all servers that are to accept them. Default: `redis:` and the prefix. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: Redis's clock, so that the servers' clocks need not agree on leases. */
  readonly now?: (() => number) | undefined
  /** Approximate number of audit lines kept; the oldest are dropped first. Default 100,000. */
  readonly maxAuditEntries?: number | undefined
}

/**
 * A ledger in Redis, for servers on several machines. Every operation is atomic, and records expire by themselves. Durability depends on
 * the Redis server: set `appendonly yes` and `appendfsync always`, and `maxmemory-policy noeviction`, so that nothing live is evicted. Without
 * `appendfsync always`, a power loss can forget that a call has started, and the same answer runs it again. An operation without a timely
 * response rejects with `ledger-unavailable`; later operations work again once the client has reconnected.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * const client = await createClient({ url: process.env.REDIS_URL }).on('error', console.error).connect()
 * const agent = createAgent({ model, tools, approvals: { ledger: redisLedger(client), secret } })
 */
export function redisLedger(client: RedisClient, options: RedisLedgerOptions = {}): Ledger {
  checkOptions('redisLedger', options, {
    ...redisRules,
    ...ledgerLimitRules,
    id: text,
    now: method,
    maxAuditEntries: wholeNumber,
  })
  const redis = openRedis(client, options, options.now)
  const maxLogLines = options.maxAuditEntries ?? 100_000
  return createLedger(redisRows(redis, options.id ?? `redis:${redis.prefix}`, maxLogLines), options)
}
