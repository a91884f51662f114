import { CountersignError } from '../errors.js'

/** The bytes of a response: a web stream, as from `fetch`, or any async iterable, such as a Node stream. */
export type ByteSource = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

/** Default maximum length of one event in memory, in UTF-16 units. */
export const defaultLimit = 16 * 1024 * 1024

/** Maximum lines per batch. One read may return megabytes, and the consumer may want to yield between batches. */
const linesAtOnce = 1024

/** How the lines of a body are parsed. Invalid input throws. */
export interface LineFormat<T> {
  /** The lines of a text; the last one is unfinished. */
  split(text: string): string[]
  /** Takes a complete line and adds what it completes to the batch. Returns whether the stream ends with it. */
  take(line: string, batch: T[]): boolean
  /** Whether too much is held in memory, given `rest` units of an unfinished line. */
  overflows(rest: number): boolean
  /** The body has ended; `rest` is the unfinished line. */
  end(rest: string, batch: T[]): void
}

/**
 * Reads a body line by line. Each read that completes a line yields one batch, or several if it is large. Events completed before a
 * fault are yielded before the error is thrown.
 */
export async function* readLines<T>(
  body: ByteSource,
  limit: number,
  signal: AbortSignal | undefined,
  format: LineFormat<T>,
): AsyncGenerator<readonly T[], void, undefined> {
  /** Pieces of an unfinished line. Joining them on every read would take quadratic time. */
  let pieces: string[] = []
  let held = 0

  /** The lines that a read completes. */
  function complete(text: string): readonly string[] {
    const lines = format.split(text)
    const rest = lines.pop() ?? ''
    if (lines.length > 0) {
      lines[0] = pieces.join('') + lines[0]
      pieces = []
      held = 0
    }
    pieces.push(rest)
    held += rest.length
    return lines
  }

  for await (const text of readText(body, signal)) {
    const lines = complete(text)
    for (let at = 0; at < lines.length && !signal?.aborted; ) {
      const end = Math.min(at + linesAtOnce, lines.length)
      const batch: T[] = []
      let over = false
      let fault: { readonly error: unknown } | undefined
      try {
        while (at < end && !over) over = format.take(lines[at++] ?? '', batch)
      } catch (error) {
        fault = { error }
      }
      yield batch
      if (fault) throw fault.error
      if (over) return
    }
    if (format.overflows(held)) throw eventTooLarge(limit)
  }
  if (signal?.aborted) return
  const batch: T[] = []
  format.end(pieces.join(''), batch)
  if (batch.length > 0) yield batch
}

interface Source {
  next(): Promise<IteratorResult<Uint8Array, unknown>>
  stop(): Promise<unknown> | undefined
}

/**
 * Decodes each read as UTF-8. A character split across reads comes with the next one; a byte order mark is skipped. The
 * source is cancelled when the consumer stops early or `signal` is aborted; an abort ends the text without an error.
 */
async function* readText(body: ByteSource, signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
  const source = openSource(body)
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let wake: () => void = () => {}
  const onAbort = () => wake()
  signal?.addEventListener('abort', onAbort)
  try {
    while (!signal?.aborted) {
      // A new promise for each read: racing against one long-lived abort promise would keep every race in memory.
      const read = await new Promise<IteratorResult<Uint8Array, unknown> | undefined>((resolve, reject) => {
        wake = () => resolve(undefined)
        source.next().then(resolve, (error) => (signal?.aborted ? resolve(undefined) : reject(error)))
      })
      if (!read || signal?.aborted) return
      const text = decode(decoder, read)
      if (text !== '') yield text
      if (read.done) return
    }
  } finally {
    signal?.removeEventListener('abort', onAbort)
    // Not awaited: a source that is slow to close must not block its consumer.
    source.stop()?.catch(() => {})
  }
}

function openSource(body: ByteSource): Source {
  if ('getReader' in body) {
    const reader = body.getReader()
    return { next: () => reader.read(), stop: () => reader.cancel().finally(() => reader.releaseLock()) }
  }
  const iterator = body[Symbol.asyncIterator]()
  return { next: () => iterator.next(), stop: () => iterator.return?.() }
}

function decode(decoder: TextDecoder, read: IteratorResult<Uint8Array, unknown>): string {
  try {
    return read.done ? decoder.decode() : decoder.decode(read.value, { stream: true })
  } catch (cause) {
    throw read.done
      ? truncatedStream('', cause)
      : new CountersignError(
          'malformed-event',
          'The stream is not UTF-8. The server must encode it as UTF-8.',
          {},
          cause,
        )
  }
}

/** Parses the JSON of one event. Throws if it is too long or not JSON. */
export function parseEvent(text: string, limit: number): unknown {
  if (text.length > limit) throw eventTooLarge(limit)
  try {
    return JSON.parse(text)
  } catch (cause) {
    const excerpt = text.slice(0, 200)
    throw new CountersignError(
      'malformed-event',
      `The stream holds what is not JSON: ${excerpt}`,
      { text: excerpt },
      cause,
    )
  }
}

/** The error for a body that ended inside an event. */
export function truncatedStream(text = '', cause?: unknown): CountersignError {
  const message = 'The stream ended inside an event. The connection was cut; send the request again.'
  return new CountersignError('truncated-stream', message, { text: text.slice(0, 200) }, cause)
}

/** The error for an event that exceeds the reader's limit. */
function eventTooLarge(limit: number): CountersignError {
  const message = `An event is longer than ${limit} characters. Send less in one event, or raise maxEventBytes.`
  return new CountersignError('event-too-large', message, { limit })
}
