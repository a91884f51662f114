/** When listeners hear of growth: `sync` at every delta and event, `microtask`, `frame` (with the next paint), or every so many milliseconds. */
export type Notify = 'sync' | 'microtask' | 'frame' | number

type Schedule = (flush: () => void) => (() => void) | undefined

/** What a hidden page, which paints no frames, waits between two notifications. */
const hiddenDelay = 50

/** The schedule for growth. The option is read anew each time, so that it may change and a page may hide. */
export function scheduleBy(session: {
  readonly options: { readonly notify?: Notify | undefined }
}): Schedule {
  return (flush) => {
    const notify = session.options.notify ?? defaultNotify()
    if (notify === 'sync') return undefined
    if (typeof notify === 'number') return delayed(flush, notify)
    if (notify === 'frame' && typeof requestAnimationFrame === 'function') return withNextFrame(flush)
    return soon(flush)
  }
}

function defaultNotify(): Notify {
  if (typeof document === 'undefined') return 'microtask'
  return document.hidden || typeof requestAnimationFrame !== 'function' ? hiddenDelay : 'frame'
}

function delayed(flush: () => void, ms: number): () => void {
  const timer = setTimeout(flush, ms)
  return () => clearTimeout(timer)
}

/** A page that is hidden before its frame comes would wait for ever: the timer is there for that. */
function withNextFrame(flush: () => void): () => void {
  const cancel = () => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
  }
  const run = () => {
    cancel()
    flush()
  }
  const frame = requestAnimationFrame(run)
  const timer = setTimeout(run, 4 * hiddenDelay)
  return cancel
}

function soon(flush: () => void): () => void {
  let wanted = true
  queueMicrotask(() => {
    if (wanted) flush()
  })
  return () => {
    wanted = false
  }
}
