import {
  type AGUIEvent,
  CountersignError,
  isCountersignError,
  type RunAgentInput,
  type RunEnd,
  StreamReader,
  type ThreadRecord,
  type ToolMap,
  type UIMessage,
} from '@countersign/core'
import type { Connection, ConnectOptions, RunCursor } from './connections/connection.js'
import { Pace } from './pace.js'
import type { Answered } from './results.js'
import { isDevelopment, type Session, unsafeCast } from './session.js'

/** `message`: a user message. `continuation`: answers or results. `retry`: the user's retry. `rejoin`: a retry that rejoins a run. */
export type RunKind = 'message' | 'continuation' | 'retry' | 'rejoin'

/** A run to rejoin: how far it was read, and the reader with its state. */
export interface BrokenRun {
  /** The connection that opened it; another one, even if configured alike, may not know it. */
  readonly connection?: Connection
  readonly cursor: RunCursor
  /** Absent for a run that is read from its first event: one that this client did not open, or opened before a reload. */
  readonly reader?: StreamReader
  readonly unsure?: ReadonlySet<Answered>
  /** Where its output begins. Default: where the broken run's does. */
  readonly from?: ThreadRecord['from']
  /** Another client opened it, which also runs its client tools. */
  readonly isForeign?: boolean | undefined
  /** No event of it has arrived: it may not have begun. */
  readonly isUnheard?: boolean
}

/** One open stream. It ends once: on its own, with an error, or because the user stopped it. */
export interface Run {
  readonly id: string
  readonly kind: RunKind
  /** What its request carried, and what was delivered into it since. */
  readonly carried: Set<Answered>
  /** What was sent into it but not confirmed. */
  readonly unsure: Set<Answered>
  readonly signal: AbortSignal
  /** The connection that opened it, whatever the options are now. */
  readonly connection: Connection
  readonly done: Promise<RunEnd>
  /** Set if its stream broke off, and the connection can rejoin it. */
  readonly broken: BrokenRun | undefined
  readonly isForeign: boolean | undefined
  /** Sends the request. Called once, when the run has become the open one. */
  start(): void
  /** Ends it now and closes its stream. Later calls do nothing, and later events are ignored. */
  end(end: RunEnd): void
}

/** Milliseconds to wait for events after RUN_FINISHED or RUN_ERROR: a proxy that never ends the response must not keep the run open. */
const GRACE_MS = 1000

/** A class, so that engines compile the code on the path of every event once instead of for each run. */
export class StreamRun<Tools extends ToolMap> implements Run {
  readonly kind: RunKind
  readonly carried: Set<Answered>
  readonly unsure: Set<Answered>
  readonly connection: Connection
  readonly done: Promise<RunEnd>
  broken: BrokenRun | undefined = undefined
  readonly isForeign: boolean | undefined
  readonly #session: Session<Tools>
  readonly #input: RunAgentInput
  readonly #messages: readonly UIMessage[]
  readonly #headers: ConnectOptions['headers']
  readonly #rejoin: BrokenRun | undefined
  readonly #reader: StreamReader
  readonly #controller = new AbortController()
  readonly #pace = new Pace()
  readonly #onStart: (run: Run) => void
  readonly #onEnd: (run: Run, end: RunEnd) => void
  #resolve: (end: RunEnd) => void = () => {}
  #cursor: RunCursor
  #ended = false
  #grace: ReturnType<typeof setTimeout> | undefined

  /** Creates a run that is not started yet. `rejoin` is the run to rejoin instead of starting a new one. */
  constructor(
    session: Session<Tools>,
    kind: RunKind,
    input: RunAgentInput,
    headers: ConnectOptions['headers'],
    rejoin: BrokenRun | undefined,
    onStart: (run: Run) => void,
    onEnd: (run: Run, end: RunEnd) => void,
  ) {
    const { state, options } = session
    const { connection, compat } = options
    this.#session = session
    this.kind = kind
    this.carried = new Set(state.unsent)
    this.unsure = new Set(rejoin?.unsure)
    this.#input = input
    this.connection =
      rejoin?.connection ??
      session.callBack(() => compat?.(connection, (message) => session.warn(message))) ??
      connection
    this.#messages = session.store.getSnapshot().messages
    this.#headers = headers
    this.#rejoin = rejoin
    this.isForeign = rejoin?.isForeign
    this.#onStart = onStart
    this.#onEnd = onEnd
    const { threadId, runId } = input
    this.#cursor = rejoin?.cursor ?? { threadId, runId }
    this.#reader =
      rejoin?.reader ??
      new StreamReader({
        threadId,
        runId,
        strict: isDevelopment(),
        onFull: (steps) => session.learn(steps),
        onUnknown: (event) => session.callBack(() => session.options.onEvent?.(unsafeCast(event))),
        onWarning: ({ message }) => session.warn(message),
      })
    this.done = new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  get id(): string {
    return this.#input.runId
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  start(): void {
    void this.#read().then((end) => this.end(end, true))
  }

  end(end: RunEnd, isRead?: boolean): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#grace)
    if (!isRead) this.#controller.abort()
    if (end.type === 'aborted' && !isRead) this.#session.stopOnServer(this.connection, this.#cursor)
    this.#onEnd(this, end)
    this.#resolve(end)
  }

  /** Opens the stream of a new run, or of the rest of one. */
  #events(): AsyncIterable<unknown> {
    const connect: ConnectOptions = {
      messages: this.#messages,
      headers: this.#headers,
      signal: this.signal,
      onEventId: (id) => {
        this.#cursor = { ...this.#cursor, lastEventId: id }
      },
      onLost: (isLost) => {
        if (!this.#ended) this.#session.dispatch({ type: 'connection-changed', isLost })
      },
    }
    const rejoin = this.#rejoin
    return (
      (rejoin && this.connection.rejoin?.(rejoin.cursor, connect)) ??
      this.connection.connect(this.#input, connect)
    )
  }

  /** Reads to the end of the stream. Events are applied synchronously; it awaits only the next read and the page's turn. */
  async #read(): Promise<RunEnd> {
    let empty = true
    /** A batch has arrived, even an empty one. */
    let isKnown = false
    try {
      for await (const batch of this.#events()) {
        clearTimeout(this.#grace)
        isKnown = true
        const together: readonly unknown[] = Array.isArray(batch) ? batch : [batch]
        empty &&= together.length === 0
        for (let at = 0; at < together.length && !this.#ended; ) {
          let isOver = false
          let loading: Promise<void> | undefined
          const take = () => {
            while (at < together.length && !isOver && !loading && !this.#ended) {
              loading = this.#reader.push(together[at++], this.#apply)
              isOver = this.#pace.afterOne()
            }
          }
          if (together.length > 1) this.#session.together(take)
          else take()
          if (loading) await loading
          else if (isOver && !this.#ended) await this.#pace.nextSlice()
        }
        // Stopped: the source is not read any further.
        if (this.#ended) return { type: 'aborted' }
        const { run } = this.#session.state
        if (run.phase !== 'idle' && (run.finish || run.failure))
          this.#grace = setTimeout(() => {
            this.#session.warn('endless-response: the stream stays open after its run; the rest is not read.')
            this.end(this.#conclude())
          }, GRACE_MS)
      }
      if (empty) {
        const isThere = this.#rejoin && isKnown
        // A run that was open a moment ago, and has ended.
        if (this.#rejoin && !isThere && !this.#rejoin.reader) return { type: 'aborted' }
        const code = isThere ? 'truncated-stream' : 'empty-response'
        throw new CountersignError(code, 'The server sent no event. Try again.')
      }
      return this.#conclude()
    } catch (cause) {
      return this.#breakOff(toError(cause))
    }
  }

  /** How the run ended, once the stream has. */
  #conclude(): RunEnd {
    try {
      this.#reader.end()
    } catch (cause) {
      return this.#breakOff(toError(cause))
    }
    // RUN_ERROR: the stream ended well, but the run did not.
    const { run } = this.#session.state
    if (run.phase === 'idle') return { type: 'success' }
    const { finish, failure: error } = run
    if (error) return { type: 'failed', error }
    // Stopped, and not by its user in another page.
    return finish?.reason === 'disconnected'
      ? { type: 'failed', error: new CountersignError('truncated-stream', 'The server stopped the run.') }
      : { type: 'success' }
  }

  readonly #apply = (event: AGUIEvent): void => {
    // Another page's run hands the call to that page, also where this one has approved it too.
    if (this.isForeign && event.type === 'CUSTOM' && event.name === 'client-tool-ready') return
    if (this.#ended) return
    this.#session.dispatch(event)
    if (event.type === 'RUN_STARTED') this.#onStart(this)
  }

  /** A stream that broke between two events can be rejoined; one that broke a rule cannot. */
  #breakOff(error: CountersignError): RunEnd {
    const { run } = this.#session.state
    const end = { type: 'failed', error } as const
    if (run.phase === 'idle') return end
    // The server has reported why the run failed. That stays the error; what went wrong afterwards is its cause.
    if (run.failure) {
      const { code, message, data } = run.failure
      return { ...end, error: new CountersignError(code, message, data, error) }
    }
    const { code, data } = error
    const status = data.status as number
    const isCut = code === 'connection-failed' || code === 'truncated-stream'
    // A proxy may report a failure although the server has the request. It may also answer a rejoin itself, with a login page for example. So a
    // run is given up only if the server says that there is none, or does not support the request.
    const isElsewhere = this.#rejoin
      ? code === 'not-an-event-stream' || (status > 400 && status !== 405)
      : code === 'empty-response' || status >= 500
    if (!isCut && !isElsewhere) return end
    // The run was complete before the stream broke; a retry would get a second reply.
    if (run.finish) return { type: 'success' }
    if (!this.connection.rejoin) return end
    this.broken = {
      connection: this.connection,
      reader: this.#reader,
      unsure: this.unsure,
      isForeign: this.isForeign,
      isUnheard: run.phase === 'submitted',
      cursor: this.#cursor,
    }
    return { ...end, resumable: true }
  }
}

function toError(cause: unknown): CountersignError {
  if (isCountersignError(cause)) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new CountersignError('connection-failed', `The connection broke: ${message}`, {}, cause)
}
