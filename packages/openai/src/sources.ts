import type { ModelEvent } from '@countersign/server'
import { asRecord, asText } from '@countersign/server/model-kit'

/** Converts a citation of either API to a source. Its other fields (position in the text, file) become metadata. */
export function* sourceOf(annotation: unknown, id: string): Generator<ModelEvent> {
  const { type, url_citation: nested, ...own } = asRecord(annotation)
  const { url, title, ...fields } = type === 'url_citation' && nested !== undefined ? asRecord(nested) : own
  const kind = asText(type)
  if (kind === undefined) return
  const name = asText(title) ?? asText(fields.filename)
  const address = asText(url)
  yield {
    type: 'source',
    source: {
      id,
      ...(address !== undefined && { url: address }),
      ...(name !== undefined && { title: name }),
      metadata: { type: kind, ...fields },
    },
  }
}
