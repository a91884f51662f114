import type { CountersignError } from '../errors.js'
import type { EditedPreview, UIMessage } from '../messages.js'
import type { End, FinishedRun, InterruptDraft, QueuedMessage, RunState, Subagent } from './data.js'

/** What happens here, beside the events of a stream. The machine takes both alike. */
export type LocalEvent =
  | { readonly type: 'user-message'; readonly message: UIMessage }
  /** A message of any role, complete as it is. */
  | { readonly type: 'append'; readonly message: UIMessage }
  | { readonly type: 'queue'; readonly item: QueuedMessage }
  | { readonly type: 'unqueue'; readonly id: string }
  | ({ readonly type: 'answer'; readonly approvalId: string } & Answer)
  /** Requests (approvals or interrupts) that nobody answered: the user moved on, or their time ran out. */
  | { readonly type: 'close'; readonly ids: readonly string[]; readonly because: 'moved-on' | 'expired' }
  | {
      readonly type: 'respond'
      readonly interruptId: string
      readonly response: { readonly payload: unknown } | { readonly cancel: true }
    }
  | { readonly type: 'tool-started'; readonly toolCallId: string }
  | ({ readonly type: 'tool-output'; readonly toolCallId: string; readonly messageId: string } & ToolOutput)
  /** The last run failed and is to be repeated: what it left unfinished will be said anew. */
  | { readonly type: 'drop-unfinished' }
  /** `again`: its request also repeats the answers that may have arrived before. */
  | { readonly type: 'run-opened'; readonly runId: string; readonly again?: boolean | undefined }
  /**
   * `from`: where its output begins. Default: where that of the broken run did, or else the end. `isUnheard`: no event of it has arrived, so
   * the server may not know it.
   */
  | {
      readonly type: 'run-rejoined'
      readonly runId: string
      readonly from?: End | undefined
      readonly isUnheard?: boolean | undefined
    }
  /** The stream of the open run was lost and the connection tries to rejoin it (`isLost`), or it has rejoined it. */
  | { readonly type: 'connection-changed'; readonly isLost: boolean }
  /** `uncertain`: the server may have begun although nothing came of it yet, and would carry the same answer out twice. */
  | { readonly type: 'run-closed'; readonly end: RunEnd; readonly uncertain?: boolean | undefined }
  | { readonly type: 'set-messages'; readonly messages: readonly UIMessage[] }
  | { readonly type: 'restore'; readonly record: ThreadRecord }
  | { readonly type: 'mirror'; readonly state: MirrorState }
  /** An answer is on its way into the open run (`sent`), or did not get there after all. */
  | { readonly type: 'answer-sent'; readonly approvalId: string }
  | { readonly type: 'answer-returned'; readonly approvalId: string }
  /** An answer that no request has carried is taken back: its approval request is open again. */
  | { readonly type: 'withdraw-answer'; readonly approvalId: string }
  /** The application replaces the shared state. */
  | { readonly type: 'set-state'; readonly state: unknown }
  | { readonly type: 'clear-error' }
  /** Something went wrong outside of a run. */
  | { readonly type: 'failed'; readonly error: CountersignError }
  /** Drops every message after this one; with `inclusive`, this one as well. */
  | { readonly type: 'truncate'; readonly messageId: string; readonly inclusive?: boolean | undefined }

/** The user's answer to an approval request. `input` are the arguments as edited. */
export interface Answer {
  readonly approved: boolean
  readonly reason?: string | undefined
  readonly scope?: 'once' | 'session' | undefined
  /** The id of the mandate that was chosen. */
  readonly mandate?: string | undefined
  readonly input?: unknown
  readonly edited?: EditedPreview | undefined
}

export type ToolOutput =
  | { readonly output: unknown }
  | { readonly error: { readonly message: string; readonly code?: string } }

/** How a stream ended, as the caller saw it. */
export type RunEnd =
  | { readonly type: 'success' }
  | { readonly type: 'aborted' }
  /** `resumable`: the stream broke off and may yet be taken up where it stopped. */
  | { readonly type: 'failed'; readonly error: CountersignError; readonly resumable?: boolean }

/**
 * What is kept of a conversation: what was said, what was answered and how far each answer got (in the messages' approvals), which
 * outputs of client tools the server has not had, and what waits to be said. Plain JSON.
 */
export interface ThreadRecord {
  readonly version: 1
  readonly messages: readonly UIMessage[]
  /** Ids of client-tool calls whose output was not sent. */
  readonly unsentOutputs: readonly string[]
  /**
   * Complete calls of broken runs, by position of message and part: the turn does not wait for them. Absent from a record of a server's
   * conversation or of an older version: then every call that the last run did not leave to the client.
   */
  readonly interrupted?: readonly (readonly [message: number, part: number])[]
  /** Approved client-tool calls that the server handed out, and that have not run. */
  readonly ready: readonly { readonly id: string; readonly input: unknown }[]
  /** Questions that concern no tool call, and their answers. */
  readonly interrupts: readonly Omit<InterruptDraft, 'kind'>[]
  readonly queue: readonly QueuedMessage[]
  /** `stop()` holds the queue. Only in what is kept of a server's conversation. */
  readonly isHeld?: boolean
  /** What the last run said when it ended well: calls it left to the client may still be run. */
  readonly run?: FinishedRun
  /** Where the messages of the last run begin, where it failed or was still open when the record was stored. */
  readonly from?: End
  /** Why that run failed. Absent where it was open. */
  readonly error?: Pick<CountersignError, 'code' | 'message'> & Partial<Pick<CountersignError, 'data'>>
  /** The run that was open when the record was stored, or whose stream had broken and that could still be rejoined. */
  readonly openRun?: string
  /** Where what that run wrote begins. */
  readonly openRunFrom?: End
  /** The AG-UI shared state. */
  readonly state?: unknown
}

/**
 * A conversation as it stands in another tab, with whatever is under way there: who takes it over and then takes the same steps shows
 * the same. Plain JSON, but for the errors.
 */
export interface MirrorState {
  readonly messages: readonly UIMessage[]
  /** What messages and calls keep beside what is shown. */
  readonly live: readonly LiveMessage[]
  readonly calls: readonly LiveCall[]
  /** Ids of messages that were used again. Absent from a tab of an older version. */
  readonly repeats?: readonly (readonly [id: string, n: number])[]
  readonly interrupts: readonly Omit<InterruptDraft, 'kind'>[]
  readonly queue: readonly QueuedMessage[]
  readonly unsent: readonly Place[]
  readonly run: MirrorRun
  readonly subagents: readonly Subagent[]
  readonly state?: unknown
  readonly error?: CountersignError
}

/** Where an answer or output hangs: the position of its message and part, or the id of the interrupt. */
export type Place = readonly [message: number, part: number] | string

export interface LiveMessage {
  readonly at: number
  readonly text: boolean
  readonly streaming: boolean
  readonly provisional: boolean
}

export interface LiveCall {
  readonly at: Place
  readonly answered: boolean
  readonly interrupted: boolean
  readonly token?: string | undefined
  readonly ready?: { readonly input: unknown } | undefined
  readonly replay?: number | undefined
  readonly repeats: number
  readonly doubted: boolean
  readonly unclear?: boolean | undefined
  readonly outputSent?: boolean | undefined
  readonly inDoubt?: boolean | undefined
  readonly askedIn?: string | undefined
}

type MirrorRun =
  | Extract<RunState, { phase: 'idle' }>
  | {
      readonly phase: 'submitted' | 'streaming'
      readonly runId: string
      readonly carried: readonly Place[]
      readonly again?: boolean | undefined
      readonly from: End
      readonly finish?: FinishedRun
      readonly failure?: CountersignError
    }
