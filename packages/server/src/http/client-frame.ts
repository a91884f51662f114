import { isRecord } from '@countersign/core'
import { exceeds, type FullLimits } from '../limits.js'
import { invalid, parseBody } from './run-input.js'

/** A frame of a client, of which only the type is validated. */
export type ClientFrame = { readonly type: string } & {
  readonly [Name in 'input' | 'id' | 'threadId' | 'runId' | 'lastEventId' | 'resume' | 'headers']?: unknown
}

/** @throws CountersignError `invalid-request`, `request-too-large` */
export function readFrame(data: unknown, limits: FullLimits): ClientFrame {
  if (typeof data !== 'string') throw invalid('A message must be text.')
  if (data.length > limits.bodyBytes) throw exceeds('bodyBytes', limits, ['A message', 'characters'])
  const frame = parseBody(data, limits)
  if (!isRecord(frame) || typeof frame.type !== 'string')
    throw invalid('A message must be a frame with a type.')
  // Drops everything else, so that it is not held as long as a run is open.
  const { type, input, id, threadId, runId, lastEventId, resume, headers } = frame
  return { type, input, id, threadId, runId, lastEventId, resume, headers }
}
