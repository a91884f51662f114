import type { ChatSnapshot } from '@countersign/core'

/** The longest delay a timer takes. */
const longest = 2 ** 31 - 1

/**
 * Closes requests whose time has run out, while somebody watches. Sends nothing: the server learns of it with the next request.
 * `check` is to be called after every change; `stop` leaves no timer behind.
 */
export function createExpiry(now: () => number, close: (ids: readonly string[]) => void) {
  let timer: ReturnType<typeof setTimeout> | undefined
  /** What waits now, also where the timer was set before. */
  let waiting: ChatSnapshot['pendingApprovals'] = []
  let due = Number.POSITIVE_INFINITY

  function stop(): void {
    clearTimeout(timer)
    timer = undefined
    due = Number.POSITIVE_INFINITY
  }

  function check(pendingApprovals: ChatSnapshot['pendingApprovals']): void {
    waiting = pendingApprovals
    const next = Math.min(...waiting.map(({ approval }) => expiryOf(approval)))
    if (next === due) return
    stop()
    if (!Number.isFinite(next)) return
    due = next
    timer = setTimeout(
      () => {
        stop()
        const over = waiting.filter(({ approval }) => expiryOf(approval) <= now())
        // None where the time was further off than a timer takes: wait for the rest of it.
        if (over.length > 0) close(over.map(({ approval }) => approval.id))
        else check(waiting)
      },
      Math.min(Math.max(next - now(), 0), longest),
    )
  }

  return { check, stop }
}

/** AG-UI leaves the form of `expiresAt` open: what is no date never expires. */
export function expiryOf(approval: { readonly expiresAt?: string }): number {
  const at = Date.parse(approval.expiresAt ?? '')
  return Number.isNaN(at) ? Number.POSITIVE_INFINITY : at
}
