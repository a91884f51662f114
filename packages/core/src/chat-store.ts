import type { CountersignError } from './errors.js'
import type { FinishedRun, QueuedMessage } from './machine/data.js'
import type { Effect, Step } from './machine/effects.js'
import {
  readInterrupts,
  readMessage,
  readMessageIds,
  readMessages,
  readPendingApprovals,
} from './machine/read.js'
import { areAllToolsComplete, hasUnsentAnswer } from './machine/select.js'
import { type ChatState, type ChatStateOptions, createChatState } from './machine/state.js'
import { step } from './machine/step.js'
import type { PendingApproval, ToolMap, UIMessage } from './messages.js'
import type { Interrupt, TokenUsage } from './protocol/events.js'
import { reportRejection } from './value.js'

/** Everything there is to show, immutable. What has not changed since the last snapshot keeps its identity. */
export interface ChatSnapshot<Tools extends ToolMap = ToolMap> {
  readonly messages: readonly UIMessage<Tools>[]
  /** The AG-UI shared state, if the agent has one. */
  readonly state: unknown
  /**
   * `submitted`: a request was sent and no event has arrived yet. `executing`: a client tool is running, and no request. Nothing is
   * running and at least one call (`awaiting-approval`) or only another interrupt (`awaiting-answer`) waits for the user.
   * `reconnecting`: the stream of the open run was lost, and the connection tries to rejoin it (`reconnecting` of
   * `@countersign/client/reconnect`). `error`: the last run failed.
   */
  readonly status: ChatStatus
  /** Whether there is something to stop: an open run or a running client tool. */
  readonly isLoading: boolean
  readonly error: CountersignError | undefined
  /** The tokens that the last run has used, if its server reports them, even if the run failed. One entry for each reply of a model. */
  readonly usage: readonly TokenUsage[]
  /** How the last run ended, and its result. Absent while one is open, and if it failed or was stopped. */
  readonly lastRun: FinishedRun | undefined
  /**
   * Whether answers or results of client tools are ready to be sent, but wait: the user stopped the chat, or `autoContinue` is off.
   * `sendMessage()` sends them.
   */
  readonly canContinue: boolean
  /** The calls that wait for the user's approval, in order. */
  readonly pendingApprovals: readonly PendingApproval<Tools>[]
  /** Open interrupts of the agent that are not tool approvals, and requests for calls that did not arrive: these can only be denied. */
  readonly interrupts: readonly Interrupt[]
  /** Messages that are queued until the open run ends. */
  readonly queue: readonly QueuedMessage[]
  /** Without the option `threadId`, this is `''` until the first request creates an id. */
  readonly threadId: string
}

export type ChatStatus =
  | 'ready'
  | 'submitted'
  | 'streaming'
  | 'executing'
  | 'reconnecting'
  | 'awaiting-approval'
  | 'awaiting-answer'
  | 'error'

export interface ChatStoreOptions extends ChatStateOptions {
  /** Read for every snapshot, so a getter may return `''` until the thread has an id. Default `''`. */
  threadId?: string | undefined
  /** The conversation so far. */
  messages?: readonly UIMessage[] | undefined
  /**
   * Schedules `flush` to publish growth of texts and arguments, and returns a function that cancels it. If it
   * returns nothing, growth is published at once, which is the default.
   */
  schedule?: ((flush: () => void) => (() => void) | undefined) | undefined
  /** Receives what a listener threw. Default: ignored. */
  onListenerError?: ((error: unknown) => void) | undefined
}

/**
 * One conversation and its subscribers. Only `dispatch` changes it.
 *
 * A class, so that engines compile its methods once instead of once per conversation.
 */
export class ChatStore {
  /** The working state, for selectors. Only `dispatch` writes it. */
  readonly state: ChatState
  readonly #options: ChatStoreOptions
  readonly #listeners = new Listeners()
  readonly #byMessage = new Map<string, Listeners>()
  #snapshot: ChatSnapshot | undefined
  #pendingNotification: ChatState['pendingNotification'] = 'nothing'
  #cancelFlush: (() => void) | undefined = undefined
  #publishing = false
  #again = false
  readonly #after: (() => void)[] = []
  #drained = 0
  /** Swapped with `state.changed`, so that each round of notifications has a list of its own. */
  #told: ChatState['changed'] = []

  constructor(options: ChatStoreOptions = {}) {
    this.#options = options
    this.state = createChatState(options)
    if (options.messages?.length) step(this.state, { type: 'set-messages', messages: options.messages })
    this.#collect()
    this.#round()
  }

  /** Applies an event unchecked, notifies listeners (of growth: when `schedule` says), then passes the effects to `onEffect`. */
  dispatch(event: Step, onEffect?: (effect: Effect) => void): void {
    const effects = step(this.state, event)
    if (onEffect && effects.length > 0) for (const effect of effects) this.#after.push(() => onEffect(effect))
    if (this.#collect()) {
      if (this.#pendingNotification === 'growth') this.#cancelFlush ??= this.#options.schedule?.(this.#flush)
      if (this.#pendingNotification !== 'growth' || !this.#cancelFlush) this.#publish()
    }
    if (!this.#publishing) this.#drain()
  }

  /** Publishes growth that is still waiting for its schedule. */
  flush(): void {
    this.#cancelFlush?.()
    this.#cancelFlush = undefined
    this.#publish()
    if (!this.#publishing) this.#drain()
  }

  readonly #flush = () => this.flush()

  /**
   * Applies everything that `work` dispatches before notifying anyone. Events dispatched meanwhile wait, as
   * they do while a notification is in progress.
   */
  batch<T>(work: () => T): T {
    if (this.#publishing) return work()
    this.#publishing = true
    try {
      return work()
    } finally {
      this.#publishing = false
      if (this.#pendingNotification === 'change' || this.#again) this.#publish()
      this.#drain()
    }
  }

  // Arrow functions, because subscribers pass them around without their object.
  /** Calls `listener` after every change; returns a function that unsubscribes. */
  readonly subscribe = (listener: () => void): (() => void) => this.#listeners.join(listener)

  /** Always current; the same object until the next change. */
  readonly getSnapshot = (): ChatSnapshot => {
    const { threadId = '' } = this.#options
    if (this.#snapshot?.threadId === threadId) return this.#snapshot
    this.#snapshot = readSnapshot(this.state, threadId)
    return this.#snapshot
  }

  /** The ids of all messages in order; the same array until a message is added or removed. */
  get messageIds(): readonly string[] {
    return readMessageIds(this.state)
  }

  getMessage(id: string): UIMessage | undefined {
    return readMessage(this.state, id)
  }

  /** Calls `listener` when that message changes, is added or is removed. */
  subscribeMessage(id: string, listener: () => void): () => void {
    const those = this.#byMessage.get(id) ?? new Listeners()
    this.#byMessage.set(id, those)
    const leave = those.join(listener)
    return () => {
      leave()
      if (those.isEmpty && this.#byMessage.get(id) === those) this.#byMessage.delete(id)
    }
  }

  /** Whether the step changed anything. Growth does not downgrade a pending change. */
  #collect(): boolean {
    const { state } = this
    if (state.pendingNotification === 'nothing') return false
    if (this.#pendingNotification !== 'change') this.#pendingNotification = state.pendingNotification
    this.#snapshot = undefined
    state.pendingNotification = 'nothing'
    return true
  }

  /** A listener may dispatch: its event is applied at once, and listeners are notified of it in the next round. */
  #publish(): void {
    if (this.#publishing) {
      this.#again = true
      return
    }
    this.#publishing = true
    try {
      do {
        this.#again = false
        this.#round()
      } while (this.#again)
    } finally {
      // If `onListenerError` throws, later changes must still be published.
      this.#publishing = false
    }
  }

  #round(): void {
    if (this.#pendingNotification === 'nothing') return
    this.#cancelFlush?.()
    this.#cancelFlush = undefined
    this.#pendingNotification = 'nothing'
    const { changed } = this.state
    this.state.changed = this.#told
    this.#told = changed
    // Drained without an iterator: this runs on every delta and must not allocate.
    changed.reverse()
    for (let draft = changed.pop(); draft; draft = changed.pop()) {
      draft.unnotified = false
      this.#byMessage.get(draft.id)?.tell(this.#call)
    }
    this.#listeners.tell(this.#call)
  }

  #drain(): void {
    // Runs on every delta, and setting the length of an array is slow.
    if (this.#after.length === 0) return
    // Not `shift`, which moves all that follow. A callback may drain the rest.
    for (let next = this.#after[this.#drained]; next; next = this.#after[this.#drained]) {
      this.#drained++
      this.#call(next)
    }
    this.#after.length = this.#drained = 0
  }

  readonly #call = (listener: () => void): void => {
    try {
      reportRejection(listener(), this.#report)
    } catch (error) {
      this.#report(error)
    }
  }

  readonly #report = (error: unknown): void => this.#options.onListenerError?.(error)
}

class Listeners {
  /** Copied on every change, so that a round notifies exactly those that were subscribed when it began. */
  #list: readonly { listener: (() => void) | undefined }[] = []

  join(listener: () => void): () => void {
    // An entry per subscription, so that the same function subscribed twice is called twice and unsubscribed separately.
    const own: { listener: (() => void) | undefined } = { listener }
    this.#list = [...this.#list, own]
    return () => {
      own.listener = undefined
      this.#list = this.#list.filter((other) => other !== own)
    }
  }

  /** A listener removed during the round is no longer called; one added during it is called from the next round on. */
  tell(call: (listener: () => void) => void): void {
    const list = this.#list
    for (let i = 0; i < list.length; i++) {
      const listener = list[i]?.listener
      if (listener) call(listener)
    }
  }

  get isEmpty(): boolean {
    return this.#list.length === 0
  }
}

function readSnapshot(state: ChatState, threadId: string): ChatSnapshot {
  const pendingApprovals = readPendingApprovals(state)
  const interrupts = readInterrupts(state)
  const { run, error } = state
  const isIdle = run.phase === 'idle'
  return {
    messages: readMessages(state),
    state: state.shared,
    status: isIdle ? readRest(state, pendingApprovals, interrupts) : run.isLost ? 'reconnecting' : run.phase,
    isLoading: !isIdle || state.executing.size > 0,
    error,
    usage: state.usage,
    lastRun: isIdle ? run.last : undefined,
    canContinue: isIdle && hasUnsentAnswer(state) && areAllToolsComplete(state),
    pendingApprovals,
    interrupts,
    queue: state.queue,
    threadId,
  }
}

/** The status while no run is open. */
function readRest(
  { executing, error }: ChatState,
  pendingApprovals: readonly unknown[],
  interrupts: readonly unknown[],
): ChatStatus {
  if (executing.size > 0) return 'executing'
  if (error) return 'error'
  if (pendingApprovals.length > 0) return 'awaiting-approval'
  return interrupts.length > 0 ? 'awaiting-answer' : 'ready'
}
