import {
  type AGUIEvent,
  CountersignError,
  createEventReader,
  isCountersignError,
  type ReaderWarning,
  type RunAgentInput,
  type RunEnd,
} from '@countersign/core'
import type { Connection, ConnectOptions } from './connections/connection.js'
import type { Answered } from './results.js'

/** One open stream. It ends once: by itself, by a fault, or because the person stopped it. */
export interface Run {
  readonly id: string
  readonly kind: RunKind
  /** What its request took along, and what was delivered into it since. */
  readonly carried: Set<Answered>
  readonly signal: AbortSignal
  readonly done: Promise<RunEnd>
  /** Asks the connection. Called once, when the run is known to be the open one. */
  start(): void
  /** Ends it now. Later calls do nothing, and what still arrives is not applied. */
  end(end: RunEnd): void
}

/** `message`: the person spoke. `continuation`: their answers go out. `retry`: the person asked for it again. */
export type RunKind = 'message' | 'continuation' | 'retry'

export interface RunHost {
  connection: Connection
  input: RunAgentInput
  options: Omit<ConnectOptions, 'signal'>
  kind: RunKind
  carried: Set<Answered>
  onEvent(event: AGUIEvent): void
  onUnknown(event: { readonly type: string }): void
  onWarning(warning: ReaderWarning): void
  /** RUN_ERROR came: the stream ends well, the run does not. */
  failure(): CountersignError | undefined
  onEnd(run: Run, end: RunEnd): void
}

/** A run that is not started yet. */
export function createRun(host: RunHost): Run {
  const controller = new AbortController()
  let ended = false
  let resolve: (end: RunEnd) => void
  const done = new Promise<RunEnd>((r) => {
    resolve = r
  })
  const run: Run = {
    id: host.input.runId,
    kind: host.kind,
    carried: host.carried,
    signal: controller.signal,
    done,
    start() {
      void read(host, controller.signal, () => ended).then(run.end)
    },
    end(end) {
      if (ended) return
      ended = true
      if (end.type === 'aborted') controller.abort()
      host.onEnd(run, end)
      resolve(end)
    },
  }
  return run
}

/** Reads to the end of the stream. Applying an event is synchronous: nothing is awaited but the next read. */
async function read(host: RunHost, signal: AbortSignal, ended: () => boolean): Promise<RunEnd> {
  const { threadId, runId } = host.input
  const { onUnknown, onWarning } = host
  const reader = createEventReader({ threadId, runId, onUnknown, onWarning })
  let empty = true
  const apply = (event: AGUIEvent) => {
    if (!ended()) host.onEvent(event)
  }
  try {
    for await (const batch of host.connection.connect(host.input, { ...host.options, signal })) {
      for (const event of Array.isArray(batch) ? batch : [batch]) {
        if (ended()) return { type: 'aborted' }
        empty = false
        reader.push(event, apply)
      }
    }
    if (empty)
      throw new CountersignError('empty-response', 'The server answered without a single event. Try again.')
    reader.end()
    const error = host.failure()
    return error ? { type: 'failed', error } : { type: 'success' }
  } catch (cause) {
    return { type: 'failed', error: toError(cause) }
  }
}

function toError(cause: unknown): CountersignError {
  if (isCountersignError(cause)) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  return new CountersignError('connection-failed', `The connection broke: ${message}`, {}, cause)
}
