import type { ModelEvent } from '@countersign/server'
import { asRecord, asText } from '@countersign/server/model-kit'

type Source = Extract<ModelEvent, { type: 'source' }>['source']

/** A citation as a source. What it says beside (which words, where in which document) is its metadata. */
export function sourceOf(citation: unknown, id: string): Source {
  // only the provider can read it, and it goes back with the text
  const { encrypted_index: _, ...fields } = asRecord(citation)
  const url = asText(fields.url) ?? asText(fields.source)
  const title = asText(fields.title) ?? asText(fields.document_title)
  return { id, ...(url !== undefined && { url }), ...(title !== undefined && { title }), metadata: fields }
}
