import type { FilePart, JsonSchema, SourcePart, TokenUsage } from '@countersign/core'
import type { ToolOutcome } from '../outcome.js'

/**
 * A language model. `stream` is called once per step of a run; it neither retries nor runs tools. A stream
 * that ends without a `finish` event counts as failed; what it produced until then is kept.
 */
export interface Model {
  /** For logs and usage, such as `openai/gpt-5`. The part before the first `/` names the provider: see {@link ProviderMetadata}. */
  readonly id: string
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelEvent>
}

/**
 * Everything the model sees. It includes only approvals that its provider requested itself ({@link ProviderApproval}), never tokens or
 * the engine's own approvals.
 */
export interface ModelRequest {
  readonly system?: string
  readonly messages: readonly ModelMessage[]
  readonly tools: readonly ModelTool[]
  /** The text of the reply must be JSON that fits this schema, where the model calls no tool. The engine validates it. */
  readonly output?: JsonSchema
}

export interface ModelTool {
  readonly name: string
  readonly description: string
  readonly parameters: JsonSchema
}

/** Every tool call of an assistant message is answered exactly once, in the tool message right after it. */
export type ModelMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: readonly (ModelText | ModelFile)[] }
  | { readonly role: 'assistant'; readonly content: readonly (ModelText | ModelReasoning | ModelToolCall)[] }
  | { readonly role: 'tool'; readonly content: readonly (ModelToolResult | ModelApprovalResponse)[] }

/**
 * Data that a provider needs back unchanged with a part (item ids, cache marks). It is never passed to another provider's model.
 * It travels through the client: an adapter must not trust it more than a user's text.
 */
export type ProviderMetadata = Readonly<Record<string, unknown>>

export interface ModelText {
  readonly type: 'text'
  readonly text: string
  readonly metadata?: ProviderMetadata
}

export interface ModelReasoning {
  readonly type: 'reasoning'
  readonly text: string
  /** Opaque: a signature or encrypted content. */
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
  /** The provider runs it itself; its result, if any, is the provider's own. */
  readonly providerExecuted?: boolean
  readonly approval?: ProviderApproval
  readonly signature?: string
  readonly metadata?: ProviderMetadata
}

/**
 * A provider's own approval for a call that it runs itself, such as a call of an MCP server inside the
 * provider. Only together with `providerExecuted`. Adapters can be stateless: the engine remembers which call an approval belongs to.
 */
export interface ProviderApproval {
  /** The provider's id of the approval. */
  readonly id: string
  /**
   * `requested`: the provider waits for an answer, which a later request carries as {@link ModelApprovalResponse}; if the call has no id
   * yet, its id is the empty string. `answered`: this is the call for which this approval was requested, so the engine treats both
   * as one; `tool-result` refers to it by the id given here. In a request always `requested`.
   */
  readonly state: 'requested' | 'answered'
}

/**
 * The verified answer to a provider's own approval request, in the tool message after its call. Every request contains it once, until the
 * call has a result. It replaces the result: send nothing else for the call. Models of other providers omit it.
 */
export interface ModelApprovalResponse {
  readonly type: 'approval-response'
  /** {@link ProviderApproval.id} */
  readonly approvalId: string
  readonly toolCallId: string
  readonly approved: boolean
  readonly reason?: string
}

export interface ModelToolResult {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly toolName: string
  /** `toProviderText` of core converts it to the provider's text. */
  readonly outcome: ToolOutcome
  /** For a provider's own result. */
  readonly metadata?: ProviderMetadata
}

/** Why a model stopped. `pause`: the provider must be called again with the response so far, and continues from there. */
export type FinishReason =
  | 'stop'
  | 'tool_calls'
  | 'length'
  | 'content_filter'
  | 'pause'
  | 'error'
  | (string & {})

/**
 * One event of a model's stream. Text and reasoning begin with their first delta. Reasoning ends with `reasoning-end` or with
 * any other event; a call is either streamed (`tool-call-start`, `tool-call-delta`, `tool-call-end`) or whole
 * (`tool-call`). The arguments of several calls may interleave.
 */
export type ModelEvent =
  /** `refusal`: the model explains why it does not answer. Shown like any other text. */
  | { readonly type: 'text-delta'; readonly delta: string; readonly refusal?: boolean }
  /** Ends a piece of text. Each piece keeps its own metadata and its place among the other parts, and is sent back as its own part. */
  | { readonly type: 'text-end'; readonly metadata?: ProviderMetadata }
  | { readonly type: 'reasoning-delta'; readonly delta: string }
  | { readonly type: 'reasoning-end'; readonly signature?: string; readonly metadata?: ProviderMetadata }
  | {
      readonly type: 'tool-call-start'
      readonly id: string
      readonly name: string
      readonly providerExecuted?: boolean
      readonly approval?: ProviderApproval
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
  | {
      readonly type: 'tool-result'
      readonly toolCallId: string
      readonly outcome: ToolOutcome
      readonly metadata?: ProviderMetadata
    }
  | { readonly type: 'source'; readonly source: Omit<SourcePart, 'type'> }
  | { readonly type: 'usage'; readonly usage: TokenUsage }
  /**
   * The provider's data about the whole response, for `RUN_FINISHED.metadata`. By convention `id`, `model`, `finishReason`,
   * `finishDetail`, and `usage` as the provider counts (the `usage` event counts as AG-UI does).
   */
  | { readonly type: 'metadata'; readonly metadata: ProviderMetadata }
  | { readonly type: 'finish'; readonly reason: FinishReason }

/** The provider that a model's metadata belongs to. */
export function providerOf({ id }: Pick<Model, 'id'>): string {
  return id.split('/', 1)[0] ?? id
}

/** The model as token usage names it. */
export function usageLabels(model: Pick<Model, 'id'>): { readonly provider: string; readonly model: string } {
  const provider = providerOf(model)
  return { provider, model: model.id.slice(provider.length + 1) || model.id }
}
