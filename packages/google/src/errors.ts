import { type CountersignError, isCountersignError } from '@countersign/core'
import {
  asList,
  asNumber,
  asRecord,
  asText,
  type Fields,
  isRetryableStatus,
  modelError,
  parseJson,
} from '@countersign/server/model-kit'

/** The provider of stored metadata, and the first part of a model's id. */
export const provider = 'google'

/**
 * Converts an error of the SDK. The SDK puts the provider's whole error, as JSON, into its message, with a prefix if it came inside
 * a stream. Its classes are recognised by their members, because the application's client may come from another copy of the SDK.
 */
export function fromSdkError(thrown: unknown): CountersignError {
  if (isCountersignError(thrown)) return thrown
  const text = thrown instanceof Error ? thrown.message : String(thrown)
  const reported = asRecord(asRecord(parseJson(text.slice(text.indexOf('{')))).error)
  const status = asNumber(asRecord(thrown).status) ?? asNumber(reported.code)
  const code = asNumber(reported.code)?.toString() ?? asText(reported.status) ?? ownCode(thrown, text)
  const retryable = status === undefined ? code !== 'unknown' : isRetryableStatus(status)
  return modelError(
    {
      provider,
      code,
      message: asText(reported.message) ?? text,
      status,
      retryable,
      retryAfter: retryDelayOf(reported),
    },
    thrown,
  )
}

/** `google.rpc.RetryInfo`: a duration in seconds, such as `34.4s`. */
function retryDelayOf({ details }: Fields): number | undefined {
  for (const detail of asList(details)) {
    const [, seconds] = /^([\d.]+)s$/.exec(asText(asRecord(detail).retryDelay) ?? '') ?? []
    if (seconds !== undefined) return Number(seconds)
  }
  return undefined
}

function ownCode(thrown: unknown, text: string): string {
  if (/time.?out|timed out/i.test(text)) return 'timed-out'
  if (/^Incomplete JSON segment/.test(text)) return 'truncated-stream'
  return thrown instanceof TypeError || /fetch failed|terminated/.test(text) ? 'connection-failed' : 'unknown'
}
