import { createHash, randomUUID } from 'node:crypto'
import { CountersignError } from '@countersign/core'

/** What is needed of a client of the package `redis`: one that is connected, a pool or a cluster. */
export interface RedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  withAbortSignal?(signal: AbortSignal): Pick<RedisClient, 'eval'>
}

export interface RedisOptions {
  /** What all keys and channels begin with. Servers that share it share what is behind it. Default `countersign:`. */
  readonly prefix?: string | undefined
  /** Milliseconds until an operation that Redis does not answer is given up, a lost connection included. Default 5,000. */
  readonly timeout?: number | undefined
}

/** One script, run by Redis alone and whole. */
export type Ask = (script: string, keys: readonly string[], values?: readonly string[]) => Promise<unknown>

export interface Redis {
  readonly prefix: string
  /** Milliseconds since the epoch, out of what the command TIME replied, or of the clock that was given instead. */
  timeOf(seconds: unknown, micros: unknown): number
  /**
   * Does `work` within the time for one operation; `left` says how many milliseconds of it are left. Whatever keeps it from Redis becomes
   * `ledger-unavailable`.
   */
  within<Result>(work: (ask: Ask, left: () => number) => Promise<Result>): Promise<Result>
}

/** @throws CountersignError `invalid-option` */
export function openRedis(
  client: RedisClient,
  { prefix = 'countersign:', timeout = 5000 }: RedisOptions,
  now?: (() => number) | undefined,
): Redis {
  if (typeof client?.eval !== 'function') {
    throw new CountersignError(
      'invalid-option',
      'The first argument must be a client of the package redis.',
      {
        option: 'client',
      },
    )
  }
  const ms = positive('timeout', timeout)
  return {
    prefix,
    timeOf: (seconds, micros) => now?.() ?? Number(seconds) * 1000 + Math.floor(Number(micros) / 1000),
    within: (work) => {
      const end = performance.now() + ms
      return withDeadline(ms, (stop) => work(asking(client, stop), () => end - performance.now()))
    },
  }
}

function asking(client: RedisClient, stop: AbortSignal): Ask {
  // what still waits to be sent when the time is over is never sent
  const bounded = client.withAbortSignal?.(stop) ?? client
  return async (script, keys, values = []) => {
    stop.throwIfAborted()
    return bounded.eval(script, { keys: [...keys], arguments: [...values] })
  }
}

/** @throws CountersignError `ledger-unavailable` */
export async function withDeadline<Result>(
  ms: number,
  work: (stop: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`no answer within ${ms} ms`))
      stop.abort()
    }, ms)
  })
  try {
    return await Promise.race([work(stop.signal), late])
  } catch (error) {
    throw unavailable(error)
  } finally {
    clearTimeout(timer)
  }
}

function unavailable(error: unknown): CountersignError {
  if (error instanceof CountersignError) return error
  const reason = error instanceof Error && error.message !== '' ? error.message : String(error)
  return new CountersignError('ledger-unavailable', `Redis cannot be used: ${reason}`, {}, error)
}

/** @throws CountersignError `invalid-option` */
export function positive(option: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new CountersignError('invalid-option', `${option} must be a positive integer, not ${value}.`, {
    option,
    value,
  })
}

/** A part of a key, of one length for any parts. JSON keeps parts apart, also those that are not well-formed Unicode. */
export function digest(...parts: readonly (string | null | undefined)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

export const unguessable = (): string => randomUUID()

/** The items of a reply that is a list; Redis has no others here. */
export function itemsOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : []
}

/** A text out of a reply, or nothing where there is none. */
export function textOf(item: unknown): string | undefined {
  return item === null || item === undefined ? undefined : String(item)
}

export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && /\bOOM\b/.test(error.message)
}
