/** An event of a run, as JSON text, with its place: the first is 1. */
export interface LoggedEvent {
  readonly n: number
  readonly data: string
}

/**
 * What runs have said, so that one whose stream broke off can be taken up. A run is named by a key that starts with its owner: nobody
 * else can form it.
 */
export interface RunLog {
  /** Whether appending is no round trip, so that events need not be gathered. Default false. */
  readonly isLocal?: boolean | undefined
  /** Begins a run's record, in the place of an older one with the same key. Readers of the older one end. */
  begin(runKey: string): Promise<RunWriter>
  /**
   * The events after `after` (0: from the first on), then those that are still to come, until the run has ended or `signal` is aborted.
   * Nothing (`undefined`) where the run is unknown, forgotten or no longer whole, or where it has ended and said nothing after `after`.
   *
   * A reader ends early where the record is dropped, and where whoever wrote it is gone: it must not wait for ever.
   */
  read(
    runKey: string,
    after: number,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly LoggedEvent[]> | undefined>
}

/** The record of one run, as it is written. */
export interface RunWriter {
  /** Appends events. When it has resolved, a reader gets them. */
  append(events: readonly string[]): Promise<void>
  /** The run is over; a reader ends after the last event. */
  end(): Promise<void>
}

/** The number of an event out of an id `<runId>:<n>`, or nothing where the id is not of this run. */
export function eventNumber(runId: string, eventId: string): number | undefined {
  if (!eventId.startsWith(`${runId}:`)) return undefined
  const digits = eventId.slice(runId.length + 1)
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined
}
