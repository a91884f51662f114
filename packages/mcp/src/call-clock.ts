import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js'

/** How long a call may take, in milliseconds, not counting the time for which the user answers an elicitation. */
export interface CallLimits {
  /** Without progress: each progress notification restarts it. */
  readonly timeout: number
  /** In total. */
  readonly maxTimeout: number | undefined
}

/** The remaining time of one call. */
export interface CallClock {
  /** Aborted with an `McpError` when the time is over. */
  readonly signal: AbortSignal
  /** The server has reported progress. */
  begin(): void
  /** Stops the clock until the returned function is called. */
  pause(): () => void
  end(): void
}

/** The longest delay of a timer. */
const MAX_DELAY = 2 ** 31 - 1

/** Replaces the SDK's clock, which would continue while the user answers. */
export function startClock({ timeout, maxTimeout = Number.POSITIVE_INFINITY }: CallLimits): CallClock {
  const over = new AbortController()
  const idle = { left: timeout, why: 'Request timed out' }
  const total = { left: maxTimeout, why: 'Maximum total timeout exceeded' }
  let timer: ReturnType<typeof setTimeout> | undefined
  let since = 0
  let paused = 0
  let ended = false

  function run(): void {
    const next = idle.left < total.left ? idle : total
    since = performance.now()
    const left = Math.min(next.left, MAX_DELAY)
    timer = setTimeout(() => over.abort(new McpError(ErrorCode.RequestTimeout, next.why)), left)
  }

  function halt(): void {
    clearTimeout(timer)
    const passed = performance.now() - since
    idle.left -= passed
    total.left -= passed
  }

  run()
  return {
    signal: over.signal,
    begin() {
      if (ended) return
      if (paused === 0) halt()
      idle.left = timeout
      if (paused === 0) run()
    },
    pause() {
      if (paused++ === 0) halt()
      let resumed = false
      return () => {
        if (resumed) return
        resumed = true
        if (--paused === 0 && !ended) run()
      }
    },
    end() {
      ended = true
      clearTimeout(timer)
    },
  }
}
