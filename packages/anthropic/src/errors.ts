import { type CountersignError, isCountersignError } from '@countersign/core'
import { asRecord, asText, isRetryableStatus, modelError, retryAfterOf } from '@countersign/server/model-kit'

/** Whose metadata it is, and the first part of a model's id. */
export const provider = 'anthropic'

/** Types of errors in a stream, where there is no status, after which the same request may succeed. */
const passing = new Set(['overloaded_error', 'rate_limit_error', 'api_error', 'timeout_error'])

/**
 * What the SDK threw, as the error of an adapter. The SDK's classes are told by their members: a client of the application's own may come
 * from another copy of the SDK.
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
