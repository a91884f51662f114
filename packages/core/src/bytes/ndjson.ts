import { type ByteSource, defaultLimit, parseEvent, readLines, truncatedStream } from './text.js'

/** The values of the lines that one read of the body completed. None if it brought only empty lines. A large read is split into several batches. */
export type JsonLinesBatch = readonly unknown[]

/** Options of {@link readJsonLines}. */
export interface JsonLinesOptions {
  /** Maximum length of one line in memory, in UTF-16 units. Default 16 MiB. */
  maxEventBytes?: number | undefined
  /** Cancels the body and ends the iteration without an error. */
  signal?: AbortSignal | undefined
}

/**
 * Reads newline-delimited JSON: one value per line. Lines end in LF or CRLF; empty lines are skipped. The last line needs
 * no line end if it is a complete value. Stopping early cancels the body. To stop while a read is pending, abort `signal`.
 *
 * @throws CountersignError, after the lines before the fault were delivered: `malformed-event` (not JSON, not UTF-8),
 * `event-too-large`, `truncated-stream` (the body ended inside a line). A failed read throws its own error.
 */
export function readJsonLines(
  body: ByteSource,
  { maxEventBytes: limit = defaultLimit, signal }: JsonLinesOptions = {},
): AsyncGenerator<JsonLinesBatch, void, undefined> {
  return readLines<unknown>(body, limit, signal, {
    split: (text) => text.split('\n'),
    take(line, batch) {
      if (!isEmpty(line)) batch.push(parseEvent(line, limit))
      return false
    },
    overflows: (rest) => rest > limit,
    end(rest, batch) {
      if (!isEmpty(rest)) batch.push(parseLast(rest))
    },
  })
}

function parseLast(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw truncatedStream(line, cause)
  }
}

/** A CRLF leaves its CR here; to JSON it is whitespace. */
function isEmpty(line: string): boolean {
  return line.trim() === ''
}
