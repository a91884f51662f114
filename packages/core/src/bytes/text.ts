import { CountersignError } from '../errors.js'

/** The bytes of a response: a web stream as `fetch` gives it, or anything async iterable, as Node's streams are. */
export type ByteSource = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

/** How much of one event is held unless a reader is told otherwise, in UTF-16 units. */
export const defaultLimit = 16 * 1024 * 1024

/** How many lines are one batch at most: a read may hold megabytes, and whoever takes the batches may want to rest between them. */
const linesAtOnce = 1024

/** How the lines of a body become values. What does not fit throws. */
export interface LineFormat<T> {
  /** The lines of a text, the last one unfinished. */
  split(text: string): string[]
  /** Takes a whole line and adds what it completes to the batch; says whether the stream is over with it. */
  take(line: string, batch: T[]): boolean
  /** Whether what is held is too much, with `rest` units of a line that has not ended. */
  overflows(rest: number): boolean
  /** The body has ended, after `rest`. */
  end(rest: string, batch: T[]): void
}

/**
 * Reads a body line by line: what one read completes is one batch, or several where it is much, and a fault comes after what was
 * complete before it.
 */
export async function* readLines<T>(
  body: ByteSource,
  limit: number,
  signal: AbortSignal | undefined,
  format: LineFormat<T>,
): AsyncGenerator<readonly T[], void, undefined> {
  /** Pieces of an unfinished line: joining them at every read would cost the square of its length. */
  let pieces: string[] = []
  let held = 0

  /** The lines that a read has completed. */
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
      if (batch.length > 0) yield batch
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
 * Decodes the text of each read as UTF-8; a character cut by a read comes with the next one, a byte order mark is skipped.
 * The source is cancelled when the consumer stops early and when `signal` is aborted, which ends the text without an error.
 */
async function* readText(body: ByteSource, signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
  const source = openSource(body)
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let wake: () => void = () => {}
  const onAbort = () => wake()
  signal?.addEventListener('abort', onAbort)
  try {
    while (!signal?.aborted) {
      // A promise for each read: one promise of the abort, raced again and again, would keep every race alive.
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
    // Not awaited: a source that is slow to close must not hold up its consumer.
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

/** Reads the JSON of one event, or says which text is none or is too long. */
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

/** The body ended inside an event. */
export function truncatedStream(text = '', cause?: unknown): CountersignError {
  const message = 'The stream ended inside an event. The connection was cut; send the request again.'
  return new CountersignError('truncated-stream', message, { text: text.slice(0, 200) }, cause)
}

/** An event is longer than the reader may hold. */
function eventTooLarge(limit: number): CountersignError {
  const message = `An event is longer than ${limit} characters. Send less in one event, or raise maxEventBytes.`
  return new CountersignError('event-too-large', message, { limit })
}
