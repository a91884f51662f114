import { type CountersignError, isCountersignError } from '@countersign/core'
import { asRecord, asText, isRetryableStatus, modelError, retryAfterOf } from '@countersign/server/model-kit'

/** Codes and types of retryable errors, for errors in a stream, which have no status. */
const passing =
  /rate_limit|overloaded|unavailable|timeout|server_error|internal|connection-failed|timed-out|malformed-stream/

/** Waiting does not help an account without credit, although the status is 429. */
const final = /insufficient_quota/

/**
 * Converts an error of the SDK. The SDK's classes are recognised by their members, because the application's
 * client may come from another copy of the SDK.
 */
export function fromSdkError(provider: string, thrown: unknown): CountersignError {
  if (isCountersignError(thrown)) return thrown
  const error = asRecord(thrown)
  const inner = asRecord(error.error)
  const status = typeof error.status === 'number' ? error.status : statusOf(inner)
  const code = asCode(inner.code) ?? asText(inner.type) ?? ownCode(thrown)
  const message =
    asText(inner.message) ??
    asText(error.error) ??
    (thrown instanceof Error ? thrown.message : String(thrown))
  const mayPass = status === undefined ? passing.test(code) : isRetryableStatus(status)
  const retryable = mayPass && !final.test(code)
  const retryAfter = retryAfterOf(isHeaders(error.headers) ? error.headers : undefined)
  return modelError({ provider, code, message, status, retryable, retryAfter }, thrown)
}

/** An error that the provider reported within a response. */
export function reportedError(provider: string, reported: unknown): CountersignError {
  return fromSdkError(provider, { error: reported ?? { message: 'The provider gave no reason.' } })
}

/** Some servers include the status in the error. */
function statusOf({ status_code: status }: Readonly<Record<string, unknown>>): number | undefined {
  return typeof status === 'number' ? status : undefined
}

function asCode(code: unknown): string | undefined {
  return typeof code === 'number' ? String(code) : asText(code)
}

function ownCode(thrown: unknown): string {
  const name = thrown instanceof Error ? thrown.constructor.name : ''
  if (name === 'APIConnectionTimeoutError') return 'timed-out'
  // An event that is not JSON: usually the last one of a broken connection.
  if (thrown instanceof SyntaxError) return 'malformed-stream'
  return name === 'APIConnectionError' || thrown instanceof TypeError ? 'connection-failed' : 'unknown'
}

function isHeaders(value: unknown): value is Headers {
  return value instanceof Headers
}
