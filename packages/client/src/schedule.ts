/** When listeners are notified of growth: at every delta and event, in a microtask, with the next paint, or every so many milliseconds. */
export type Notify = 'sync' | 'microtask' | 'frame' | number

type Schedule = (flush: () => void) => (() => void) | undefined

/** Milliseconds between notifications on a hidden page, which paints no frames. */
const hiddenDelay = 50

/** The schedule for growth. Reads the option each time, because it may change and the page may be hidden. */
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

/** The timer is for a page that is hidden before its frame is painted: it would wait forever. */
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
