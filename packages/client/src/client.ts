import {
  type AnyClientTool,
  type ChatSnapshot,
  type ChatState,
  type ChatStore,
  CountersignError,
  clientCalls,
  createChatStore,
  type Effect,
  executingCalls,
  type FilePart,
  findAnswerable,
  hasDeferredAnswer,
  type LocalAct,
  type RunEnd,
  type ToolMap,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import { runClientTool } from './client-tools.js'
import { mayLeave, shouldContinue } from './continuation.js'
import { createExpiry, expiryOf } from './expiry.js'
import { type ChatClientOptions, checkOptions } from './options.js'
import { createRequest } from './request.js'
import { type Answered, type AnswerResult, resultOf, type SendResult } from './results.js'
import { openRun, type Run, type RunKind } from './run.js'
import { scheduleBy } from './schedule.js'

/** What a person sends: a text, or a text with files. */
export type SendInput =
  | string
  | {
      readonly text?: string
      readonly files?: readonly FilePart[]
      readonly metadata?: Readonly<Record<string, unknown>>
    }

/** A person's answer to a request for approval, by the approval's id. */
export interface ApprovalResponse {
  readonly id: string
  readonly approved: boolean
  readonly reason?: string
  /** The arguments as edited, whole; only where the request allows it. */
  readonly input?: unknown
  readonly scope?: 'once' | 'session'
}

/** What tests and devtools may look at. */
export interface Inspection {
  /** A continuation's stream is open. */
  readonly continuationPending: boolean
  /** A check was refused because a stream was open; one check follows once that stream has ended well. */
  readonly continuationSkipped: boolean
  /** Grows with everything that voids what was under way. */
  readonly generation: number
  readonly openRun: string | undefined
}

/** The methods of a {@link ChatClient} that a page calls. */
export type ChatActions<Tools extends ToolMap = ToolMap> = Pick<
  ChatClient<Tools>,
  | 'sendMessage'
  | 'cancelQueued'
  | 'addToolApprovalResponse'
  | 'addToolResult'
  | 'respondToInterrupt'
  | 'stop'
  | 'retry'
  | 'resume'
  | 'regenerate'
  | 'clear'
  | 'setMessages'
>

/**
 * One conversation: its state, its runs, and everything a person can do in it. Needs no framework; the bindings only subscribe to it.
 * The constructor does nothing that could be observed from outside. All methods may be passed around without their object.
 */
export class ChatClient<Tools extends ToolMap = ToolMap> {
  readonly threadId: string
  #options: ChatClientOptions<Tools>
  readonly #store: ChatStore
  readonly #initial: ChatSnapshot
  #run: Run | undefined
  #skipped = false
  #generation = 0
  /** After `stop()` nothing goes out until the person acts. */
  #held = false
  /** Requests that followed one another without a person's act. */
  #automatic = 0
  #attached = 0
  #disposed = false
  #toolsAbort = new AbortController()
  readonly #waiting = new Map<Answered, ((result: AnswerResult) => void)[]>()
  readonly #expiry: ReturnType<typeof createExpiry>
  #unwatch: (() => void) | undefined

  constructor(options: ChatClientOptions<Tools>) {
    checkOptions(options)
    this.#options = options
    this.threadId = options.threadId ?? this.#id()
    this.#store = createChatStore({
      threadId: this.threadId,
      messages: typed(options.initialMessages),
      applyPatch: options.statePatch,
      schedule: scheduleBy(() => this.#options.notify),
      onListenerError: (error) => this.#report(error),
    })
    this.#initial = this.#store.getSnapshot()
    this.#expiry = createExpiry(
      () => this.#now(),
      (ids) => this.#dispatch({ type: 'close', ids, because: 'expired' }),
    )
  }

  /** Calls `listener` after every change; returns how to leave. */
  subscribe = (listener: () => void): (() => void) => this.#store.subscribe(listener)

  /** Everything there is to show. The same object until something changes. */
  getSnapshot = (): ChatSnapshot<Tools> => typed(this.#store.getSnapshot())

  /** The snapshot a server renders and a page hydrates with: that of the beginning. */
  getServerSnapshot = (): ChatSnapshot<Tools> => typed(this.#initial)

  /** One message, or `undefined`. */
  getMessage = (id: string): UIMessage<Tools> | undefined => typed(this.#store.getMessage(id))

  /** The ids of all messages in order. The same array while none comes or goes. */
  getMessageIds = (): readonly string[] => this.#store.messageIds

  /** Calls `listener` when that one message changes. */
  subscribeMessage = (id: string, listener: () => void): (() => void) =>
    this.#store.subscribeMessage(id, listener)

  /**
   * Sends what a person says. While a run is open it is queued; while approvals are pending `onPendingMessage` decides. Never rejects;
   * resolves when its run has ended.
   */
  sendMessage = async (input: SendInput): Promise<SendResult> => {
    const message = this.#userMessage(input)
    if (message instanceof CountersignError) return { status: 'refused', error: message }
    const visible = visibleRequests(this.#state)
    if (this.#mode() === 'reject' && visible.length > 0)
      return { status: 'refused', error: pendingError(visible) }
    this.#personActs()
    const item = { id: message.id, message, visible }
    if (!this.#run && this.#state.queue.length === 0 && mayLeave(this.#state, item, this.#mode())) {
      return sendResult(await this.#say(item.message, visible))
    }
    this.#dispatch({ type: 'queue', item })
    if (!this.#run) this.#sendQueued()
    if (this.#state.queue.some(({ id }) => id === item.id) || !this.#run)
      return { status: 'queued', id: item.id }
    return sendResult(await this.#run.done)
  }

  /** Takes a queued message back; says whether it was still there. */
  cancelQueued = (id: string): boolean => {
    const found = this.#state.queue.some((item) => item.id === id)
    if (found) this.#dispatch({ type: 'unqueue', id })
    return found
  }

  /**
   * Answers a request for approval. The first answer wins; every other is told what stands. Never rejects; resolves when the request
   * that carried the answer has ended, or at once where none can go out yet.
   */
  addToolApprovalResponse = async (response: ApprovalResponse): Promise<AnswerResult> => {
    const { id, approved, reason, input, scope } = response
    const found = findAnswerable(this.#state, id)
    if (found.status === 'not-found') this.#warn(`There is no approval "${id}" to answer.`)
    if (found.status !== 'open') return found
    if (expiryOf(found.approval) <= this.#now()) {
      this.#dispatch({ type: 'close', ids: [id], because: 'expired' })
      return { status: 'expired' }
    }
    this.#personActs()
    this.#dispatch({ type: 'answer', approvalId: id, approved, reason, input, scope })
    return this.#sendAnswer(found.call)
  }

  /** Gives the result of a client tool that the application runs itself. */
  addToolResult = async (
    result: { readonly toolCallId: string } & ({ readonly output: unknown } | { readonly error: string }),
  ): Promise<AnswerResult> => {
    const call = this.#state.calls.get(result.toolCallId)
    if (!call) return { status: 'not-found' }
    const open = call.state === 'input-complete' || (call.state === 'approval-responded' && call.ready)
    if (!open) return { status: 'closed', reason: call.state }
    this.#personActs()
    const output =
      'error' in result ? { error: { message: result.error } } : { output: result.output ?? null }
    this.#dispatch({ type: 'tool-output', toolCallId: call.id, messageId: this.#id(), ...output })
    return this.#sendAnswer(call)
  }

  /** Answers a question of the agent that concerns no tool call, or declines to. */
  respondToInterrupt = async (
    response: { readonly id: string } & ({ readonly payload: unknown } | { readonly cancel: true }),
  ): Promise<AnswerResult> => {
    const cell = this.#state.interrupts.get(response.id)
    if (!cell) return { status: 'not-found' }
    if (cell.response) return { status: 'already-answered' }
    this.#personActs()
    const answer = 'cancel' in response ? { cancel: true as const } : { payload: response.payload }
    this.#dispatch({ type: 'respond', interruptId: response.id, response: answer })
    return this.#sendAnswer(cell)
  }

  /** Ends the open run and holds the queue. Answers that were not sent are kept for the next request. */
  stop = (): void => {
    this.#void()
    this.#held = true
  }

  /** Repeats the last failed request from the present state, answers included. Does nothing where nothing failed. */
  retry = async (): Promise<void> => {
    if (this.#run || !(this.#state.error || hasDeferredAnswer(this.#state))) return
    this.#personActs()
    await this.#open('retry').done
  }

  /** Sends what was answered before the page was reloaded. Does nothing where there is nothing to send. */
  resume = async (): Promise<void> => {
    if (this.#run || this.#state.unsent.size === 0) return
    this.#personActs()
    await this.#open('retry').done
  }

  /** Drops the last answer (or everything after the user message that `messageId` answers) and asks for it again. */
  regenerate = async ({ messageId }: { readonly messageId?: string } = {}): Promise<SendResult> => {
    const { order } = this.#state
    const last =
      messageId === undefined ? order.length - 1 : (this.#state.messages.get(messageId)?.position ?? -1)
    const spoken = order.slice(0, last + 1).findLast((cell) => cell.role === 'user')
    if (!spoken) {
      const message = 'There is no message of the person before it to answer again.'
      return { status: 'refused', error: new CountersignError('invalid-argument', message, { messageId }) }
    }
    this.#void()
    this.#personActs()
    this.#dispatch({ type: 'truncate', messageId: spoken.id })
    return sendResult(await this.#open('message').done)
  }

  /** Empties the conversation and voids what is under way. */
  clear = (): void => this.setMessages([])

  /** Replaces the conversation and voids what is under way: the open run, the queue, answers not yet sent. */
  setMessages = (messages: readonly UIMessage<Tools>[]): void => {
    this.#void()
    for (const { id } of this.#state.queue) this.#dispatch({ type: 'unqueue', id })
    this.#dispatch({ type: 'set-messages', messages: typed(messages) })
  }

  /** Changes options. They count from their next use on; an open run keeps the connection it has. */
  setOptions = (
    options: Partial<Omit<ChatClientOptions<Tools>, 'threadId' | 'initialMessages' | 'statePatch'>>,
  ): void => {
    const next = { ...this.#options, ...options }
    checkOptions(next)
    this.#options = next
  }

  /** A page shows this conversation. Returns `detach`. */
  attach = (): (() => void) => {
    if (this.#attached++ === 0) {
      this.#unwatch = this.subscribe(() => this.#expiry.check(this.#store.getSnapshot()))
      this.#expiry.check(this.#store.getSnapshot())
    }
    let left = false
    return () => {
      if (left) return
      left = true
      this.detach()
    }
  }

  /** A page is gone. What runs goes on; nothing is lost or cancelled. */
  detach = (): void => {
    if (this.#attached === 0 || --this.#attached > 0) return
    this.#unwatch?.()
    this.#expiry.stop()
  }

  /** Ends everything for good. */
  dispose = (): void => {
    this.#void()
    this.#disposed = true
    this.#attached = Math.min(this.#attached, 1)
    this.detach()
  }

  /** What a person can do, in one object that stays the same: bindings hand it out as it is. */
  get actions(): ChatActions<Tools> {
    return this.#actions
  }

  inspect = (): Inspection => ({
    continuationPending: this.#run?.kind === 'continuation',
    continuationSkipped: this.#skipped,
    generation: this.#generation,
    openRun: this.#run?.id,
  })

  readonly #actions: ChatActions<Tools> = {
    sendMessage: this.sendMessage,
    cancelQueued: this.cancelQueued,
    addToolApprovalResponse: this.addToolApprovalResponse,
    addToolResult: this.addToolResult,
    respondToInterrupt: this.respondToInterrupt,
    stop: this.stop,
    retry: this.retry,
    resume: this.resume,
    regenerate: this.regenerate,
    clear: this.clear,
    setMessages: this.setMessages,
  }

  get #state(): ChatState {
    return this.#store.state
  }

  /** The one place that decides what happens next. Where a stream is open, one check follows when it has ended well. */
  #check(): void {
    if (this.#run) {
      this.#skipped = true
      return
    }
    if (!this.#held && !this.#continue()) this.#sendQueued()
  }

  #continue(): boolean {
    if (!shouldContinue(this.#state)) return false
    const limit = this.#options.maxContinuations ?? 100
    if (this.#automatic >= limit) {
      const message = `The agent asked ${limit} times in a row without an act of the person; the chat was stopped. Send a message to go on.`
      const error = new CountersignError('too-many-continuations', message, { limit })
      this.#dispatch({ type: 'failed', error })
      this.#failed(error)
      return false
    }
    this.#automatic++
    this.#open('continuation')
    return true
  }

  #sendQueued(): void {
    const [item] = this.#state.queue
    if (!item || this.#held || !mayLeave(this.#state, item, this.#mode())) return
    this.#dispatch({ type: 'unqueue', id: item.id })
    void this.#say(item.message, visibleRequests(this.#state))
  }

  /** The person's words go out; the requests they pass over are closed with the same request. */
  #say(message: UIMessage, passedOver: readonly string[]): Promise<RunEnd> {
    if (passedOver.length > 0) this.#dispatch({ type: 'close', ids: passedOver, because: 'moved-on' })
    this.#dispatch({ type: 'user-message', message })
    return this.#open('message').done
  }

  /** Claims the stream and opens it, all before anything is awaited. */
  #open(kind: RunKind): Run {
    const state = this.#state
    const { connection, headers = {}, tools = [], forwardedProps } = this.#options
    const runId = this.#id()
    const carried = new Set<Answered>(state.unsent)
    const input = createRequest(state, {
      threadId: this.threadId,
      runId,
      tools,
      forwardedProps,
      again: kind === 'retry',
    })
    const { messages } = this.#store.getSnapshot()
    this.#skipped = false
    let run: Run | undefined
    this.#run = run = openRun({
      connection,
      input,
      kind,
      carried,
      options: { messages, headers },
      onEvent: (event) => this.#store.dispatch(event, this.#onEffect),
      onUnknown: (event) => this.#options.onEvent?.(event),
      onWarning: ({ message }) => this.#warn(message),
      failure: () => (state.run.phase === 'idle' ? undefined : state.run.failure),
      onEnd: (ended, end) => this.#closed(ended, end),
    })
    this.#dispatch({ type: 'run-opened', runId })
    return run
  }

  /** The stream is closed: publish, tell, start client tools, check once if a check was refused, then let the queue go. */
  #closed(run: Run, end: RunEnd): void {
    const generation = this.#generation
    const skipped = this.#skipped
    this.#run = undefined
    this.#skipped = false
    this.#dispatch({ type: 'run-closed', end })
    this.#settle(run, end)
    // Whoever voided it decides what follows.
    if (end.type === 'aborted') return
    if (end.type === 'success') this.#finished()
    else this.#failed(end.error)
    if (end.type === 'success') this.#startTools(generation)
    // A listener or callback may have acted meanwhile.
    if (generation === this.#generation && !this.#run && !this.#held) {
      if (!(skipped && end.type === 'success' && this.#continue())) this.#sendQueued()
    }
    if (!this.#run) this.#settleRest()
  }

  #finished(): void {
    const last = this.#state.run.phase === 'idle' ? this.#state.run.last : undefined
    const { messages } = this.getSnapshot()
    this.#callBack(() =>
      this.#options.onFinish?.({ messages, reason: last?.reason, outcome: last?.outcome ?? 'success' }),
    )
  }

  #startTools(generation: number): void {
    for (const call of clientCalls(this.#state)) {
      const tool = this.#options.tools?.find(({ name }) => name === call.name)
      if (!tool || generation !== this.#generation) continue
      this.#dispatch({ type: 'tool-started', toolCallId: call.id })
      void this.#runTool(tool, call, generation)
    }
  }

  async #runTool(
    tool: AnyClientTool,
    call: { id: string; name: string; input: unknown },
    generation: number,
  ): Promise<void> {
    this.#callBack(() => this.#options.onToolCall?.(typed(call)))
    const result = await runClientTool(tool, call.input, {
      toolCallId: call.id,
      signal: this.#toolsAbort.signal,
    })
    if (generation !== this.#generation) return
    this.#dispatch({ type: 'tool-output', toolCallId: call.id, messageId: this.#id(), ...result })
    this.#check()
  }

  /** An answer was given: it goes out if it can, and its giver is told what became of it. */
  #sendAnswer(answered: Answered): Promise<AnswerResult> {
    const result = new Promise<AnswerResult>((resolve) => {
      this.#waiting.set(answered, [...(this.#waiting.get(answered) ?? []), resolve])
    })
    this.#check()
    if (!this.#run) this.#settleRest()
    return result
  }

  #settle(run: Run, end: RunEnd): void {
    for (const answered of run.carried) this.#tell(answered, resultOf(answered, end))
  }

  /** What could not go out waits: for siblings, or for the person after a stop or a failure. */
  #settleRest(): void {
    for (const answered of this.#waiting.keys()) this.#tell(answered, { status: 'waiting' })
  }

  #tell(answered: Answered, result: AnswerResult): void {
    const waiting = this.#waiting.get(answered)
    this.#waiting.delete(answered)
    for (const resolve of waiting ?? []) resolve(result)
  }

  #personActs(): void {
    this.#held = false
    this.#automatic = 0
  }

  /** Voids what is under way: late events are not applied, tools at work are given up, checks are forgotten. */
  #void(): void {
    this.#generation++
    this.#toolsAbort.abort()
    this.#toolsAbort = new AbortController()
    this.#run?.end({ type: 'aborted' })
    this.#skipped = false
    const error = { message: 'It was stopped and may or may not have run.', code: 'interrupted' }
    for (const { id } of executingCalls(this.#state)) {
      this.#dispatch({ type: 'tool-output', toolCallId: id, messageId: this.#id(), error })
    }
    this.#settleRest()
  }

  #dispatch(act: LocalAct): void {
    this.#store.dispatch(act, this.#onEffect)
  }

  readonly #onEffect = (effect: Effect): void => {
    switch (effect.type) {
      case 'approval-requested': {
        const { messageId, toolCallId, toolName, input, approval } = effect
        const request = { messageId, toolCallId, toolName, input, approval, approvalId: approval.id }
        this.#options.onApprovalRequest?.(typed(request))
        return
      }
      case 'unhandled':
        this.#options.onEvent?.(effect.event)
        return
      case 'warning':
        this.#warn(effect.message)
        return
      case 'approval-responded':
        return
      default:
        effect satisfies never
    }
  }

  #userMessage(input: SendInput): UIMessage | CountersignError {
    if (this.#disposed)
      return new CountersignError('disposed', 'This chat was disposed of; make a new client.')
    const { text, files = [], metadata } = typeof input === 'string' ? { text: input } : input
    const parts = [...(text ? [{ type: 'text' as const, text }] : []), ...files]
    if (parts.length === 0)
      return new CountersignError('invalid-argument', 'A message needs a text or a file.')
    return { id: this.#id(), role: 'user', parts, createdAt: this.#now(), ...(metadata && { metadata }) }
  }

  #mode() {
    return this.#options.onPendingMessage ?? 'cancel'
  }

  #id(): string {
    return (this.#options.generateId ?? randomId)()
  }

  #now(): number {
    return (this.#options.now ?? Date.now)()
  }

  #failed(error: CountersignError): void {
    this.#callBack(() => this.#options.onError?.(error))
  }

  /** The application's own code runs at our edge: what it throws stops nothing here. */
  #callBack(callback: () => void): void {
    try {
      callback()
    } catch (error) {
      this.#report(error)
    }
  }

  #warn(message: string): void {
    if (this.#options.onWarning) this.#options.onWarning(message)
    else if (isDevelopment()) console.warn(`Countersign: ${message}`)
  }

  /** A listener or callback threw. It stops nobody; the platform is told as of any uncaught error. */
  #report(error: unknown): void {
    if (typeof reportError === 'function') reportError(error)
    else console.error(error)
  }
}

/** What comes over the wire has the types of the tools that the application says the agent has; nothing here can check that. */
function typed<T>(value: unknown): T {
  return value as T
}

function sendResult(end: RunEnd): SendResult {
  return end.type === 'failed' ? { status: 'failed', error: end.error } : { status: 'sent' }
}

function pendingError(pending: readonly string[]): CountersignError {
  const message = 'There are requests that wait for an answer. Answer them first; the message was not sent.'
  return new CountersignError('pending-approvals', message, { pending })
}

/** `crypto.randomUUID` is missing on pages that are not secure contexts; the bytes are not. */
function randomId(): string {
  if (typeof crypto.randomUUID === 'function') return crypto.randomUUID()
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
}

declare const process: { readonly env: Readonly<Record<string, string | undefined>> }

/** Bundlers replace the expression; where it means nothing this is no development. */
function isDevelopment(): boolean {
  try {
    return process.env['NODE_ENV'] !== 'production'
  } catch {
    return false
  }
}
