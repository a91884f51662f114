import type {
  AGUIEvent,
  MandateReplay,
  ResumeEntry,
  RunAgentInput,
  SessionGrant,
  UIMessage,
} from '@countersign/core'

/** What a connection gets besides the request itself. */
export interface ConnectOptions {
  /** Aborted when the run is stopped; the connection must close its stream. */
  readonly signal: AbortSignal
  /** The conversation as shown, for connections with a protocol other than AG-UI. */
  readonly messages: readonly UIMessage[]
  /** The client's `headers` option and those of this request, for connections that can send headers. Of names that differ only in case the last one counts. */
  readonly headers: Readonly<Record<string, string>>
  /** For connections that can `rejoin`: call it with the id of the last event of a batch once the batch was consumed. */
  readonly onEventId?: ((id: string) => void) | undefined
  /** For connections that rejoin a lost stream by themselves: call it with `true` when the stream is lost, and with `false` once it is rejoined. */
  readonly onLost?: ((isLost: boolean) => void) | undefined
}

/** Events as they arrive. An array holds events that arrived together, so that a burst is processed at once; an empty one is a sign of life. */
export type EventSource = AsyncIterable<AGUIEvent | readonly AGUIEvent[]>

/**
 * How a client reaches an agent: one request, one stream of AG-UI events. The client validates every event
 * from every connection, so yielding `unknown` is fine.
 */
export interface Connection {
  connect(input: RunAgentInput, options: ConnectOptions): AsyncIterable<unknown>
  /**
   * Delivers answers into the open run, if the connection supports it (a live channel). It resolves once the server has them. If it
   * rejects with a `CountersignError`, the server certainly does not have them, and they are sent after the run, as over any
   * connection. If the run was not reached (`not-an-event-stream`, or `http-status` other than 409), the run ends with that error,
   * and the next request carries them. `connection-failed`, or any other error, means that the delivery is unknown: it is called
   * again with the same answers while the run is open, and the server must accept them only once. If the run ends well without their
   * effect, the next request carries them; if it breaks, they wait for `retry()`, which calls it again for a run that it rejoins.
   */
  answer?(answers: LiveAnswers, options: Pick<ConnectOptions, 'signal' | 'headers'>): Promise<void>
  /**
   * Rejoins a run whose stream broke off, after the last consumed event. A stream without any event means
   * that there is nothing to rejoin; the client then repeats the request.
   */
  rejoin?(cursor: RunCursor, options: ConnectOptions): AsyncIterable<unknown>
  /**
   * Stops a run on the server. Connections that can `rejoin` need it, because to the server a closed stream looks like a broken one. It is called
   * after `signal` was aborted, and for a run whose stream had already broken. The client does not wait for it.
   */
  stop?(run: RunCursor, options: Pick<ConnectOptions, 'headers'>): void
  /**
   * Whether the server would execute an answer twice if it received it twice, because it has no ledger. If the
   * request with an answer broke, only `retry()` then sends it again, even if no response had arrived. Default: no.
   */
  readonly repeatsAnswers?: boolean | undefined
  /** The session approvals of this user in a thread, if the server offers them. */
  grants?(
    which: { readonly threadId: string },
    options: Pick<ConnectOptions, 'headers'>,
  ): Promise<readonly SessionGrant[]>
  /** Revokes one of them, or without `id` all of the thread; resolves with how many there were. */
  revokeGrant?(
    which: { readonly threadId: string; readonly id?: string | undefined },
    options: Pick<ConnectOptions, 'headers'>,
  ): Promise<number>
  /** What a mandate offered with an open request would have decided about past calls. */
  replayMandate?(
    which: {
      readonly threadId: string
      readonly approvalId: string
      readonly mandate: string
      readonly toolCallIds: readonly string[]
    },
    options: Pick<ConnectOptions, 'headers'>,
  ): Promise<MandateReplay>
}

/** Wraps a connection in a translation: the type of the option `compat`. `warn` receives what gets lost. */
export type Compat = (connection: Connection, warn: (message: string) => void) => Connection

/** How far a run was read. `lastEventId` is absent if none of its events had an id yet. */
export interface RunCursor {
  readonly threadId: string
  readonly runId: string
  readonly lastEventId?: string
}

/** Answers for an open run, in the form of a request's `resume`. */
export interface LiveAnswers {
  readonly threadId: string
  readonly runId: string
  readonly resume: readonly ResumeEntry[]
}

/**
 * Creates a connection from a function: an agent in the same process, a script in a test, a custom transport.
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
        // Stopped before it began: the opened source is never read.
        return options.signal.aborted ? nothing() : events
      }),
  }
}

async function* nothing(): EventSource {}

/** Opens the source when the first event is requested. Not a generator, which would add microtasks to every event. */
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
