import { CountersignError } from '@countersign/core'

/** Aborts with the error `run-timeout` when a run has taken too long. Undefined milliseconds: it has no limit. */
export function runDeadline(ms: number | undefined): { readonly signal: AbortSignal; end(): void } {
  const late = new AbortController()
  const timer = ms === undefined ? undefined : setTimeout(() => late.abort(runTimedOut(ms)), ms)
  return { signal: late.signal, end: () => clearTimeout(timer) }
}

function runTimedOut(ms: number): CountersignError {
  const message = `The run took longer than ${ms} ms, and was stopped. Continue it with another request, or raise timeouts.run.`
  return new CountersignError('run-timeout', message, { timeout: ms, status: 503, retryable: true })
}
