/** The last attempt to open a stream, and the milliseconds until the next one may follow. */
export interface Attempt {
  readonly at: number
  readonly gap: number
}

export const NO_ATTEMPT: Attempt = { at: Number.NEGATIVE_INFINITY, gap: 0 }

const LEAST_GAP = 1000
const MOST_GAP = 10_000

/**
 * When to open a stream again. A server that ends its streams at once, and asks for the next at once (`retry: 0`), would otherwise be
 * asked hundreds of times a second. Each attempt that has to wait makes the next one wait longer; there is no limit to their number, since
 * a server may well end its stream again and again, and have the client come back (polling).
 */
export function nextAttempt({ at, gap }: Attempt, now: number): Attempt {
  const earliest = at + gap
  if (now >= earliest) return { at: now, gap: LEAST_GAP }
  return { at: earliest, gap: Math.min(1.5 * gap, MOST_GAP) }
}
