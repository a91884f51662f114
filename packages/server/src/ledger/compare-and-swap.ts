import { randomId } from '../encoding/ids.js'
import { sleep } from '../encoding/signals.js'
import type { Owner } from './ledger.js'
import {
  type Change,
  type Decide,
  type Room,
  type Row,
  type RowStore,
  resultWhenFull,
  type StoredRow,
} from './row-store.js'

/** A row to write, only if nothing has changed since it was read. */
export interface Swap {
  readonly owner: Owner
  readonly key: string
  /** The version that the row must have. Absent: the row must not exist. */
  readonly was: string | undefined
  /** Other rows that must still have these versions. Undefined: the row must still not exist. */
  readonly others: readonly { readonly key: string; readonly version: string | undefined }[]
  /** The new row and its version, or `null` to remove it. */
  readonly row: (Row & { readonly version: string }) | null
  readonly room?: Room | undefined
  readonly newest?: number | undefined
  /** When the change was decided: `now` of {@link RowsNow}. */
  readonly now: number
  /** By the store's clock, in milliseconds since the epoch. From then on the row must not be written: its sender has reported a failure. */
  readonly notAfter: number
}

export interface RowsNow {
  readonly rows: readonly (StoredRow | undefined)[]
  /** Milliseconds since the epoch, by the clock for leases and expiries. */
  readonly now: number
  /** The same by the store's own clock, even if the ledger was given another. */
  readonly clock: number
}

/** What a networked store can do. Both methods reject if it can't be reached, or refuses. */
export interface RemoteRows {
  get(owner: Owner, keys: readonly string[]): Promise<RowsNow>
  /** `changed`: nothing was written, because something has changed since it was read. `full`: the row does not fit. */
  swap(swap: Swap): Promise<'swapped' | 'changed' | 'full'>
}

/**
 * Does `work` within the time for one operation; `left` returns the remaining milliseconds. Failures to reach the store become
 * `ledger-unavailable`.
 */
export type Within = <Result>(
  work: (rows: RemoteRows, left: () => number) => Promise<Result>,
) => Promise<Result>

/** A change that was sent, but may not have arrived. */
interface Sent extends Pick<Swap, 'owner' | 'key' | 'notAfter'> {
  readonly version: string
  /** The row to restore. */
  readonly before: Row
  /** When the change must no longer be undone, by `performance.now()`. */
  readonly end: number
}

/** Milliseconds between two attempts to undo a change. */
const AGAIN_MS = 500

/**
 * `update` for a store that can't lock a row during a decision: reads, decides here, and writes only if nobody else has written in between.
 * If the connection breaks during the write, a second read shows whether it arrived. If the time is over before that is known, nothing
 * more is written, and a change with `undo` is undone.
 */
export function compareAndSwap(within: Within): RowStore['update'] {
  return async function update<Result>(
    owner: Owner,
    keys: readonly string[],
    decide: Decide<Result>,
  ): Promise<Result> {
    let sent: Sent | undefined
    const work = async (remote: RemoteRows, left: () => number) => {
      let doubtful: { readonly version: string; readonly result: Result } | undefined
      for (;;) {
        const { rows, now, clock } = await remote.get(owner, keys)
        const [row] = rows
        if (doubtful !== undefined && row?.version === doubtful.version) return doubtful.result
        const change = decide(rows, now)
        if (change.row === undefined || (change.row === null && row === undefined)) return change.result
        const notAfter = clock + Math.floor(left())
        const swap = swapOf(owner, keys, rows, change, { now, notAfter })
        const version = swap.row?.version ?? ''
        if (change.undo !== undefined) {
          const end = performance.now() + change.undo.until - now
          sent = { owner, key: swap.key, version, before: change.undo.row, notAfter, end }
        }
        const outcome = await remote.swap(swap).catch((error: unknown) => {
          if (doubtful !== undefined) throw error
          doubtful = { version, result: change.result }
        })
        if (outcome === 'swapped') return change.result
        if (outcome === 'full') return resultWhenFull(change)
      }
    }
    try {
      return await within(work)
    } catch (error) {
      if (sent !== undefined) void takeBack(within, sent)
      throw error
    }
  }
}

/** The write of a change. `rows` are those that must not have changed since it was decided. */
export function swapOf(
  owner: Owner,
  keys: readonly string[],
  [row, ...others]: readonly (StoredRow | undefined)[],
  { row: next = null, room, newest }: Pick<Change<unknown>, 'row' | 'room' | 'newest'>,
  { now, notAfter }: Pick<Swap, 'now' | 'notAfter'>,
): Swap {
  return {
    ...{ owner, key: keys[0] ?? '', was: row?.version, room, newest, now, notAfter },
    others: others.map((other, index) => ({ key: keys[index + 1] ?? '', version: other?.version })),
    row: next && { ...next, version: randomId('') },
  }
}

/** Retries until the change must no longer be undone, because the store may be out of reach. */
async function takeBack(within: Within, sent: Sent): Promise<void> {
  while (performance.now() < sent.end) {
    const isOver = await within((remote, left) => tryToTakeBack(remote, left, sent)).catch(() => false)
    if (isOver) return
    await sleep(AGAIN_MS, undefined, false)
  }
}

/** Returns whether nothing is left to undo. */
async function tryToTakeBack(remote: RemoteRows, left: () => number, sent: Sent): Promise<boolean> {
  const { owner, key, before, version } = sent
  const { rows, now, clock } = await remote.get(owner, [key])
  const [row] = rows
  if (row === undefined) return true
  // It has not arrived, but may still be on its way.
  if (row.version !== version) return clock > sent.notAfter
  // One millisecond early, because clocks round.
  const rest = sent.end - performance.now()
  if (rest <= 1) return true
  const restored = { ...before, version: randomId('') }
  const notAfter = clock + Math.floor(Math.min(left(), rest - 1))
  const outcome = await remote.swap({ owner, key, was: version, others: [], row: restored, now, notAfter })
  return outcome === 'swapped'
}
