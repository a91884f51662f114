import { type CountersignError, isCountersignError } from '@countersign/core'
import { asRecord, asText, isRetryableStatus, modelError, retryAfterOf } from '@countersign/server/model-kit'

/** Codes and types of errors in a stream, where there is no status, after which the same request may succeed. */
const passing =
  /rate_limit|overloaded|unavailable|timeout|server_error|internal|connection-failed|timed-out|malformed-stream/

/** An account without money does not get any by waiting, although its status is that of too many requests. */
const final = /insufficient_quota/

/**
 * What the SDK threw, as the error of an adapter. The SDK's classes are told by their members: a client of the application's own may come
 * from another copy of the SDK.
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

/** An error that the provider reported inside an answer. */
export function reportedError(provider: string, reported: unknown): CountersignError {
  return fromSdkError(provider, { error: reported ?? { message: 'The provider gave no reason.' } })
}

/** Some servers put the status into the error. */
function statusOf({ status_code: status }: Readonly<Record<string, unknown>>): number | undefined {
  return typeof status === 'number' ? status : undefined
}

function asCode(code: unknown): string | undefined {
  return typeof code === 'number' ? String(code) : asText(code)
}

function ownCode(thrown: unknown): string {
  const name = thrown instanceof Error ? thrown.constructor.name : ''
  if (name === 'APIConnectionTimeoutError') return 'timed-out'
  // an event that is no JSON: most often the last one of a connection that broke
  if (thrown instanceof SyntaxError) return 'malformed-stream'
  return name === 'APIConnectionError' || thrown instanceof TypeError ? 'connection-failed' : 'unknown'
}

function isHeaders(value: unknown): value is Headers {
  return value instanceof Headers
}
