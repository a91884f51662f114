/** Aborts with the first signal: `AbortSignal.any`, also for runtimes without it (Next's edge runtime). Undefined signals are ignored. */
export function anySignal(signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const given = signals.filter((signal) => signal !== undefined)
  return typeof AbortSignal.any === 'function' ? AbortSignal.any(given) : follow(given)
}

/** Waits, or until the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
}

/** Waits as one of the `waiting` until they are woken, or the signal aborts. */
export function untilWoken(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = () => {
      waiting.delete(done)
      signal.removeEventListener('abort', done)
      resolve()
    }
    waiting.add(done)
    signal.addEventListener('abort', done)
  })
}

export function wakeAll(waiting: ReadonlySet<() => void> = new Set()): void {
  // Most runs have no second reader.
  if (waiting.size > 0) for (const wake of [...waiting]) wake()
}

/** Aborts `ms` after `signal`, with its reason, unless it is cancelled before. */
export function abortLater(signal: AbortSignal, ms: number): { signal: AbortSignal; cancel(): void } {
  const later = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const start = () => {
    timer = setTimeout(() => later.abort(signal.reason), ms)
  }
  if (signal.aborted) start()
  else signal.addEventListener('abort', start, { once: true })
  return {
    signal: later.signal,
    cancel() {
      signal.removeEventListener('abort', start)
      clearTimeout(timer)
    },
  }
}

/** What `start` resolves with, or `left` once the signal aborts; if that has happened already, at the end of this turn of the event loop. */
export async function untilAborted<T>(
  start: () => Promise<T>,
  signal: AbortSignal,
): Promise<{ readonly left: false; readonly value: T } | { readonly left: true }> {
  const work = start().then((value) => ({ left: false, value }) as const)
  let leave = () => {}
  const left = new Promise<{ readonly left: true }>((resolve) => {
    leave = () => resolve({ left: true })
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) setTimeout(leave)
  })
  try {
    return await Promise.race([work, left])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

function follow(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController()
  const over = (signal: AbortSignal) => {
    for (const one of signals) one.removeEventListener('abort', told)
    controller.abort(signal.reason)
  }
  const told = () => {
    const first = signals.find((signal) => signal.aborted)
    if (first !== undefined) over(first)
  }
  for (const signal of signals) signal.addEventListener('abort', told, { once: true })
  told()
  return controller.signal
}
