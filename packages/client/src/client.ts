import {
  type ChatSnapshot,
  CountersignError,
  type FilePart,
  readMirror,
  type ToolMap,
  type UIMessage,
} from '@countersign/core'
import {
  type ActName,
  Acts,
  type ApprovalResponse,
  disposedError,
  type InterruptResponse,
  type ToolResult,
} from './acts.js'
import { createExpiry } from './expiry.js'
import type { ChatClientOptions } from './options.js'
import { Keeper } from './persistence/keeper.js'
import type { AnswerResult, SendResult } from './results.js'
import { Runner } from './runner.js'
import { Session, typed } from './session.js'
import type { TabHost, TabLink } from './tabs/link.js'

/** What a person sends: a text, or a text with files. */
export type SendInput =
  | string
  | {
      readonly text?: string
      readonly files?: readonly FilePart[]
      readonly metadata?: Readonly<Record<string, unknown>>
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

/** The options that hold for a client's whole life. */
type FixedOption = 'threadId' | 'initialMessages' | 'statePatch' | 'persistence' | 'tabs'

/**
 * One conversation: its state, its runs, and everything a person can do in it. Needs no framework; the bindings only subscribe to it.
 * The constructor does nothing that could be observed from outside. All methods may be passed around without their object.
 */
export class ChatClient<Tools extends ToolMap = ToolMap> {
  readonly threadId: string
  readonly #session: Session<Tools>
  readonly #keeper: Keeper<Tools> | undefined
  readonly #runner: Runner<Tools>
  readonly #acts: Acts<Tools>
  readonly #initial: ChatSnapshot
  readonly #expiry: ReturnType<typeof createExpiry>
  #attached = 0
  /** Acts that are not over. */
  #underWay = 0
  /** Those of them that wait for the conversation to be here; a later one may not overtake them. */
  #waiting = 0
  #unwatch: (() => void) | undefined
  #entered: Promise<TabLink | undefined> | undefined
  #link: TabLink | undefined
  /** The platform has no tabs to share with. */
  #isAlone = false

  /** Throws `invalid-option`, naming the option, where one makes no sense. */
  constructor(options: ChatClientOptions<Tools>) {
    const session = new Session(options)
    this.#session = session
    this.#keeper = options.persistence && new Keeper(session, options.persistence)
    this.#runner = new Runner(session, this.#keeper, () => this.#leaveIfUnused())
    this.#acts = new Acts(session, this.#runner)
    this.threadId = session.threadId
    this.#initial = session.store.getSnapshot()
    this.#expiry = createExpiry(
      () => session.now(),
      (ids) => void this.#act('expire', ids),
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
    const message = this.#userMessage(input)
    if (message instanceof CountersignError) return { status: 'refused', error: message }
    return this.#act('send', message)
  }

  /** Takes a queued message back; says whether it was still there. */
  cancelQueued = (id: string): boolean => {
    const found = this.#session.state.queue.some((item) => item.id === id)
    if (found) void this.#act('cancelQueued', id)
    return found
  }

  /**
   * Answers a request for approval. The first answer wins; every other is told what stands. Never rejects; resolves when the request
   * that carried the answer has ended, or at once where none can go out yet.
   */
  addToolApprovalResponse = (response: ApprovalResponse): Promise<AnswerResult> =>
    this.#act('answer', response)

  /** Gives the result of a client tool that the application runs itself. */
  addToolResult = (result: ToolResult): Promise<AnswerResult> => this.#act('giveResult', result)

  /** Answers a question of the agent that concerns no tool call, or declines to. */
  respondToInterrupt = (response: InterruptResponse): Promise<AnswerResult> => this.#act('respond', response)

  /** Ends the open run and holds the queue. Answers that were not sent are kept for the next request. */
  stop = (): void => void this.#act('stop', undefined)

  /** Repeats the last failed request from the present state, answers included. Does nothing where nothing failed. */
  retry = (): Promise<void> => this.#act('retry', undefined)

  /** Takes up what a reload interrupted: runs client tools that had not begun, and sends what was answered and not sent. */
  resume = (): Promise<void> => this.#act('resume', undefined)

  /** Drops the last answer (or everything after the user message that `messageId` answers) and asks for it again. */
  regenerate = ({ messageId }: { readonly messageId?: string } = {}): Promise<SendResult> =>
    this.#act('regenerate', messageId)

  /** Empties the conversation and voids what is under way. */
  clear = (): void => this.setMessages([])

  /** Replaces the conversation and voids what is under way: the open run, the queue, answers not yet sent. */
  setMessages = (messages: readonly UIMessage<Tools>[]): void => {
    this.#keeper?.skipLoading()
    void this.#act('setMessages', typed(messages))
  }

  /** Changes options. They count from their next use on; an open run keeps the connection it has. */
  setOptions = (options: Partial<Omit<ChatClientOptions<Tools>, FixedOption>>): void =>
    this.#session.setOptions(options)

  /** Loads the stored conversation, the first time it is called; `attach` and every act do so by themselves. Never rejects. */
  restore = async (): Promise<void> => {
    this.#underWay++
    await this.#enter()
    this.#underWay--
    this.#leaveIfUnused()
  }

  /** A page shows this conversation. Returns `detach`. */
  attach = (): (() => void) => {
    if (this.#attached++ === 0) {
      const check = () => this.#expiry.check(this.#session.store.getSnapshot())
      this.#unwatch = this.subscribe(check)
      check()
      void this.#enter()
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
    this.#leaveIfUnused()
  }

  /** Ends everything for good. */
  dispose = (): void => {
    this.#runner.disposed = true
    this.#acts.stop()
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

  /** An act is done here and now, unless the stored conversation is not here yet or another tab leads. */
  #act<Name extends ActName>(
    name: Name,
    value: Parameters<Acts<Tools>[Name]>[0],
  ): ReturnType<Acts<Tools>[Name]> {
    const here = () => this.#acts[name](value as never)
    if (this.#runner.disposed || (this.#waiting === 0 && this.#isHere())) return typed(here())
    this.#underWay++
    this.#waiting++
    const done = this.#enter().then((link) => {
      this.#waiting--
      return link && !link.leads ? link.forward(name, value) : here()
    })
    const over = () => {
      this.#underWay--
      this.#leaveIfUnused()
    }
    void done.then(over, over)
    return typed(done)
  }

  /** Whether the conversation is here, and is this tab's to change. */
  #isHere(): boolean {
    const mayShare = this.#session.options.tabs !== undefined && !this.#isAlone
    return mayShare ? this.#link?.leads === true : this.#keeper?.ready !== false
  }

  /** The conversation as it is stored or as another tab shows it, as far as either is wanted. */
  #enter(): Promise<TabLink | undefined> {
    this.#entered ??= this.#open()
    return this.#entered
  }

  async #open(): Promise<TabLink | undefined> {
    const link = this.#session.options.tabs?.join(this.#host)
    if (!link) {
      this.#isAlone = true
      await this.#keeper?.restore()
      return undefined
    }
    this.#link = link
    this.#session.onStep = link.stepped
    if (this.#keeper) this.#keeper.mayNotSave = () => !link.leads
    await link.ready
    return link
  }

  get #host(): TabHost {
    const session = this.#session
    return {
      threadId: this.threadId,
      capture: () => readMirror(session.state),
      mirror: (state) => session.follow([{ type: 'mirror', state }]),
      follow: (steps) => session.follow(steps),
      perform: async (name, value) => (this.#acts.knows(name) ? this.#acts[name](value as never) : undefined),
      load: async () => this.#keeper?.restore(),
      takeOver: (error) => {
        this.#keeper?.takeOver()
        this.#runner.takeOver(error)
      },
    }
  }

  /** With no page, no run and no act under way, nothing is held: no timer, no channel, no lock. */
  #leaveIfUnused(): void {
    if (!this.#isUnused()) return
    const link = this.#link
    void this.#saved().then((saved) => {
      if (!link || this.#link !== link || !this.#isUnused()) return
      this.#link = undefined
      this.#entered = undefined
      this.#session.onStep = undefined
      link.leave()
      // Other tabs may go on with it: what is stored then counts for more than what is here.
      if (saved) this.#keeper?.forget()
    })
  }

  #isUnused(): boolean {
    return this.#runner.disposed || (this.#attached === 0 && this.#underWay === 0 && !this.#runner.isBusy)
  }

  async #saved(): Promise<boolean> {
    return this.#keeper ? this.#keeper.flush() : true
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
