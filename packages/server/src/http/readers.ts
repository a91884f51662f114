/** The readers of a run that is open in this process. */
export interface RunReaders {
  /** One more reads. The function that comes back says that it has gone. */
  join(): () => void
  stop(): void
  /** The run is over. */
  end(): void
}

/** By the run's key. Of the process, as its memory is: an agent may be made for each request. */
const open = new Map<string, RunReaders>()

/** Stops a run that nobody reads any more, at once or so many milliseconds after its last reader has gone. */
export function runReaders(key: string | undefined, goOnFor: number, stop: () => void): RunReaders {
  let count = 0
  let ended = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const readers: RunReaders = {
    join() {
      count++
      clearTimeout(timer)
      let isHere = true
      return () => {
        if (!isHere) return
        isHere = false
        count--
        if (count > 0 || ended) return
        if (goOnFor <= 0) stop()
        else timer = setTimeout(stop, goOnFor)
      }
    },
    stop,
    end() {
      ended = true
      clearTimeout(timer)
      if (key !== undefined && open.get(key) === readers) open.delete(key)
    },
  }
  if (key !== undefined) open.set(key, readers)
  return readers
}

/** The readers of that run, where it is open in this process. */
export function readersOf(key: string): RunReaders | undefined {
  return open.get(key)
}
