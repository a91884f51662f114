import { CountersignError, isRecord } from '@countersign/core'

/** A chunk of an AI SDK stream, unvalidated except for a string `type`. */
export type RawChunk = Readonly<Record<string, unknown>> & { readonly type: string }

/** @throws CountersignError `malformed-event` */
export function readChunk(value: unknown): RawChunk {
  if (isRecord(value) && typeof value.type === 'string') return { ...value, type: value.type }
  throw malformed('chunk', 'be an object with a type')
}

/**
 * A required field of a chunk.
 *
 * @throws CountersignError `malformed-event`
 */
export function field(chunk: RawChunk, name: string): string {
  const value = chunk[name]
  if (typeof value === 'string') return value
  throw malformed(chunk.type, `have ${name} as text`)
}

function malformed(type: string, rule: string): CountersignError {
  return new CountersignError('malformed-event', `AI SDK stream: ${type} must ${rule}.`, { type, rule })
}

/** A chunk refers to something that the stream has not started. The SDK's own client stops at it too. */
export function unknownId({ type }: RawChunk, id: string): CountersignError {
  const message = `AI SDK stream: ${type} is about "${id}", which was not started.`
  return new CountersignError('protocol-violation', message, { type, id, rule: 'unknown id' })
}
