import { CountersignError, isCountersignError, isRecord } from '@countersign/core'
import type { Connection, ConnectOptions, RunCursor } from './connections/connection.js'
import { wait } from './connections/wait.js'
import { checkKinds, invalidOption, type Kinds } from './kinds.js'

/** Options of {@link reconnecting}. */
export interface ReconnectOptions {
  /** How often to try in a row before the run fails. Default 8: 30 to 60 seconds, or up to four minutes while the browser is offline. */
  attempts?: number | undefined
  /**
   * Milliseconds before the first try. Each further one waits twice as long, at most 15 s; a random part of up to a half is taken off,
   * so that not all pages come back at once. Default 500.
   */
  delay?: number | undefined
  /** Milliseconds between the server's signs of life (its `keepAlive`). A stream without any for three of them is lost. Default 15,000. */
  heartbeat?: number | undefined
}

/** What each option must be. */
export const reconnectKinds: Kinds<ReconnectOptions> = {
  attempts: 'number above 0',
  delay: 'number of milliseconds above 0',
  heartbeat: 'number of milliseconds above 0',
}

type Limits = { readonly [Name in keyof ReconnectOptions]-?: number }

/** The longest wait (ms) between two tries. */
const MAX_DELAY = 15_000

/** The longest wait (ms) while the browser says that it is offline, which is not always true. */
const MAX_OFFLINE = 30_000

/**
 * Rejoins a run by itself when its stream breaks, or goes silent: meanwhile the status of the chat is `reconnecting`. If that fails, the run
 * fails as it would have without this, and `retry()` rejoins it. Wrap a connection with `rejoin: true`, to a server that keeps the events
 * of its runs and lets a run go on without a reader (`goOnFor`).
 *
 * A stream that broke before its first event is tried once, as the run may not have begun. `retry()` looks for it again.
 *
 * Throws `invalid-option` if the connection cannot rejoin a run; in development, also if an option is invalid.
 *
 * @example const connection = reconnecting(fetchServerSentEvents('/api/chat', { rejoin: true }))
 */
export function reconnecting(connection: Connection, options: ReconnectOptions = {}): Connection {
  const { attempts = 8, delay = 500, heartbeat = 15_000 } = options
  const { rejoin } = connection
  if (typeof rejoin !== 'function')
    throw invalidOption('reconnecting', 'connection', 'one with `rejoin: true`')
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('reconnecting', options, reconnectKinds)
  const limits: Limits = { attempts, delay, heartbeat }
  /** Ids of the runs whose stream is lost. */
  const lost = new Set<string>()
  const followed = (first: Open, start: RunCursor, connect: ConnectOptions) => {
    const onLost = (isLost: boolean) => {
      if (isLost) lost.add(start.runId)
      else lost.delete(start.runId)
      connect.onLost?.(isLost)
    }
    return until(follow(first, rejoin, start, { ...connect, onLost }, limits), () => lost.delete(start.runId))
  }
  return {
    ...connection,
    connect(input, connect) {
      const { threadId, runId } = input
      return followed((options) => connection.connect(input, options), { threadId, runId }, connect)
    },
    rejoin: (cursor, connect) => followed((options) => rejoin(cursor, options), cursor, connect),
    ...(connection.answer && {
      async answer(answers, connect) {
        try {
          await connection.answer?.(answers, connect)
        } catch (cause) {
          // A link that was lost knows no runs: the client tries again until the run is there, or has failed.
          const isUnknown = isCountersignError(cause) && cause.data.code === 'run-ended'
          throw isUnknown && lost.has(answers.runId) ? notThere() : cause
        }
      },
    }),
  }
}

async function* until<T>(source: AsyncIterable<T>, ended: () => void): AsyncGenerator<T, void, undefined> {
  try {
    yield* source
  } finally {
    ended()
  }
}

type Open = (options: ConnectOptions) => AsyncIterable<unknown>

async function* follow(
  first: Open,
  rejoin: NonNullable<Connection['rejoin']>,
  start: RunCursor,
  connect: ConnectOptions,
  limits: Limits,
): AsyncGenerator<unknown, void, undefined> {
  let cursor = start
  let open = first
  /** Why the stream was lost; undefined while it is there. */
  let lost: { readonly cause: unknown } | undefined
  let hasBegun = false
  let isOver = false
  const onEventId = (id: string) => {
    cursor = { ...cursor, lastEventId: id }
    connect.onEventId?.(id)
  }
  for (let failed = 0; ; failed++) {
    const own = new AbortController()
    const abort = () => own.abort()
    if (connect.signal.aborted) abort()
    connect.signal.addEventListener('abort', abort)
    const opened = performance.now()
    try {
      for await (const batch of watched(open({ ...connect, onEventId, signal: own.signal }), own, limits)) {
        if (lost) connect.onLost?.(false)
        lost = undefined
        // A stream that ends again at once, without events, counts as a failed attempt.
        if (!isEmpty(batch) || performance.now() - opened >= limits.heartbeat) failed = 0
        hasBegun = true
        isOver ||= endsRun(batch)
        yield batch
      }
      // Nothing to rejoin, or nobody listens any more.
      if (lost) throw lost.cause
      if (isOver || !hasBegun || connect.signal.aborted) return
      throw cut()
    } catch (cause) {
      if (connect.signal.aborted) return
      const isPassing = isLoss(cause) || (lost && isBusy(cause))
      const isLast = isOver || failed >= (hasBegun ? limits.attempts : 1)
      if (isLast || !isPassing || cause === lost?.cause) throw lost?.cause ?? cause
      lost ??= { cause }
    } finally {
      connect.signal.removeEventListener('abort', abort)
    }
    connect.onLost?.(true)
    if (hasBegun) await pause(limits.delay * 2 ** failed, connect.signal)
    if (connect.signal.aborted) return
    open = (options) => rejoin(cursor, options)
  }
}

/** Reads `source` until it says nothing for three heartbeats. It is then aborted, which closes what is left of its connection. */
async function* watched(
  source: AsyncIterable<unknown>,
  own: AbortController,
  { heartbeat }: Limits,
): AsyncGenerator<unknown, void, undefined> {
  const iterator = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      let timer: ReturnType<typeof setTimeout> | undefined
      const silence = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(silent(heartbeat * 3)), heartbeat * 3)
      })
      const next = await Promise.race([iterator.next(), silence]).finally(() => clearTimeout(timer))
      if (next.done) return
      yield next.value
    }
  } catch (error) {
    own.abort(error)
    throw error
  } finally {
    // Not awaited: what says nothing may never close either.
    void iterator.return?.().catch(() => {})
  }
}

function isEmpty(batch: unknown): boolean {
  return Array.isArray(batch) && batch.length === 0
}

function endsRun(batch: unknown): boolean {
  const last: unknown = Array.isArray(batch) ? batch.at(-1) : batch
  return isRecord(last) && (last.type === 'RUN_FINISHED' || last.type === 'RUN_ERROR')
}

function isLoss(cause: unknown): boolean {
  return !isCountersignError(cause) || cause.code === 'connection-failed' || cause.code === 'truncated-stream'
}

/** The server, or a proxy in front of it, may take the next try. */
function isBusy(cause: unknown): boolean {
  if (!isCountersignError(cause) || cause.code !== 'http-status') return false
  const status = Number(cause.data.status)
  return status >= 500 || status === 408 || status === 425 || status === 429
}

/** Waits before the next try; not longer than until the browser is online again. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  const isOffline = globalThis.navigator?.onLine === false
  return wait(isOffline ? MAX_OFFLINE : Math.min(ms, MAX_DELAY) * (1 - Math.random() / 2), signal, 'online')
}

function cut(): CountersignError {
  return new CountersignError('truncated-stream', 'The stream ended before the run did. Try again.')
}

function notThere(): CountersignError {
  return new CountersignError('connection-failed', 'The stream of the run is being opened again. Try again.')
}

function silent(ms: number): CountersignError {
  return new CountersignError('connection-failed', `The server gave no sign of life for ${ms} ms. Try again.`)
}
