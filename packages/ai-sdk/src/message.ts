/**
 * Messages of the AI SDK 7 as its clients and routes write them (`UIMessage` of the package `ai`). Only
 * fields used here are declared; other fields of a part are passed on unchanged.
 */
export interface AiSdkMessage {
  readonly id: string
  readonly role: 'system' | 'user' | 'assistant'
  readonly metadata?: unknown
  readonly parts: readonly AiSdkPart[]
}

export type AiSdkPart = AiSdkText | AiSdkReasoning | AiSdkFile | AiSdkSource | AiSdkTool | AiSdkOther

interface AiSdkText {
  readonly type: 'text'
  readonly text: string
  readonly state?: 'streaming' | 'done'
  readonly citations?: unknown
  readonly providerMetadata?: unknown
}

export interface AiSdkReasoning {
  readonly type: 'reasoning'
  readonly id?: string
  readonly text: string
  readonly state?: 'streaming' | 'done'
  readonly providerMetadata?: unknown
}

export interface AiSdkFile {
  readonly type: 'file'
  /** An IANA media type, or only its first half. */
  readonly mediaType: string
  readonly url: string
  readonly filename?: string
  /** The file's ids at the model's providers; takes precedence over `url`. */
  readonly providerReference?: Readonly<Record<string, string>>
  readonly providerMetadata?: unknown
}

export interface AiSdkSource {
  readonly type: 'source-url' | 'source-document'
  readonly sourceId: string
  readonly url?: string
  readonly title?: string
  readonly mediaType?: string
  readonly filename?: string
  readonly providerMetadata?: unknown
}

export type AiSdkToolState =
  | 'input-streaming'
  | 'input-available'
  | 'approval-requested'
  | 'approval-responded'
  | 'output-available'
  | 'output-error'
  | 'output-denied'

/** A tool call: `tool-<name>`, or `dynamic-tool` with its `toolName`. */
export interface AiSdkTool {
  readonly type: `tool-${string}` | 'dynamic-tool'
  readonly toolName?: string
  readonly toolCallId: string
  readonly state: AiSdkToolState
  readonly input?: unknown
  readonly output?: unknown
  readonly errorText?: string
  readonly preliminary?: boolean
  readonly providerExecuted?: boolean
  readonly approval?: AiSdkApproval
  readonly title?: string
  readonly toolMetadata?: unknown
  readonly inputEncoding?: string
  readonly rawInput?: unknown
  readonly callProviderMetadata?: unknown
  readonly resultProviderMetadata?: unknown
}

/** An approval request and its answer. All fields but `id`, `approved` and `reason` belong to the server and are sent back unchanged. */
export interface AiSdkApproval {
  readonly id: string
  readonly approved?: boolean
  readonly reason?: string
  readonly requestReason?: string
  readonly isAutomatic?: boolean
  readonly signature?: string
  readonly descriptor?: unknown
  readonly inputSchemaInput?: unknown
}

/** Parts that only the AI SDK has, and those of the application (`data-<name>`). */
interface AiSdkOther {
  readonly type: 'step-start' | 'custom' | 'reasoning-file' | 'steering-message' | `data-${string}`
  readonly [field: string]: unknown
}

export function isToolPart(part: AiSdkPart): part is AiSdkTool {
  return part.type === 'dynamic-tool' || part.type.startsWith('tool-')
}

export function toolNameOf({ type, toolName = '' }: AiSdkTool): string {
  return type === 'dynamic-tool' ? toolName : type.slice('tool-'.length)
}

/** The parts of each step. Step 0 is everything before the first `step-start`; in messages written by the AI SDK it is empty. */
export function stepsOf({ parts }: Pick<AiSdkMessage, 'parts'>): readonly (readonly AiSdkPart[])[] {
  const steps: AiSdkPart[][] = [[]]
  for (const part of parts) {
    if (part.type === 'step-start') steps.push([])
    else steps.at(-1)?.push(part)
  }
  return steps
}
