import type { ModelEvent } from '@countersign/server'
import { asRecord, asText } from '@countersign/server/model-kit'

type Source = Extract<ModelEvent, { type: 'source' }>['source']

/** Converts a citation to a source. Its other fields (quoted text, position in a document) become metadata. */
export function sourceOf(citation: unknown, id: string): Source {
  // Only the provider can read it; it is sent back with the text.
  const { encrypted_index: _, ...fields } = asRecord(citation)
  const url = asText(fields.url) ?? asText(fields.source)
  const title = asText(fields.title) ?? asText(fields.document_title)
  return { id, ...(url !== undefined && { url }), ...(title !== undefined && { title }), metadata: fields }
}
