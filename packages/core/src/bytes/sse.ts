import { createParser } from 'eventsource-parser'
import { type ByteSource, eventTooLarge, parseEvent, readText, truncatedStream } from './text.js'

/** One server-sent event. */
export interface SseEvent {
  /** Its `data`, parsed as JSON. */
  data: unknown
  /** Its `id`, for `Last-Event-ID`. */
  id?: string
}

/** What one read of the body completed; never empty. */
export type SseBatch = readonly SseEvent[]

/** Options of {@link readServerSentEvents}. */
export interface SseOptions {
  /** How much of one event is held, counted in UTF-16 units. Default 16 MiB. */
  maxEventBytes?: number | undefined
  /** Data that ends the stream instead of being JSON, `[DONE]` with some servers. Default: none. */
  done?: string | undefined
  /** Cancels the body and ends the batches, without an error. */
  signal?: AbortSignal | undefined
}

/** What `data: ` adds to a line that is held until its end arrives. */
const FIELD_NAME_LENGTH = 6

/**
 * Reads an event stream (HTML standard, section 9.2) whose events are JSON. Lines may end in LF, CRLF or CR; comments
 * and unknown fields are skipped; an event without its closing blank line is not delivered. Stopping early cancels the
 * body; to stop while a read is under way, abort `signal`.
 *
 * @throws CountersignError, after the events completed before the fault: `malformed-event` (not JSON, not UTF-8),
 * `event-too-large`, `truncated-stream` (the body ended inside an event). A read that fails throws its own error.
 */
export async function* readServerSentEvents(
  body: ByteSource,
  { maxEventBytes = 16 * 1024 * 1024, done, signal }: SseOptions = {},
): AsyncGenerator<SseBatch, void, undefined> {
  let batch: SseEvent[] = []
  let end: { error?: unknown } | undefined
  const framing = createFraming()
  const parser = createParser({
    maxBufferSize: maxEventBytes + FIELD_NAME_LENGTH,
    onEvent({ data, id }) {
      if (end) return
      try {
        if (data === done) end = {}
        else if (data.length > maxEventBytes) throw eventTooLarge(maxEventBytes)
        else batch.push({ data: parseEvent(data), ...(id !== undefined && { id }) })
      } catch (error) {
        end = { error }
      }
    },
    onError({ type }) {
      if (type === 'max-buffer-size-exceeded') end ??= { error: eventTooLarge(maxEventBytes) }
    },
  })
  for await (const text of readText(body, signal)) {
    parser.feed(framing.feed(text))
    if (batch.length > 0) yield batch
    batch = []
    if (end && 'error' in end) throw end.error
    if (end) return
  }
  if (framing.inEvent() && !signal?.aborted) throw truncatedStream()
}

/**
 * Brings every line end to LF, so that CR and CRLF cost what LF costs and no CR waits for the next read, and watches
 * whether the text so far ends inside an event: after a line that is no comment, before its blank line.
 */
function createFraming() {
  let afterReturn = false
  let lastTwo = '\n\n'
  let inEvent = false
  return {
    feed(text: string): string {
      const lines = (afterReturn && text.startsWith('\n') ? text.slice(1) : text).replace(/\r\n?/g, '\n')
      afterReturn = text.endsWith('\r')
      const recent = lastTwo + lines
      const blankLine = recent.lastIndexOf('\n\n')
      inEvent = (inEvent && blankLine < 0) || /\n[^:\n]/.test(recent.slice(blankLine + 1))
      lastTwo = recent.slice(-2)
      return lines
    },
    inEvent: () => inEvent,
  }
}
