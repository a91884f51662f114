import {
  type AGUIEvent,
  type AnyClientTool,
  type ApplyPatch,
  CountersignError,
  type FinishedRun,
  type Interrupt,
  isMessage,
  isRecord,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolMap,
  type UIMessage,
  type UnknownEvent,
} from '@countersign/core'
import type { Compat, Connection } from './connections/connection.js'
import type { HeadersGiven } from './connections/fetch.js'
import type { Persistent } from './persistence/persistence.js'
import type { Notify } from './schedule.js'
import type { Tabs } from './tabs/link.js'

/** What becomes of a message that is sent while approvals are pending. */
export type PendingMessageMode = 'cancel' | 'queue' | 'reject'

/** A request for approval, as told to `onApprovalRequest`. `name` narrows `input`. */
export type ApprovalRequest<Tools extends ToolMap = ToolMap> = {
  [Name in keyof Tools & string]: {
    readonly toolCallId: string
    readonly toolName: Name
    readonly input: Tools[Name]['input']
    readonly approvalId: string
    readonly approval: ToolCallApproval
    readonly messageId: string
  }
}[keyof Tools & string]

/** What `onFinish` is told of a run that ended well. */
export interface FinishedInfo<Tools extends ToolMap = ToolMap> {
  readonly messages: readonly UIMessage<Tools>[]
  /** Why the run ended: `stop`, `tool_calls`, `length`, ...; absent where the server did not say. */
  readonly reason: FinishedRun['reason']
  readonly outcome: FinishedRun['outcome']
}

/** Gives the reason why `payload` does not fit, which refuses it, or nothing. */
export type CheckResponse = (payload: unknown, interrupt: Interrupt) => string | undefined

/** Options of a {@link ChatClient}. All but `connection` have a default; all but `threadId`, `initialMessages`, `statePatch`, `persistence` and `tabs` can be changed later. */
export interface ChatClientOptions<Tools extends ToolMap = ToolMap> {
  /** How to reach the agent: `fetchServerSentEvents(url)`, `fetchHttpStream(url)`, `stream(fn)` or your own. */
  connection: Connection
  /** Default: a random id, made with the first request or when somebody asks for it, so that nothing random happens while a server renders. */
  threadId?: string | undefined
  /** Checked: each needs an `id`, a `role` and `parts`. */
  initialMessages?: readonly UIMessage<Tools>[] | readonly UIMessage[] | undefined
  /** Tools that run here, each of another name. Tools the application answers itself (`addToolResult`) need not be named. */
  tools?: readonly AnyClientTool[] | undefined
  /** Applies AG-UI state and activity deltas: `statePatch` of `@countersign/client/state-patch`. */
  statePatch?: ApplyPatch | undefined
  /** Translates for a server that speaks AG-UI from before 1.0: `compat()` of `@countersign/tanstack`. */
  compat?: Compat | undefined
  /**
   * Where the conversation outlives the page: `webStorage()`, `indexedDb()` or a storage of your own in `persistent(...)`; needs a
   * `threadId`. Its record, once there is one, counts for more than `initialMessages`.
   */
  persistence?: Persistent | undefined
  /** How several tabs show the conversation: `tabs()` of `@countersign/client/tabs`; needs `persistence`. Default: each for itself. */
  tabs?: Tabs | undefined
  /** Sent with every request, for the agent. */
  forwardedProps?: unknown
  /** Sent with every request, by connections that have headers. */
  headers?: HeadersGiven | undefined
  /**
   * The person speaks while approvals are pending: `cancel` them (default), `queue` the message until they are answered, or `reject` it
   * (the text stays with the caller).
   */
  onPendingMessage?: PendingMessageMode | undefined
  /**
   * Judges the answer to an interrupt that concerns no approval: `checkResponse` of `@countersign/client/response-schema` by the
   * interrupt's JSON Schema, or your own. Without it an interrupt that has a schema can only be declined.
   */
  checkResponse?: CheckResponse | undefined
  onApprovalRequest?: ((request: ApprovalRequest<Tools>) => void) | undefined
  /** A client tool starts. Only notifies. */
  onToolCall?: ((call: Pick<ToolCallPart<Tools>, 'id' | 'name' | 'input'>) => void) | undefined
  onFinish?: ((info: FinishedInfo<Tools>) => void) | undefined
  onError?: ((error: CountersignError) => void) | undefined
  /**
   * Events of the agent that are the application's own: custom, raw, steps, and those of types that AG-UI does not have. `event.type`
   * narrows: `if (event.type === 'CUSTOM' && event.name === 'chart') draw(event.value)`.
   */
  onEvent?: ((event: AGUIEvent | UnknownEvent) => void) | undefined
  /** Something odd that did no harm. Default: `console.warn`, outside production. */
  onWarning?: ((message: string) => void) | undefined
  /**
   * What becomes of the open run and the tools at work when the last page that shows the chat is gone: they go on (`continue`, the
   * default), and whoever holds the client reaches them; or they are stopped, as by `stop()`.
   */
  onDetach?: 'continue' | 'stop' | undefined
  /**
   * Ids of messages, runs and threads. Default: random UUIDs. Where the platform has no `crypto` (React Native) they come from
   * `Math.random`: give your own there if ids must not be guessed.
   */
  generateId?: (() => string) | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  now?: (() => number) | undefined
  /**
   * When growth of texts and arguments is published. Default `frame` on a visible page, 50 ms on a hidden one, else `microtask`. All else
   * is published at once; events that arrive together are so together, except by `sync`.
   */
  notify?: Notify | undefined
  /** How many requests may follow one another without a person's command. Default 100. */
  maxContinuations?: number | undefined
}

const callback = 'function'

/** What each option has to be: one of these words, or of one of these types; `''`: that is not said here. */
const kinds: { readonly [Name in keyof ChatClientOptions]-?: string } = {
  connection: '',
  forwardedProps: '',
  threadId: 'string',
  initialMessages: 'array',
  tools: 'array',
  statePatch: callback,
  compat: callback,
  persistence: 'object',
  tabs: 'object',
  headers: 'object',
  onPendingMessage: 'cancel | queue | reject',
  onDetach: 'continue | stop',
  checkResponse: callback,
  onApprovalRequest: callback,
  onToolCall: callback,
  onFinish: callback,
  onError: callback,
  onEvent: callback,
  onWarning: callback,
  generateId: callback,
  now: callback,
  notify: 'sync | microtask | frame | number',
  maxContinuations: 'number',
}

/** No option may be empty, negative or not a number. */
function fits(value: unknown, kind: string): boolean {
  if (value === null || value === '' || (typeof value === 'number' && !(value >= 0))) return false
  const type = Array.isArray(value) ? 'array' : typeof value
  return kind.split(' | ').some((one) => one === value || one === type)
}

/** Bad options fail at construction, by name. */
export function checkOptions<Tools extends ToolMap>(
  options: Partial<ChatClientOptions<Tools>> | undefined,
): void {
  if (typeof options?.connection?.connect !== 'function')
    fail('connection', 'a connection such as fetchServerSentEvents("/api/chat")')
  for (const [name, value] of Object.entries(options)) {
    const kind = kinds[name as keyof ChatClientOptions] as string | undefined
    if (value !== undefined && kind !== '' && !(kind && fits(value, kind)))
      fail(name, kind ? `of the kind ${kind}` : 'left out: it does not exist')
  }
  const { tools = [], initialMessages = [] } = options
  if (!tools.every((tool) => isRecord(tool) && isRecord(tool.input) && typeof tool.execute === 'function'))
    fail('tools', 'client tools: see `clientTool(...)`')
  if (new Set(tools.map(({ name }) => name)).size < tools.length) fail('tools', 'of different names')
  if (!initialMessages.every(isMessage)) fail('initialMessages', 'messages, each with id, role and parts')
  if (options.persistence && typeof options.persistence.open !== 'function')
    fail('persistence', '`webStorage()`, `indexedDb()` or your own storage in `persistent(...)`')
  if (options.tabs && !options.persistence)
    fail('persistence', 'given where `tabs` is: the next tab takes over from there')
  if (options.persistence && options.threadId === undefined) {
    fail('threadId', 'given where `persistence` is: a conversation under a random one is never found again')
  }
}

function fail(option: string, expected: string): never {
  const message = `ChatClient: the option \`${option}\` has to be ${expected}.`
  throw new CountersignError('invalid-option', message, { option })
}
