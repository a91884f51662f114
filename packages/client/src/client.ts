import {
  areAllToolsComplete,
  type ChatSnapshot,
  CountersignError,
  type FilePart,
  findAnswerable,
  hasDeferredAnswer,
  type RunEnd,
  type ToolCallApproval,
  type ToolMap,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import { createExpiry, expiryOf } from './expiry.js'
import type { ChatClientOptions } from './options.js'
import { Keeper } from './persistence/keeper.js'
import type { AnswerResult, SendResult } from './results.js'
import { Runner } from './runner.js'
import { Session, typed } from './session.js'

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

/** A client tool's result, given by the application. */
export type ToolResult = { readonly toolCallId: string } & (
  | { readonly output: unknown }
  | { readonly error: string }
)

/** An answer to a question that concerns no tool call. */
export type InterruptResponse = { readonly id: string } & (
  | { readonly payload: unknown }
  | { readonly cancel: true }
)

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
  readonly #session: Session<Tools>
  readonly #keeper: Keeper<Tools> | undefined
  readonly #runner: Runner<Tools>
  readonly #initial: ChatSnapshot
  readonly #expiry: ReturnType<typeof createExpiry>
  #attached = 0
  #unwatch: (() => void) | undefined

  /** Throws `invalid-option`, naming the option, where one makes no sense. */
  constructor(options: ChatClientOptions<Tools>) {
    const session = new Session(options)
    this.#session = session
    this.#keeper = options.persistence && new Keeper(session, options.persistence)
    this.#runner = new Runner(session, this.#keeper)
    this.threadId = session.threadId
    this.#initial = session.store.getSnapshot()
    this.#expiry = createExpiry(
      () => session.now(),
      (ids) => session.dispatch({ type: 'close', ids, because: 'expired' }),
    )
  }

  /** Calls `listener` after every change; returns how to leave. */
  subscribe = (listener: () => void): (() => void) => this.#session.store.subscribe(listener)

  /** Everything there is to show. The same object until something changes. */
  getSnapshot = (): ChatSnapshot<Tools> => typed(this.#session.store.getSnapshot())

  /** The snapshot a server renders and a page hydrates with: that of the beginning. */
  getServerSnapshot = (): ChatSnapshot<Tools> => typed(this.#initial)

  /** One message, or `undefined`. */
  getMessage = (id: string): UIMessage<Tools> | undefined => typed(this.#session.store.getMessage(id))

  /** The ids of all messages in order. The same array while none comes or goes. */
  getMessageIds = (): readonly string[] => this.#session.store.messageIds

  /** Calls `listener` when that one message changes. */
  subscribeMessage = (id: string, listener: () => void): (() => void) =>
    this.#session.store.subscribeMessage(id, listener)

  /**
   * Sends what a person says. While a run is open it is queued; while approvals are pending `onPendingMessage` decides. Never rejects;
   * resolves when its run has ended.
   */
  sendMessage = async (input: SendInput): Promise<SendResult> => {
    if (this.#isLoading) await this.restore()
    const { state, options } = this.#session
    const message = this.#userMessage(input)
    if (message instanceof CountersignError) return { status: 'refused', error: message }
    const visible = visibleRequests(state)
    if (options.onPendingMessage === 'reject' && visible.length > 0) {
      return { status: 'refused', error: pendingError(visible) }
    }
    this.#runner.personActs()
    const item = { id: message.id, message, visible }
    if (!this.#runner.run && state.queue.length === 0 && this.#runner.mayLeave(item)) {
      return sendResult(await this.#runner.say(message).done)
    }
    this.#session.dispatch({ type: 'queue', item })
    if (!this.#runner.run) this.#runner.sendQueued()
    const { run } = this.#runner
    if (!run || state.queue.some(({ id }) => id === item.id)) return { status: 'queued', id: item.id }
    return sendResult(await run.done)
  }

  /** Takes a queued message back; says whether it was still there. */
  cancelQueued = (id: string): boolean => {
    const found = this.#session.state.queue.some((item) => item.id === id)
    if (found) this.#session.dispatch({ type: 'unqueue', id })
    return found
  }

  /**
   * Answers a request for approval. The first answer wins; every other is told what stands. Never rejects; resolves when the request
   * that carried the answer has ended, or at once where none can go out yet.
   */
  addToolApprovalResponse = async (response: ApprovalResponse): Promise<AnswerResult> => {
    const { id, approved, reason, input, scope } = response
    if (this.#isLoading) await this.restore()
    if (this.#runner.disposed) return disposed
    const found = findAnswerable(this.#session.state, id)
    if (found.status === 'not-found') this.#session.warn(`There is no approval "${id}" to answer.`)
    if (found.status !== 'open') return found
    if (expiryOf(found.approval) <= this.#session.now()) {
      this.#session.dispatch({ type: 'close', ids: [id], because: 'expired' })
      return { status: 'expired' }
    }
    const fault = faultOf(response, found.approval)
    if (fault !== undefined) return { status: 'refused', code: 'approval-malformed', reason: fault }
    this.#runner.personActs()
    this.#session.dispatch({ type: 'answer', approvalId: id, approved, reason, input, scope })
    return this.#runner.sendAnswer(found.call)
  }

  /** Gives the result of a client tool that the application runs itself. */
  addToolResult = async (result: ToolResult): Promise<AnswerResult> => {
    if (this.#isLoading) await this.restore()
    if (this.#runner.disposed) return disposed
    const call = this.#session.state.calls.get(result.toolCallId)
    if (!call) return { status: 'not-found' }
    const open = call.state === 'input-complete' || (call.state === 'approval-responded' && call.ready)
    if (!open) return { status: 'closed', reason: call.state }
    this.#runner.personActs()
    const outcome =
      'error' in result ? { error: { message: result.error } } : { output: result.output ?? null }
    this.#session.dispatch({
      type: 'tool-output',
      toolCallId: call.id,
      messageId: this.#session.newId(),
      ...outcome,
    })
    return this.#runner.sendAnswer(call)
  }

  /** Answers a question of the agent that concerns no tool call, or declines to. */
  respondToInterrupt = async (response: InterruptResponse): Promise<AnswerResult> => {
    if (this.#isLoading) await this.restore()
    if (this.#runner.disposed) return disposed
    const cell = this.#session.state.interrupts.get(response.id)
    if (!cell) return { status: 'not-found' }
    if (cell.response) return { status: 'already-answered' }
    this.#runner.personActs()
    const answer = 'cancel' in response ? { cancel: true as const } : { payload: response.payload }
    this.#session.dispatch({ type: 'respond', interruptId: response.id, response: answer })
    return this.#runner.sendAnswer(cell)
  }

  /** Ends the open run and holds the queue. Answers that were not sent are kept for the next request. */
  stop = (): void => {
    this.#runner.hold()
    this.#runner.void()
  }

  /** Repeats the last failed request from the present state, answers included. Does nothing where nothing failed. */
  retry = async (): Promise<void> => {
    const { state } = this.#session
    if (state.error || hasDeferredAnswer(state)) await this.#again()
  }

  /** Takes up what a reload interrupted: runs client tools that had not begun, and sends what was answered and not sent. */
  resume = async (): Promise<void> => {
    if (this.#isLoading) await this.restore()
    const { state } = this.#session
    if (this.#runner.run || this.#runner.disposed) return
    this.#runner.startTools()
    if (state.unsent.size > 0 && areAllToolsComplete(state)) await this.#again()
  }

  async #again(): Promise<void> {
    if (this.#runner.run || this.#runner.disposed) return
    this.#runner.personActs()
    await this.#runner.open('retry').done
  }

  /** Drops the last answer (or everything after the user message that `messageId` answers) and asks for it again. */
  regenerate = async ({ messageId }: { readonly messageId?: string } = {}): Promise<SendResult> => {
    if (this.#isLoading) await this.restore()
    if (this.#runner.disposed) return { status: 'refused', error: disposedError() }
    const { order, messages } = this.#session.state
    const last = messageId === undefined ? order.length - 1 : (messages.get(messageId)?.position ?? -1)
    const spoken = order.slice(0, last + 1).findLast((cell) => cell.role === 'user')
    if (!spoken) {
      const message = 'There is no message of the person before it to answer again.'
      return { status: 'refused', error: new CountersignError('invalid-argument', message, { messageId }) }
    }
    this.#runner.void()
    this.#runner.personActs()
    const run = this.#runner.open('message', () =>
      this.#session.dispatch({ type: 'truncate', messageId: spoken.id }),
    )
    return sendResult(await run.done)
  }

  /** Empties the conversation and voids what is under way. */
  clear = (): void => this.setMessages([])

  /** Replaces the conversation and voids what is under way: the open run, the queue, answers not yet sent. */
  setMessages = (messages: readonly UIMessage<Tools>[]): void => {
    this.#keeper?.skipLoading()
    this.#runner.void()
    this.#session.dispatch({ type: 'set-messages', messages: typed(messages) })
  }

  /** Changes options. They count from their next use on; an open run keeps the connection it has. */
  setOptions = (
    options: Partial<
      Omit<ChatClientOptions<Tools>, 'threadId' | 'initialMessages' | 'statePatch' | 'persistence'>
    >,
  ): void => this.#session.setOptions(options)

  /** Loads the stored conversation, the first time it is called; `attach` and every act do so by themselves. Never rejects. */
  restore = async (): Promise<void> => {
    await this.#keeper?.restore()
  }

  get #isLoading(): boolean {
    return this.#keeper?.ready === false
  }

  /** A page shows this conversation. Returns `detach`. */
  attach = (): (() => void) => {
    if (this.#attached++ === 0) {
      const check = () => this.#expiry.check(this.#session.store.getSnapshot())
      this.#unwatch = this.subscribe(check)
      check()
      void this.restore()
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
    void this.#keeper?.flush()
  }

  /** Ends everything for good. */
  dispose = (): void => {
    this.#runner.disposed = true
    this.#runner.hold()
    this.#runner.void()
    this.#attached = Math.min(this.#attached, 1)
    this.detach()
  }

  inspect = (): Inspection => {
    const { run, skipped, generation } = this.#runner
    const continuationPending = run?.kind === 'continuation'
    return { continuationPending, continuationSkipped: skipped, generation, openRun: run?.id }
  }

  /** What a person can do, in one object that stays the same: bindings hand it out as it is. */
  readonly actions: ChatActions<Tools> = {
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

  #userMessage(input: SendInput): UIMessage | CountersignError {
    if (this.#runner.disposed) return disposedError()
    const { text, files = [], metadata } = typeof input === 'string' ? { text: input } : input
    const parts = [...(text ? [{ type: 'text' as const, text }] : []), ...files]
    if (parts.length === 0)
      return new CountersignError('invalid-argument', 'A message needs a text or a file.')
    const id = this.#session.newId()
    return { id, role: 'user', parts, createdAt: this.#session.now(), ...(metadata && { metadata }) }
  }
}

const disposed = { status: 'closed', reason: 'disposed' } as const

function disposedError(): CountersignError {
  return new CountersignError('disposed', 'This chat was disposed of; make a new client.')
}

/** What makes an answer one that the server could not take. It is told before the request is used up. */
function faultOf(
  { approved, input, scope }: ApprovalResponse,
  approval: ToolCallApproval,
): string | undefined {
  if (typeof approved !== 'boolean') return '`approved` has to be true or false.'
  if (!approved) return undefined
  if (input !== undefined && !approval.allowEdits)
    return 'The arguments of this call may not be edited; leave `input` out.'
  if (scope !== undefined && !approval.options.includes(scope))
    return `The scope "${scope}" is not offered for this call.`
  return undefined
}

function sendResult(end: RunEnd): SendResult {
  return end.type === 'failed' ? { status: 'failed', error: end.error } : { status: 'sent' }
}

function pendingError(pending: readonly string[]): CountersignError {
  const message = 'There are requests that wait for an answer. Answer them first; the message was not sent.'
  return new CountersignError('pending-approvals', message, { pending })
}
