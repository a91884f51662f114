import { CountersignError } from '../errors.js'

/** The bytes of a response: a web stream as `fetch` gives it, or anything async iterable, as Node's streams are. */
export type ByteSource = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

interface Source {
  next(): Promise<IteratorResult<Uint8Array, unknown>>
  stop(): Promise<unknown> | undefined
}

/**
 * Decodes the text of each read as UTF-8; a character cut by a read comes with the next one, a byte order mark is skipped.
 * The source is cancelled when the consumer stops early and when `signal` is aborted, which ends the text without an error.
 */
export async function* readText(
  body: ByteSource,
  signal?: AbortSignal,
): AsyncGenerator<string, void, undefined> {
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

/** Reads JSON, or says which text is not. */
export function parseEvent(text: string): unknown {
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
export function eventTooLarge(limit: number): CountersignError {
  const message = `An event is longer than ${limit} characters. Send less in one event, or raise maxEventBytes.`
  return new CountersignError('event-too-large', message, { limit })
}
