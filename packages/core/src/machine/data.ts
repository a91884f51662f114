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

/** Who speaks or asks, where it is not the agent itself: `metadata.subagent` of what it makes. */
export interface Subagent {
  /** Its `subagentRunId`. */
  readonly id: string
  /** Absent where it was never announced. */
  readonly name?: string
  /** The subagents that it works for, the outermost first. */
  readonly parents?: readonly Pick<Subagent, 'id' | 'name'>[]
}

/** Where the conversation ended: how many messages there were, and how many parts the last one had. */
export type End = readonly [messages: number, parts: number]

/** The run that streams now, if any, and how the last one ended. */
export type RunState =
  /**
   * `brokenOff`: the last run's stream broke and may yet go on where it stopped. `from`: the last run failed, and this is where what it
   * said begins.
   */
  | { readonly phase: 'idle'; readonly last?: FinishedRun; readonly brokenOff?: boolean; readonly from?: End }
  | {
      readonly phase: 'submitted' | 'streaming'
      readonly runId: string
      /** What the request took along. */
      readonly carried: readonly (CallDraft | InterruptDraft)[]
      /** Where what this run says begins. */
      readonly from: End
      readonly finish?: FinishedRun
      readonly failure?: CountersignError
    }

/** What RUN_FINISHED said. */
export interface FinishedRun {
  readonly runId: string
  readonly reason: string | undefined
  readonly outcome: 'success' | 'interrupt' | 'cancelled'
  /** Calls the server leaves to the client; absent where it did not say. */
  readonly pendingToolCallIds: readonly string[] | undefined
}

/** A message that waits until the open run has ended. `visible` are the requests the person saw when it was written. */
export interface QueuedMessage {
  readonly id: string
  readonly message: UIMessage
  readonly visible: readonly string[]
}

export interface MessageDraft {
  id: string
  readonly role: UIMessage['role']
  turn: number
  parts: PartDraft[]
  metadata: Record<string, unknown> | undefined
  readonly createdAt: number | undefined
  position: number
  /** The text part that receives deltas, while one is open. */
  text: TextDraft | undefined
  /** Ids of its sources, once one was added by its stream. */
  sources: Set<string> | undefined
  /** A message that so far holds only reasoning: it takes the id of the assistant message that follows. */
  provisional: boolean
  /** Text streams: between its START and its END. */
  streaming: boolean
  published: UIMessage | undefined
  /** The published parts, brought up to date here and then copied. Not there before a first change to a message that came whole. */
  shown: MessagePart[] | undefined
  /** The parts that the published form does not have as they are (`stale`). */
  readonly stale: PartDraft[]
  /** The published form is out of date. */
  dirty: boolean
  unnotified: boolean
  unpublished: boolean
}

export type PartDraft = TextDraft | ReasoningDraft | CallDraft | FixedDraft

/** Where a part is. */
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
  /** How often its arguments went on after they were complete. */
  reopened: number
  readonly name: string
  arguments: string
  /** Present while arguments stream. */
  reader: JsonReader | undefined
  input: unknown
  state: ToolCallState
  approval: ToolCallApproval | undefined
  output: unknown
  error: { readonly message: string; readonly code?: string } | undefined
  providerExecuted: boolean
  metadata: Record<string, unknown> | undefined
  /** The approval token as it came with the call itself, before anything was asked. */
  token: string | undefined
  /** The server handed an approved client tool out, with this input. */
  ready: { readonly input: unknown } | undefined
  /** It is streamed again after the person was asked: how many characters of its arguments came again so far. */
  replay: number | undefined
  /** How often it was streamed again unchanged. Each time may be a call of its own, which shows once more is said of it. */
  repeats: number
  /** The call before it with the same id. */
  earlier: CallDraft | undefined
  /** Its question is `approval-changed` only because it may be about a later call with the same id. */
  doubted: boolean
  /** Its run broke: the server's own call may never get a result, so the turn does not wait for one. */
  interrupted: boolean
  /** Its result is in the conversation. A call that was cancelled here may still get one. */
  answered: boolean
  /** A client tool's output: whether the server has it. */
  outputSent: boolean | undefined
  /** What became of its answer was not known when the open request took it along once more. */
  inDoubt?: boolean
  /** A request that carried its answer broke: the server may have it. */
  mayHaveArrived?: boolean
  part: ToolCallPart | undefined
}

export interface FixedDraft extends Placed {
  readonly kind: 'fixed'
  part: MessagePart
}

/** A question that concerns no tool call. */
export interface InterruptDraft {
  readonly kind: 'interrupt'
  readonly interrupt: Interrupt
  /** The run that asked while it was open, and takes the answer as long as it is. */
  readonly liveIn?: string | undefined
  response: { readonly payload: unknown } | { readonly cancel: true } | undefined
  /** Why the server did not take the response. */
  problem?: string | undefined
  /** A request has taken the response along. If it broke, nobody knows what became of it. */
  sent: boolean
  /** That was so already when the open request took it along once more. */
  inDoubt?: boolean
  /** A request that carried the response broke: the server may have it. */
  mayHaveArrived?: boolean
}
