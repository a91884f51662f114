/** Waits `ms` milliseconds, but not longer than until `signal` aborts, or `event` of the page happens. */
export async function wait(ms: number, signal: AbortSignal, event = 'abort'): Promise<void> {
  const done = new AbortController()
  await new Promise<void>((resolve) => {
    const end = () => resolve()
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end, { signal: done.signal })
    globalThis.addEventListener?.(event, end, { signal: done.signal })
    done.signal.addEventListener('abort', () => clearTimeout(timer))
  })
  done.abort()
}
