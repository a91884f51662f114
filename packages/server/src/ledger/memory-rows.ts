import { byteLength } from '../encoding/bytes.js'
import { randomId } from '../encoding/ids.js'
import { untilWoken, wakeAll } from '../encoding/signals.js'
import { ledgerKey, type Owner } from './ledger.js'
import { type MemoryLog, memoryLog } from './memory-log.js'
import {
  type Change,
  type Decide,
  type ListedRows,
  type Room,
  type Row,
  type RowStore,
  resultWhenFull,
  type StoredRow,
} from './row-store.js'

export interface MemoryLimits {
  readonly maxRecords: number
  readonly maxSize: number
  readonly maxRecordsPerOwner: number
  readonly maxSizePerOwner: number
  readonly maxLogLines: number
}

interface MemoryRow extends Row {
  readonly owner: Owner
  readonly version: ''
  /** The characters that count towards the limits. */
  readonly size: number
  /** Bytes of the record. */
  readonly bytes: number
}

interface List {
  readonly names: Set<string>
  /** Bytes of all its records. */
  bytes: number
}

/** What the rows of one owner, or of all, take up, and may at most. */
interface Use {
  rows: number
  size: number
  readonly maxRows: number
  readonly maxSize: number
  /** Rows that can be dropped or shortened, oldest first. */
  readonly yielding: Set<string>
}

/** So many characters of a state do not count: the number of rows already bounds them. */
const SHORT = 1024

/**
 * Rows in this process's memory. Their number and their characters are limited, per owner and in total. When room is short, expendable
 * rows are dropped, and others shortened, the owner's own first, then the oldest. Any other row stays until it has expired, and a change of
 * it fits, unless it adds more than was reserved.
 */
export class MemoryRows implements RowStore {
  readonly durable = false
  readonly shortens = true
  readonly #rows = new Map<string, MemoryRow>()
  readonly #lists = new Map<string, List>()
  /** The row that was created last, by tag. */
  readonly #tags = new Map<string, string>()
  readonly #all: Use
  readonly #owners = new Map<Owner, Use>()
  readonly #log: MemoryLog
  readonly #waiting = new Waiting()
  #id: string | undefined
  /** Nothing expires before this time, in milliseconds since the epoch. */
  #sweepFrom = Number.POSITIVE_INFINITY
  /** Sweeping waits for this many rows, so that its cost stays constant per row. */
  #sweepAt = 1024

  constructor(
    private readonly limits: MemoryLimits,
    private readonly now: () => number,
    id: string | undefined,
  ) {
    this.#id = id
    this.#all = useOf(limits.maxRecords, limits.maxSize)
    this.#log = memoryLog(limits.maxLogLines)
  }

  // Generated on first use: some worker runtimes have no random values while modules are evaluated.
  get id(): string {
    this.#id ??= randomId('memory_')
    return this.#id
  }

  // Atomic because nothing is awaited between reading the rows and writing one.
  async update<Result>(owner: Owner, keys: readonly string[], decide: Decide<Result>): Promise<Result> {
    const [name = '', ...others] = keys.map((key) => ledgerKey(owner, key))
    const now = this.now()
    const before = this.#rows.get(name)
    const change = decide([before, ...others.map((other) => this.#rows.get(other))], now)
    if (change.row === undefined) return change.result
    if (change.row === null) this.#remove(name)
    else if (!this.#write(name, owner, change.row, change, now)) return resultWhenFull(change)
    this.#waiting.wake(name)
    return change.result
  }

  async list(owner: Owner, list: string): Promise<ListedRows> {
    const names = this.#lists.get(ledgerKey(owner, list))?.names ?? []
    return { rows: [...names].flatMap((name) => this.#withoutWords(name)), now: this.now() }
  }

  async latest(owner: Owner, tags: readonly string[]): Promise<StoredRow[]> {
    return tags.flatMap((tag) => this.#withoutWords(this.#tags.get(ledgerKey(owner, tag)) ?? ''))
  }

  async append(line: string, group: string): Promise<void> {
    this.#log.append(line, group)
  }

  lines(): AsyncIterable<string> {
    return this.#log.lines()
  }

  changed(owner: Owner, key: string, signal: AbortSignal): Promise<void> {
    return this.#waiting.wait(ledgerKey(owner, key), signal)
  }

  #withoutWords(name: string): StoredRow[] {
    const row = this.#rows.get(name)
    if (row === undefined) return []
    return row.words === undefined ? [row] : [{ ...row, words: undefined }]
  }

  /** Returns whether there was room. */
  #write(name: string, owner: Owner, row: Row, change: Change<unknown>, now: number): boolean {
    const before = this.#rows.get(name)
    if (before === undefined && this.#rows.size >= this.#sweepAt) this.#sweep(now)
    if (change.room !== undefined && !this.#fitsList(owner, row, change.room)) {
      this.#sweep(now, name)
      if (!this.#fitsList(owner, row, change.room)) return false
    }
    // A row never makes room for itself.
    if (before !== undefined) this.#stopYielding(name, before)
    const next = this.#fitted(name, owner, row, before, now)
    if (next === undefined) {
      // A row that may be dropped at any time may be dropped at once.
      if (row.expendable === true) this.#remove(name)
      else if (before !== undefined) this.#mayYield(name, before)
      return row.expendable === true && change.whenFull === undefined
    }
    this.#put(name, next, before)
    this.#trim(owner, next, change.newest)
    return true
  }

  /** The row, shortened if necessary, or undefined if there is no room. */
  #fitted(
    name: string,
    owner: Owner,
    row: Row,
    before: MemoryRow | undefined,
    now: number,
  ): MemoryRow | undefined {
    const bytes = before?.bytes ?? byteLength(row.record)
    for (const one of row.short === undefined ? [row] : [row, shortOf(row)]) {
      const size = sizeOf(one)
      if (this.#makeRoom(owner, name, before === undefined ? 1 : 0, size - (before?.size ?? 0), now)) {
        return { ...one, owner, size, bytes, version: '' }
      }
    }
    return undefined
  }

  #makeRoom(owner: Owner, name: string, rows: number, size: number, now: number): boolean {
    if (rows <= 0 && size <= 0) return true
    const own = this.#ownUse(owner)
    const fits = (use: Use) => use.rows + rows <= use.maxRows && (size <= 0 || use.size + size <= use.maxSize)
    if (!fits(this.#all) || !fits(own)) this.#sweep(now, name)
    for (const use of [own, this.#all]) {
      for (const one of use.yielding) {
        if (fits(use)) break
        this.#yield(one)
      }
    }
    return fits(this.#all) && fits(own)
  }

  /** What one owner uses. All requests without an owner share one half, which leaves room for everybody else. */
  #ownUse(owner: Owner): Use {
    const { maxRecords, maxSize, maxRecordsPerOwner, maxSizePerOwner } = this.limits
    const known = this.#owners.get(owner)
    if (known !== undefined) return known
    if (owner === null) return useOf(Math.ceil(maxRecords / 2), Math.ceil(maxSize / 2))
    return useOf(maxRecordsPerOwner, maxSizePerOwner)
  }

  #fitsList(owner: Owner, { list, record }: Row, room: Room): boolean {
    const { names, bytes } = this.#lists.get(ledgerKey(owner, list ?? '')) ?? { names: new Set(), bytes: 0 }
    return names.size < room.rows && bytes + byteLength(record) <= room.bytes
  }

  #trim(owner: Owner, { list }: Row, newest = Number.POSITIVE_INFINITY): void {
    const names = this.#lists.get(ledgerKey(owner, list ?? ''))?.names ?? new Set()
    for (const name of names) {
      if (names.size <= newest) return
      this.#remove(name)
    }
  }

  #put(name: string, row: MemoryRow, before: MemoryRow | undefined): void {
    this.#rows.set(name, row)
    this.#count(row.owner, before === undefined ? 1 : 0, row.size - (before?.size ?? 0))
    this.#mayYield(name, row)
    this.#sweepFrom = Math.min(this.#sweepFrom, row.keptUntil)
    if (before === undefined && row.tag !== undefined) this.#tags.set(ledgerKey(row.owner, row.tag), name)
    if (before?.list === row.list) return
    if (before !== undefined) this.#leaveList(name, before)
    if (row.list === undefined) return
    const key = ledgerKey(row.owner, row.list)
    const list = this.#lists.get(key) ?? { names: new Set(), bytes: 0 }
    this.#lists.set(key, list)
    list.names.add(name)
    list.bytes += row.bytes
  }

  #remove(name: string): void {
    const row = this.#rows.get(name)
    if (row === undefined) return
    this.#stopYielding(name, row)
    this.#rows.delete(name)
    this.#count(row.owner, -1, -row.size)
    this.#leaveList(name, row)
    const tag = row.tag === undefined ? '' : ledgerKey(row.owner, row.tag)
    if (this.#tags.get(tag) === name) this.#tags.delete(tag)
  }

  #leaveList(name: string, row: MemoryRow): void {
    const key = ledgerKey(row.owner, row.list ?? '')
    const list = this.#lists.get(key)
    if (list === undefined || !list.names.delete(name)) return
    list.bytes -= row.bytes
    if (list.names.size === 0) this.#lists.delete(key)
  }

  /** Counts what an owner uses or frees. Owners without rows are removed. */
  #count(owner: Owner, rows: number, size: number): void {
    const own = this.#ownUse(owner)
    for (const use of [own, this.#all]) {
      use.rows += rows
      use.size += size
    }
    if (own.rows > 0) this.#owners.set(owner, own)
    else this.#owners.delete(owner)
  }

  #mayYield(name: string, { owner, expendable, short }: MemoryRow): void {
    if (expendable !== true && short === undefined) return
    this.#owners.get(owner)?.yielding.add(name)
    this.#all.yielding.add(name)
  }

  #stopYielding(name: string, { owner }: MemoryRow): void {
    this.#owners.get(owner)?.yielding.delete(name)
    this.#all.yielding.delete(name)
  }

  /** Makes room: drops an expendable row, shortens another. */
  #yield(name: string): void {
    const row = this.#rows.get(name)
    if (row === undefined) return
    this.#stopYielding(name, row)
    const short = shortOf(row)
    if (row.short === undefined) this.#remove(name)
    else this.#put(name, { ...short, size: sizeOf(short) }, row)
  }

  /** Removes expired rows, except the row being written. */
  #sweep(now: number, written?: string): void {
    if (now < this.#sweepFrom) return
    this.#sweepFrom = Number.POSITIVE_INFINITY
    for (const [name, { keptUntil }] of this.#rows) {
      if (now >= keptUntil && name !== written) this.#remove(name)
      else this.#sweepFrom = Math.min(this.#sweepFrom, keptUntil)
    }
    this.#sweepAt = Math.max(1024, 2 * this.#rows.size)
  }
}

function useOf(maxRows: number, maxSize: number): Use {
  return { rows: 0, size: 0, maxRows, maxSize, yielding: new Set() }
}

function shortOf<Kind extends Row>(row: Kind): Kind {
  return { ...row, ...row.short, short: undefined }
}

function sizeOf({ record, state, words = '', reserved = 0 }: Row): number {
  const used = words.length * widthOf(words) + Math.max(0, state.length - SHORT) * widthOf(state)
  return record.length * widthOf(record) + Math.max(reserved * widthOf(record), used)
}

/** How often a character of a text counts: engines keep two bytes for each if any of them is beyond Latin-1. */
function widthOf(text: string): number {
  return /[^\0-\xff]/.test(text) ? 2 : 1
}

/** Waiters for changes of rows in this process. */
class Waiting {
  readonly #waiting = new Map<string, Set<() => void>>()

  wake(name: string): void {
    wakeAll(this.#waiting.get(name))
  }

  async wait(name: string, signal: AbortSignal): Promise<void> {
    const others = this.#waiting.get(name) ?? new Set()
    this.#waiting.set(name, others)
    await untilWoken(others, signal)
    if (others.size === 0 && this.#waiting.get(name) === others) this.#waiting.delete(name)
  }
}
