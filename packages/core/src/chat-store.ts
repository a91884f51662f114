import type { CountersignError } from './errors.js'
import type { QueuedMessage } from './machine/data.js'
import type { Effect, Step } from './machine/effects.js'
import {
  readInterrupts,
  readMessage,
  readMessageIds,
  readMessages,
  readPendingApprovals,
} from './machine/read.js'
import { executingCalls } from './machine/select.js'
import { type ChatState, type ChatStateOptions, createChatState } from './machine/state.js'
import { step } from './machine/step.js'
import type { PendingApproval, ToolMap, UIMessage } from './messages.js'
import type { Interrupt } from './protocol/events.js'

/** Everything there is to show, immutable. What did not change since the last snapshot is the same object in the next. */
export interface ChatSnapshot<Tools extends ToolMap = ToolMap> {
  readonly messages: readonly UIMessage<Tools>[]
  /** The AG-UI shared state, where the agent keeps one. */
  readonly state: unknown
  /**
   * `submitted`: a request was sent and nothing has come yet, or a client tool is at work. `awaiting-approval`: nothing runs and at least
   * one call waits for the person. `error`: the last run failed.
   */
  readonly status: ChatStatus
  /** Whether there is something to stop: an open run, or a client tool at work. */
  readonly isLoading: boolean
  readonly error: CountersignError | undefined
  /** The calls that wait for the person, in order. */
  readonly pendingApprovals: readonly PendingApproval<Tools>[]
  /** Open questions of the agent that concern no tool call. */
  readonly interrupts: readonly Interrupt[]
  /** Messages that wait for the open run to end. */
  readonly queue: readonly QueuedMessage[]
  /** `''` until a chat without the option `threadId` needs one: with its first request. */
  readonly threadId: string
}

export type ChatStatus = 'ready' | 'submitted' | 'streaming' | 'awaiting-approval' | 'error'

export interface ChatStoreOptions extends ChatStateOptions {
  /** Read with each snapshot: a getter may give `''` until the thread has its id. Default `''`. */
  threadId?: string | undefined
  /** The conversation so far. */
  messages?: readonly UIMessage[] | undefined
  /**
   * Sees to it that `flush` is called when growth of texts and arguments is to be published, and returns how to call that off; or
   * returns nothing, to have it published at once, which is the default.
   */
  schedule?: ((flush: () => void) => (() => void) | undefined) | undefined
  /** What a listener threw. Default: ignored. */
  onListenerError?: ((error: unknown) => void) | undefined
}

/**
 * One conversation and those who watch it. `dispatch` is the only way to change it.
 *
 * A class, so that an engine compiles its methods once for all conversations and not again for each.
 */
export class ChatStore {
  /** The working state, for selectors. Nobody but `dispatch` writes it. */
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
  /** The list that takes turns with `state.changed`, so that a round has its own. */
  #told: ChatState['changed'] = []

  constructor(options: ChatStoreOptions = {}) {
    this.#options = options
    this.state = createChatState(options)
    if (options.messages?.length) step(this.state, { type: 'set-messages', messages: options.messages })
    this.#collect()
    this.#round()
  }

  /** Applies an event or what happens here, unchecked, tells the listeners (at once, or as `schedule` says for growth) and then calls back with the effects. */
  dispatch(event: Step, onEffect?: (effect: Effect) => void): void {
    const effects = step(this.state, event)
    if (onEffect && effects.length > 0) for (const effect of effects) this.#after.push(() => onEffect(effect))
    if (this.#collect()) {
      if (this.#pendingNotification === 'growth') this.#cancelFlush ??= this.#options.schedule?.(this.#flush)
      if (this.#pendingNotification !== 'growth' || !this.#cancelFlush) this.#publish()
    }
    if (!this.#publishing) this.#drain()
  }

  /** Publishes growth that waits for its turn. */
  flush(): void {
    this.#cancelFlush?.()
    this.#cancelFlush = undefined
    this.#publish()
    if (!this.#publishing) this.#drain()
  }

  readonly #flush = () => this.flush()

  /**
   * Applies everything `work` dispatches before anybody is told of it. While it runs the state is as if it were being published: what is dispatched meanwhile waits
   * for its turn.
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

  // Functions of their own: what watches a conversation takes them without it.
  /** Calls `listener` after every change; returns how to leave. */
  readonly subscribe = (listener: () => void): (() => void) => this.#listeners.join(listener)

  /** Always current; the same object until the next change. */
  readonly getSnapshot = (): ChatSnapshot => {
    const { threadId = '' } = this.#options
    if (this.#snapshot?.threadId === threadId) return this.#snapshot
    this.#snapshot = readSnapshot(this.state, threadId)
    return this.#snapshot
  }

  /** The ids of all messages in order; the same array while none comes or goes. */
  get messageIds(): readonly string[] {
    return readMessageIds(this.state)
  }

  /** One message, or `undefined`. */
  getMessage(id: string): UIMessage | undefined {
    return readMessage(this.state, id)
  }

  /** Calls `listener` when that message changes, comes or goes. */
  subscribeMessage(id: string, listener: () => void): () => void {
    const those = this.#byMessage.get(id) ?? new Listeners()
    this.#byMessage.set(id, those)
    const leave = those.join(listener)
    return () => {
      leave()
      if (those.isEmpty && this.#byMessage.get(id) === those) this.#byMessage.delete(id)
    }
  }

  /** Whether the step changed anything; growth that waits does not make less of a change. */
  #collect(): boolean {
    const { state } = this
    if (state.pendingNotification === 'nothing') return false
    if (this.#pendingNotification !== 'change') this.#pendingNotification = state.pendingNotification
    this.#snapshot = undefined
    state.pendingNotification = 'nothing'
    return true
  }

  /** A listener may dispatch: its event applies at once, and listeners hear of it in the next round. */
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
      // An `onListenerError` that throws must not leave everybody unnotified for good.
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
    // Emptied as it is told of, without an iterator: what happens at every delta should cost no memory.
    changed.reverse()
    for (let draft = changed.pop(); draft; draft = changed.pop()) {
      draft.unnotified = false
      this.#byMessage.get(draft.id)?.tell(this.#call)
    }
    this.#listeners.tell(this.#call)
  }

  #drain(): void {
    for (let next = this.#after.shift(); next; next = this.#after.shift()) this.#call(next)
  }

  readonly #call = (listener: () => void): void => {
    try {
      listener()
    } catch (error) {
      this.#options.onListenerError?.(error)
    }
  }
}

/** Those who watch one thing. */
class Listeners {
  /** A new list whenever one comes or goes, so that a round tells those that were there when it began. */
  #list: readonly { listener: (() => void) | undefined }[] = []

  join(listener: () => void): () => void {
    // An entry each, so that the same function subscribed twice is told twice and leaves twice.
    const own: { listener: (() => void) | undefined } = { listener }
    this.#list = [...this.#list, own]
    return () => {
      own.listener = undefined
      this.#list = this.#list.filter((other) => other !== own)
    }
  }

  /** One that leaves meanwhile is not called any more; one that joins is called from the next time on. */
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
  const { phase } = state.run
  const isLoading = phase !== 'idle' || executingCalls(state).length > 0
  return {
    messages: readMessages(state),
    state: state.shared,
    status: phase === 'idle' ? readStatus(state, isLoading, pendingApprovals.length > 0) : phase,
    isLoading,
    error: state.error,
    pendingApprovals,
    interrupts: readInterrupts(state),
    queue: state.queue,
    threadId,
  }
}

/** While no run is open. */
function readStatus({ error }: ChatState, isLoading: boolean, isPending: boolean): ChatStatus {
  if (isLoading) return 'submitted'
  if (error) return 'error'
  return isPending ? 'awaiting-approval' : 'ready'
}
