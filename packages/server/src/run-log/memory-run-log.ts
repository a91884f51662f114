import { checkOptions, method, positiveNumber, wholeNumber } from '../encoding/check-options.js'
import { ownerOfRun } from '../encoding/ids.js'
import { untilWoken, wakeAll } from '../encoding/signals.js'
import type { LoggedEvent, RunLog } from './run-log.js'

export interface MemoryRunLogOptions {
  /** Milliseconds that a run is kept after its end. Default 5 minutes. */
  readonly keepFor?: number | undefined
  /**
   * How many runs are kept. Beyond that, the user who has the most loses one: the oldest, ended runs before open ones. Callers without a
   * `subject` count as one user. Default 1,000.
   */
  readonly maxRuns?: number | undefined
  /** UTF-16 units of one run. A longer record is dropped whole: the run continues, but can't be rejoined. Default 4 Mi. */
  readonly maxRunSize?: number | undefined
  /** UTF-16 units of all runs together; beyond that, the user who has the most loses runs, as with `maxRuns`. Default 16 Mi. */
  readonly maxSize?: number | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: (() => number) | undefined
}

/** How many events a reader gets at once: if it stalls, it holds no more than these. */
const MAX_BATCH = 64

interface KeptRun {
  readonly owner: string
  readonly events: string[]
  readonly readers: Set<() => void>
  size: number
  state: 'open' | 'ended' | 'dropped'
  endedAt: number
}

/**
 * A run log in memory, for one process. Everything is bounded. There are no timers: expired records are dropped when the next run starts.
 *
 * @throws CountersignError `invalid-option`
 */
export function memoryRunLog(options: MemoryRunLogOptions = {}): RunLog {
  checkOptions('memoryRunLog', options, {
    keepFor: positiveNumber,
    maxRuns: wholeNumber,
    maxRunSize: wholeNumber,
    maxSize: wholeNumber,
    now: method,
  })
  const { now = Date.now, keepFor = 5 * 60_000, maxRuns = 1000 } = options
  const { maxRunSize = 4 * 1024 * 1024, maxSize = 16 * 1024 * 1024 } = options
  const runs = new Map<string, KeptRun>()
  let size = 0

  function drop(runKey: string, record: KeptRun): void {
    if (runs.get(runKey) === record) runs.delete(runKey)
    if (record.state === 'dropped') return
    record.state = 'dropped'
    size -= record.size
    record.events.length = 0
    wakeAll(record.readers)
  }

  /** Makes room: drops expired records, then, of whoever has the most, the oldest that has ended, or the oldest. */
  function shrink(spare?: KeptRun): void {
    for (const [runKey, record] of runs) {
      if (record.state === 'ended' && record.endedAt + keepFor <= now()) drop(runKey, record)
    }
    for (;;) {
      const measure = runs.size > maxRuns ? () => 1 : size > maxSize ? (one: KeptRun) => one.size : undefined
      if (measure === undefined) return
      const loser = firstOfLargest(
        [...runs].filter(([, one]) => one !== spare),
        measure,
      )
      if (loser === undefined) return
      drop(...loser)
    }
  }

  return {
    async begin(runKey) {
      const older = runs.get(runKey)
      if (older !== undefined) drop(runKey, older)
      const owner = ownerOfRun(runKey)
      const record: KeptRun = { owner, events: [], readers: new Set(), size: 0, state: 'open', endedAt: 0 }
      runs.set(runKey, record)
      shrink(record)
      return {
        append(events) {
          if (record.state !== 'open') return undefined
          let more = 0
          for (const event of events) more += event.length
          if (record.size + more > maxRunSize) {
            drop(runKey, record)
            return undefined
          }
          record.events.push(...events)
          record.size += more
          size += more
          if (size > maxSize) shrink(record)
          wakeAll(record.readers)
          return undefined
        },
        async end() {
          if (record.state !== 'open') return
          record.state = 'ended'
          record.endedAt = now()
          wakeAll(record.readers)
        },
      }
    },
    async read(runKey, after, signal, { wait = true } = {}) {
      const record = runs.get(runKey)
      if (record === undefined || after > record.events.length) return undefined
      if (record.state === 'ended') {
        if (record.endedAt + keepFor <= now()) drop(runKey, record)
        if (after >= record.events.length) return undefined
      }
      return follow(record, after, signal, wait)
    },
  }
}

/** The record to drop, if that makes room. */
function firstOfLargest(
  kept: readonly (readonly [string, KeptRun])[],
  measure: (record: KeptRun) => number,
): readonly [string, KeptRun] | undefined {
  const use = new Map<string, number>()
  for (const [, one] of kept) use.set(one.owner, (use.get(one.owner) ?? 0) + measure(one))
  const most = Math.max(...use.values())
  if (most <= 0) return undefined
  const theirs = kept.filter(([, one]) => use.get(one.owner) === most)
  return theirs.find(([, one]) => one.state === 'ended') ?? theirs[0]
}

async function* follow(
  record: KeptRun,
  after: number,
  signal: AbortSignal,
  wait: boolean,
): AsyncGenerator<readonly LoggedEvent[]> {
  let read = after
  while (!signal.aborted && record.state !== 'dropped') {
    const from = read
    const batch = record.events
      .slice(from, from + MAX_BATCH)
      .map((data, index) => ({ n: from + index + 1, data }))
    read += batch.length
    if (batch.length > 0) yield batch
    else if (wait && record.state === 'open') await untilWoken(record.readers, signal)
    else return
  }
}

let shared: RunLog | undefined

/** The log of this process, for agents that were given none. */
export function defaultRunLog(): RunLog {
  shared ??= memoryRunLog()
  return shared
}
