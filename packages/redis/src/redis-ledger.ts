import type { Ledger } from '@countersign/server'
import { createLedger, type LedgerLimits, positive } from '@countersign/server/ledger-kit'
import { openRedis, type RedisClient, type RedisOptions } from './redis.js'
import { redisRows } from './redis-rows.js'

export interface RedisLedgerOptions extends RedisOptions, LedgerLimits {
  /** Bound into tokens; the same on every server that shall accept them. Default: `redis:` and the prefix. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: the clock of Redis, so that the clocks of the servers need not agree on a lease. */
  readonly now?: (() => number) | undefined
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
  const maxLogLines = positive('maxAuditEntries', options.maxAuditEntries ?? 100_000)
  return createLedger(redisRows(redis, options.id ?? `redis:${redis.prefix}`, maxLogLines), options)
}
