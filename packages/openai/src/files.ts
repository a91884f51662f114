import { CountersignError } from '@countersign/core'
import type { ModelFile } from '@countersign/server'

type DataSource = Extract<ModelFile['source'], { type: 'data' }>

/** Inline bytes as a URL; `value` is base64. */
export function dataUrl({ mimeType, value }: DataSource): string {
  return `data:${mimeType};base64,${value}`
}

/** The provider wants a name with inline bytes and reads the kind of file out of its ending. */
export function fileName({ mimeType }: DataSource): string {
  const [, ending = 'bin'] = /^[^/]+\/(?:[^+;]*\+)?([\w-]+)/.exec(mimeType) ?? []
  return `file.${ending === 'plain' ? 'txt' : ending}`
}

/** The error for a file that an API has no place for. */
export function cannotTake(api: string, { media, source }: ModelFile): CountersignError {
  return new CountersignError(
    'invalid-argument',
    `${api} takes no ${media} given as ${source.type}; leave it out of the message, or use a model and an API that take it.`,
    { media, source: source.type },
  )
}
