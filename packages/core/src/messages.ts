import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { ApprovalErrorCode } from './errors.js'

/** One message as users see it. An AG-UI assistant message with its reasoning and tool results is one UIMessage. */
export interface UIMessage<Tools extends ToolMap = ToolMap> {
  /** Never there. With it, TypeScript compares messages by their parts, so one of named tools fits where none are named. */
  readonly [toolsOf]?: { readonly [Name in keyof Tools]: unknown }
  readonly id: string
  readonly role: 'user' | 'assistant' | 'system'
  readonly parts: readonly MessagePart<Tools>[]
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Milliseconds since the epoch, if known. */
  readonly createdAt?: number
}

/** Input and output types by tool name; `InferTools` derives one from tool definitions. */
export type ToolMap = Record<string, { input: unknown; output: unknown }>

/** A part of a message, discriminated by `type`. */
export type MessagePart<Tools extends ToolMap = ToolMap> =
  | TextPart<OutputOf<Tools>>
  | ReasoningPart
  | FilePart
  | SourcePart
  | DataPart
  | ToolCallPart<Tools>
  | ToolResultPart

/** A text. For a structured reply (`output` of the agent), `text` is its JSON, and the part has the value as well. */
export type TextPart<Output = unknown> = {
  readonly type: 'text'
  readonly text: string
  /** Id and metadata of the AG-UI content part, if a user message had them. */
  readonly id?: string
  readonly metadata?: Readonly<Record<string, unknown>>
} & (
  | { readonly output?: undefined; readonly outputState?: undefined }
  /** While it streams: what can be read so far. Strings only grow; objects and lists gain members. */
  | { readonly output: PartialOutput<Output>; readonly outputState: 'partial' }
  /** Validated by the server. */
  | { readonly output: Output; readonly outputState: 'final' }
)

/** A value that is still arriving: any member may be missing. */
export type PartialOutput<Output> = Output extends readonly (infer Item)[]
  ? readonly PartialOutput<Item>[]
  : Output extends object
    ? { readonly [Name in keyof Output]?: PartialOutput<Output[Name]> }
    : Output

declare const toolsOf: unique symbol
declare const outputType: unique symbol

/** The type of structured replies, beside those of the tools: `useChat<InferTools<typeof tools> & WithOutput<typeof schema>>()`. */
export type WithOutput<Schema extends StandardSchemaV1> = {
  readonly [outputType]?: { readonly output: StandardSchemaV1.InferOutput<Schema> }
}

type OutputOf<Tools> = Tools extends { readonly [outputType]?: { readonly output: infer Output } }
  ? Output
  : unknown

/** The model's reasoning. `id` is that of the AG-UI reasoning message. */
export interface ReasoningPart {
  readonly type: 'reasoning'
  readonly id: string
  readonly text: string
  /** Opaque; sent back unchanged (signatures, encrypted content). */
  readonly encryptedValue?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** An image, sound, video or document. */
export interface FilePart {
  readonly type: 'file'
  readonly media: 'image' | 'audio' | 'video' | 'document'
  readonly source:
    | { readonly type: 'data'; readonly value: string; readonly mimeType: string }
    | { readonly type: 'url'; readonly value: string; readonly mimeType?: string }
    | {
        readonly type: 'file'
        readonly value: string
        readonly mimeType?: string
        readonly provider?: string
      }
  /** Id of the AG-UI content part. */
  readonly id?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A source that a message refers to. */
export interface SourcePart {
  readonly type: 'source'
  readonly id: string
  readonly url?: string
  readonly title?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Structured content defined by the application (an AG-UI activity). */
export interface DataPart {
  readonly type: 'data'
  readonly name: string
  readonly data: unknown
}

/** The result of a tool call as it was sent. The call's own part carries the same as `output` or `error`. */
export interface ToolResultPart {
  readonly type: 'tool-result'
  /** Id of the AG-UI tool message. */
  readonly id: string
  readonly toolCallId: string
  /** Text as sent; JSON if the tool returned a value. */
  readonly content: string | readonly unknown[]
  readonly error?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/**
 * The state of a tool call. States move forward: arguments (`awaiting-input`, `input-streaming`,
 * `input-complete`), approval (`approval-requested`, `approval-responded`), a running client tool (`executing`),
 * and the final ones. *denied*: a user or policy refused the call. *cancelled*: nobody answered in time.
 */
export type ToolCallState =
  | 'awaiting-input'
  | 'input-streaming'
  | 'input-complete'
  | 'approval-requested'
  | 'approval-responded'
  | 'executing'
  | 'complete'
  | 'error'
  | 'denied'
  | 'cancelled'

/** The choices for an answer: refuse (`deny`), approve this call (`once`), approve this tool in this thread (`session`). */
export type ApprovalOption = 'deny' | 'once' | 'session'

/** How far an answer has got on its way to the server. `unknown`: the run broke after the server had begun. */
export type Delivery = 'waiting' | 'sent' | 'settled' | 'unknown'

/** An amount that the calls of one mandate may reach together. */
export interface MandateBudget {
  /** The argument with the amount of a call: a number that is not negative. A key, or a path. */
  readonly field: string | readonly string[]
  readonly total: number
  /** For example `EUR`. */
  readonly unit: string
  /** The argument that must be exactly `unit`. Without it, the tool must know no other unit. */
  readonly unitField?: string | readonly string[] | undefined
}

/** A standing approval or denial that the user may choose with an answer. */
export interface OfferedMandate {
  readonly id: string
  /** What it allows or refuses, plain text. */
  readonly label: string
  /** It is chosen with a denial, and refuses further calls. */
  readonly decide?: 'deny'
  readonly uses?: number
  /** Seconds. */
  readonly expiresIn?: number
  readonly budget?: Pick<MandateBudget, 'total' | 'unit'>
}

/** The preview of arguments that the user has edited, as the server computed it. */
export interface EditedPreview {
  readonly preview: unknown
  /** The server's proof that it has computed it for these arguments; opaque to the client. */
  readonly proof: string
}

/** An approval request for one tool call and, once given, its answer. */
export interface ToolCallApproval {
  /** Never the tool call's id, and not derived from it. */
  readonly id: string
  readonly needsApproval: true
  readonly options: readonly ApprovalOption[]
  /** Whether arguments may be edited: all, or only these top-level keys. */
  readonly allowEdits?: boolean | readonly string[]
  /** The server's message about this call, plain text. */
  readonly message?: string
  /** ISO 8601; afterwards the server refuses answers. */
  readonly expiresAt?: string
  /** What to show if it differs from `input` (redacted, or transformed by the tool's schema). */
  readonly display?: unknown
  /** Standing approvals and denials to choose from. */
  readonly mandates?: readonly OfferedMandate[]
  /** What the call would do, as the server sent it: read it with `readPreview`. Its approval covers exactly this. */
  readonly preview?: unknown
  /** The preview of the request before this one, if approval is requested again because it changed. */
  readonly previous?: unknown
  /** Opaque to the client; sent back unchanged. */
  readonly token?: string
  readonly approved?: boolean
  readonly reason?: string
  readonly scope?: 'once' | 'session'
  /** The id of the mandate that was chosen. */
  readonly mandate?: string
  /** The arguments as edited by the user. */
  readonly input?: unknown
  /** What they would do. */
  readonly edited?: EditedPreview
  readonly delivery?: Delivery
  /** The run that first carried the answer. With it the server tells a resent answer from the same answer given on another page. */
  readonly sentIn?: string
  readonly problem?: ApprovalErrorCode
}

/** A tool call, from its first argument to its outcome. `input` and `output` are typed by the tool's name. */
export type ToolCallPart<Tools extends ToolMap = ToolMap> = {
  [Name in keyof Tools & string]: ToolCallPartOf<Name, Tools[Name]['input'], Tools[Name]['output']>
}[keyof Tools & string]

export interface ToolCallPartOf<Name extends string, Input, Output> {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: Name
  /** The raw JSON text received so far. */
  readonly arguments: string
  /** The arguments parsed so far; complete from `input-complete` on. */
  readonly input?: Input
  readonly state: ToolCallState
  readonly approval?: ToolCallApproval
  /** What the running tool reported last: progress, or the latest element of a streaming tool. Absent once the call has an outcome. */
  readonly progress?: unknown
  readonly output?: Output
  readonly error?: { readonly message: string; readonly code?: string }
  /** The model's provider runs it, neither this server nor this client. */
  readonly providerExecuted?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A call that waits for approval. */
export type PendingApproval<Tools extends ToolMap = ToolMap> = ToolCallPart<Tools> & {
  readonly approval: ToolCallApproval
}

/** The final states of a call. */
export const outcomes: readonly ToolCallState[] = ['complete', 'error', 'denied', 'cancelled']

/** Whether a state is final. */
export function isTerminal(state: ToolCallState): boolean {
  return outcomes.includes(state)
}
