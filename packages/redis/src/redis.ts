import { createHash, randomUUID } from 'node:crypto'
import { CountersignError } from '@countersign/core'
import { milliseconds, type Rules, text } from '@countersign/server/ledger-kit'

/** The required API of a client of the package `redis`: a connected client, a pool or a cluster. */
export interface RedisClient {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  withAbortSignal?(signal: AbortSignal): Pick<RedisClient, 'eval'>
}

export interface RedisOptions {
  /** Prefix of all keys and channels. Servers with the same prefix share the same data. Default `countersign:`. */
  readonly prefix?: string | undefined
  /** Milliseconds after which an operation without a response from Redis fails, even if the connection is lost. Default 5,000. */
  readonly timeout?: number | undefined
}

/** What each option of a connection must be. */
export const redisRules: Rules<RedisOptions> = { prefix: text, timeout: milliseconds }

/** Runs one script, atomically. */
export type Ask = (script: string, keys: readonly string[], values?: readonly string[]) => Promise<unknown>

export interface Redis {
  readonly prefix: string
  /** Milliseconds since the epoch, from a reply to the command TIME, or from the clock that was given instead. */
  timeOf(seconds: unknown, micros: unknown): number
  /**
   * Does `work` within the time for one operation; `left` returns the remaining milliseconds. Failures to reach Redis become
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
  return {
    prefix,
    timeOf: (seconds, micros) => now?.() ?? Number(seconds) * 1000 + Math.floor(Number(micros) / 1000),
    within: (work) => {
      const end = performance.now() + timeout
      return withDeadline(timeout, (stop) => work(asking(client, stop), () => end - performance.now()))
    },
  }
}

function asking(client: RedisClient, stop: AbortSignal): Ask {
  // Whatever is not sent yet when the time is over must never be sent.
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

/** A part of a key, with a fixed length. JSON keeps the parts distinct, even if they are not well-formed Unicode. */
export function digest(...parts: readonly (string | null | undefined)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

export const unguessable = (): string => randomUUID()

/** The items of a reply that is a list; empty for anything else. */
export function itemsOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : []
}

/** A string in a reply, or undefined if there is none. */
export function textOf(item: unknown): string | undefined {
  return item === null || item === undefined ? undefined : String(item)
}

export function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && /\bOOM\b/.test(error.message)
}
