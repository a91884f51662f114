import type { LoggedEvent, RunLog, RunWriter } from '@countersign/server'
import { checkOptions, milliseconds, wholeNumber } from '@countersign/server/ledger-kit'
import { digest, itemsOf, openRedis, type RedisOptions, redisRules, textOf, unguessable } from './redis.js'
import { type SubscribableClient, subscriptions } from './subscriptions.js'

export interface RedisRunLogOptions extends RedisOptions {
  /** Milliseconds that a run is kept after its end. Default 5 minutes. */
  readonly keepFor?: number | undefined
  /** Bytes of one run. A longer record is dropped whole: the run continues, but can't be rejoined. Default 4 Mi. */
  readonly maxRunSize?: number | undefined
  /**
   * Milliseconds after its server's last sign of life until an open run counts as ended. Default 30,000. The next run of its thread may still
   * read it for `keepFor`.
   */
  readonly lease?: number | undefined
}

export interface RedisRunLog extends RunLog {
  /** Closes the connection on which readers listen. */
  close(): void
}

/** How often a reader polls without having been woken. */
const LOOK_MS = 1000
const BATCH = 256

// A run is a hash (who writes it, whether it is open, its size) and a list of its events, in one slot of a cluster. An open run expires some
// time after its lease: `kept` milliseconds.

/** KEYS: run, events. ARGV: writer, lifetime, channel, how much of that is after the lease. */
const BEGIN = `
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'writer', ARGV[1], 'state', 'open', 'size', 0, 'kept', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PUBLISH', ARGV[3], '')
return 1`

/** KEYS: run, events. ARGV: writer, lifetime, channel, the maximum size, events. Returns whether the writer still owns the run. */
const APPEND = `
local run = redis.call('HMGET', KEYS[1], 'writer', 'state')
if run[1] ~= ARGV[1] or run[2] ~= 'open' then return 0 end
local more = 0
for i = 5, #ARGV do more = more + #ARGV[i] end
if redis.call('HINCRBY', KEYS[1], 'size', more) > tonumber(ARGV[4]) then
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('PUBLISH', ARGV[3], '')
  return 0
end
for i = 5, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
if #ARGV > 4 then redis.call('PUBLISH', ARGV[3], '') end
return 1`

/** KEYS: run, events. ARGV: writer, lifetime, channel. */
const END = `
local run = redis.call('HMGET', KEYS[1], 'writer', 'state')
if run[1] ~= ARGV[1] or run[2] ~= 'open' then return 0 end
redis.call('HSET', KEYS[1], 'state', 'ended')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('PUBLISH', ARGV[3], '')
return 1`

/** KEYS: run, events. ARGV: first and last index. */
const READ = `
local run = redis.call('HMGET', KEYS[1], 'writer', 'state', 'kept')
local lapsed = run[2] == 'open' and redis.call('PTTL', KEYS[1]) <= tonumber(run[3] or '0')
return { run[1], lapsed and 'lapsed' or run[2], redis.call('LLEN', KEYS[2]), redis.call('LRANGE', KEYS[2], ARGV[1], ARGV[2]) }`

/** A run, as one poll found it. */
interface Look {
  readonly writer: string
  readonly isOpen: boolean
  readonly length: number
  readonly events: readonly LoggedEvent[]
}

/**
 * A run log in Redis: what one server writes, others can read, even while it is written. All readers share one additional connection. The
 * readers of a run whose server is gone end when its lease expires.
 *
 * @throws CountersignError `invalid-option`
 */
export function redisRunLog(client: SubscribableClient, options: RedisRunLogOptions = {}): RedisRunLog {
  checkOptions('redisRunLog', options, {
    ...redisRules,
    keepFor: wholeNumber,
    maxRunSize: wholeNumber,
    lease: milliseconds,
  })
  const redis = openRedis(client, options)
  const wakes = subscriptions(client, options.timeout ?? 5000)
  const { lease = 30_000 } = options
  const { keepFor = 5 * 60_000 } = options
  const lifetime = String(lease + keepFor)
  const maxRunSize = String(options.maxRunSize ?? 4 * 1024 * 1024)
  const channelOf = (runKey: string) => `${redis.prefix}run:${digest(runKey)}`
  const keysOf = (runKey: string) =>
    ['', ':events'].map((end) => `${redis.prefix}run:{${digest(runKey)}}${end}`)
  const ask = (script: string, runKey: string, values: readonly string[]) =>
    redis.within((one) => one(script, keysOf(runKey), values))

  async function look(runKey: string, after: number, wait: boolean): Promise<Look | undefined> {
    const reply = await ask(READ, runKey, [String(after), String(after + BATCH - 1)])
    const [writer, state, length, texts] = itemsOf(reply)
    if (textOf(writer) === undefined || (wait && state === 'lapsed')) return undefined
    return {
      writer: String(writer),
      isOpen: wait && state === 'open',
      length: Number(length),
      events: itemsOf(texts).map((data, index) => ({ n: after + index + 1, data: String(data) })),
    }
  }

  function writerOf(runKey: string, writer: string): RunWriter {
    const open = [writer, lifetime, channelOf(runKey)]
    const append = (events: readonly string[]) => ask(APPEND, runKey, [...open, maxRunSize, ...events])
    const signs = setInterval(() => void append([]).catch(() => {}), Math.ceil(lease / 3))
    signs.unref()
    return {
      async append(events) {
        if (events.length > 0 && (await append(events)) === 0) clearInterval(signs)
      },
      async end() {
        clearInterval(signs)
        await ask(END, runKey, [writer, String(keepFor), channelOf(runKey)])
      },
    }
  }

  async function* follow(runKey: string, writer: string, after: number, signal: AbortSignal, wait: boolean) {
    const bell = doorbell(signal)
    // A reader that can't be woken still polls.
    const stop = await wakes.listen(channelOf(runKey), bell.ring).catch(() => async () => {})
    try {
      for (let read = after; !signal.aborted; ) {
        const woken = bell.rung(LOOK_MS)
        const found = await look(runKey, read, wait).catch(() => undefined)
        if (found === undefined || found.writer !== writer || signal.aborted) return
        read += found.events.length
        if (found.events.length > 0) yield found.events
        else if (found.isOpen) await woken
        else return
      }
    } finally {
      await stop()
    }
  }

  return {
    async begin(runKey) {
      const writer = unguessable()
      await ask(BEGIN, runKey, [writer, lifetime, channelOf(runKey), String(keepFor)])
      return writerOf(runKey, writer)
    },
    async read(runKey, after, signal, { wait = true } = {}) {
      const found = await look(runKey, after, wait)
      if (found === undefined || after > found.length) return undefined
      if (!found.isOpen && after === found.length) return undefined
      return follow(runKey, found.writer, after, signal, wait)
    },
    close: (): void => wakes.close(),
  }
}

/** Resolves the wait when it rings, after a timeout, or when `signal` is aborted. */
function doorbell(signal: AbortSignal) {
  let answer = () => {}
  signal.addEventListener('abort', () => answer())
  return {
    ring: () => answer(),
    rung: (ms: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        answer = () => {
          clearTimeout(timer)
          resolve()
        }
        if (signal.aborted) answer()
      }),
  }
}
