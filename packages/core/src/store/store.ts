import type { CountersignError } from '../errors.js'
import type { Effect, Step } from '../machine/effects.js'
import {
  readInterrupts,
  readMessage,
  readMessageIds,
  readMessages,
  readPendingApprovals,
} from '../machine/read.js'
import {
  type ChatState,
  type ChatStateOptions,
  createChatState,
  type QueuedMessage,
} from '../machine/state.js'
import { step } from '../machine/step.js'
import { clear } from '../machine/value.js'
import type { PendingApproval, ToolMap, UIMessage } from '../messages.js'
import type { Interrupt } from '../protocol/events.js'

/** Everything there is to show, immutable. What did not change since the last snapshot is the same object in the next. */
export interface ChatSnapshot<Tools extends ToolMap = ToolMap> {
  readonly messages: readonly UIMessage<Tools>[]
  /** The AG-UI shared state, where the agent keeps one. */
  readonly state: unknown
  /** `awaiting-approval`: nothing runs and at least one call waits for the person. `error`: the last run failed. */
  readonly status: ChatStatus
  /** Whether a run is open. */
  readonly isLoading: boolean
  readonly error: CountersignError | undefined
  /** The calls that wait for the person, in order. */
  readonly pendingApprovals: readonly PendingApproval<Tools>[]
  /** Open questions of the agent that concern no tool call. */
  readonly interrupts: readonly Interrupt[]
  /** Messages that wait for the open run to end. */
  readonly queue: readonly QueuedMessage[]
  readonly threadId: string
}

export type ChatStatus = 'ready' | 'submitted' | 'streaming' | 'awaiting-approval' | 'error'

export interface StoreOptions extends ChatStateOptions {
  threadId: string
  messages?: readonly UIMessage[] | undefined
  /**
   * Sees to it that `flush` is called when growth of texts and arguments is to be published, and returns how to call that off; or
   * returns nothing, to have it published at once, which is the default.
   */
  schedule?: ((flush: () => void) => (() => void) | undefined) | undefined
  /** What a listener threw. Default: ignored. */
  onListenerError?: ((error: unknown) => void) | undefined
}

/** One conversation and those who watch it. `dispatch` is the only way to change it. */
export interface ChatStore {
  /** Applies an event or act, tells the listeners (at once, or as `schedule` says for growth) and then calls back with the effects. */
  dispatch(event: Step, onEffect?: (effect: Effect) => void): void
  /** Applies everything `work` dispatches before anybody is told of it. */
  batch<T>(work: () => T): T
  subscribe(listener: () => void): () => void
  /** Always current; the same object until the next change. */
  getSnapshot(): ChatSnapshot
  readonly messageIds: readonly string[]
  readonly pendingApprovals: readonly PendingApproval[]
  getMessage(id: string): UIMessage | undefined
  /** Calls `listener` when that message changes, comes or goes. */
  subscribeMessage(id: string, listener: () => void): () => void
  /** Publishes growth that waits for its turn. */
  flush(): void
  /** The working state, for selectors. Nobody but `dispatch` writes it. */
  readonly state: ChatState
}

export function createChatStore(options: StoreOptions): ChatStore {
  const state = createChatState(options)
  if (options.messages?.length) step(state, { type: 'set-messages', messages: options.messages })
  const listeners = createListeners(call)
  const byMessage = new Map<string, Listeners>()
  let snapshot: ChatSnapshot | undefined
  let owed: ChatState['owed'] = 'nothing'
  let cancelFlush: (() => void) | undefined
  let publishing = false
  let again = false
  const after: (() => void)[] = []
  /** The list that takes turns with `state.changed`, so that a round has its own. */
  let told: ChatState['changed'] = []
  collect()
  round()

  /** Whether the step changed anything; growth that waits does not make less of a change. */
  function collect(): boolean {
    if (state.owed === 'nothing') return false
    if (owed !== 'change') owed = state.owed
    state.owed = 'nothing'
    snapshot = undefined
    return true
  }

  function dispatch(event: Step, onEffect?: (effect: Effect) => void): void {
    const effects = step(state, event)
    if (onEffect && effects.length > 0) defer(effects, onEffect)
    if (collect()) {
      if (owed === 'growth') cancelFlush ??= options.schedule?.(flush)
      if (owed !== 'growth' || !cancelFlush) publish()
    }
    if (!publishing) drain()
  }

  function defer(effects: readonly Effect[], onEffect: (effect: Effect) => void): void {
    for (const effect of effects) after.push(() => onEffect(effect))
  }

  function flush(): void {
    cancelFlush?.()
    cancelFlush = undefined
    publish()
    if (!publishing) drain()
  }

  /** A listener may act; its act applies at once and is told of in a round after the present one. */
  function publish(): void {
    if (publishing) {
      again = true
      return
    }
    publishing = true
    do {
      again = false
      round()
    } while (again)
    publishing = false
  }

  /** While `work` runs the state is as if it were being published: what is dispatched meanwhile waits for its turn. */
  function batch<T>(work: () => T): T {
    if (publishing) return work()
    publishing = true
    try {
      return work()
    } finally {
      publishing = false
      if (owed === 'change' || again) publish()
      drain()
    }
  }

  function round(): void {
    if (owed === 'nothing') return
    cancelFlush?.()
    cancelFlush = undefined
    owed = 'nothing'
    const { changed } = state
    state.changed = told
    told = changed
    changed.forEach(tellOf)
    clear(changed)
    listeners.tell()
  }

  function tellOf(cell: (typeof told)[number]): void {
    cell.untold = false
    byMessage.get(cell.id)?.tell()
  }

  function drain(): void {
    for (let next = after.shift(); next; next = after.shift()) call(next)
  }

  function call(listener: () => void): void {
    try {
      listener()
    } catch (error) {
      options.onListenerError?.(error)
    }
  }

  return {
    dispatch,
    batch,
    flush,
    state,
    subscribe: listeners.join,
    getSnapshot() {
      snapshot ??= readSnapshot(state, options.threadId)
      return snapshot
    },
    get messageIds() {
      return readMessageIds(state)
    },
    get pendingApprovals() {
      return readPendingApprovals(state)
    },
    getMessage: (id) => readMessage(state, id),
    subscribeMessage(id, listener) {
      const those = byMessage.get(id) ?? createListeners(call)
      byMessage.set(id, those)
      const leave = those.join(listener)
      return () => {
        leave()
        if (those.isEmpty && byMessage.get(id) === those) byMessage.delete(id)
      }
    },
  }
}

type Listeners = ReturnType<typeof createListeners>

/** Those who watch one thing. */
function createListeners(call: (listener: () => void) => void) {
  const present = new Set<() => void>()
  /** Made anew only after one came or went. */
  let list: readonly (() => void)[] | undefined
  // Made once, and no iterator: what is told at every delta should cost no memory.
  const tellOne = (listener: () => void) => {
    if (present.has(listener)) call(listener)
  }
  return {
    join(listener: () => void): () => void {
      // A wrapper each, so that the same function subscribed twice is told twice and leaves twice.
      const own = () => listener()
      present.add(own)
      list = undefined
      return () => {
        present.delete(own)
        list = undefined
      }
    },
    /** One that leaves meanwhile is not called any more; one that joins is called from the next time on. */
    tell(): void {
      list ??= [...present]
      list.forEach(tellOne)
    },
    get isEmpty() {
      return present.size === 0
    },
  }
}

function readSnapshot(state: ChatState, threadId: string): ChatSnapshot {
  const pendingApprovals = readPendingApprovals(state)
  return {
    messages: readMessages(state),
    state: state.shared,
    status: readStatus(state, pendingApprovals.length > 0),
    isLoading: state.run.phase !== 'idle',
    error: state.error,
    pendingApprovals,
    interrupts: readInterrupts(state),
    queue: state.queue,
    threadId,
  }
}

function readStatus(state: ChatState, pending: boolean): ChatStatus {
  if (state.run.phase !== 'idle') return state.run.phase
  if (state.error) return 'error'
  return pending ? 'awaiting-approval' : 'ready'
}
