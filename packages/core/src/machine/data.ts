import type { CountersignError } from '../errors.js'
import type { JsonReader } from '../json/partial.js'
import type {
  MessagePart,
  ReasoningPart,
  TextPart,
  ToolCallApproval,
  ToolCallPart,
  ToolCallState,
  UIMessage,
} from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import type { AskedApproval } from './read-approval.js'

/** The subagent that produced a message or call, or raised an interrupt: `metadata.subagent`. Absent for the agent itself. */
export interface Subagent {
  /** Its `subagentRunId`. */
  readonly id: string
  /** Absent if it was never announced. */
  readonly name?: string
  /** The subagents above it, the outermost first. */
  readonly parents?: readonly Pick<Subagent, 'id' | 'name'>[]
}

/** The end of the conversation at some point: the number of messages, and the number of parts of the last one. */
export type End = readonly [messages: number, parts: number]

/** The run that is streaming, if any, and how the last one ended. */
export type RunState =
  /**
   * `brokenOff`: the id of the last run, if its stream broke and it may still be rejoined. `from`: the last run failed, and its output
   * begins here.
   */
  | {
      readonly phase: 'idle'
      readonly last?: FinishedRun
      readonly brokenOff?: string | false | undefined
      readonly from?: End
    }
  | {
      readonly phase: 'submitted' | 'streaming'
      readonly runId: string
      /** The answers and outputs that its request carried. */
      readonly carried: readonly (CallDraft | InterruptDraft)[]
      /** Its request also repeated the answers that may have arrived before, instead of leaving them to the history. */
      readonly again?: boolean | undefined
      /** Where the output of this run begins. */
      readonly from: End
      readonly finish?: FinishedRun
      readonly failure?: CountersignError
      /** Its stream was lost, and the connection tries to rejoin it. */
      readonly isLost?: boolean
    }

/** The content of RUN_FINISHED. */
export interface FinishedRun {
  readonly runId: string
  readonly reason: string | undefined
  readonly outcome: 'success' | 'interrupt' | 'cancelled'
  /** Calls that the server leaves to the client; absent if it named none. */
  readonly pendingToolCallIds: readonly string[] | undefined
  /** What the run has as its result: for a structured reply, its value. */
  readonly result?: unknown
}

/** What one request has in addition to the client's options. Plain JSON: it may be stored with a queued message, and go to another tab. */
export interface RequestOptions {
  /** Added to the option `headers`; a header given here wins. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** More members of the request's body. Those of `RunAgentInput` are never replaced. */
  readonly body?: Readonly<Record<string, unknown>> | undefined
  /** Merged into the option `forwardedProps` if both are objects; otherwise sent in its place. */
  readonly forwardedProps?: unknown
}

/**
 * A message queued until the open run has ended. `visible` lists the requests that the user could see when they wrote it. One that
 * `replaces` an earlier message of the user is never queued.
 */
export interface QueuedMessage {
  readonly id: string
  readonly message: UIMessage
  readonly replaces?: string | undefined
  readonly visible: readonly string[]
  /** Of the request that sends it. */
  readonly options?: RequestOptions | undefined
}

export interface MessageDraft {
  id: string
  readonly role: UIMessage['role']
  turn: number
  parts: PartDraft[]
  metadata: Record<string, unknown> | undefined
  readonly createdAt: number | undefined
  position: number
  /** The text part that receives deltas, if one is open. */
  text: TextDraft | undefined
  /** Ids of its sources, once its stream has added one. */
  sources: Set<string> | undefined
  /** Holds only reasoning so far; takes the id of the assistant message that follows. */
  provisional: boolean
  /** Its text is the JSON of a structured reply. */
  structured: StructuredText | undefined
  /** Text is streaming: between START and END. */
  streaming: boolean
  published: UIMessage | undefined
  /** The published parts, updated in place and then copied. Absent until a message that was loaded complete first changes. */
  shown: MessagePart[] | undefined
  /** The parts that have changed since they were published (`stale`). */
  readonly stale: PartDraft[]
  /** The published message is out of date. */
  dirty: boolean
  unnotified: boolean
  unpublished: boolean
}

export type PartDraft = TextDraft | ReasoningDraft | CallDraft | FixedDraft

/** The position of a part. */
interface Placed {
  index: number
  owner: MessageDraft
  stale: boolean
}

export interface TextDraft extends Placed {
  readonly kind: 'text'
  text: string
  part: TextPart | undefined
}

/** Reads a text as a value while it streams. */
export interface StructuredText {
  /** What the server says of the whole text (`finalOutput`); `false`: it is only a text. Absent while it streams. */
  verdict: unknown
  feed(delta: string, part: TextDraft): void
  /** The text parts to publish again. */
  takePieces(): readonly TextDraft[]
  publish(part: TextDraft): TextPart
}

export interface ReasoningDraft extends Placed {
  readonly kind: 'reasoning'
  readonly id: string
  text: string
  encryptedValue: string | undefined
  metadata: Record<string, unknown> | undefined
  part: ReasoningPart | undefined
}

export interface CallDraft extends Placed {
  readonly kind: 'call'
  readonly id: string
  /** How often more arguments arrived after they were complete. */
  reopened: number
  readonly name: string
  arguments: string
  /** Present while arguments stream. */
  reader: JsonReader | undefined
  input: unknown
  state: ToolCallState
  approval: ToolCallApproval | undefined
  progress?: unknown
  output: unknown
  error: { readonly message: string; readonly code?: string } | undefined
  providerExecuted: boolean
  metadata: Record<string, unknown> | undefined
  /** The approval token that came with the call itself, before any approval request. */
  token: string | undefined
  /** The server handed back an approved client tool call, with this input. */
  ready: { readonly input: unknown } | undefined
  /** The call is being streamed again after its approval request: how many characters of its arguments have been repeated. */
  replay: number | undefined
  /** How often it was streamed again unchanged. Each time may be a separate call, as later events for it will show. */
  repeats: number
  /** The previous call with the same id. */
  earlier: CallDraft | undefined
  /** Its request is marked `approval-changed` only because it may belong to a later call with the same id. */
  doubted: boolean
  /** Its request came when it could mean several calls, and does not say which. So the next such request does not decide that either. */
  unclear?: boolean
  /** Its run broke: a call that runs on the server may never get a result, so the turn does not wait for one. */
  interrupted: boolean
  /** Its result is in the conversation. A call cancelled here may still get one. */
  answered: boolean
  /** For the output of a client tool: whether the server has it. */
  outputSent: boolean | undefined
  /** It was unknown whether its answer had arrived when the open request sent it again. */
  inDoubt?: boolean
  /** A request that carried its answer broke: the server may have received it. */
  mayHaveArrived?: boolean
  /** The run that raised its request, whose events may repeat it. */
  askedIn?: string | undefined
  /** An event of this run has repeated its request. */
  repeated?: { readonly asked: AskedApproval; readonly runId: string }
  /** The run whose snapshot had it last. */
  saidIn?: string
  part: ToolCallPart | undefined
}

export interface FixedDraft extends Placed {
  readonly kind: 'fixed'
  part: MessagePart
}

/** An interrupt that is no tool approval. */
export interface InterruptDraft {
  readonly kind: 'interrupt'
  readonly interrupt: Interrupt
  /** The run that raised it while open, and accepts the response as long as it is. */
  liveIn?: string | undefined
  response: { readonly payload: unknown } | { readonly cancel: true } | undefined
  /** Why the server did not accept the response. */
  problem?: string | undefined
  /** A request has carried the response. If that request broke, it is unknown whether it arrived. */
  sent: boolean
  /** `sent` was already set when the open request sent the response again. */
  inDoubt?: boolean
  /** A request that carried the response broke: the server may have received it. */
  mayHaveArrived?: boolean
}
