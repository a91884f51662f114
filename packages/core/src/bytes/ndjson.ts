import { type ByteSource, defaultLimit, parseEvent, readLines, truncatedStream } from './text.js'

/** The values of the lines that one read of the body completed, of a large read a part of them; never empty. */
export type JsonLinesBatch = readonly unknown[]

/** Options of {@link readJsonLines}. */
export interface JsonLinesOptions {
  /** How much of one line is held, counted in UTF-16 units. Default 16 MiB. */
  maxEventBytes?: number | undefined
  /** Cancels the body and ends the batches, without an error. */
  signal?: AbortSignal | undefined
}

/**
 * Reads newline-delimited JSON: one value in each line, lines ending in LF or CRLF, empty lines skipped. The last line needs no
 * line end if it is a whole value. Stopping early cancels the body; to stop while a read is under way, abort `signal`.
 *
 * @throws CountersignError, after the lines completed before the fault: `malformed-event` (not JSON, not UTF-8),
 * `event-too-large`, `truncated-stream` (the body ended inside a line). A read that fails throws its own error.
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

/** The CR of a CRLF is still there; to JSON it is whitespace. */
function isEmpty(line: string): boolean {
  return line.trim() === ''
}
