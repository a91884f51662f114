/** Waiters for changes of rows in this process. */
export interface Waiting {
  wake(name: string): void
  wait(name: string, signal: AbortSignal): Promise<void>
}

export function waitingForRows(): Waiting {
  const waiting = new Map<string, Set<() => void>>()
  return {
    wake(name) {
      for (const wake of waiting.get(name) ?? []) wake()
    },
    wait(name, signal) {
      return new Promise((resolve) => {
        const wake = () => {
          const others = waiting.get(name)
          others?.delete(wake)
          if (others?.size === 0) waiting.delete(name)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        if (signal.aborted) return resolve()
        const others = waiting.get(name)
        if (others === undefined) waiting.set(name, new Set([wake]))
        else others.add(wake)
        signal.addEventListener('abort', wake)
      })
    },
  }
}
