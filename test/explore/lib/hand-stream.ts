import type { AGUIEvent, RunAgentInput } from '@countersign/core'

/** A stream whose events are handed out one by one, without a microtask more than a promise takes. */
export interface HandStream extends AsyncIterable<AGUIEvent> {
  readonly number: number
  readonly input: RunAgentInput
  readonly signal: AbortSignal
  /** The client waits for the next event. */
  readonly wanted: boolean
  /** Nothing more comes: it ended, broke, or the client left it. */
  readonly over: boolean
  push(event: AGUIEvent | readonly AGUIEvent[]): void
  end(): void
  fail(error: Error): void
}

type Next = IteratorResult<AGUIEvent, undefined>

export function createHandStream(number: number, input: RunAgentInput, signal: AbortSignal): HandStream {
  const ready: (() => Promise<Next>)[] = []
  let waiting: ((next: Promise<Next>) => void) | undefined
  let over = false

  function give(next: () => Promise<Next>): void {
    if (waiting) waiting(next())
    else ready.push(next)
    waiting = undefined
  }

  const iterator: AsyncIterator<AGUIEvent, undefined> = {
    next() {
      const next = ready.shift()
      if (next) return next()
      if (over) return Promise.resolve({ done: true, value: undefined })
      return new Promise<Next>((resolve) => {
        waiting = resolve
      })
    },
    return() {
      over = true
      return Promise.resolve({ done: true, value: undefined })
    },
  }

  return {
    number,
    input,
    signal,
    get wanted() {
      return waiting !== undefined
    },
    get over() {
      return over
    },
    push(event) {
      // The client takes an array for what arrived together.
      give(() => Promise.resolve({ done: false, value: event as AGUIEvent }))
    },
    end() {
      over = true
      give(() => Promise.resolve({ done: true, value: undefined }))
    },
    fail(error) {
      over = true
      give(() => Promise.reject(error))
    },
    [Symbol.asyncIterator]: () => iterator,
  }
}
