import { ownerOfRun } from '../encoding/ids.js'

/** The readers of open runs, by the run's key. Per process, like its memory: agents may be created per request. */
export const readersOf = new Map<string, { join(): () => void; stop(): void }>()

/** Runs that were stopped before they began, by owner: the request that stops one may arrive first. The last ones of whoever has the most. */
const stoppedEarly = new Map<string, Set<string>>()
const MAX_STOPPED = 1000

/** What stops a run that waits for its conversation. */
const opening = new Map<string, () => void>()

/** Calls `stop` if the run is stopped, or was stopped before, until the function that this returns is called. */
export function whileOpening(key: string | undefined, stop: () => void): () => void {
  if (key === undefined) return () => {}
  opening.set(key, stop)
  if (stoppedEarly.get(ownerOfRun(key))?.has(key)) stop()
  return () => {
    if (opening.get(key) === stop) opening.delete(key)
  }
}

/** Stops a run of this process now, or as soon as it begins. */
export function stopNow(key: string): void {
  opening.get(key)?.()
  const readers = readersOf.get(key)
  readers?.stop()
  if (!readers) keepStop(key)
}

function keepStop(key: string): void {
  const own = (stoppedEarly.get(ownerOfRun(key)) ?? new Set()).add(key)
  stoppedEarly.set(ownerOfRun(key), own)
  let [kept, most] = [0, own]
  for (const other of stoppedEarly.values()) {
    kept += other.size
    if (other.size > most.size) most = other
  }
  const [first = key] = most
  if (kept > MAX_STOPPED) takeStop(first)
}

/** Whether the run was stopped before it began. Forgets the stop. */
function takeStop(key: string): boolean {
  const own = stoppedEarly.get(ownerOfRun(key))
  const isKept = own?.delete(key) === true
  if (own?.size === 0) stoppedEarly.delete(ownerOfRun(key))
  return isKept
}

/**
 * Calls `leave` `goOnFor` milliseconds after the last reader of a run has gone, and `stop` if its user stops it. `join` returns the function
 * that reports a reader gone.
 */
export function runReaders(key: string, goOnFor: number, stop: () => void, leave = stop) {
  const here = new Set<object>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const readers = {
    join() {
      const reader = {}
      here.add(reader)
      clearTimeout(timer)
      return () => {
        if (!here.delete(reader) || here.size > 0) return
        if (goOnFor <= 0) leave()
        else timer = setTimeout(leave, goOnFor)
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
  if (takeStop(key)) stop()
  return readers
}
