import {
  type AGUIEvent,
  type ChatState,
  ChatStore,
  type ChatStoreOptions,
  CountersignError,
  type Effect,
  isRecord,
  type LocalEvent,
  type MoreSteps,
  type ToolMap,
} from '@countersign/core'
import { callBack, report } from './call-back.js'
import type { Connection, RunCursor } from './connections/connection.js'
import { headersByName } from './connections/fetch.js'
import type { Observation, Observer } from './observation.js'
import { type ChatClientOptions, checkOptions } from './options.js'
import { scheduleBy } from './schedule.js'

/**
 * The state of one conversation with its options and callbacks: the boundary between the machine and the
 * application. Every change of the state goes through `dispatch`.
 */
export class Session<Tools extends ToolMap> {
  readonly store: ChatStore
  readonly state: ChatState
  options: ChatClientOptions<Tools>
  /** Begins the conversation: the snapshot shows its id. Before that, no page gets the address of an empty conversation, but locks have a name. */
  readonly open: () => string
  #threadId: string

  constructor(options: ChatClientOptions<Tools>) {
    if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production') checkOptions(options)
    const { initialMessages = options.initialThread?.messages, initialState, ...kept } = options
    this.options = kept
    const storeOptions: ChatStoreOptions & { threadId: string } = {
      threadId: options.threadId ?? '',
      messages: unsafeCast(initialMessages),
      applyPatch: options.statePatch,
      moreSteps: options.persistence?.steps,
      schedule: scheduleBy(this),
      onListenerError: report,
    }
    this.#threadId = storeOptions.threadId
    this.open = () => Object.assign(storeOptions, { threadId: this.threadId }).threadId
    this.store = new ChatStore(storeOptions)
    this.state = this.store.state
    if (initialState !== undefined) this.store.dispatch({ type: 'set-state', state: initialState })
  }

  /** A random id is made only when needed: a server, and the page that hydrates its output, must not have one yet. */
  get threadId(): string {
    this.#threadId ||= this.newId()
    return this.#threadId
  }

  /** The id from `generateId`, if it is new: a message with a used id would be taken for the existing one. */
  newId(): string {
    const id: unknown = this.callBack(() => this.options.generateId?.())
    return typeof id === 'string' && id && !this.state.messages.has(id) ? id : randomId()
  }

  /** The `headers` option in the form that connections take. */
  get headers(): Readonly<Record<string, string>> {
    return headersByName(this.options.headers)
  }

  now(): number {
    const time: unknown = this.callBack(() => this.options.now?.())
    return typeof time === 'number' && time >= 0 ? time : Date.now()
  }

  /** Adds steps that the conversation has not needed before. */
  learn(steps: MoreSteps): void {
    this.state.moreSteps = { ...steps, ...this.state.moreSteps }
  }

  setOptions(options: Partial<ChatClientOptions<Tools>>): void {
    if (!isRecord(options)) throw new CountersignError('invalid-option', 'setOptions takes an object.')
    const next = { ...this.options, ...options }
    if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production') checkOptions(next)
    this.options = next
  }

  /** Called for every step taken here, before it is applied. */
  onStep: ((step: AGUIEvent | LocalEvent) => void) | undefined

  /** Notifies the observers before something takes effect. `undefined` while there are none. */
  seen: ((what: Observation) => void) | undefined
  readonly #observers = new Set<Observer>()

  observe(observer: Observer): () => void {
    const own: Observer = (what) => this.callBack(() => observer(what))
    this.#observers.add(own)
    this.seen = (what) => {
      for (const tell of this.#observers) tell(what)
    }
    return () => {
      this.#observers.delete(own)
      if (this.#observers.size === 0) this.seen = undefined
    }
  }

  readonly dispatch = (step: AGUIEvent | LocalEvent): void => {
    this.onStep?.(step)
    this.#take(step)
  }

  #take(step: AGUIEvent | LocalEvent): void {
    this.seen?.({ type: 'step', step })
    this.store.dispatch(step, this.#onEffect)
    const isData = step.type === 'ACTIVITY_SNAPSHOT' || step.type === 'ACTIVITY_DELTA'
    if (!isData || !this.options.onData) return
    const { messageId } = step
    const part = this.store.getMessage(messageId)?.parts.find(({ type }) => type === 'data')
    if (part?.type === 'data') this.callBack(() => this.options.onData?.({ ...part, messageId }))
  }

  /** Publishes events that arrived together at once, unless every delta must be published. */
  together(work: () => void): void {
    if (this.options.notify === 'sync') work()
    else this.store.batch(work)
  }

  /** Applies steps that were taken in another tab. */
  follow(steps: readonly (AGUIEvent | LocalEvent)[]): void {
    this.store.batch(() => {
      for (const step of steps) this.#take(step)
    })
  }

  readonly #onEffect = (effect: Effect): void => {
    switch (effect.type) {
      case 'approval-requested': {
        const { type: _, ...request } = effect
        const asked = { ...request, approvalId: request.approval.id }
        this.callBack(() => this.options.onApprovalRequest?.(unsafeCast(asked)))
        return
      }
      case 'unhandled':
        this.callBack(() => this.options.onEvent?.(effect.event))
        return
      case 'warning':
        this.warn(effect.message)
        return
      default:
        effect satisfies never
    }
  }

  stopOnServer(connection: Connection | undefined, run: RunCursor): void {
    this.callBack(() => connection?.stop?.(run, { headers: this.headers }))
  }

  failed(error: CountersignError): void {
    this.callBack(() => this.options.onError?.(error))
  }

  warn(message: string): void {
    if (this.options.onWarning) this.callBack(() => this.options.onWarning?.(message))
    else if (isDevelopment()) console.warn(`Countersign: ${message}`)
  }

  readonly callBack = callBack
}

/** Data from the wire is cast to the types of the tools that the application declares; nothing here can check that. */
export function unsafeCast<T>(value: unknown): T {
  return value as T
}

/** `crypto.randomUUID` is missing on pages that are not secure contexts, and all of `crypto` in React Native. */
function randomId(): string {
  const { crypto }: { crypto?: Crypto } = globalThis
  if (crypto?.randomUUID) return crypto.randomUUID()
  const bytes = Uint8Array.from({ length: 16 }, () => Math.random() * 256)
  return Array.from(crypto?.getRandomValues(bytes) ?? bytes, (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
}

declare const process: { readonly env: Readonly<Record<string, string | undefined>> }

/** Bundlers replace the expression; if `process` does not exist, this is not development. */
export function isDevelopment(): boolean {
  try {
    return process.env.NODE_ENV !== 'production'
  } catch {
    return false
  }
}
