import { type CountersignError, isCountersignError } from '@countersign/core'
import { asRecord, asText, isRetryableStatus, modelError, retryAfterOf } from '@countersign/server/model-kit'

/** The provider of stored metadata, and the first part of a model's id. */
export const provider = 'anthropic'

/** Types of retryable errors, for errors in a stream, which have no status. */
const passing = new Set(['overloaded_error', 'rate_limit_error', 'api_error', 'timeout_error'])

/**
 * Converts an error of the SDK. The SDK's classes are recognised by their members, because the application's
 * client may come from another copy of the SDK.
 */
export function fromSdkError(thrown: unknown): CountersignError {
  if (isCountersignError(thrown)) return thrown
  const { status: told, error: body, headers } = asRecord(thrown)
  const { type, message: said } = asRecord(asRecord(body).error)
  const status = typeof told === 'number' ? told : undefined
  const code = asText(type) ?? ownCode(thrown)
  const message = asText(said) ?? (thrown instanceof Error ? thrown.message : String(thrown))
  const retryable =
    status === undefined
      ? passing.has(code) || code === 'connection-failed' || code === 'timed-out'
      : isRetryableStatus(status)
  const retryAfter = retryAfterOf(headers instanceof Headers ? headers : undefined)
  return modelError({ provider, code, message, status, retryable, retryAfter }, thrown)
}

function ownCode(thrown: unknown): string {
  const name = thrown instanceof Error ? thrown.constructor.name : ''
  if (name === 'APIConnectionTimeoutError') return 'timed-out'
  if (name === 'APIConnectionError' || thrown instanceof TypeError) return 'connection-failed'
  return 'unknown'
}
