import type { ChatStore } from '@countersign/core'

/** The longest delay a timer takes. */
const longest = 2 ** 31 - 1

/** After a change those that wait are looked through this much later (ms), once for all changes until then. */
const soon = 50

/**
 * Closes requests whose time has run out, while somebody watches.
 * `look` is to be called when the watch begins and `changed` after every change; `stop` leaves no timer behind.
 */
export function createExpiry(
  { state }: ChatStore,
  now: () => number,
  close: (ids: readonly string[]) => void,
) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let wakesAt = Number.POSITIVE_INFINITY

  function stop(): void {
    // While nothing waits this is called at every change: then it should cost nothing.
    if (timer === undefined) return
    clearTimeout(timer)
    timer = undefined
    wakesAt = Number.POSITIVE_INFINITY
  }

  function wake(at: number, delay: number): void {
    if (at >= wakesAt) return
    stop()
    wakesAt = at
    timer = setTimeout(look, Math.min(delay, longest))
  }

  function look(): void {
    stop()
    const present = now()
    const over: string[] = []
    let next = Number.POSITIVE_INFINITY
    for (const { approval } of state.asked) {
      if (!approval) continue
      const at = expiryOf(approval)
      if (at <= present) over.push(approval.id)
      else next = Math.min(next, at)
    }
    wake(next, next - present)
    if (over.length > 0) close(over)
  }

  /** For every one of a thousand requests to look through all that wait would cost the square of their number. */
  function changed(): void {
    if (state.asked.length === 0) stop()
    // 0 comes before the time of any request.
    else wake(0, soon)
  }

  return { look, changed, stop }
}

/** AG-UI leaves the form of `expiresAt` open: what is no ISO date never expires. `Date.parse` takes '300' for a year, '5 min' for a month. */
export function expiryOf({ expiresAt }: { readonly expiresAt?: string }): number {
  const at = /^\d{4}-\d\d-\d\d/.test(String(expiresAt)) ? Date.parse(String(expiresAt)) : Number.NaN
  return Number.isNaN(at) ? Number.POSITIVE_INFINITY : at
}
