import { asList, asRecord, asText, type Fields } from '@countersign/server/model-kit'
import type { MessageEvent } from './from-stream.js'

/** An answer that came whole, as the events that a stream would have had. */
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

/** How a block begins, and then its deltas. What is not written piece by piece begins whole. */
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

/** The SDK's types know every field of every block; these are what a provider sent, whatever they know. */
function event(fields: Fields & { readonly type: MessageEvent['type'] }): MessageEvent {
  return fields as MessageEvent
}
