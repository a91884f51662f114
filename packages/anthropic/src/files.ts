import { CountersignError } from '@countersign/core'
import type { ModelFile } from '@countersign/server'
import type { Fields } from '@countersign/server/model-kit'

/** Converts an image or a document to a content block. */
export function fileBlock(file: ModelFile): Fields {
  const { media, source } = file
  if (media === 'audio' || media === 'video') throw cannotTake(file)
  const type = media === 'image' ? 'image' : 'document'
  switch (source.type) {
    case 'url':
      return { type, source: { type: 'url', url: source.value } }
    case 'file':
      return { type, source: { type: 'file', file_id: source.value } }
    case 'data': {
      const { mimeType, value } = source
      const isText = type === 'document' && mimeType.startsWith('text/')
      return isText
        ? { type, source: { type: 'text', media_type: 'text/plain', data: decodeText(value) } }
        : { type, source: { type: 'base64', media_type: mimeType, data: value } }
    }
    default:
      return source satisfies never
  }
}

function decodeText(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0)))
}

function cannotTake({ media, source }: ModelFile): CountersignError {
  return new CountersignError(
    'invalid-argument',
    `Anthropic takes no ${media}; leave it out of the message, or use a model that takes it.`,
    { media, source: source.type },
  )
}
