/** The readers of runs that are open, by the run's key. Of the process, as its memory is: an agent may be made for each request. */
export const readersOf = new Map<string, { join(): () => void; stop(): void }>()

/** Stops a run once its last reader has gone, or so many milliseconds later. `join` gives the function that says that one has gone. */
export function runReaders(key: string, goOnFor: number, stop: () => void) {
  const here = new Set<object>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const readers = {
    join() {
      const reader = {}
      here.add(reader)
      clearTimeout(timer)
      return () => {
        if (!here.delete(reader) || here.size > 0) return
        if (goOnFor <= 0) stop()
        else timer = setTimeout(stop, goOnFor)
      }
    },
    stop,
    end() {
      clearTimeout(timer)
      here.clear()
      if (readersOf.get(key) === readers) readersOf.delete(key)
    },
  }
  readersOf.set(key, readers)
  return readers
}
