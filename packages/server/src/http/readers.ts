import { ownerOfRun } from '../encoding/ids.js'

/** The readers of open runs, by the run's key. Per process, like its memory: agents may be created per request. */
export const readersOf = new Map<string, { join(): () => void; stop(): void }>()

/** Runs that were stopped before they began: the request that stops one may arrive first. The last ones only, of whoever has the most. */
const stoppedEarly = new Set<string>()
const MAX_STOPPED = 1000

/** What stops a run that waits for its conversation. */
const opening = new Map<string, () => void>()

/** Calls `stop` if the run is stopped, or was stopped before, until the function that this returns is called. */
export function whileOpening(key: string | undefined, stop: () => void): () => void {
  if (key === undefined) return () => {}
  opening.set(key, stop)
  if (stoppedEarly.has(key)) stop()
  return () => {
    if (opening.get(key) === stop) opening.delete(key)
  }
}

/** Stops a run of this process now, or as soon as it begins. */
export function stopNow(key: string): void {
  opening.get(key)?.()
  const readers = readersOf.get(key)
  readers?.stop()
  if (!readers) stoppedEarly.add(key)
  if (stoppedEarly.size > MAX_STOPPED) forgetOne()
}

function forgetOne(): void {
  const counts = new Map<string, number>()
  for (const one of stoppedEarly) counts.set(ownerOfRun(one), (counts.get(ownerOfRun(one)) ?? 0) + 1)
  const most = Math.max(...counts.values())
  for (const one of stoppedEarly)
    if (counts.get(ownerOfRun(one)) === most) return void stoppedEarly.delete(one)
}

/** Stops a run `goOnFor` milliseconds after its last reader has gone. `join` returns the function that reports a reader gone. */
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
  if (stoppedEarly.delete(key)) stop()
  return readers
}
