/** An event of a run as JSON text, with its number: the first is 1. */
export interface LoggedEvent {
  readonly n: number
  readonly data: string
}

/**
 * Stores the events of runs, so that a client can rejoin one whose stream broke. The key of a run starts with its owner, so that
 * nobody else can form it.
 */
export interface RunLog {
  /** Starts a run's record, replacing an older one with the same key. Readers of the older one end. */
  begin(runKey: string): Promise<RunWriter>
  /**
   * The events after `after` (0: from the first), then those still to come, until the run has ended or `signal` is aborted.
   * `undefined` if the run is unknown, no longer stored or incomplete, or has ended without any event after `after`.
   *
   * A reader ends early if the record is dropped, or its writer is gone: it must not wait forever.
   *
   * `wait: false`: only the events that are stored now, also those of a run whose writer is gone. Their record is kept as long as that
   * of a run that has ended.
   */
  read(
    runKey: string,
    after: number,
    signal: AbortSignal,
    options?: { readonly wait?: boolean | undefined },
  ): Promise<AsyncIterable<readonly LoggedEvent[]> | undefined>
}

/** Writes the record of one run. */
export interface RunWriter {
  /** Appends events. Once it resolves, readers get them; at once if there is nothing to wait for. */
  append(events: readonly string[]): Promise<void> | undefined
  /** The run is over; readers end after the last event. */
  end(): Promise<void>
}

/** The number in an event id `<runId>:<n>`, or undefined if the id is not of this run. */
export function eventNumber(runId: string, eventId: string): number | undefined {
  if (!eventId.startsWith(`${runId}:`)) return undefined
  const digits = eventId.slice(runId.length + 1)
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined
}

/** A log whose failures stop nothing: a run that can't be recorded continues, but can't be rejoined. */
export function failSafeRunLog(log: RunLog, warn: (message: string, error: unknown) => void): RunLog {
  return {
    async begin(runKey) {
      try {
        return carefulWriter(await log.begin(runKey), warn)
      } catch (error) {
        warn('The run log could not begin a run; it cannot be taken up.', error)
        return { append: () => undefined, end: async () => {} }
      }
    },
    async read(runKey, after, signal, options) {
      try {
        return await log.read(runKey, after, signal, options)
      } catch (error) {
        warn('The run log could not be read.', error)
        return undefined
      }
    },
  }
}

/** After one failure nothing more is written: a record with a gap would be worse than none. */
function carefulWriter(writer: RunWriter, warn: (message: string, error: unknown) => void): RunWriter {
  let broken = false
  const failed = (error: unknown) => {
    broken = true
    warn('The run log could not be written; the run cannot be taken up.', error)
    // Readers must not wait for what will never be written.
    writer.end().catch(() => {})
  }
  const attempt = (write: () => Promise<void> | undefined) => {
    if (broken) return undefined
    try {
      return write()?.catch(failed)
    } catch (error) {
      failed(error)
      return undefined
    }
  }
  return {
    append: (events) => attempt(() => writer.append(events)),
    end: async () => attempt(() => writer.end()),
  }
}
