import { CountersignError } from '@countersign/core'
import type { ModelFile } from '@countersign/server'

type DataSource = Extract<ModelFile['source'], { type: 'data' }>

/** Inline data as a URL; `value` is base64. */
export function dataUrl({ mimeType, value }: DataSource): string {
  return `data:${mimeType};base64,${value}`
}

/** The provider requires a name for inline data and reads the file type from its extension. */
export function fileName({ mimeType }: DataSource): string {
  const [, ending = 'bin'] = /^[^/]+\/(?:[^+;]*\+)?([\w-]+)/.exec(mimeType) ?? []
  return `file.${ending === 'plain' ? 'txt' : ending}`
}

/** The error for a file that the API does not support. */
export function cannotTake(api: string, { media, source }: ModelFile): CountersignError {
  return new CountersignError(
    'invalid-argument',
    `${api} takes no ${media} given as ${source.type}; leave it out of the message, or use a model and an API that take it.`,
    { media, source: source.type },
  )
}
