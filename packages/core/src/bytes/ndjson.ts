import { type ByteSource, eventTooLarge, parseEvent, readText, truncatedStream } from './text.js'

/** The values of the lines that one read of the body completed; never empty. */
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
export async function* readJsonLines(
  body: ByteSource,
  { maxEventBytes = 16 * 1024 * 1024, signal }: JsonLinesOptions = {},
): AsyncGenerator<JsonLinesBatch, void, undefined> {
  const splitter = createLineSplitter(maxEventBytes)
  for await (const text of readText(body, signal)) {
    const { batch, error } = parseLines(splitter.feed(text), maxEventBytes)
    if (batch.length > 0) yield batch
    if (error !== undefined) throw error
    if (splitter.overflows()) throw eventTooLarge(maxEventBytes)
  }
  const last = splitter.rest()
  if (signal?.aborted || isEmptyLine(last)) return
  yield [parseLastLine(last)]
}

/** Everything up to the first line that cannot be read, and why it cannot. */
function parseLines(lines: string[], limit: number): { batch: unknown[]; error?: unknown } {
  const batch: unknown[] = []
  try {
    for (const line of lines) {
      if (line.length > limit) throw eventTooLarge(limit)
      if (!isEmptyLine(line)) batch.push(parseEvent(line))
    }
    return { batch }
  } catch (error) {
    return { batch, error }
  }
}

function parseLastLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw truncatedStream(line, cause)
  }
}

/** The CR of a CRLF is still there; to JSON it is whitespace. */
function isEmptyLine(line: string): boolean {
  return line.trim() === ''
}

/** Keeps the pieces of an unfinished line apart until it ends: joining them at every read would cost the square of its length. */
function createLineSplitter(limit: number) {
  let pieces: string[] = []
  let held = 0
  return {
    feed(text: string): string[] {
      const lines = text.split('\n')
      const rest = lines.pop() ?? ''
      if (lines.length > 0) {
        lines[0] = pieces.join('') + lines[0]
        pieces = []
        held = 0
      }
      pieces.push(rest)
      held += rest.length
      return lines
    },
    overflows: () => held > limit,
    rest: () => pieces.join(''),
  }
}
