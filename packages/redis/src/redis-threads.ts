import type { ThreadLimits, ThreadStore } from '@countersign/server'
import { checkOptions, createThreads, method, text, threadLimitRules } from '@countersign/server/ledger-kit'
import { openRedis, type RedisClient, type RedisOptions, redisRules } from './redis.js'
import { redisThreadRows } from './redis-thread-rows.js'

export interface RedisThreadsOptions extends RedisOptions, ThreadLimits {
  /** Identifies what is stored. Default: `redis:` and the prefix. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: Redis's clock, so that the servers' clocks need not agree on leases. */
  readonly now?: (() => number) | undefined
}

/**
 * Threads in Redis, for servers on several machines. They are kept until they are removed: no key expires, so Redis needs memory for all of
 * them, `appendonly yes`, and `maxmemory-policy noeviction`. All keys of one owner are in one slot of a cluster. When Redis is out of
 * memory, changes are refused with the limit `store`. An operation without a timely response rejects with `ledger-unavailable`;
 * later operations work again once the client has reconnected.
 *
 * @throws CountersignError `invalid-option`
 */
export function redisThreads(client: RedisClient, options: RedisThreadsOptions = {}): ThreadStore {
  checkOptions('redisThreads', options, { ...redisRules, ...threadLimitRules, id: text, now: method })
  const redis = openRedis(client, options, options.now)
  return createThreads(
    {
      id: options.id ?? `redis:${redis.prefix}`,
      durable: true,
      within: (work) => redis.within((ask) => work(redisThreadRows(redis, ask))),
    },
    options,
  )
}
