import {
  type AGUIEvent,
  CountersignError,
  createEventReader,
  type EventReader,
  isCountersignError,
  type RunAgentInput,
  type RunEnd,
  type ToolMap,
} from '@countersign/core'
import type { ConnectOptions, RunCursor } from './connections/connection.js'
import { createPace } from './pace.js'
import type { Answered } from './results.js'
import type { Session } from './session.js'

/** `message`: the person spoke. `continuation`: their answers go out. `retry`: the person asked for it again.
 * `rejoin`: the same, of a run that goes on where its stream broke off. */
export type RunKind = 'message' | 'continuation' | 'retry' | 'rejoin'

/** A run that broke off: how far it was read, and the reader that knows what was open. */
export interface BrokenRun {
  readonly cursor: RunCursor
  readonly reader: EventReader
}

/** One open stream. It ends once: by itself, by a fault, or because the person stopped it. */
export interface Run {
  readonly id: string
  readonly kind: RunKind
  /** What its request took along, and what was delivered into it since. */
  readonly carried: Set<Answered>
  readonly signal: AbortSignal
  readonly done: Promise<RunEnd>
  /** Set once its stream broke off after it had begun, over a connection that can take it up again. */
  readonly broken: BrokenRun | undefined
  /** Asks the connection. Called once, when the run is known to be the open one. */
  start(): void
  /** Ends it now. Later calls do nothing, and what still arrives is not applied. */
  end(end: RunEnd): void
}

/** A run that is not started yet. `rejoin` is the run to take up, in the place of a new one. */
export function createRun<Tools extends ToolMap>(
  session: Session<Tools>,
  kind: RunKind,
  input: RunAgentInput,
  rejoin: BrokenRun | undefined,
  onEnd: (run: Run, end: RunEnd) => void,
): Run {
  const { state, options } = session
  const { compat, headers = {} } = options
  const connection = compat?.(options.connection, (message) => session.warn(message)) ?? options.connection
  const { threadId, runId } = input
  const { messages } = session.store.getSnapshot()
  const controller = new AbortController()
  const reader =
    rejoin?.reader ??
    createEventReader({
      threadId,
      runId,
      onUnknown: (event) => session.callBack(() => session.options.onEvent?.(event)),
      onWarning: ({ message }) => session.warn(message),
    })
  let lastEventId = rejoin?.cursor.lastEventId
  let broken: BrokenRun | undefined
  let ended = false
  let resolve: (end: RunEnd) => void
  const done = new Promise<RunEnd>((r) => {
    resolve = r
  })

  /** Asks the connection, for a new run or for the rest of one. */
  function events(): AsyncIterable<unknown> {
    const onEventId = (id: string) => {
      lastEventId = id
    }
    const connect: ConnectOptions = { messages, headers, signal: controller.signal, onEventId }
    return (rejoin && connection.rejoin?.(rejoin.cursor, connect)) ?? connection.connect(input, connect)
  }

  /** Reads to the end of the stream. Applying an event is synchronous: nothing is awaited but the next read and the page's turn. */
  async function read(): Promise<RunEnd> {
    let empty = true
    const pace = createPace()
    const apply = (event: AGUIEvent) => {
      if (!ended) session.dispatch(event)
    }
    const take = (event: unknown) => {
      empty = false
      reader.push(event, apply)
      return pace()
    }
    try {
      for await (const batch of events()) {
        const together: readonly unknown[] = Array.isArray(batch) ? batch : [batch]
        for (let i = 0; i < together.length; i++) {
          if (ended) return { type: 'aborted' }
          const pause = take(together[i])
          if (pause) await pause
        }
      }
      if (empty) throw emptyResponse()
      reader.end()
      // RUN_ERROR: the stream ends well, the run does not.
      const error = state.run.phase === 'idle' ? undefined : state.run.failure
      return error ? { type: 'failed', error } : { type: 'success' }
    } catch (cause) {
      return breakOff(toError(cause))
    }
  }

  /** A stream that broke between two events may be taken up again; one that broke a rule may not. */
  function breakOff(error: CountersignError): RunEnd {
    const between = error.code === 'connection-failed' || error.code === 'truncated-stream'
    if (!between || !connection.rejoin || state.run.phase !== 'streaming') return { type: 'failed', error }
    broken = { reader, cursor: { threadId, runId, ...(lastEventId !== undefined && { lastEventId }) } }
    return { type: 'failed', error, resumable: true }
  }

  const run: Run = {
    id: runId,
    kind,
    carried: new Set(state.unsent),
    signal: controller.signal,
    done,
    get broken() {
      return broken
    },
    start() {
      void read().then(run.end)
    },
    end(end) {
      if (ended) return
      ended = true
      if (end.type === 'aborted') controller.abort()
      onEnd(run, end)
      resolve(end)
    },
  }
  return run
}

function emptyResponse(): CountersignError {
  return new CountersignError('empty-response', 'The server answered without a single event. Try again.')
}

function toError(cause: unknown): CountersignError {
  if (isCountersignError(cause)) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new CountersignError('connection-failed', `The connection broke: ${message}`, {}, cause)
}
