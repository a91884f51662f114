import type {
  Response,
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseStreamEvent,
} from 'openai/resources/responses/responses'

/** An event without its sequence number. */
type Told = ResponseStreamEvent extends infer Event
  ? Event extends unknown
    ? Omit<Event, 'sequence_number'>
    : never
  : never

/** Converts a complete response to the equivalent stream. */
export function* asStream(response: Response): Generator<ResponseStreamEvent> {
  let number = 0
  for (const event of eventsOf(response)) yield { ...event, sequence_number: number++ } as ResponseStreamEvent
}

function* eventsOf(response: Response): Generator<Told> {
  yield { type: 'response.created', response }
  for (const [index, item] of response.output.entries()) {
    yield { type: 'response.output_item.added', item, output_index: index }
    yield* contentOf(item, index)
    yield { type: 'response.output_item.done', item, output_index: index }
  }
  if (response.status === 'failed') yield { type: 'response.failed', response }
  else if (response.status === 'incomplete') yield { type: 'response.incomplete', response }
  else if (response.status === 'completed') yield { type: 'response.completed', response }
}

function* contentOf(item: ResponseOutputItem, index: number): Generator<Told> {
  switch (item.type) {
    case 'message':
      yield* messageOf(item, index)
      return
    case 'reasoning':
      for (const [part, { text }] of item.summary.entries()) {
        const where = { item_id: item.id, output_index: index, summary_index: part }
        yield {
          type: 'response.reasoning_summary_part.added',
          ...where,
          part: { type: 'summary_text', text: '' },
        }
        yield { type: 'response.reasoning_summary_text.delta', ...where, delta: text }
      }
      for (const [part, { text }] of (item.content ?? []).entries()) {
        yield {
          type: 'response.reasoning_text.delta',
          item_id: item.id,
          output_index: index,
          content_index: part,
          delta: text,
        }
      }
      return
    // The end events of calls contain everything.
    default:
      return
  }
}

function* messageOf(item: ResponseOutputMessage, index: number): Generator<Told> {
  for (const [at, part] of item.content.entries()) {
    const where = { item_id: item.id, output_index: index, content_index: at }
    if (part.type === 'refusal') {
      yield { type: 'response.refusal.delta', ...where, delta: part.refusal }
      continue
    }
    yield { type: 'response.output_text.delta', ...where, delta: part.text, logprobs: [] }
    for (const [number, annotation] of part.annotations.entries()) {
      yield { type: 'response.output_text.annotation.added', ...where, annotation, annotation_index: number }
    }
  }
}
