import type { ApprovalErrorCode } from './errors.js'

/** One message as a person sees it. An AG-UI assistant message with its reasoning and tool results is one UIMessage. */
export interface UIMessage<Tools extends ToolMap = ToolMap> {
  readonly id: string
  readonly role: 'user' | 'assistant' | 'system'
  readonly parts: readonly MessagePart<Tools>[]
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Milliseconds since the epoch, where known. */
  readonly createdAt?: number
}

/** Input and output types by tool name; `InferTools` makes one out of tool definitions. */
export type ToolMap = Record<string, { input: unknown; output: unknown }>

/** What a message is made of, discriminated by `type`. */
export type MessagePart<Tools extends ToolMap = ToolMap> =
  | TextPart
  | ReasoningPart
  | FilePart
  | SourcePart
  | DataPart
  | ToolCallPart<Tools>
  | ToolResultPart

export interface TextPart {
  readonly type: 'text'
  readonly text: string
  /** Id and metadata of the AG-UI content part, where a person's message had them. */
  readonly id?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** What the model thought aloud. `id` is that of the AG-UI reasoning message. */
export interface ReasoningPart {
  readonly type: 'reasoning'
  readonly id: string
  readonly text: string
  /** Opaque to us, sent back unchanged (signatures, encrypted content). */
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

/** Where something that was said comes from. */
export interface SourcePart {
  readonly type: 'source'
  readonly id: string
  readonly url?: string
  readonly title?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Structured content of the application's own (an AG-UI activity). */
export interface DataPart {
  readonly type: 'data'
  readonly name: string
  readonly data: unknown
}

/** The outcome of a tool call as it came over the wire. The call's own part carries the same as `output` or `error`. */
export interface ToolResultPart {
  readonly type: 'tool-result'
  /** Id of the AG-UI tool message. */
  readonly id: string
  readonly toolCallId: string
  /** Text as sent; JSON where the tool returned a value. */
  readonly content: string | readonly unknown[]
  readonly error?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/**
 * How far a tool call has come. States only move forward:
 * arguments (`awaiting-input`, `input-streaming`, `input-complete`), the person (`approval-requested`, `approval-responded`),
 * a client tool at work (`executing`), and the terminal ones. *denied*: a person or policy said no; *cancelled*: nobody answered in time.
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

/** How a person may answer: not at all (`deny`), for this call (`once`), for this tool in this thread (`session`). */
export type ApprovalOption = 'deny' | 'once' | 'session'

/** What is known of an answer's way to the server. `unknown`: the run broke after the server had begun. */
export type Delivery = 'waiting' | 'sent' | 'settled' | 'unknown'

/** A question to the person about one tool call and, once given, the answer. */
export interface ToolCallApproval {
  /** Not the tool call's id and never derived from it. */
  readonly id: string
  readonly needsApproval: true
  readonly options: readonly ApprovalOption[]
  /** Whether arguments may be edited: all, or only these top-level keys. */
  readonly allowEdits?: boolean | readonly string[]
  /** Plain text of the server's own words about this call. */
  readonly message?: string
  /** ISO 8601; after it the server refuses. */
  readonly expiresAt?: string
  /** What to show where it differs from `input` (redacted or transformed by the tool's schema). */
  readonly display?: unknown
  /** Opaque to the client; sent back unchanged. */
  readonly token?: string
  readonly approved?: boolean
  readonly reason?: string
  readonly scope?: 'once' | 'session'
  /** The arguments as edited by the person. */
  readonly input?: unknown
  readonly delivery?: Delivery
  /** The run whose request first took the answer along: it tells the server an answer sent again from the same answer on another page. */
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
  /** Raw JSON text, as far as it has arrived. */
  readonly arguments: string
  /** The arguments as parsed so far; complete from `input-complete` on. */
  readonly input?: Input
  readonly state: ToolCallState
  readonly approval?: ToolCallApproval
  readonly output?: Output
  readonly error?: { readonly message: string; readonly code?: string }
  /** The model's provider runs it, not this server and not this client. */
  readonly providerExecuted?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A call whose question waits for the person. */
export type PendingApproval<Tools extends ToolMap = ToolMap> = ToolCallPart<Tools> & {
  readonly approval: ToolCallApproval
}

/** The states in which a call ends. */
export const outcomes: readonly ToolCallState[] = ['complete', 'error', 'denied', 'cancelled']

/** Whether a state is final. */
export function isTerminal(state: ToolCallState): boolean {
  return outcomes.includes(state)
}
