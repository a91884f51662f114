import {
  type AGUIEvent,
  type AnyClientTool,
  type ApplyPatch,
  type CountersignError,
  type DataPart,
  type FinishedRun,
  type Interrupt,
  isMessage,
  isRecord,
  type RunAgentInput,
  type TokenUsage,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolMap,
  type UIMessage,
  type UnknownEvent,
} from '@countersign/core'
import type { Compat, Connection } from './connections/connection.js'
import type { HeadersGiven } from './connections/fetch.js'
import { checkKinds, invalidOption, type Kinds } from './kinds.js'
import type { InitialThread, Persistent } from './persistence/persistence.js'
import type { Notify } from './schedule.js'
import type { Tabs } from './tabs/link.js'

/** What happens to a message that is sent while approvals are pending. */
export type PendingMessageMode = 'cancel' | 'queue' | 'reject'

/** An approval request of a reply, as passed to `onApprovalRequest`; those restored are only in `pendingApprovals`. `toolName` narrows `input`. */
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

/** Of each member of a union, so that `name` narrows `input`. */
type CallToAnswer<Part> = Part extends ToolCallPart ? Pick<Part, 'id' | 'name' | 'input'> : never

/** The argument of `onFinish`, for a run that ended well. */
export interface FinishedInfo<Tools extends ToolMap = ToolMap> {
  readonly messages: readonly UIMessage<Tools>[]
  /** Why the run ended: `stop`, `tool_calls`, `length`, ...; absent if the server did not say. */
  readonly reason: FinishedRun['reason']
  readonly outcome: FinishedRun['outcome']
  /** What the server says that the run results in: for a structured reply, its value. */
  readonly result?: unknown
  /** The tokens that the run has used, if the server reports them. One entry for each reply of a model. */
  readonly usage: readonly TokenUsage[]
}

/** Returns the reason why `payload` is refused, or `undefined` to accept it. */
export type CheckResponse = (payload: unknown, interrupt: Interrupt) => string | undefined

/** What happens to a message that is sent while a run is open or a client tool is at work. */
export type BusyMessageMode = 'queue' | 'interrupt' | 'drop'

/** Options of a {@link ChatClient}. Fixed once set: `threadId`, `initialMessages`, `initialThread`, `initialState`, `statePatch`, `persistence`, `tabs`. */
export interface ChatClientOptions<Tools extends ToolMap = ToolMap> {
  /** How to reach the agent: `fetchServerSentEvents(url)`, `fetchHttpStream(url)`, `stream(fn)` or your own. */
  connection: Connection
  /** Default: a random id, created by the first request or the first read, so that rendering on a server generates nothing random. */
  threadId?: string | undefined
  /** Validated: each needs an `id`, a `role` and `parts`. Default: those of `initialThread`. */
  initialMessages?: readonly UIMessage<Tools>[] | readonly UIMessage[] | undefined
  /** What `loadThread` of `@countersign/server` returned for this page: with `serverThreads`, the page need not load it again. */
  initialThread?: InitialThread | undefined
  /** The AG-UI shared state before the agent or `setState` sets it. Sent with each request. A stored conversation takes precedence. */
  initialState?: unknown
  /** Tools that run here, with different names. Omit tools that the application answers itself (`addToolResult`). */
  tools?: readonly AnyClientTool[] | undefined
  /**
   * The server's tools of which this page has the definition. Before edited arguments are sent, they are checked by the `input` of
   * their tool, here or in `tools`; a schema that checks asynchronously is left to the server.
   */
  serverTools?: readonly Pick<AnyClientTool, 'name' | 'input'>[] | undefined
  /** Passed to each client tool as `context.context`: a router, a store, the signed-in user. */
  toolContext?: unknown
  /** Applies AG-UI state and activity deltas: `statePatch` of `@countersign/client/state-patch`. */
  statePatch?: ApplyPatch | undefined
  /** Translates for a server with a version of AG-UI before 1.0: `compat()` of `@countersign/tanstack`. */
  compat?: Compat | undefined
  /**
   * Stores the conversation beyond the page: `webStorage()`, `indexedDb()` or your own storage in
   * `persistent(...)`. Needs a `threadId`, except for that of `serverThreads`. A stored record takes precedence over `initialMessages`.
   */
  persistence?: Persistent | undefined
  /** Shares the conversation between tabs: `tabs()` of `@countersign/client/tabs`; needs `persistence`. Default: not shared. */
  tabs?: Tabs | undefined
  /** Facts for the agent, sent with every request: AG-UI `context`. */
  context?: RunAgentInput['context'] | undefined
  /** Sent with every request, for the agent. */
  forwardedProps?: unknown
  /** Sent with every request, if the connection can send headers. */
  headers?: HeadersGiven | undefined
  /**
   * When the user sends a message while approvals are pending: `cancel` them (default), `queue` the message
   * until they are answered, or `reject` it (the caller keeps the text).
   */
  onPendingMessage?: PendingMessageMode | undefined
  /**
   * When the user sends a message while a run is open or a client tool is at work: `queue` it until then (default), `interrupt`
   * what is running as `stop()` does and send it at once, or `drop` it: it is refused with `chat-busy`.
   */
  whenBusy?: BusyMessageMode | undefined
  /** How many messages may be queued; further ones are refused with `queue-full`. Default 100. */
  maxQueued?: number | undefined
  /**
   * Whether answers and results of client tools are sent as soon as nothing else of the turn is open. If `false`, the snapshot shows
   * `canContinue`, and `sendMessage()` or the next message sends them. Default `true`.
   */
  autoContinue?: boolean | undefined
  /**
   * Validates the response to an interrupt that is no approval: `checkResponse` of `@countersign/client/response-schema`
   * uses the interrupt's JSON Schema; or use your own. Without it, an interrupt with a schema can only be declined.
   */
  checkResponse?: CheckResponse | undefined
  onApprovalRequest?: ((request: ApprovalRequest<Tools>) => void) | undefined
  /**
   * A client tool starts; or the run left a call to this page for which `tools` has no tool: then answer it with `addToolResult`. After a
   * reload it is called again for such a call, at `retry()`.
   */
  onToolCall?: ((call: CallToAnswer<ToolCallPart<Tools>>) => void) | undefined
  onFinish?: ((info: FinishedInfo<Tools>) => void) | undefined
  onError?: ((error: CountersignError) => void) | undefined
  /** The user has ended a run or client tools: by `stop()`, or by a command that replaces them, such as `regenerate()`. */
  onStop?: (() => void) | undefined
  /** A data part arrived or changed. In every tab that shows the conversation. */
  onData?: ((part: DataPart & { readonly messageId: string }) => void) | undefined
  /**
   * Events that belong to the application: custom, raw, steps, and those of types that AG-UI does not have.
   * `event.type` narrows: `if (event.type === 'CUSTOM' && event.name === 'chart') draw(event.value)`.
   */
  onEvent?: ((event: AGUIEvent | UnknownEvent) => void) | undefined
  /** Something unexpected but harmless. Default: `console.warn`, outside production. */
  onWarning?: ((message: string) => void) | undefined
  /**
   * What happens to the open run and running tools when the last page that shows the chat is gone: they continue
   * (`continue`, the default) and stay reachable through the client, or they are stopped as by `stop()`.
   */
  onDetach?: 'continue' | 'stop' | undefined
  /**
   * Generates ids of messages, runs and threads. Default: random UUIDs. On platforms without `crypto` (React
   * Native) these use `Math.random`: pass your own there if ids must be unguessable.
   */
  generateId?: (() => string) | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  now?: (() => number) | undefined
  /**
   * When to publish growth of texts and arguments. Default: `frame` on a visible page, 50 ms on a hidden one, else
   * `microtask`. Anything else is published at once; events that arrive together are published together, except with `sync`.
   */
  notify?: Notify | undefined
  /** How many requests may follow one another without a user action. Default 100. */
  maxContinuations?: number | undefined
}

const callback = 'function'

const kinds: Kinds<ChatClientOptions> = {
  connection: '',
  forwardedProps: '',
  threadId: 'string',
  initialMessages: 'array',
  initialThread: 'object',
  initialState: '',
  toolContext: '',
  context: 'array',
  tools: 'array',
  serverTools: 'array',
  statePatch: callback,
  compat: callback,
  persistence: 'object',
  tabs: 'object',
  headers: 'object',
  onPendingMessage: 'cancel | queue | reject',
  whenBusy: 'queue | interrupt | drop',
  maxQueued: 'number',
  autoContinue: 'boolean',
  onStop: callback,
  onData: callback,
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

/** Invalid options fail at construction, naming the option. */
export function checkOptions<Tools extends ToolMap>(
  options: Partial<ChatClientOptions<Tools>> | undefined,
): void {
  if (typeof options?.connection?.connect !== 'function')
    fail('connection', 'a connection such as fetchServerSentEvents("/api/chat")')
  checkKinds<Partial<ChatClientOptions<Tools>>>('ChatClient', options, kinds)
  const { tools = [], initialMessages = [] } = options
  if (!tools.every((tool) => isRecord(tool) && isRecord(tool.input) && typeof tool.execute === 'function'))
    fail('tools', 'client tools: see `clientTool(...)`')
  if (new Set(tools.map(({ name }) => name)).size < tools.length) fail('tools', 'of different names')
  if (!initialMessages.every(isMessage))
    fail(
      'initialMessages',
      'messages, each with id, role and parts of our types; those of the AI SDK: `fromAiSdkMessages`',
    )
  if (options.persistence && typeof options.persistence.open !== 'function')
    fail('persistence', '`webStorage()`, `indexedDb()` or your own storage in `persistent(...)`')
  if (options.tabs && !options.persistence)
    fail('persistence', 'given where `tabs` is: the next tab takes over from there')
  if (options.persistence && !options.persistence.startsThreads && options.threadId === undefined) {
    fail('threadId', 'given where `persistence` is: a conversation under a random one is never found again')
  }
}

function fail(option: string, expected: string): never {
  throw invalidOption('ChatClient', option, expected)
}
