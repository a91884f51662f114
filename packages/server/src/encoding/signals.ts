/** Aborts with the first signal: `AbortSignal.any`, also for runtimes without it (Next's edge runtime). Undefined signals are ignored. */
export function anySignal(signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const given = signals.filter((signal) => signal !== undefined)
  return typeof AbortSignal.any === 'function' ? AbortSignal.any(given) : follow(given)
}

const watches = new WeakMap<AbortSignal, { readonly acts: Set<() => void>; readonly listener: () => void }>()

/**
 * Does something when the signal aborts, unless it has already; the result takes that back. However many wait for a signal, it has one
 * listener: at the eleventh Node warns of a leak, and a run may have any number of calls.
 */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  const { acts, listener } = watches.get(signal) ?? watch(signal)
  if (acts.size === 0) signal.addEventListener('abort', listener)
  acts.add(act)
  return () => {
    acts.delete(act)
    // A signal with a listener is not collected.
    if (acts.size === 0) signal.removeEventListener('abort', listener)
  }
}

function watch(signal: AbortSignal) {
  const acts = new Set<() => void>()
  const made = { acts, listener: () => wakeAll(acts) }
  watches.set(signal, made)
  return made
}

/** Waits, or until the signal aborts. `keepsAlive`: whether a process of Node waits for it. */
export function sleep(ms: number, signal?: AbortSignal, keepsAlive = true): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      leave?.()
      resolve()
    }
    const timer: ReturnType<typeof setTimeout> & { unref?(): void } = setTimeout(done, ms)
    if (!keepsAlive) timer.unref?.()
    const leave = signal && onAbort(signal, done)
  })
}

/** Not every runtime has `setImmediate`. */
const schedule: (callback: () => void) => unknown = globalThis.setImmediate ?? setTimeout

/** Waits for the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => void schedule(resolve))
}

/** Waits as one of the `waiting` until they are woken, or the signal aborts. */
export function untilWoken(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = () => {
      waiting.delete(done)
      leave()
      resolve()
    }
    waiting.add(done)
    const leave = onAbort(signal, done)
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
  let leave = () => {}
  if (signal.aborted) start()
  else leave = onAbort(signal, start)
  return {
    signal: later.signal,
    cancel() {
      leave()
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
  let done = () => {}
  const left = new Promise<{ readonly left: true }>((resolve) => {
    const leave = () => resolve({ left: true })
    done = onAbort(signal, leave)
    if (signal.aborted) setTimeout(leave)
  })
  try {
    return await Promise.race([work, left])
  } finally {
    done()
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
