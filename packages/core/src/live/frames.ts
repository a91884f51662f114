import type { ResumeEntry, RunAgentInput } from '../protocol/events.js'

/** Headers of the client, which a browser cannot set on a socket: they go with each request instead. */
type FrameHeaders = Readonly<Record<string, string>>

/** What a client says over a live channel (a WebSocket). One JSON text message each. */
export type ClientFrame =
  /** Runs the agent. Its events come back under `input.runId`. */
  | { readonly type: 'run'; readonly input: RunAgentInput; readonly headers?: FrameHeaders }
  /** Takes up a run that broke off, after the event `lastEventId`. Answered like `run`, by `end` alone where there is nothing. */
  | {
      readonly type: 'rejoin'
      readonly threadId: string
      readonly runId: string
      readonly lastEventId?: string
      readonly headers?: FrameHeaders
    }
  /** Answers for a run that is open. The reply carries the same `id`, which no other answer of the socket has. */
  | {
      readonly type: 'answer'
      readonly id: string
      readonly threadId: string
      readonly runId: string
      readonly resume: readonly ResumeEntry[]
      readonly headers?: FrameHeaders
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
