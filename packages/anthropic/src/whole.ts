import { asList, asRecord, asText, type Fields } from '@countersign/server/model-kit'
import type { MessageEvent } from './from-stream.js'

/** Converts a complete reply to the equivalent stream. */
export function* asStream(message: object): Generator<MessageEvent> {
  const { content, ...head } = asRecord(message)
  const { stop_reason, stop_sequence, stop_details, usage } = head
  yield event({ type: 'message_start', message: { ...head, content: [] } })
  for (const [index, block] of asList(content).entries()) {
    const [start, ...deltas] = unfold(asRecord(block))
    yield event({ type: 'content_block_start', index, content_block: start })
    for (const delta of deltas) yield event({ type: 'content_block_delta', index, delta })
    yield event({ type: 'content_block_stop', index })
  }
  yield event({ type: 'message_delta', delta: { stop_reason, stop_sequence, stop_details }, usage })
  yield event({ type: 'message_stop' })
}

/** The start of a block, then its deltas. Blocks that are never streamed start complete. */
function unfold(block: Fields): readonly Fields[] {
  switch (block.type) {
    case 'text': {
      const citations = asList(block.citations).map((citation) => ({ type: 'citations_delta', citation }))
      return [{ type: 'text', text: '' }, ...citations, { type: 'text_delta', text: block.text }]
    }
    case 'thinking':
      return [
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking: block.thinking },
        { type: 'signature_delta', signature: asText(block.signature) ?? '' },
      ]
    default:
      return [block]
  }
}

/** A cast: the fields come from the provider, and may be newer than the SDK's types. */
function event(fields: Fields & { readonly type: MessageEvent['type'] }): MessageEvent {
  return fields as MessageEvent
}
