import { type AGUIEvent, type ErrorCode, isCountersignError } from '@countersign/core'
import { ownMetadata } from '../history/metadata.js'
import { readModelFailure } from '../model/model-error.js'

/** What the client may read of an error: a stable code and a message without internals; for a model failure, also whether to retry. */
export function runErrorEvent(error: unknown): Extract<AGUIEvent, { type: 'RUN_ERROR' }> {
  const code = isCountersignError(error) ? error.code : undefined
  const { retryable, retryAfter } = readModelFailure(error) ?? {}
  return code !== undefined && PUBLIC.has(code)
    ? {
        type: 'RUN_ERROR',
        message: isCountersignError(error) ? error.message : '',
        code,
        ...ownMetadata({ retryable, retryAfter }),
      }
    : { type: 'RUN_ERROR', message: 'Something went wrong on the server.', code: code ?? 'internal' }
}

/** Errors whose messages this package wrote itself, for users to read. */
const PUBLIC: ReadonlySet<ErrorCode> = new Set([
  'invalid-request',
  'request-too-large',
  'model-failed',
  'invalid-output',
  'call-running',
  'reader-too-slow',
  'run-open',
  'thread-busy',
  'thread-full',
  'thread-unknown',
  'tool-failed',
  'tool-not-found',
  'toolkit-required',
  'unreconciled-history',
])
