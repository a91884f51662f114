import { type AGUIEvent, CountersignError } from '@countersign/core'
import { DEFAULT_LIMITS, type FullLimits } from '../limits.js'

/**
 * Adds a value. If the writer must wait, returns a promise that resolves when there is room for more, or the reader has gone. Never rejects;
 * throws what `sizeOf` throws.
 */
export type Emit<T> = (value: T) => Promise<void> | undefined

/** A writer's end of the channel. Several parts of a program may write concurrently. */
export interface Outlet<T> {
  readonly emit: Emit<T>
  /** Like `emit`, for writers that can't wait: if too much of theirs is unread, the reader counts as gone. */
  readonly report: (value: T) => void
  /** Aborted when nobody reads any more. */
  readonly gone: AbortSignal
}

export interface ChannelOptions<T> {
  /** Bytes of a value. Default: each counts as a full buffer, so that a second one waits. */
  readonly sizeOf?: ((value: T) => number) | undefined
  /** The last value for a reader that was too slow. Default: its next read rejects with `reader-too-slow`. */
  readonly lastWords?: ((error: CountersignError) => T) | undefined
  /**
   * `unreadBytes` may wait for the reader before writers wait too; beyond that, each writer may add one value. Default: those of an agent.
   */
  readonly limits?: Pick<FullLimits, 'unreadBytes' | 'reportedBytes' | 'stallTime'> | undefined
}

export interface Channel<T> extends AsyncIterableIterator<T> {
  /** Takes the next values that are there, without waiting: `limits.unreadBytes`, and at most one value more. */
  waiting(): readonly T[]
}

interface Waiting<T> {
  readonly value: T
  readonly size: number
  /** Its share of what was reported by writers that can't wait. */
  readonly reported: number
}

interface Reader<T> {
  resolve(result: IteratorResult<T>): void
  reject(error: unknown): void
}

/**
 * Makes the values that `write` emits readable: one queue of values, one list of writers that wait for room, one list of
 * readers that wait for a value. Every read that makes room releases all writers, so no wait depends on the order of calls.
 *
 * `write` starts with the first read. A reader that stops early, or reads nothing for a minute or two while a writer waits, aborts
 * `gone`. `write` then continues to its own end, unread: closing a browser tab must not tear down a claimed tool.
 */
export function createChannel<T>(
  write: (outlet: Outlet<T>) => Promise<void>,
  { limits = DEFAULT_LIMITS, sizeOf = () => limits.unreadBytes, lastWords }: ChannelOptions<T> = {},
): Channel<T> {
  const gone = new AbortController()
  let values: Waiting<T>[] = []
  let writers: (() => void)[] = []
  let readers: Reader<T>[] = []
  let [waiting, reported, reads] = [0, 0, 0]
  let started = false
  let ended: { readonly error?: unknown } | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  /** Adds a value; returns whether the writer may continue at once. */
  function add(value: T, waits: boolean): boolean {
    if (ended !== undefined) return true
    const size = sizeOf(value)
    const reader = readers.shift()
    if (reader !== undefined) {
      reader.resolve({ done: false, value })
      return true
    }
    if (!waits && reported > limits.reportedBytes) {
      lose('tools reported more than it took')
      return true
    }
    values.push({ value, size, reported: waits ? 0 : size })
    waiting += size
    if (!waits) reported += size
    return waiting <= limits.unreadBytes
  }

  const emit: Emit<T> = (value) => {
    if (add(value, true)) return undefined
    timer ??= setTimeout(look, limits.stallTime, reads)
    return new Promise((resolve) => writers.push(resolve))
  }

  function take(): Waiting<T> | undefined {
    const next = values.shift()
    if (next === undefined) return undefined
    reads++
    waiting -= next.size
    reported -= next.reported
    if (waiting <= limits.unreadBytes) releaseWriters()
    return next
  }

  function releaseWriters(): void {
    const released = writers
    writers = []
    for (const release of released) release()
  }

  /** Ends the channel if writers wait and the reader has read nothing since `before`. */
  function look(before: number): void {
    timer = undefined
    if (writers.length === 0) return
    if (reads === before) lose(`it took nothing for ${limits.stallTime} ms`)
    else timer = setTimeout(look, limits.stallTime, reads)
  }

  /** Nobody reads any more, and nobody waits. */
  function leave(): void {
    values = []
    waiting = 0
    reported = 0
    end({})
    gone.abort()
  }

  function lose(why: string): void {
    const error = readerTooSlow(why)
    if (lastWords === undefined) ended ??= { error }
    leave()
    if (lastWords !== undefined) values.push({ value: lastWords(error), size: 0, reported: 0 })
  }

  /** Nothing more comes: nobody waits for room, and readers get the end. */
  function end(how: { readonly error?: unknown }): void {
    ended ??= how
    clearTimeout(timer)
    releaseWriters()
    const left = readers
    readers = []
    for (const reader of left) read(reader)
  }

  function read(reader: Reader<T>): void {
    const next = take()
    if (next !== undefined) reader.resolve({ done: false, value: next.value })
    else if (ended === undefined) readers.push(reader)
    else {
      const { error } = ended
      ended = {}
      if (error === undefined) reader.resolve({ done: true, value: undefined })
      else reader.reject(error)
    }
  }

  function start(): void {
    started = true
    const outlet: Outlet<T> = { emit, report: (value) => void add(value, false), gone: gone.signal }
    write(outlet).then(
      () => end({}),
      (error: unknown) => end({ error }),
    )
  }

  return {
    next() {
      if (!started && ended === undefined) start()
      return new Promise((resolve, reject) => read({ resolve, reject }))
    },
    waiting() {
      const taken: T[] = []
      for (let bytes = 0; bytes < limits.unreadBytes; ) {
        const next = take()
        if (next === undefined) break
        bytes += next.size
        taken.push(next.value)
      }
      return taken
    },
    async return() {
      leave()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

export function readerTooSlow(why: string): CountersignError {
  const message = `The reader of the run was too slow: ${why}. Read on while the run is open, or take the run up again.`
  return new CountersignError('reader-too-slow', message, { status: 503 })
}

/** An upper bound for the bytes of a waiting value as JSON: two per UTF-16 unit, and some for the value itself. */
export function jsonSize(text: string): number {
  return 256 + 2 * text.length
}

/**
 * Bytes of an event that waits for its reader, at least about.
 *
 * @throws CountersignError `invalid-argument` if it can't be written as JSON: no transport could send it.
 */
export function eventSize(event: AGUIEvent): number {
  // Most events are deltas, and nothing else of theirs is long.
  if ('delta' in event && typeof event.delta === 'string') return jsonSize(event.delta)
  try {
    return jsonSize(JSON.stringify(event))
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : 'unknown reason'
    throw new CountersignError('invalid-argument', `The event ${event.type} is no JSON: ${why}`, {}, error)
  }
}
