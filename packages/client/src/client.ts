import {
  type ChatSnapshot,
  CountersignError,
  checkMessages,
  isMessage,
  isRecord,
  type MandateReplay,
  type SessionGrant,
  type ToolMap,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import { called } from './call-back.js'
import type {
  ApprovalCancellation,
  ApprovalResponse,
  CommandName,
  CommandValues,
  InterruptResponse,
  ToolResult,
} from './command.js'
import { type Commands, createPerformer, disposedError } from './commands.js'
import { createExpiry } from './expiry.js'
import { copyJson } from './json.js'
import type { Observer } from './observation.js'
import type { ChatClientOptions } from './options.js'
import type { KeptThread } from './persistence/persistence.js'
import type { AnswerResult, SendResult } from './results.js'
import { createRunner, type Runner } from './runner.js'
import {
  invalid,
  noMessage,
  readUserMessage,
  record,
  requestOptions,
  type SendInput,
  type SendOptions,
} from './send-input.js'
import { Session, unsafeCast } from './session.js'

/** Internals for tests and devtools. */
export interface Inspection {
  /** The stream of a continuation is open. */
  readonly continuationPending: boolean
  /** A check for continuation was skipped because a stream was open; it is repeated once that stream has ended well. */
  readonly continuationSkipped: boolean
  /** Incremented by everything that cancels pending work. */
  readonly generation: number
  readonly openRun: string | undefined
}

export const actionNames = [
  'sendMessage',
  'append',
  'cancelQueued',
  'addToolApprovalResponse',
  'addToolApprovalResponses',
  'withdrawApprovalResponse',
  'addToolResult',
  'respondToInterrupt',
  'stop',
  'retry',
  'regenerate',
  'clear',
  'setMessages',
  'setState',
  'clearError',
] as const

/** The methods of a {@link ChatClient} that a page calls. */
export type ChatActions<Tools extends ToolMap = ToolMap> = Pick<
  ChatClient<Tools>,
  (typeof actionNames)[number]
>

/** The options that cannot change. */
type FixedOption =
  | 'threadId'
  | 'initialMessages'
  | 'initialThread'
  | 'initialState'
  | 'statePatch'
  | 'persistence'
  | 'tabs'

/**
 * One conversation: its state, its runs, and everything a user can do in it. It needs no framework; the bindings only
 * subscribe to it. The constructor has no observable side effects. All methods may be passed around without their object.
 */
export class ChatClient<Tools extends ToolMap = ToolMap> {
  /** The option, or a random id: created when a request or a reader first needs it, never by the constructor or a snapshot. */
  declare readonly threadId: string
  readonly #session: Session<Tools>
  readonly #kept: KeptThread | undefined
  readonly #runner: Runner
  readonly #perform: ReturnType<typeof createPerformer>
  readonly #initial: ChatSnapshot
  readonly #expiry: ReturnType<typeof createExpiry>
  /** The ids of messages that were given and are not shown yet, such as while the conversation loads. */
  readonly #said = new Set<string>()
  #attached = 0
  #unwatch: (() => void) | undefined

  /** Throws `invalid-option`, naming the option, if one is invalid. */
  constructor(options: ChatClientOptions<Tools>) {
    const session = new Session(options)
    this.#session = session
    this.getSnapshot = unsafeCast(session.store.getSnapshot)
    // Not a class getter: a framework may read it through a proxy, which has no access to private members.
    Object.defineProperty(this, 'threadId', { get: session.open, enumerable: true })
    this.#initial = session.store.getSnapshot()
    this.#kept = options.persistence?.open(session, {
      isUnused: (underWay) => {
        const { disposed, isBusy } = this.#runner
        return disposed || !(underWay || this.#attached || isBusy)
      },
      // `Tabs` has checked that the name is that of a command.
      perform: async (name, value) => this.#perform(name as CommandName, value),
      takeOver: (error) => this.#runner.takeOver(error),
      rejoin: (run) => this.#runner.rejoin(run),
      sendQueued: () => this.#runner.sendQueued(),
    })
    this.#runner = createRunner(session, this.#kept)
    this.#perform = createPerformer(session, this.#runner)
    this.#expiry = createExpiry(
      session.store,
      () => session.now(),
      (ids) => void this.#command('expire', ids),
    )
  }

  /** Calls `listener` after every change; returns a function that unsubscribes. */
  subscribe = (listener: () => void): (() => void) => this.#session.store.subscribe(called(listener))

  /** Everything there is to show. The same object until something changes. */
  readonly getSnapshot: () => ChatSnapshot<Tools>

  /** The snapshot for server rendering and hydration: the initial one. */
  getServerSnapshot = (): ChatSnapshot<Tools> => unsafeCast(this.#initial)

  getMessage = (id: string): UIMessage<Tools> | undefined => unsafeCast(this.#session.store.getMessage(id))

  /** The ids of all messages in order. The same array until a message is added or removed. */
  getMessageIds = (): readonly string[] => this.#session.store.messageIds

  /** Calls `listener` when that message changes. */
  subscribeMessage = (id: string, listener: () => void): (() => void) =>
    this.#session.store.subscribeMessage(id, called(listener))

  /**
   * Sends a user message. While a run is open, `whenBusy` decides (by default it is queued); while approvals are pending,
   * `onPendingMessage` decides. Never rejects; resolves when its run has ended, or the whole turn with `until: 'turn'`.
   *
   * Without a message it sends the conversation as it is: unsent answers, queued messages that `stop()` held, or a request for
   * another reply. Refused while something is running or a request waits for an answer.
   */
  sendMessage = async (input?: SendInput, options: SendOptions = {}): Promise<SendResult> => {
    const { value, fault, until } = requestOptions(options)
    if (fault !== undefined) return refused(fault)
    if (input === undefined) return this.#until(this.#command('continue', value), until)
    const { messageId } = record(input)
    const replaces = messageId === undefined ? {} : { replaces: String(messageId) }
    return this.#send(this.#readInput(input), { ...replaces, options: value }, until)
  }

  /**
   * Adds a complete message of any role, and requests a reply to it, as `sendMessage` does for a user message. `id` and
   * `createdAt` are added if missing. A conversation that the server keeps (`serverThreads`) takes only user messages.
   */
  append = async (
    message: Omit<UIMessage<Tools>, 'id'> & { readonly id?: string },
    options: SendOptions = {},
  ): Promise<SendResult> => {
    const { value, fault, until } = requestOptions(options)
    const copy = copyJson(message)
    if ((fault ?? copy.fault) !== undefined) return refused(`${fault ?? copy.fault}`)
    const { id = this.#session.newId(), createdAt = this.#session.now(), ...rest } = record(copy.value)
    const whole = { id, createdAt, ...rest }
    return this.#send(isMessage(whole) ? whole : invalid(noMessage), { options: value }, until)
  }

  /** Removes a queued message; returns whether it was still queued. */
  cancelQueued = (id: string): boolean => {
    const found = this.#session.state.queue.some((item) => item.id === id)
    if (found) void this.#command('cancelQueued', id)
    return found
  }

  /**
   * Answers an approval request. The first answer wins; later ones resolve with why they were not used. Never
   * rejects; resolves when the request that carried the answer has ended, or at once if none can be sent yet.
   */
  addToolApprovalResponse = (response: ApprovalResponse | ApprovalCancellation): Promise<AnswerResult> =>
    this.#give('answer', response)

  /**
   * Answers several approval requests at once: listeners are notified once, and one request carries all. Resolves
   * with their results in order; rejects with `invalid-argument` unless it gets a list.
   */
  addToolApprovalResponses = async (
    responses: readonly (ApprovalResponse | ApprovalCancellation)[],
  ): Promise<readonly AnswerResult[]> => {
    const { value, fault } = copyJson(responses)
    if (fault !== undefined || !Array.isArray(value) || !value.every(isRecord))
      throw invalid(fault ?? 'addToolApprovalResponses takes a list of responses.')
    return this.#command('answerAll', unsafeCast(value))
  }

  /**
   * Takes back an answer that no request has carried yet, because other requests of the turn are open or the chat was stopped. Resolves
   * with whether the answer is gone, from the storage too, and its approval request is open again. `false`: it stays, or the change could
   * not be stored (`onError` says so).
   */
  withdrawApprovalResponse = async (id: string): Promise<boolean> => {
    const result: unknown = await this.#command('withdraw', String(id))
    // Another tab that does not respond gives an error.
    return result === true
  }

  /** Provides the result of a client tool that the application runs itself. */
  addToolResult = (result: ToolResult): Promise<AnswerResult> => this.#give('giveResult', result)

  /** Responds to an interrupt that is no tool approval, or declines it. */
  respondToInterrupt = (response: InterruptResponse): Promise<AnswerResult> => this.#give('respond', response)

  /** Ends the open run and holds the queue. Unsent answers are kept for the next request. */
  stop = (): void => void this.#command('stop', undefined)

  /**
   * Continues what a failure, a stop or a reload interrupted: rejoins or repeats the last failed request, sends unsent answers, also
   * those that may be lost, and runs client tools that had not started. Does nothing while a run is open, or if there is nothing to do.
   */
  retry = (): Promise<void> => this.#command('retry', undefined)

  /**
   * Drops the last reply and requests it again. `messageId` is that of any message of a reply, and so also
   * the id of its turn: then everything after the user message that it replies to is dropped.
   */
  regenerate = async (
    from: { readonly messageId?: string } = {},
    options: SendOptions = {},
  ): Promise<SendResult> => {
    const { value, fault, until } = requestOptions(options)
    if (fault !== undefined) return refused(fault)
    const { messageId } = record(from)
    const replaced = messageId === undefined ? {} : { messageId }
    return this.#until(this.#command('regenerate', { ...replaced, options: value }), until)
  }

  /** Empties the conversation and cancels pending work. */
  clear = (): void => this.setMessages([])

  /**
   * Replaces the conversation and cancels pending work: the open run, the queue, unsent answers. Takes the messages, or a
   * function of the present ones. Throws `invalid-argument` and changes nothing if a message is invalid.
   */
  setMessages = (
    messages:
      | readonly UIMessage<Tools>[]
      | readonly UIMessage[]
      | ((before: readonly UIMessage<Tools>[]) => readonly UIMessage<Tools>[] | readonly UIMessage[]),
  ): void => {
    const now = typeof messages === 'function' ? messages(this.getSnapshot().messages) : messages
    checkMessages(unsafeCast(now))
    this.#kept?.replace()
    void this.#command('setMessages', unsafeCast(now))
  }

  /** Replaces the AG-UI shared state, which the next request sends. Takes the state, or a function of the present one. Throws `invalid-argument` if it has no JSON form. */
  setState = (state: unknown): void => {
    const { value, fault } = copyJson(typeof state === 'function' ? state(this.getSnapshot().state) : state)
    if (fault !== undefined) throw invalid(fault)
    void this.#command('setState', { state: value })
  }

  /** Removes `error` from the snapshot. The failed request is then no longer repeated by `retry()`. */
  clearError = (): void => void this.#command('clearError', undefined)

  /**
   * The session approvals of this conversation; empty if the server offers no list
   * ({@link Connection.grants}). Rejects with a CountersignError if the request fails.
   */
  grants = async (): Promise<readonly SessionGrant[]> => {
    const { headers, options } = this.#session
    return (await options.connection.grants?.({ threadId: this.threadId }, { headers })) ?? []
  }

  /** Revokes one of them by its id, or all: later calls need approval again. Resolves with their number; rejects as `grants` does. */
  revokeGrant = async (id?: string): Promise<number> => {
    // An argument passed by mistake, such as a click event, must not revoke them all.
    if (id !== undefined && typeof id !== 'string')
      throw new CountersignError('invalid-argument', 'revokeGrant takes an id, or nothing.')
    const { headers, options } = this.#session
    return (await options.connection.revokeGrant?.({ threadId: this.threadId, id }, { headers })) ?? 0
  }

  /**
   * Which past calls of this conversation a mandate offered with an open request would have decided, of the latest 256; `undefined` if the
   * server can't tell. Rejects as `grants` does.
   */
  replayMandate = async (approvalId: string, mandate: string): Promise<MandateReplay | undefined> => {
    const { headers, options } = this.#session
    const calls = this.getSnapshot().messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool-call' && part.approval ? part.id : [])),
    )
    const which = { threadId: this.threadId, approvalId, mandate, toolCallIds: calls.slice(-256) }
    return options.connection.replayMandate?.(which, { headers })
  }

  /** Changes options, from their next use on; an open run keeps its connection. */
  setOptions = (options: Partial<Omit<ChatClientOptions<Tools>, FixedOption>>): void =>
    this.#session.setOptions(options)

  /**
   * Loads the stored conversation, once; `attach` and every command do so automatically. A run that was open when its page was left is
   * rejoined, if the connection can. Resolves once it is known whether it goes on. Never rejects.
   */
  restore = async (): Promise<void> => {
    await this.#kept?.enter()
  }

  /** Called when a page shows this conversation. Returns `detach`. */
  attach = (): (() => void) => {
    if (this.#attached++ === 0) {
      this.#unwatch = this.subscribe(this.#expiry.changed)
      this.#expiry.look()
      void this.#kept?.enter()
    }
    let left = false
    return () => {
      if (left) return
      left = true
      this.detach()
    }
  }

  /** Called when a page stops showing it. Pending work continues, unless `onDetach` says otherwise; nothing is lost or cancelled. */
  detach = (): void => {
    if (this.#attached === 0 || --this.#attached > 0) return
    this.#unwatch?.()
    this.#expiry.stop()
    this.#kept?.leaveIfUnused()
    // Deferred: a page may be unmounted and mounted again synchronously.
    if (this.#session.options.onDetach === 'stop')
      queueMicrotask(() => {
        if (this.#attached === 0) this.stop()
      })
  }

  /** Ends everything for good. An open run is stopped as by {@link stop}, so `retry()` of a later client does not repeat it. */
  dispose = (): void => {
    this.#runner.dispose()
    this.#perform('stop', undefined)
    this.#attached = Math.min(this.#attached, 1)
    this.detach()
  }

  inspect = (): Inspection => this.#runner.inspect()

  /**
   * Reports every request, command and step of this client to `observer`, in order and before it takes effect; returns
   * a function that unsubscribes. For devtools and logs: an observer must not act. Costs nothing while there is none.
   */
  observe = (observer: Observer): (() => void) => this.#session.observe(called(observer))

  /** All user actions in one stable object, which bindings expose as it is. */
  readonly actions: ChatActions<Tools> = unsafeCast(
    Object.fromEntries(actionNames.map((name) => [name, this[name]])),
  )

  /** Copies what the caller passed in: it may be used later, or by another tab. */
  async #give(name: 'answer' | 'giveResult' | 'respond', given: unknown): Promise<AnswerResult> {
    const { value, fault } = copyJson(given)
    if (fault !== undefined) return { status: 'refused', code: 'approval-malformed', reason: fault }
    return this.#command(name, unsafeCast(record(value)))
  }

  /** Performs a command at once, unless the stored conversation is not loaded yet or another tab leads. */
  #command<Name extends CommandName>(name: Name, value: CommandValues[Name]): ReturnType<Commands[Name]> {
    const here = () => this.#perform(name, value)
    return unsafeCast(this.#kept && !this.#runner.disposed ? this.#kept.perform(name, value, here) : here())
  }

  #readInput(input: SendInput): UIMessage | CountersignError {
    return this.#runner.disposed ? disposedError() : readUserMessage(input, this.#session)
  }

  #send(
    message: UIMessage | CountersignError,
    more: Pick<CommandValues['send'], 'replaces' | 'options'>,
    until: SendOptions['until'],
  ): Promise<SendResult> {
    if (message instanceof CountersignError) return Promise.resolve({ status: 'refused', error: message })
    const { id } = message
    const { messages, queue } = this.#session.state
    const isKnown = messages.has(id) || this.#said.has(id) || queue.some((item) => item.id === id)
    if (isKnown && id !== more.replaces)
      return Promise.resolve(refused(`A message has the id "${id}" already: give another.`))
    // Captured now, because a conversation that is still loading is not visible to the user yet.
    const visible = visibleRequests(this.#session.state)
    this.#said.add(id)
    const sent = this.#command('send', { id, message, visible, ...more })
    void sent.finally(() => this.#said.delete(id))
    return this.#until(sent, until)
  }

  async #until(sent: Promise<SendResult>, until: SendOptions['until']): Promise<SendResult> {
    const result = await sent
    if (until !== 'turn' || (result.status !== 'sent' && result.status !== 'queued')) return result
    await this.#idle()
    const { queue, error } = this.getSnapshot()
    if (result.status === 'queued' && queue.some(({ id }) => id === result.id)) return result
    return error ? { status: 'failed', error } : { status: 'sent' }
  }

  /** Resolves when nothing is running and nothing follows. What follows a run begins before the next microtask. */
  #idle(): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.getSnapshot().isLoading) return
        leave()
        resolve()
      }
      const leave = this.subscribe(() => queueMicrotask(look))
      queueMicrotask(look)
    })
  }
}

function refused(fault: string): SendResult {
  return { status: 'refused', error: invalid(fault) }
}
