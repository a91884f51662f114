import type { FilePart, JsonSchema, SourcePart, TokenUsage, ToolOutcome } from '@countersign/core'

/**
 * A language model, whoever provides it. `stream` is called once per step of a run; it neither retries nor runs tools. A stream
 * that ends without a `finish` event counts as failed, and what it said so far is kept.
 */
export interface Model {
  /** For logs and usage, such as `openai/gpt-5`. */
  readonly id: string
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelEvent>
}

/** Everything the model sees. Approval artefacts and tokens never get here. */
export interface ModelRequest {
  readonly system?: string
  readonly messages: readonly ModelMessage[]
  readonly tools: readonly ModelTool[]
}

export interface ModelTool {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

/** Every tool call of an assistant message is answered by the tool message right after it, exactly once. */
export type ModelMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: readonly (ModelText | ModelFile)[] }
  | { readonly role: 'assistant'; readonly content: readonly (ModelText | ModelReasoning | ModelToolCall)[] }
  | { readonly role: 'tool'; readonly content: readonly ModelToolResult[] }

/** What a provider wants back unchanged with a part (item ids, cache marks), as it gave it. */
export type ProviderMetadata = Readonly<Record<string, unknown>>

export interface ModelText {
  readonly type: 'text'
  readonly text: string
  readonly metadata?: ProviderMetadata
}

export interface ModelReasoning {
  readonly type: 'reasoning'
  readonly text: string
  /** Opaque to us: a signature or encrypted content. */
  readonly signature?: string
  readonly metadata?: ProviderMetadata
}

/** An image, sound, video or document. */
export interface ModelFile {
  readonly type: 'file'
  readonly media: FilePart['media']
  readonly source: FilePart['source']
}

export interface ModelToolCall {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: string
  /** JSON text, as the model wrote it. */
  readonly arguments: string
  /** The provider ran it; its result, if any, is the provider's own. */
  readonly providerExecuted?: boolean
  readonly signature?: string
  readonly metadata?: ProviderMetadata
}

export interface ModelToolResult {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly toolName: string
  /** `toProviderText` of core makes a provider's text out of it. */
  readonly outcome: ToolOutcome
}

/** Why a model stopped. */
export type FinishReason = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'error' | (string & {})

/**
 * One event of a model's stream. Text and reasoning begin with their first delta. Reasoning ends with `reasoning-end` or with
 * whatever else follows; a call is either streamed (`tool-call-start`, `tool-call-delta`, `tool-call-end`) or whole
 * (`tool-call`). The arguments of several calls may interleave.
 */
export type ModelEvent =
  | { readonly type: 'text-delta'; readonly delta: string }
  | { readonly type: 'text-end'; readonly metadata?: ProviderMetadata }
  | { readonly type: 'reasoning-delta'; readonly delta: string }
  | { readonly type: 'reasoning-end'; readonly signature?: string; readonly metadata?: ProviderMetadata }
  | {
      readonly type: 'tool-call-start'
      readonly id: string
      readonly name: string
      readonly providerExecuted?: boolean
    }
  | { readonly type: 'tool-call-delta'; readonly id: string; readonly delta: string }
  | {
      readonly type: 'tool-call-end'
      readonly id: string
      readonly signature?: string
      readonly metadata?: ProviderMetadata
    }
  | ModelToolCall
  /** The outcome of a call that the provider ran. */
  | { readonly type: 'tool-result'; readonly toolCallId: string; readonly outcome: ToolOutcome }
  | { readonly type: 'source'; readonly source: Omit<SourcePart, 'type'> }
  | { readonly type: 'usage'; readonly usage: TokenUsage }
  /** Facts about the whole answer (its id, the exact model); goes into `RUN_FINISHED.metadata`. */
  | { readonly type: 'metadata'; readonly metadata: ProviderMetadata }
  | { readonly type: 'finish'; readonly reason: FinishReason }
