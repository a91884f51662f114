import { type AGUIEvent, type ErrorCode, isCountersignError } from '@countersign/core'
import { ownMetadata } from '../history/metadata.js'
import { readModelFailure } from '../model/model-error.js'

/** What the client may read of an error: a stable code and a message without internals; for a model failure, also whether to retry. */
export function runErrorEvent(error: unknown): Extract<AGUIEvent, { type: 'RUN_ERROR' }> {
  const told = isCountersignError(error) ? error : undefined
  const { retryable, retryAfter } = readModelFailure(error) ?? readRetry(error)
  if (told === undefined || !(PUBLIC.has(told.code) || told.data.isForUsers === true))
    return {
      type: 'RUN_ERROR',
      message: 'Something went wrong on the server.',
      code: told?.code ?? 'internal',
    }
  const { message, code } = told
  return { type: 'RUN_ERROR', message, code, ...ownMetadata({ retryable, retryAfter }) }
}

/** Whether to retry after an error that the engine itself made. */
function readRetry(error: unknown): { readonly retryable?: boolean; readonly retryAfter?: number } {
  const { retryable, retryAfter } = isCountersignError(error) ? error.data : {}
  return {
    ...(typeof retryable === 'boolean' && { retryable }),
    ...(typeof retryAfter === 'number' && { retryAfter }),
  }
}

/** Errors whose messages this package wrote itself, for users to read. Others may come from a store as well: `data.isForUsers` tells. */
const PUBLIC: ReadonlySet<ErrorCode> = new Set([
  'invalid-request',
  'request-too-large',
  'model-failed',
  'model-timeout',
  'invalid-output',
  'call-running',
  'reader-too-slow',
  'run-open',
  'run-timeout',
  'shutting-down',
  'thread-busy',
  'thread-full',
  'thread-unknown',
  'tool-failed',
  'tool-not-found',
  'too-many-runs',
  'toolkit-required',
  'unreconciled-history',
])
