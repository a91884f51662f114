import type { CountersignError } from '../errors.js'
import type { PendingApproval, UIMessage } from '../messages.js'
import type { Interrupt, JsonPatch, TokenUsage } from '../protocol/events.js'
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
 * The working state of one conversation. Opaque: only `step` writes it; `readMessages` and the other readers
 * derive immutable values from it. Messages are kept as drafts. A draft remembers what it last published and
 * which parts have changed since, so the cost of publishing depends on what changed.
 */
export interface ChatState {
  order: MessageDraft[]
  readonly messages: Map<string, MessageDraft>
  /** Message ids that a stream has reused, and the number of the latest use (`m1`: 2 stands for `m1-2`). */
  readonly repeats: Map<string, number>
  /** The latest call with that id. Some providers repeat ids; earlier calls are linked by `earlier`. */
  readonly calls: Map<string, CallDraft>
  readonly approvals: Map<string, CallDraft>
  /** Calls without an outcome, in order. An index, so that finding pending calls does not scan the history. */
  readonly open: Set<CallDraft>
  /** Those of them that are running here. */
  readonly executing: Set<CallDraft>
  /** Those of them that wait for approval, in conversation order. */
  readonly asked: CallDraft[]
  /** What the server does not have yet: answers, withdrawn requests, client tool outputs and responses to interrupts. */
  readonly unsent: Set<CallDraft | InterruptDraft>
  readonly interrupts: Map<string, InterruptDraft>
  /** Reasoning by its AG-UI message id. */
  readonly reasoning: Map<string, ReasoningDraft>
  /** Announced subagents by id. */
  readonly subagents: Map<string, Subagent>
  /** Results by the id of their message. */
  readonly results: Map<string, FixedDraft>
  readonly applyPatch: ApplyPatch | undefined
  /** Tracks what no reader has seen, and may thus be mutated in place. */
  memory: PatchMemory
  /** Steps in addition to those that every chat needs. */
  moreSteps: MoreSteps
  /** The number of user messages, which is the number of the current turn. */
  turn: number
  shared: unknown
  run: RunState
  error: CountersignError | undefined
  /** Of the last run that has ended. */
  usage: readonly TokenUsage[]
  queue: readonly QueuedMessage[]
  /** What the steps have changed since the store last checked. */
  pendingNotification: 'nothing' | 'growth' | 'change'
  /** The messages that listeners have not been notified of (`unnotified`), and those that were removed. */
  changed: Pick<MessageDraft, 'id' | 'unnotified'>[]
  /** The messages that have changed since they were published (`unpublished`). */
  readonly dirty: MessageDraft[]
  published: {
    messages: UIMessage[] | undefined
    ids: readonly string[] | undefined
    pending: readonly PendingApproval[]
    /** How the pending calls changed since `pending` was read: some were appended, one (its index) was removed, or anything else. */
    pendingChange: 'none' | 'added' | number | 'any'
    interrupts: readonly Interrupt[]
  }
}

/**
 * Applies an RFC 6902 patch to a document and returns the new one. If the patch does not apply, it throws and
 * changes nothing. It may mutate in place what `memory` lists as owned.
 */
export type ApplyPatch = (document: unknown, patch: JsonPatch, memory: PatchMemory) => unknown

export type StepTable = {
  readonly [Type in Step['type']]: (state: ChatState, step: Extract<Step, { readonly type: Type }>) => Outcome
}

/**
 * Optional steps: `fullSteps` for events that few servers send, `restoreSteps` for stored conversations,
 * `mirrorSteps` for the state of another tab.
 */
export type MoreSteps = Partial<StepTable>

export interface ChatStateOptions {
  /** Applies state and activity deltas. Without it they are ignored with a warning. */
  applyPatch?: ApplyPatch | undefined
  /** Default: none; such steps are ignored with a warning. */
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
    usage: [],
    queue: [],
    pendingNotification: 'nothing',
    changed: [],
    dirty: [],
    published: { messages: [], ids: [], pending: [], pendingChange: 'none', interrupts: [] },
  }
}
