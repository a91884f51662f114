import type { FilePart, JsonSchema, SourcePart, TokenUsage } from '@countersign/core'
import type { ToolOutcome } from '../outcome.js'

/**
 * A language model, whoever provides it. `stream` is called once per step of a run; it neither retries nor runs tools. A stream
 * that ends without a `finish` event counts as failed, and what it said so far is kept.
 */
export interface Model {
  /** For logs and usage, such as `openai/gpt-5`. What stands before the first `/` names the provider: see {@link ProviderMetadata}. */
  readonly id: string
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelEvent>
}

/**
 * Everything the model sees. Of approvals only what its provider itself asked for gets here ({@link ProviderApproval}); tokens and the
 * engine's own approvals never do.
 */
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
  | { readonly role: 'tool'; readonly content: readonly (ModelToolResult | ModelApprovalResponse)[] }

/**
 * What a provider wants back unchanged with a part (item ids, cache marks), as it gave it. Another provider's model does not get it.
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
  /** The provider runs it itself; its result, if any, is the provider's own. */
  readonly providerExecuted?: boolean
  readonly approval?: ProviderApproval
  readonly signature?: string
  readonly metadata?: ProviderMetadata
}

/**
 * What a provider says of an approval of its own with a call that it runs itself, such as a call of an MCP server inside the
 * provider. Only together with `providerExecuted`. An adapter needs no memory: the engine keeps which call an approval is about.
 */
export interface ProviderApproval {
  /** The provider's id of the approval. */
  readonly id: string
  /**
   * `requested`: the provider waits for an answer, which a later request carries as {@link ModelApprovalResponse}; where it has no id
   * for the call yet, the call's id is the empty text. `answered`: this is the call that was asked about under this id, so the
   * engine takes both for one; `tool-result` names it by the id given here. In a request always `requested`.
   */
  readonly state: 'requested' | 'answered'
}

/**
 * The answer to a provider's own request, verified; in the tool message after its call, once in each request, until the call has a
 * result. It takes the place of a result: nothing else is to be sent for the call. A model of another provider leaves it out.
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
  /** `toProviderText` of core makes a provider's text out of it. */
  readonly outcome: ToolOutcome
  /** Of a provider's own result. */
  readonly metadata?: ProviderMetadata
}

/** Why a model stopped. `pause`: its provider wants to be called again with what it said so far, and goes on from there. */
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
 * whatever else follows; a call is either streamed (`tool-call-start`, `tool-call-delta`, `tool-call-end`) or whole
 * (`tool-call`). The arguments of several calls may interleave.
 */
export type ModelEvent =
  /** `refusal`: these are the model's words for why it does not answer. They are shown like any others. */
  | { readonly type: 'text-delta'; readonly delta: string; readonly refusal?: boolean }
  /** Ends a piece of the text. Each piece keeps its own metadata and its place among the other parts, and goes back as a part of its own. */
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
   * Facts about the whole answer in the provider's words; goes into `RUN_FINISHED.metadata`. By convention `id`, `model`, `finishReason`,
   * `finishDetail`, and `usage` as the provider counts (the `usage` event counts as AG-UI does).
   */
  | { readonly type: 'metadata'; readonly metadata: ProviderMetadata }
  | { readonly type: 'finish'; readonly reason: FinishReason }

/** The provider that a model's metadata belongs to. */
export function providerOf({ id }: Pick<Model, 'id'>): string {
  return id.split('/', 1)[0] ?? id
}
