import type { BetaRawMessageStreamEvent } from '@anthropic-ai/sdk/resources/beta/messages/messages'
import type { RawMessageStreamEvent } from '@anthropic-ai/sdk/resources/messages/messages'
import type { FinishReason, ModelEvent } from '@countersign/server'
import { asNumber, asRecord, asText, type Fields } from '@countersign/server/model-kit'
import { AnswerBlocks } from './answer-blocks.js'

/** An event of the Messages API, beta or not. */
export type MessageEvent = RawMessageStreamEvent | BetaRawMessageStreamEvent

/** Converts events of the Messages API to model events. `finish` comes with `message_stop`, the last of them. */
export async function* messageEvents(
  stream: AsyncIterable<MessageEvent> | Iterable<MessageEvent>,
): AsyncGenerator<ModelEvent> {
  const blocks = new AnswerBlocks()
  let usage: Fields = {}
  let reason: FinishReason = 'stop'
  for await (const event of stream) {
    switch (event.type) {
      case 'message_start': {
        const { id, model, usage: begun } = event.message
        usage = asRecord(begun)
        yield { type: 'metadata', metadata: { id, model } }
        break
      }
      case 'content_block_start':
        yield* blocks.start(event.index, asRecord(event.content_block))
        break
      case 'content_block_delta':
        yield* blocks.grow(event.index, asRecord(event.delta))
        break
      case 'content_block_stop':
        yield* blocks.stop(event.index)
        break
      case 'message_delta': {
        const { stop_reason: stopped, stop_details: detail } = asRecord(event.delta)
        // New values replace earlier ones; the last event need not repeat everything.
        usage = { ...usage, ...told(asRecord(event.usage)) }
        reason = finishReason(asText(stopped))
        if (!cutShort.has(reason)) yield* blocks.endHeld()
        yield {
          type: 'metadata',
          metadata: { finishReason: stopped, ...(detail != null && { finishDetail: detail }), usage },
        }
        yield { type: 'usage', usage: usageOf(usage) }
        break
      }
      case 'message_stop':
        yield { type: 'finish', reason }
        break
      default:
        event satisfies never
    }
  }
}

/** After these, the last call may be incomplete even if its block was closed. */
const cutShort: ReadonlySet<FinishReason> = new Set(['length', 'content_filter'])

function finishReason(stopped: string | undefined): FinishReason {
  switch (stopped) {
    case undefined:
    case 'end_turn':
    case 'stop_sequence':
      return 'stop'
    case 'tool_use':
      return 'tool_calls'
    case 'max_tokens':
    case 'model_context_window_exceeded':
      return 'length'
    case 'refusal':
      return 'content_filter'
    case 'pause_turn':
      return 'pause'
    default:
      return stopped
  }
}

function told(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

/** The provider counts cache reads and writes separately from its input; AG-UI counts them as input. */
function usageOf(usage: Fields) {
  const input = asNumber(usage.input_tokens)
  const output = asNumber(usage.output_tokens)
  const cached = asNumber(usage.cache_read_input_tokens)
  const written = asNumber(usage.cache_creation_input_tokens)
  const reasoning = asNumber(asRecord(usage.output_tokens_details).thinking_tokens)
  return {
    ...(input !== undefined && { inputTokens: input + (cached ?? 0) + (written ?? 0) }),
    ...(output !== undefined && { outputTokens: output }),
    ...(reasoning !== undefined && { reasoningTokens: reasoning }),
    ...(cached !== undefined && { cachedInputTokens: cached }),
    ...(written !== undefined && { cacheWriteInputTokens: written }),
  }
}
