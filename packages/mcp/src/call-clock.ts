import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js'

/** How long a call may take, in milliseconds. The time that a person takes to answer a question of the server counts for nothing. */
export interface CallLimits {
  /** Without a sign of life: each progress notification begins it anew. */
  readonly timeout: number
  /** In all. */
  readonly maxTimeout: number | undefined
}

/** The time that is left for one call. */
export interface CallClock {
  /** Aborted with an `McpError` when the time is over. */
  readonly signal: AbortSignal
  /** The server has given a sign of life. */
  begin(): void
  /** Stands still until the function that comes back is called. */
  pause(): () => void
  end(): void
}

/** The longest delay that timers take. */
const MAX_DELAY = 2 ** 31 - 1

/** A clock of our own in the place of the SDK's, which goes on while a person thinks. */
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
