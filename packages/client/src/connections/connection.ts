import type { AGUIEvent, ResumeEntry, RunAgentInput, SessionGrant, UIMessage } from '@countersign/core'

/** What a connection gets beside the request itself. */
export interface ConnectOptions {
  /** Aborted when the run is stopped: the connection closes its stream. */
  readonly signal: AbortSignal
  /** The conversation as shown, for connections that speak another protocol than AG-UI. */
  readonly messages: readonly UIMessage[]
  /** The client's `headers` option, for connections that have headers. */
  readonly headers: Readonly<Record<string, string>>
  /** To be called with the id of the last event of a batch once the batch was taken, by connections that can `rejoin`. */
  readonly onEventId?: ((id: string) => void) | undefined
}

/** Events as they arrive. An array is what arrived together, so that a burst costs one turn of the loop. */
export type EventSource = AsyncIterable<AGUIEvent | readonly AGUIEvent[]>

/**
 * How a client reaches an agent: one request, one stream of AG-UI events. The client checks every event, whichever connection it came
 * by, so `unknown` in the place of events is as good.
 */
export interface Connection {
  connect(input: RunAgentInput, options: ConnectOptions): AsyncIterable<unknown>
  /**
   * Delivers answers into the open run, where the connection has a way to (a live channel). Resolves when the server has them. Rejects
   * with a `CountersignError` where it certainly has not: they go out after the run, as they would over any connection. Where the run was
   * not reached (`not-an-event-stream`, or `http-status` other than 409), the run ends with that error; the next request has them. Rejects with
   * `connection-failed`, or anything else, where nobody knows: it is called again with the same answers while the run is open, which a
   * server takes once. Where the run ends well without their effect they go out with the next request; where it breaks they wait for
   * `retry()`, which calls it again for a run that it takes up.
   */
  answer?(answers: LiveAnswers, options: Pick<ConnectOptions, 'signal' | 'headers'>): Promise<void>
  /**
   * Takes up a run whose stream broke off, after the last event that was taken. A stream without a single event says that there is
   * nothing to take up; the client then repeats the request.
   */
  rejoin?(cursor: RunCursor, options: ConnectOptions): AsyncIterable<unknown>
  /**
   * Whether the server would carry out an answer a second time that it gets twice, since it keeps no ledger. An answer whose request broke
   * is then sent again by `retry()` alone, also where nothing had come back yet. Default: no.
   */
  readonly repeatsAnswers?: boolean | undefined
  /** The standing session approvals of this person in a thread, where the server offers them. */
  grants?(
    which: { readonly threadId: string },
    options: Pick<ConnectOptions, 'headers'>,
  ): Promise<readonly SessionGrant[]>
  /** Ends one of them, or without `id` all of the thread; resolves with how many there were. */
  revokeGrant?(
    which: { readonly threadId: string; readonly id?: string | undefined },
    options: Pick<ConnectOptions, 'headers'>,
  ): Promise<number>
}

/** Puts a translation between the client and a connection: what the option `compat` takes. `warn` is told what gets lost. */
export type Compat = (connection: Connection, warn: (message: string) => void) => Connection

/** How far a run was read. `lastEventId` is absent where its events had no ids yet. */
export interface RunCursor {
  readonly threadId: string
  readonly runId: string
  readonly lastEventId?: string
}

/** Answers for a run that is open, in the form they have in a request's `resume`. */
export interface LiveAnswers {
  readonly threadId: string
  readonly runId: string
  readonly resume: readonly ResumeEntry[]
}

/**
 * A connection out of a function: an agent in the same process, a test's script, a transport of your own.
 *
 * @example stream((input, { signal }) => agent.run(input, { signal }))
 */
export function stream(
  open: (input: RunAgentInput, options: ConnectOptions) => EventSource | Promise<EventSource>,
): Connection {
  return {
    connect: (input, options) =>
      opened(async () => {
        const events = await open(input, options)
        // Stopped before it began: what was opened is never asked for an event.
        return options.signal.aborted ? nothing() : events
      }),
  }
}

async function* nothing(): EventSource {}

/** What `open` gives, opened when the first event is asked for. Not a generator around it, which would cost each event turns of its own. */
function opened(open: () => Promise<EventSource>): EventSource {
  return {
    [Symbol.asyncIterator]() {
      let source: ReturnType<EventSource[typeof Symbol.asyncIterator]> | undefined
      const begin = async () => {
        source = (await open())[Symbol.asyncIterator]()
        return source.next()
      }
      return {
        next: () => source?.next() ?? begin(),
        return: async () => (await source?.return?.()) ?? { done: true, value: undefined },
      }
    },
  }
}
