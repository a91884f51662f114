/** Events of the page after which something may have changed elsewhere. */
const returns = ['focus', 'online', 'visibilitychange']

/**
 * Looks regularly, and when the user returns, whether something has changed elsewhere. `every`: milliseconds between two looks. After
 * `timeout`, one that has not ended does not prevent the next.
 */
export function createWatch(look: () => Promise<void>, every: number, timeout: number) {
  /** When the look began that is under way. */
  let lookingSince = -Infinity
  let stop: (() => void) | undefined

  async function now(): Promise<void> {
    // Not `Date`: a clock may be set back.
    const since = performance.now()
    // A response may never arrive.
    if (since - lookingSince < timeout || globalThis.document?.visibilityState === 'hidden') return
    lookingSince = since
    try {
      await look()
    } catch {
      // The next look may succeed; a command shows what is wrong.
    } finally {
      if (lookingSince === since) lookingSince = -Infinity
    }
  }

  return {
    now,
    /** Returns false if it has begun already. */
    begin(): boolean {
      if (stop) return false
      const onReturn = () => void now()
      const timer: ReturnType<typeof setInterval> & { unref?(): void } = setInterval(onReturn, every)
      // A page that waits must not keep a process running.
      timer.unref?.()
      for (const type of returns) globalThis.addEventListener?.(type, onReturn)
      stop = () => {
        clearInterval(timer)
        for (const type of returns) globalThis.removeEventListener?.(type, onReturn)
      }
      return true
    },
    end(): void {
      stop?.()
      stop = undefined
    },
  }
}
