import type { CountersignError } from '../errors.js'
import type { PendingApproval, UIMessage } from '../messages.js'
import type { Interrupt, JsonPatch } from '../protocol/events.js'
import type {
  CallDraft,
  FixedDraft,
  InterruptDraft,
  MessageDraft,
  QueuedMessage,
  ReasoningDraft,
  RunState,
  Subagent,
} from './data.js'
import type { Outcome, Step } from './effects.js'
import { newMemory, type PatchMemory } from './patch-memory.js'

/**
 * The working state of one conversation. It is opaque: `step` is its only writer, `readMessages` and the other readers make immutable
 * values out of it. Messages are kept as drafts of parts; a draft remembers what it last published and which of its parts have changed
 * since, so that publishing costs what changed.
 */
export interface ChatState {
  order: MessageDraft[]
  readonly messages: Map<string, MessageDraft>
  /** Ids of messages that a stream has used again: under which name the latest stands (`m1`: 2 is `m1-2`). */
  readonly repeats: Map<string, number>
  /** The latest call with that id. Some providers repeat ids: those before it are found through `earlier`. */
  readonly calls: Map<string, CallDraft>
  readonly approvals: Map<string, CallDraft>
  /** Calls without an outcome, in order. An index, so that asking what is pending does not scan the history. */
  readonly open: Set<CallDraft>
  /** Those of them that are at work here. */
  readonly executing: Set<CallDraft>
  /** Those of them that wait for the person, in the order of the conversation. */
  readonly asked: CallDraft[]
  /** What the server has not been told yet: answers, abandoned requests, client-tool outputs, and answers to interrupts. */
  readonly unsent: Set<CallDraft | InterruptDraft>
  readonly interrupts: Map<string, InterruptDraft>
  /** Reasoning that streams: AG-UI message id -> its part. */
  readonly reasoning: Map<string, ReasoningDraft>
  /** Those that were announced, by id. */
  readonly subagents: Map<string, Subagent>
  /** Results by the id of their message. */
  readonly results: Map<string, FixedDraft>
  readonly applyPatch: ApplyPatch | undefined
  /** What is not read yet, and so may be changed in place. */
  memory: PatchMemory
  /** Steps beside those that every chat needs. */
  moreSteps: MoreSteps
  /** How many user messages there are: the number of the present turn. */
  turn: number
  shared: unknown
  run: RunState
  error: CountersignError | undefined
  queue: readonly QueuedMessage[]
  /** What the steps have changed since the store last looked. */
  pendingNotification: 'nothing' | 'growth' | 'change'
  /** The messages that listeners have not heard of (`unnotified`), and those that are gone. */
  changed: Pick<MessageDraft, 'id' | 'unnotified'>[]
  /** The messages that `published.messages` does not have as they are (`unpublished`). */
  readonly dirty: MessageDraft[]
  published: {
    messages: UIMessage[] | undefined
    ids: readonly string[] | undefined
    pending: readonly PendingApproval[]
    /** What became of the calls that wait since `pending` was read: some came at its end, that at one place went, or anything else. */
    pendingChange: 'none' | 'added' | number | 'any'
    interrupts: readonly Interrupt[]
  }
}

/**
 * Applies an RFC 6902 patch to a document and returns the new one; throws where the patch does not apply, and has changed nothing then.
 * It may change in place what `memory` names as owned.
 */
export type ApplyPatch = (document: unknown, patch: JsonPatch, memory: PatchMemory) => unknown

/** What each step does, by its type. */
export type StepTable = {
  readonly [Type in Step['type']]: (state: ChatState, step: Extract<Step, { readonly type: Type }>) => Outcome
}

/**
 * Steps that not everyone needs: `fullSteps` for the events that few servers send, `restoreSteps` for what is stored, `mirrorSteps` for what
 * another tab has.
 */
export type MoreSteps = Partial<StepTable>

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
    executing: new Set(),
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
    pendingNotification: 'nothing',
    changed: [],
    dirty: [],
    published: { messages: [], ids: [], pending: [], pendingChange: 'none', interrupts: [] },
  }
}
