import type { CountersignError } from '../errors.js'
import type { JsonReader } from '../json/partial.js'
import type {
  MessagePart,
  PendingApproval,
  ReasoningPart,
  TextPart,
  ToolCallApproval,
  ToolCallPart,
  ToolCallState,
  UIMessage,
} from '../messages.js'
import type { Interrupt, JsonPatch } from '../protocol/events.js'
import type { StepTable } from './effects.js'
import { newMemory, type PatchMemory } from './owned.js'

/**
 * The working state of one conversation. It is opaque: `step` is its only writer, `readMessages` and the other readers make immutable
 * values out of it. Messages are kept as cells of parts; a cell remembers what it last published and which of its parts have changed
 * since, so that publishing costs what changed.
 */
export interface ChatState {
  order: MessageCell[]
  readonly messages: Map<string, MessageCell>
  /** Ids of messages that a stream has used again: under which name the latest stands (`m1`: 2 is `m1-2`). */
  readonly repeats: Map<string, number>
  /** The latest call with that id. Some providers repeat ids: those before it are found through `earlier`. */
  readonly calls: Map<string, CallCell>
  readonly approvals: Map<string, CallCell>
  /** Calls without an outcome, in order. An index, so that asking what is pending does not scan the history. */
  readonly open: Set<CallCell>
  /** Those of them that wait for the person, in the order of the conversation. */
  readonly asked: CallCell[]
  /** What the server has not been told yet: answers, abandoned requests, client-tool outputs, and answers to interrupts. */
  readonly unsent: Set<CallCell | InterruptCell>
  readonly interrupts: Map<string, InterruptCell>
  /** Reasoning that streams: AG-UI message id -> its part. */
  readonly reasoning: Map<string, ReasoningCell>
  /** Those that were announced, by id. */
  readonly subagents: Map<string, Subagent>
  /** Results by the id of their message. */
  readonly results: Map<string, FixedCell>
  readonly applyPatch: ApplyPatch | undefined
  /** What is not read yet, and so may be changed in place. */
  memory: PatchMemory
  readonly moreSteps: MoreSteps
  /** How many user messages there are: the number of the present turn. */
  turn: number
  shared: unknown
  run: RunState
  error: CountersignError | undefined
  queue: readonly QueuedMessage[]
  /** What the steps have changed since the store last looked. */
  owed: 'nothing' | 'growth' | 'change'
  /** The messages they have not been told of (`untold`), and those that are not any more. */
  changed: Pick<MessageCell, 'id' | 'untold'>[]
  /** The messages that `published.messages` does not have as they are (`unread`). */
  readonly dirty: MessageCell[]
  published: {
    messages: UIMessage[] | undefined
    ids: readonly string[] | undefined
    pending: readonly PendingApproval[]
    /** What became of the calls that wait since `pending` was read: some came at its end, that at one place went, or anything else. */
    pendingChange: 'none' | 'added' | number | 'any'
    interrupts: readonly Interrupt[]
  }
}

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
      readonly carried: readonly (CallCell | InterruptCell)[]
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

export interface MessageCell {
  id: string
  readonly role: UIMessage['role']
  turn: number
  parts: PartCell[]
  metadata: Record<string, unknown> | undefined
  readonly createdAt: number | undefined
  position: number
  /** The text part that receives deltas, while one is open. */
  text: TextCell | undefined
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
  readonly stale: PartCell[]
  /** The published form is out of date. */
  dirty: boolean
  untold: boolean
  unread: boolean
}

export type PartCell = TextCell | ReasoningCell | CallCell | FixedCell

/** Where a part is. */
interface Placed {
  index: number
  owner: MessageCell
  stale: boolean
}

export interface TextCell extends Placed {
  readonly kind: 'text'
  text: string
  part: TextPart | undefined
}

export interface ReasoningCell extends Placed {
  readonly kind: 'reasoning'
  readonly id: string
  text: string
  encryptedValue: string | undefined
  metadata: Record<string, unknown> | undefined
  part: ReasoningPart | undefined
}

export interface CallCell extends Placed {
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
  earlier: CallCell | undefined
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

export interface FixedCell extends Placed {
  readonly kind: 'fixed'
  part: MessagePart
}

/** A question that concerns no tool call. */
export interface InterruptCell {
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

/**
 * Applies an RFC 6902 patch to a document and returns the new one; throws where the patch does not apply, and has changed nothing then.
 * It may change in place what `memory` names as owned.
 */
export type ApplyPatch = (document: unknown, patch: JsonPatch, memory: PatchMemory) => unknown

/** Steps that not everyone needs: `restoreSteps` for what is stored, `mirrorSteps` for what another tab has. */
export type MoreSteps = Partial<Pick<StepTable, 'restore' | 'mirror'>>

export interface ChatStateOptions {
  /** Applies state and activity deltas; without it they are left out with a warning. */
  applyPatch?: ApplyPatch | undefined
  /** Default: none; such steps are left out with a warning. */
  moreSteps?: MoreSteps | undefined
}

/** An empty conversation. */
export function createChatState({ applyPatch, moreSteps = {} }: ChatStateOptions = {}): ChatState {
  return {
    applyPatch,
    memory: newMemory(),
    moreSteps,
    order: [],
    messages: new Map(),
    repeats: new Map(),
    calls: new Map(),
    approvals: new Map(),
    open: new Set(),
    asked: [],
    unsent: new Set(),
    interrupts: new Map(),
    reasoning: new Map(),
    subagents: new Map(),
    results: new Map(),
    turn: 0,
    shared: undefined,
    run: { phase: 'idle' },
    error: undefined,
    queue: [],
    owed: 'nothing',
    changed: [],
    dirty: [],
    published: { messages: [], ids: [], pending: [], pendingChange: 'none', interrupts: [] },
  }
}
