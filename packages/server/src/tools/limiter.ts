/** Runs a task when there is room for it. */
export type Limiter = <T>(task: () => Promise<T>) => Promise<T>

/** At most `most` tasks at once, the others in order of arrival. */
export function createLimiter(most: number): Limiter {
  const waiting: (() => void)[] = []
  let running = 0
  const leave = () => {
    running--
    waiting.shift()?.()
  }
  return async (task) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve))
    running++
    try {
      return await task()
    } finally {
      leave()
    }
  }
}
