import { CountersignError } from '@countersign/core'
import { anySignal, onAbort } from '../encoding/signals.js'

export interface ModelWatch {
  readonly signal: AbortSignal
  /** Resolves when nobody waits for the model any longer. */
  readonly left: Promise<void>
  readonly timedOut: CountersignError | undefined
  /** An event has arrived and is being processed. */
  heard(): void
  /** The next event may come. */
  waits(): void
  end(): void
}

/**
 * Ends the wait for a model that says nothing for `ms`, and for one that does not react to a stop. Between `heard` and `waits` nobody
 * waits for the model: its last event is being processed.
 */
export function watchModel(stop: AbortSignal, ms: number): ModelWatch {
  const silent = new AbortController()
  let waitsSince: number | undefined = performance.now()
  let timer: ReturnType<typeof setTimeout> | undefined
  let timedOut: CountersignError | undefined
  let leave = () => {}
  const left = new Promise<void>((resolve) => {
    leave = resolve
  })
  const check = () => {
    const rest = waitsSince === undefined ? ms : waitsSince + ms - performance.now()
    if (rest > 0) {
      timer = setTimeout(check, rest)
    } else {
      const message = `The model said nothing for ${ms} ms, and the run ended. Try again, or raise timeouts.model.`
      timedOut = new CountersignError('model-timeout', message, { timeout: ms, status: 503, retryable: true })
      silent.abort()
      leave()
    }
  }
  check()
  const stopped = () => {
    if (waitsSince !== undefined) leave()
  }
  const unwatch = onAbort(stop, stopped)
  if (stop.aborted) stopped()
  return {
    signal: anySignal([stop, silent.signal]),
    left,
    get timedOut() {
      return timedOut
    },
    heard() {
      waitsSince = undefined
    },
    waits() {
      waitsSince = performance.now()
      if (stop.aborted) leave()
    },
    end() {
      clearTimeout(timer)
      unwatch()
    },
  }
}

/** Aborts with the error `run-timeout` when a run has taken too long. Undefined milliseconds: it has no limit. */
export function runDeadline(ms: number | undefined): { readonly signal: AbortSignal; end(): void } {
  const late = new AbortController()
  const message = `The run took longer than ${ms} ms, and was stopped. Continue it with another request, or raise timeouts.run.`
  const stop = () =>
    late.abort(new CountersignError('run-timeout', message, { timeout: ms, status: 503, retryable: true }))
  const timer = ms === undefined ? undefined : setTimeout(stop, ms)
  return { signal: late.signal, end: () => clearTimeout(timer) }
}
