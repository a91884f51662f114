import {
  type ChatSnapshot,
  CountersignError,
  checkMessages,
  type FilePart,
  isRecord,
  type SessionGrant,
  type ToolMap,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import type {
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
import { Session, unsafeCast } from './session.js'

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

export const actionNames = [
  'sendMessage',
  'cancelQueued',
  'addToolApprovalResponse',
  'addToolResult',
  'respondToInterrupt',
  'stop',
  'retry',
  'resume',
  'regenerate',
  'clear',
  'setMessages',
] as const

/** The methods of a {@link ChatClient} that a page calls. */
export type ChatActions<Tools extends ToolMap = ToolMap> = Pick<
  ChatClient<Tools>,
  (typeof actionNames)[number]
>

/** The options that hold for a client's whole life. */
type FixedOption = 'threadId' | 'initialMessages' | 'statePatch' | 'persistence' | 'tabs'

/**
 * One conversation: its state, its runs, and everything a person can do in it. Needs no framework; the bindings only subscribe to it.
 * The constructor does nothing that could be observed from outside. All methods may be passed around without their object.
 */
export class ChatClient<Tools extends ToolMap = ToolMap> {
  /** The option, or a random id: made when a request or whoever reads this first needs it, never by the constructor or a snapshot. */
  declare readonly threadId: string
  readonly #session: Session<Tools>
  readonly #kept: KeptThread | undefined
  readonly #runner: Runner
  readonly #perform: ReturnType<typeof createPerformer>
  readonly #initial: ChatSnapshot
  readonly #expiry: ReturnType<typeof createExpiry>
  #attached = 0
  #unwatch: (() => void) | undefined

  /** Throws `invalid-option`, naming the option, where one makes no sense. */
  constructor(options: ChatClientOptions<Tools>) {
    const session = new Session(options)
    this.#session = session
    this.getSnapshot = unsafeCast(session.store.getSnapshot)
    // No getter of the class: a framework may read it from a proxy, which has no private members.
    Object.defineProperty(this, 'threadId', { get: () => session.threadId, enumerable: true })
    this.#initial = session.store.getSnapshot()
    this.#kept = options.persistence?.open(session, {
      isUnused: (underWay) => {
        const { disposed, isBusy } = this.#runner
        return disposed || !(underWay || this.#attached || isBusy)
      },
      // `Tabs` has seen to it that the name is that of a command.
      perform: async (name, value) => this.#perform(name as CommandName, value),
      takeOver: (error) => this.#runner.takeOver(error),
    })
    this.#runner = createRunner(session, this.#kept)
    this.#perform = createPerformer(session, this.#runner)
    this.#expiry = createExpiry(
      session.store,
      () => session.now(),
      (ids) => void this.#command('expire', ids),
    )
  }

  /** Calls `listener` after every change; returns how to leave. */
  subscribe = (listener: () => void): (() => void) => this.#session.store.subscribe(called(listener))

  /** Everything there is to show. The same object until something changes. */
  readonly getSnapshot: () => ChatSnapshot<Tools>

  /** The snapshot a server renders and a page hydrates with: that of the beginning. */
  getServerSnapshot = (): ChatSnapshot<Tools> => unsafeCast(this.#initial)

  /** One message, or `undefined`. */
  getMessage = (id: string): UIMessage<Tools> | undefined => unsafeCast(this.#session.store.getMessage(id))

  /** The ids of all messages in order. The same array while none comes or goes. */
  getMessageIds = (): readonly string[] => this.#session.store.messageIds

  /** Calls `listener` when that one message changes. */
  subscribeMessage = (id: string, listener: () => void): (() => void) =>
    this.#session.store.subscribeMessage(id, called(listener))

  /**
   * Sends what a person says. While a run is open it is queued; while approvals are pending `onPendingMessage` decides. Never rejects;
   * resolves when its run has ended.
   */
  sendMessage = async (input: SendInput): Promise<SendResult> => {
    const message = this.#userMessage(input)
    if (message instanceof CountersignError) return { status: 'refused', error: message }
    // What the person can see now, which a conversation that is still being loaded may not be.
    const visible = visibleRequests(this.#session.state)
    return this.#command('send', { id: message.id, message, visible })
  }

  /** Takes a queued message back; says whether it was still there. */
  cancelQueued = (id: string): boolean => {
    const found = this.#session.state.queue.some((item) => item.id === id)
    if (found) void this.#command('cancelQueued', id)
    return found
  }

  /**
   * Answers a request for approval. The first answer wins; every other is told what stands. Never rejects; resolves when the request
   * that carried the answer has ended, or at once where none can go out yet.
   */
  addToolApprovalResponse = (response: ApprovalResponse): Promise<AnswerResult> =>
    this.#give('answer', response)

  /** Gives the result of a client tool that the application runs itself. */
  addToolResult = (result: ToolResult): Promise<AnswerResult> => this.#give('giveResult', result)

  /** Answers a question of the agent that concerns no tool call, or declines to. */
  respondToInterrupt = (response: InterruptResponse): Promise<AnswerResult> => this.#give('respond', response)

  /** Ends the open run and holds the queue. Answers that were not sent are kept for the next request. */
  stop = (): void => void this.#command('stop', undefined)

  /** Repeats the last failed request from the present state, answers included. Does nothing where nothing failed. */
  retry = (): Promise<void> => this.#command('retry', undefined)

  /** Takes up what a reload interrupted: runs client tools that had not begun, and sends what was answered and not sent. */
  resume = (): Promise<void> => this.#command('resume', undefined)

  /**
   * Drops the last answer and asks for it again. `messageId` is that of any message of an answer, and so also the id of its turn: then
   * everything after the user message that it answers is dropped.
   */
  regenerate = (from: { readonly messageId?: string } = {}): Promise<SendResult> =>
    this.#command('regenerate', record(from).messageId)

  /** Empties the conversation and voids what is under way. */
  clear = (): void => this.setMessages([])

  /**
   * Replaces the conversation and voids what is under way: the open run, the queue, answers not yet sent. Takes a list, no function. Throws
   * `invalid-argument` and changes nothing where a message is none.
   */
  setMessages = (messages: readonly UIMessage<Tools>[] | readonly UIMessage[]): void => {
    checkMessages(unsafeCast(messages))
    this.#kept?.replace()
    void this.#command('setMessages', unsafeCast(messages))
  }

  /**
   * The standing session approvals of this conversation; none where the server offers no list ({@link Connection.grants}). Rejects with a
   * CountersignError where it cannot be asked.
   */
  grants = async (): Promise<readonly SessionGrant[]> => {
    const { headers, options } = this.#session
    return (await options.connection.grants?.({ threadId: this.threadId }, { headers })) ?? []
  }

  /** Ends one of them by its id, or all: the next call asks again. Resolves with how many there were; rejects as `grants` does. */
  revokeGrant = async (id?: string): Promise<number> => {
    // Whatever is handed over by mistake, as an event is to a click handler, must not end them all.
    if (id !== undefined && typeof id !== 'string')
      throw new CountersignError('invalid-argument', 'revokeGrant takes an id, or nothing.')
    const { headers, options } = this.#session
    return (await options.connection.revokeGrant?.({ threadId: this.threadId, id }, { headers })) ?? 0
  }

  /** Changes options. They count from their next use on; an open run keeps the connection it has. */
  setOptions = (options: Partial<Omit<ChatClientOptions<Tools>, FixedOption>>): void =>
    this.#session.setOptions(options)

  /** Loads the stored conversation, the first time it is called; `attach` and every command do so by themselves. Never rejects. */
  restore = async (): Promise<void> => {
    await this.#kept?.enter()
  }

  /** A page shows this conversation. Returns `detach`. */
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

  /** A page is gone. What runs goes on, unless `onDetach` says otherwise; nothing is lost or cancelled. */
  detach = (): void => {
    if (this.#attached === 0 || --this.#attached > 0) return
    this.#unwatch?.()
    this.#expiry.stop()
    this.#kept?.leaveIfUnused()
    // Not at once: a page may be taken away and put back in one turn.
    if (this.#session.options.onDetach === 'stop')
      queueMicrotask(() => {
        if (this.#attached === 0) this.stop()
      })
  }

  /** Ends everything for good. A run that is open is stopped as by {@link stop}, so `retry()` of a later client does not ask for its answer. */
  dispose = (): void => {
    this.#runner.dispose()
    this.#perform('stop', undefined)
    this.#attached = Math.min(this.#attached, 1)
    this.detach()
  }

  inspect = (): Inspection => this.#runner.inspect()

  /**
   * Tells `observer` every request, command and step of this client, in order, each before it takes effect; returns how to leave. For
   * devtools and logs: an observer must not act. Costs nothing while there is none.
   */
  observe = (observer: Observer): (() => void) => this.#session.observe(called(observer))

  /** What a person can do, in one object that stays the same: bindings hand it out as it is. */
  readonly actions: ChatActions<Tools> = unsafeCast(
    Object.fromEntries(actionNames.map((name) => [name, this[name]])),
  )

  /** What the person gives, as it is at this moment: it may be taken later, or by another tab. */
  async #give(name: 'answer' | 'giveResult' | 'respond', given: unknown): Promise<AnswerResult> {
    const { value, fault } = copyJson(given)
    if (fault !== undefined) return { status: 'refused', code: 'approval-malformed', reason: fault }
    return this.#command(name, unsafeCast(record(value)))
  }

  /** A command is carried out here and now, unless the stored conversation is not here yet or another tab leads. */
  #command<Name extends CommandName>(name: Name, value: CommandValues[Name]): ReturnType<Commands[Name]> {
    const here = () => this.#perform(name, value)
    return unsafeCast(this.#kept && !this.#runner.disposed ? this.#kept.perform(name, value, here) : here())
  }

  #userMessage(input: SendInput): UIMessage | CountersignError {
    if (this.#runner.disposed) return disposedError()
    const { value, fault = '' } = copyJson(typeof input === 'string' ? { text: input } : input)
    const { text = '', files = [], metadata } = record(value)
    const fits =
      typeof text === 'string' &&
      Array.isArray(files) &&
      files.every(isFile) &&
      (text.trim() || files.length > 0) &&
      (metadata === undefined || isRecord(metadata))
    if (!fits) return new CountersignError('invalid-argument', `${noMessage} ${fault}`)
    const parts = [...(text.trim() ? [{ type: 'text' as const, text }] : []), ...files]
    const id = this.#session.newId()
    return { id, role: 'user', parts, createdAt: this.#session.now(), ...(metadata && { metadata }) }
  }
}

const noMessage =
  'sendMessage takes a text that is not blank, or `{ text, files, metadata }`. A file is `{ type: "file", media, source }`, no File.'

/** What is none holds nothing: a command that gets it finds nothing to do, and says so. */
function record<T>(value: T): T & Record<string, unknown> {
  return unsafeCast(isRecord(value) ? value : {})
}

/** A listener that is none would throw at every change, far from whoever gave it. */
function called<T>(listener: T): T {
  if (typeof listener === 'function') return listener
  throw new CountersignError('invalid-argument', 'A listener is a function.')
}

/** A `File` of the platform is none: its bytes would stay behind. */
function isFile(value: unknown): value is FilePart {
  return (
    isRecord(value) &&
    value.type === 'file' &&
    isRecord(value.source) &&
    typeof value.source.value === 'string'
  )
}
