import { CountersignError } from '@countersign/core'
import { checkOptions, MAX_DELAY, numberFrom } from '../encoding/check-options.js'
import { sleep } from '../encoding/signals.js'

export interface DrainOptions {
  /**
   * Milliseconds after which runs that are still open are stopped. Their tools and stores then have a last time to end; `drain` resolves after
   * that, whatever does not reply. Default: none are stopped, and `drain` waits for their end.
   */
  readonly within?: number | undefined
}

/** A run that counts as open until it leaves. */
interface Entry {
  /** Aborted when the run must stop. */
  readonly signal: AbortSignal
  leave(): void
}

/** The open runs of one agent, and whether it takes new ones. */
export interface Drain {
  /** Why no new run may start, if so. */
  refusal(): CountersignError | undefined
  enter(): Entry
  drain(options?: DrainOptions): Promise<void>
}

/** How long a transport may take to write what it has read of a run. */
const LAST_WRITE_MS = 100

/** `lastMs`: how long runs may take to end once they were stopped. */
export function createDrain(lastMs: number, warn: (message: string) => void): Drain {
  const open = new Set<AbortController>()
  let isDraining = false
  let ended = () => {}
  const empty = new Promise<void>((resolve) => {
    ended = resolve
  })
  const look = () => {
    if (isDraining && open.size === 0) ended()
  }
  return {
    refusal: () => (isDraining ? shuttingDown() : undefined),
    enter() {
      const run = new AbortController()
      open.add(run)
      const leave = () => {
        open.delete(run)
        look()
      }
      return { signal: run.signal, leave }
    },
    async drain(options = {}) {
      checkOptions('agent.drain', options, { within: numberFrom(0) })
      const { within } = options
      isDraining = true
      const hadRuns = open.size > 0
      look()
      let timer: ReturnType<typeof setTimeout> | undefined
      const late = new Promise<void>((resolve) => {
        const stop = () => {
          for (const run of open) run.abort(shuttingDown())
          timer = setTimeout(resolve, Math.min(lastMs, MAX_DELAY))
        }
        if (within !== undefined) timer = setTimeout(stop, Math.min(within, MAX_DELAY))
      })
      await Promise.race([empty, late])
      clearTimeout(timer)
      // Whoever closes the connections now must not cut off what was read last.
      if (hadRuns) await sleep(LAST_WRITE_MS)
      if (open.size > 0)
        warn(
          `agent.drain() waited for ${open.size} stopped runs, which have not ended: a store or a reader does not reply.`,
        )
    },
  }
}

/** Seconds after which a client that was refused may try again: another process has taken over by then. */
const RETRY_AFTER = 5

function shuttingDown(): CountersignError {
  return new CountersignError(
    'shutting-down',
    'This server is shutting down. Send the request again: another one will take it.',
    { status: 503, retryable: true, retryAfter: RETRY_AFTER },
  )
}
