export type Limiter = <T>(task: () => Promise<T>) => Promise<T>

/** Runs at most `most` tasks at once, the others in order of arrival. */
export function createLimiter(most: number): Limiter {
  const waiting: (() => void)[] = []
  let running = 0
  return async (task) => {
    // A finished task passes its place directly to the next, so that no newcomer can take it.
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await task()
    } finally {
      const next = waiting.shift()
      if (next === undefined) running--
      else next()
    }
  }
}
