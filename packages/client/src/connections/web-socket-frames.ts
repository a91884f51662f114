import { CountersignError, isRecord, type ResumeEntry, type RunAgentInput } from '@countersign/core'

/** Headers of the client (its `headers` option), which a browser cannot set on a socket: they go with each request instead. */
type Headers = Readonly<Record<string, string>>

/** What a client says. One JSON text message each. */
export type ClientFrame =
  /** Runs the agent. Its events come back under `input.runId`. */
  | { readonly type: 'run'; readonly input: RunAgentInput; readonly headers?: Headers }
  /** Takes up a run that broke off, after the event `lastEventId`. Answered like `run`, by `end` alone where there is nothing. */
  | {
      readonly type: 'rejoin'
      readonly threadId: string
      readonly runId: string
      readonly lastEventId?: string
      readonly headers?: Headers
    }
  /** Answers for a run that is open. The reply carries the same `id`, which no other answer of the socket has. */
  | {
      readonly type: 'answer'
      readonly id: string
      readonly threadId: string
      readonly runId: string
      readonly resume: readonly ResumeEntry[]
      readonly headers?: Headers
    }
  /** Nobody listens to the run any more. Nothing is sent back. */
  | { readonly type: 'stop'; readonly runId: string }

/** What a server says. */
export type ServerFrame =
  /** Events of a run, in order; what is there together goes together. `id` is that of the last one, where runs can be taken up. */
  | {
      readonly type: 'events'
      readonly runId: string
      readonly events: readonly unknown[]
      readonly id?: string
    }
  /** The run's stream is complete. An answer that was not confirmed before this was not taken. */
  | { readonly type: 'end'; readonly runId: string }
  /** The run has the answers. */
  | { readonly type: 'answered'; readonly id: string }
  /** It has not, and they go out with the client's next request. */
  | { readonly type: 'refused'; readonly id: string; readonly code: string; readonly message: string }
  /** A run (or, without `runId`, every run of the socket) cannot go on; the stream is over. */
  | { readonly type: 'error'; readonly runId?: string; readonly code: string; readonly message: string }

/**
 * Reads one message. Gives `undefined` for a type of frame that a later version may have added.
 * @throws CountersignError `malformed-event` or `event-too-large`.
 */
export function readFrame(data: unknown, limit: number): ServerFrame | undefined {
  if (typeof data !== 'string') throw malformed('a binary message')
  if (data.length > limit) {
    const message = `A message is longer than ${limit} characters. Send less in one message, or raise maxEventBytes.`
    throw new CountersignError('event-too-large', message, { limit })
  }
  const frame = parse(data)
  if (!isRecord(frame)) throw malformed(data)
  const { type, runId, id, events, code, message } = frame
  switch (type) {
    case 'events':
      if (typeof runId !== 'string' || !Array.isArray(events)) throw malformed(data)
      return { type, runId, events, ...(typeof id === 'string' && { id }) }
    case 'end':
      if (typeof runId !== 'string') throw malformed(data)
      return { type, runId }
    case 'answered':
      if (typeof id !== 'string') throw malformed(data)
      return { type, id }
    case 'refused':
      if (typeof id !== 'string') throw malformed(data)
      return { type, id, ...problem(code, message) }
    case 'error':
      if (runId !== undefined && typeof runId !== 'string') throw malformed(data)
      return { type, ...(runId !== undefined && { runId }), ...problem(code, message) }
    default:
      if (typeof type !== 'string') throw malformed(data)
      return undefined
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw malformed(text, cause)
  }
}

function problem(code: unknown, message: unknown): { code: string; message: string } {
  return {
    code: typeof code === 'string' ? code : 'unknown',
    message: typeof message === 'string' ? message : 'The server gave no reason.',
  }
}

function malformed(data: string, cause?: unknown): CountersignError {
  const text = data.slice(0, 200)
  const message = `The socket brought what is no frame of a chat: ${text}. Check that the URL is the chat endpoint.`
  return new CountersignError('malformed-event', message, { text }, cause)
}
