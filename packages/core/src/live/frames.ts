import type { ResumeEntry, RunAgentInput } from '../protocol/events.js'

/** Headers set by the client. A browser cannot set headers on a socket, so they travel with each request. */
type FrameHeaders = Readonly<Record<string, string>>

/** A frame from the client over a live channel (a WebSocket): one JSON text message each. */
export type ClientFrame =
  /** Runs the agent. Its events come back with `input.runId`. */
  | { readonly type: 'run'; readonly input: RunAgentInput; readonly headers?: FrameHeaders }
  /** Rejoins a run after the event `lastEventId`. The reply is like that to `run`; if there is no such run, it is only `end`. */
  | {
      readonly type: 'rejoin'
      readonly threadId: string
      readonly runId: string
      readonly lastEventId?: string
      readonly headers?: FrameHeaders
    }
  /** Answers for an open run. The reply carries the same `id`, which is unique on the socket. */
  | {
      readonly type: 'answer'
      readonly id: string
      readonly threadId: string
      readonly runId: string
      readonly resume: readonly ResumeEntry[]
      readonly headers?: FrameHeaders
    }
  /** The client no longer listens to the run. No reply is sent. */
  | { readonly type: 'stop'; readonly runId: string }

/** A frame from the server. */
export type ServerFrame =
  /** Events of a run, in order; those available at the same time share a frame. `id` belongs to the last one, if runs can be rejoined. */
  | {
      readonly type: 'events'
      readonly runId: string
      readonly events: readonly unknown[]
      readonly id?: string
    }
  /** The run's stream is complete. Answers not confirmed before this were not taken. */
  | { readonly type: 'end'; readonly runId: string }
  /** The run has received the answers. */
  | { readonly type: 'answered'; readonly id: string }
  /** The run did not receive the answers; they go out with the client's next request. */
  | { readonly type: 'refused'; readonly id: string; readonly code: string; readonly message: string }
  /** A run, or every run of the socket if there is no `runId`, cannot continue; its stream is over. */
  | {
      readonly type: 'error'
      readonly runId?: string
      /** The HTTP status of the same refusal. */
      readonly status?: number
      readonly code: string
      readonly message: string
    }
