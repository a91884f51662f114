import { type ByteSource, defaultLimit, parseEvent, readLines, truncatedStream } from './text.js'

/** One server-sent event. */
export interface SseEvent {
  /** Its `data`, parsed as JSON. */
  data: unknown
  /** Its `id`, for `Last-Event-ID`. */
  id?: string
  /** Its type, unless it is the default, `message`. */
  event?: string
}

/** The events that one read of the body completed; none if it brought only comments. A large read is split into several batches. */
export type SseBatch = readonly SseEvent[]

/** Options of {@link readServerSentEvents}. */
export interface SseOptions {
  /** Maximum length of one event in memory, in UTF-16 units. Default 16 MiB. */
  maxEventBytes?: number | undefined
  /** Data that ends the stream instead of being parsed as JSON; some servers send `[DONE]`. Default: none. */
  done?: string | undefined
  /** Cancels the body and ends the iteration without an error. */
  signal?: AbortSignal | undefined
}

/** The length of `data: `, which an unfinished line includes. */
const FIELD_NAME_LENGTH = 6

/**
 * Reads an event stream (HTML standard, section 9.2) whose events are JSON. Lines may end in LF, CRLF or CR.
 * Comments, unknown fields and events with no data or blank data are skipped; an event without its closing blank line
 * is not delivered. Stopping early cancels the body. To stop while a read is pending, abort `signal`.
 *
 * @throws CountersignError, after the events before the fault were delivered: `malformed-event` (not JSON, not
 * UTF-8), `event-too-large`, `truncated-stream` (the body ended inside an event). A failed read throws its own error.
 */
export function readServerSentEvents(
  body: ByteSource,
  { maxEventBytes: limit = defaultLimit, done, signal }: SseOptions = {},
): AsyncGenerator<SseBatch, void, undefined> {
  let afterReturn = false
  let inEvent = false
  let data: string | undefined
  let id: string | undefined
  let type: string | undefined

  function take(line: string, batch: SseEvent[]): boolean {
    if (line === '') return dispatch(batch)
    if (line.startsWith(':')) return false
    inEvent = true
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1))
    if (field === 'data') data = data === undefined ? value : `${data}\n${value}`
    if (field === 'id' && !value.includes('\0')) id = value
    if (field === 'event') type = value
    return false
  }

  function dispatch(batch: SseEvent[]): boolean {
    const event = { data, id, type }
    inEvent = false
    data = id = type = undefined
    if (!event.data?.trim()) return false
    if (event.data === done) return true
    batch.push({
      data: parseEvent(event.data, limit),
      ...(event.id !== undefined && { id: event.id }),
      ...(event.type && event.type !== 'message' && { event: event.type }),
    })
    return false
  }

  return readLines<SseEvent>(body, limit, signal, {
    /** Normalizes every line end to LF, so that CR and CRLF cost no more than LF and no CR has to wait for the next read. */
    split(text) {
      const lines = (afterReturn && text.startsWith('\n') ? text.slice(1) : text).replace(/\r\n?/g, '\n')
      afterReturn = text.endsWith('\r')
      return lines.split('\n')
    },
    take,
    overflows: (rest) => rest + (data?.length ?? 0) > limit + FIELD_NAME_LENGTH,
    end(rest) {
      if (inEvent || (rest !== '' && !rest.startsWith(':'))) throw truncatedStream()
    },
  })
}
