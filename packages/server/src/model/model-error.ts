import { CountersignError, isCountersignError } from '@countersign/core'
import type { ModelEvent } from './model.js'

/** Details of a model failure: the `data` of an adapter's `model-failed` error. */
export interface ModelFailure {
  /** As in `model.id`. */
  readonly provider: string
  /**
   * The provider's own code, or its error type if it has no code. Ours: `truncated-stream` (the response ended without its last event),
   * `connection-failed`, `timed-out`, `malformed-stream`.
   */
  readonly code: string
  /** The provider's message. It may contain account names and parts of keys: for logs, not for a page. */
  readonly message: string
  /** HTTP status, if it failed before the stream. */
  readonly status?: number | undefined
  /** Whether the same request may succeed later. Only the SDK retries automatically, and only before the first event. */
  readonly retryable: boolean
  /** Seconds to wait, if the provider says so. */
  readonly retryAfter?: number | undefined
}

/** The error of a failed model. Its message is ours, so that a page may show it; the provider's is in `data`. */
export function modelError(failure: ModelFailure, cause?: unknown): CountersignError {
  const { provider, status } = failure
  const code = shownCode(failure.code)
  const what = `The model of ${provider} failed (${status === undefined ? code : `HTTP ${status}, ${code}`})`
  return new CountersignError('model-failed', `${what}; ${wayOut(failure)}.`, { ...failure }, cause)
}

function wayOut({ retryable, retryAfter }: ModelFailure): string {
  if (!retryable) return 'data.message says why, in the words of its provider'
  return retryAfter === undefined
    ? 'trying again later may help'
    : `try again in ${Math.max(1, Math.ceil(retryAfter))} s`
}

/** Pages show the code, and a server could send anything. */
function shownCode(code: string): string {
  return /^[\w.-]{1,64}$/.test(code) ? code : 'unknown'
}

/** Reads the details of an adapter's error; undefined for any other error. */
export function readModelFailure(error: unknown): ModelFailure | undefined {
  if (!isCountersignError(error) || error.code !== 'model-failed') return undefined
  const { provider, code, message, status, retryable, retryAfter } = error.data
  if (typeof provider !== 'string' || typeof code !== 'string' || typeof retryable !== 'boolean')
    return undefined
  return {
    ...{ provider, code, retryable, message: typeof message === 'string' ? message : '' },
    ...(typeof status === 'number' && { status }),
    ...(typeof retryAfter === 'number' && { retryAfter }),
  }
}

/** The error of a response that ended without its last event. What was streamed before it counts. */
export function truncatedStream(provider: string): CountersignError {
  const message = 'The answer ended without its last event.'
  return modelError({ provider, code: 'truncated-stream', message, retryable: true })
}

/** Whether an HTTP status means that the same request may succeed later. */
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500
}

/** `retry-after-ms` or `retry-after` (RFC 9110, 10.2.3: seconds or a date) in seconds. */
export function retryAfterOf(headers: Pick<Headers, 'get'> | undefined): number | undefined {
  const milliseconds = Number(headers?.get('retry-after-ms') ?? Number.NaN)
  if (milliseconds >= 0) return milliseconds / 1000
  const after = headers?.get('retry-after') ?? undefined
  if (after === undefined) return undefined
  const seconds = Number(after)
  if (seconds >= 0) return seconds
  const date = Date.parse(after)
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000)
}

/**
 * Makes an adapter's events follow the contract of `Model.stream`: nothing comes after an abort, which is no error; errors of the SDK
 * become typed errors; a response that ends without `finish` is an error.
 *
 * @throws CountersignError `model-failed`
 */
export async function* guardedEvents(
  provider: string,
  signal: AbortSignal,
  events: AsyncIterable<ModelEvent>,
  toError: (thrown: unknown) => CountersignError,
): AsyncGenerator<ModelEvent> {
  let finished = false
  try {
    for await (const event of events) {
      if (signal.aborted) return
      finished ||= event.type === 'finish'
      yield event
    }
  } catch (error) {
    if (signal.aborted) return
    throw toError(error)
  }
  if (!finished && !signal.aborted) throw truncatedStream(provider)
}
