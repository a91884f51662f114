import type { FinishReason, ModelEvent } from '@countersign/server'
import { asRecord } from '@countersign/server/model-kit'
import type {
  Response,
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseReasoningItem,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses'
import { reportedError } from '../errors.js'
import { sourceOf } from '../sources.js'
import { ProviderCall } from './provider-call.js'

/** Converts events of the Responses API to model events. */
export async function* responsesEvents(
  provider: string,
  stream: AsyncIterable<ResponseStreamEvent> | Iterable<ResponseStreamEvent>,
): AsyncGenerator<ModelEvent> {
  const reader = new ResponseReader(provider)
  for await (const event of stream) yield* reader.read(event)
}

/** The state of a reply while it is read. */
class ResponseReader {
  readonly #provider: string
  /** The calls whose arguments are streaming, by output index. */
  readonly #calls = new Map<number, { readonly id: string; written: boolean }>()
  readonly #provided = new Map<number, ProviderCall>()
  /** The items whose text, or whose sources, were streamed: some servers send them only at the end of an item. */
  readonly #spoken = new Set<number>()
  readonly #cited = new Set<number>()
  #asksSomebody = false
  #refused = false

  constructor(provider: string) {
    this.#provider = provider
  }

  *read(event: ResponseStreamEvent): Generator<ModelEvent> {
    switch (event.type) {
      case 'response.created':
        yield { type: 'metadata', metadata: { id: event.response.id, model: event.response.model } }
        return
      case 'response.output_item.added':
        yield* this.#begin(event.item, event.output_index)
        return
      case 'response.output_item.done':
        yield* this.#end(event.item, event.output_index)
        return
      case 'response.output_text.delta':
        this.#spoken.add(event.output_index)
        yield { type: 'text-delta', delta: event.delta }
        return
      case 'response.refusal.delta':
        this.#spoken.add(event.output_index)
        this.#refused = true
        yield { type: 'text-delta', delta: event.delta, refusal: true }
        return
      case 'response.output_text.annotation.added':
        this.#cited.add(event.output_index)
        yield* sourceOf(event.annotation, `${event.item_id}-${event.content_index}-${event.annotation_index}`)
        return
      case 'response.reasoning_summary_part.added':
        // Each part of a summary becomes a separate reasoning part.
        if (event.summary_index > 0)
          yield {
            type: 'reasoning-end',
            metadata: { itemId: event.item_id },
          }
        return
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        this.#spoken.add(event.output_index)
        yield { type: 'reasoning-delta', delta: event.delta }
        return
      case 'response.function_call_arguments.delta':
        yield* this.#grow(event.output_index, event.delta)
        return
      case 'response.custom_tool_call_input.delta':
        yield* this.#grow(event.output_index, jsonInside(event.delta))
        return
      case 'response.mcp_call_arguments.delta':
      case 'response.code_interpreter_call_code.delta':
        yield* this.#provided.get(event.output_index)?.grow(event.delta) ?? []
        return
      case 'response.completed':
      case 'response.incomplete':
        yield* this.#finish(event.response)
        return
      case 'response.failed':
        throw reportedError(this.#provider, event.response.error)
      case 'error':
        throw reportedError(this.#provider, asRecord(event).error ?? event)
      // Progress of items that are sent complete when they are done, and events newer than this adapter.
      default:
        return
    }
  }

  *#begin(item: ResponseOutputItem, index: number): Generator<ModelEvent> {
    if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      this.#calls.set(index, { id: item.call_id, written: false })
      this.#asksSomebody = true
      yield { type: 'tool-call-start', id: item.call_id, name: item.name }
      if (item.type === 'custom_tool_call') yield* this.#grow(index, '{"input":"', false)
      return
    }
    const call = ProviderCall.begin(item)
    if (call === undefined) return
    this.#provided.set(index, call)
    yield* call.start()
  }

  *#grow(index: number, delta: string, written = true): Generator<ModelEvent> {
    const call = this.#calls.get(index)
    if (call === undefined || delta === '') return
    call.written ||= written
    yield { type: 'tool-call-delta', id: call.id, delta }
  }

  *#end(item: ResponseOutputItem, index: number): Generator<ModelEvent> {
    switch (item.type) {
      case 'message':
        yield* this.#message(item, index)
        yield {
          type: 'text-end',
          metadata: {
            itemId: item.id,
            ...(item.phase && { phase: item.phase }),
            ...(item.content.every(({ type }) => type === 'refusal') && { refusal: true }),
          },
        }
        return
      case 'reasoning':
        if (!this.#spoken.has(index)) yield* thoughtsOf(item)
        yield {
          type: 'reasoning-end',
          ...(item.encrypted_content && { signature: item.encrypted_content }),
          metadata: { itemId: item.id, ...(item.content?.length && { open: true }) },
        }
        return
      case 'compaction':
        yield {
          type: 'reasoning-end',
          signature: item.encrypted_content,
          metadata: { itemId: item.id, type: 'compaction' },
        }
        return
      case 'function_call':
      case 'custom_tool_call':
        yield* this.#endCall(item, index)
        return
      case 'mcp_approval_request':
        this.#asksSomebody = true
        yield {
          type: 'tool-call',
          // The provider has not assigned a call id yet.
          id: '',
          name: item.name,
          arguments: item.arguments,
          providerExecuted: true,
          approval: { id: item.id, state: 'requested' },
          metadata: { type: item.type, serverLabel: item.server_label },
        }
        return
      default:
        yield* this.#provided.get(index)?.end(item) ?? []
    }
  }

  /** Whatever of a message was not streamed. */
  *#message({ id, content }: ResponseOutputMessage, index: number): Generator<ModelEvent> {
    for (const [at, part] of content.entries()) {
      if (part.type === 'refusal') this.#refused = true
      if (!this.#spoken.has(index))
        yield part.type === 'refusal'
          ? { type: 'text-delta', delta: part.refusal, refusal: true }
          : { type: 'text-delta', delta: part.text }
      if (part.type === 'refusal' || this.#cited.has(index)) continue
      for (const [number, annotation] of (part.annotations ?? []).entries())
        yield* sourceOf(annotation, `${id}-${at}-${number}`)
    }
  }

  *#endCall(
    item: Extract<ResponseOutputItem, { type: 'function_call' | 'custom_tool_call' }>,
    index: number,
  ): Generator<ModelEvent> {
    if (!this.#calls.has(index)) yield* this.#begin(item, index)
    const custom = item.type === 'custom_tool_call'
    const whole = custom ? jsonInside(item.input) : item.arguments
    // Some servers send the arguments only at the end.
    if (this.#calls.get(index)?.written === false) yield* this.#grow(index, whole)
    // The reply was cut off within the arguments: the call stays open, and the engine closes it.
    if (item.type === 'function_call' && item.status === 'incomplete') return
    if (custom) yield* this.#grow(index, '"}')
    yield {
      type: 'tool-call-end',
      id: item.call_id,
      metadata: { ...(item.id !== undefined && { itemId: item.id }), ...(custom && { custom }) },
    }
  }

  *#finish(response: Response): Generator<ModelEvent> {
    const { status, usage, incomplete_details: incomplete } = response
    const detail = incomplete?.reason
    yield {
      type: 'metadata',
      metadata: {
        id: response.id,
        model: response.model,
        finishReason: status,
        ...(detail !== undefined && { finishDetail: detail }),
        ...(usage && { usage }),
      },
    }
    if (usage) yield { type: 'usage', usage: usageOf(usage) }
    yield { type: 'finish', reason: this.#reason(status, detail) }
  }

  #reason(status: Response['status'], detail: string | undefined): FinishReason {
    if (status === 'incomplete') return detail === 'max_output_tokens' ? 'length' : (detail ?? 'error')
    if (this.#asksSomebody) return 'tool_calls'
    return this.#refused ? 'content_filter' : 'stop'
  }
}

/** The parts of a reasoning item, each as a separate reasoning part. */
function* thoughtsOf({ id, summary = [], content = [] }: ResponseReasoningItem): Generator<ModelEvent> {
  for (const [at, { text }] of [...summary, ...content].entries()) {
    if (at > 0) yield { type: 'reasoning-end', metadata: { itemId: id } }
    yield { type: 'reasoning-delta', delta: text }
  }
}

function usageOf(usage: NonNullable<Response['usage']>) {
  const reasoning = usage.output_tokens_details?.reasoning_tokens
  const cached = usage.input_tokens_details?.cached_tokens
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    totalTokens: usage.total_tokens,
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
    ...(cached !== undefined && { cachedInputTokens: cached }),
  }
}

/** Text as inside JSON quotes; may end with half of an emoji, whose other half follows in the next delta. */
function jsonInside(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}
