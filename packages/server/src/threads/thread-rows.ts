/** The row of a thread that every change goes through. A store compares `stamp` before it writes anything of the thread. */
export interface HeaderRow {
  /** Identifies the thread among all owners: a hash. */
  readonly thread: string
  /** Changes with every write, and is never one that any header has had before. */
  readonly stamp: string
  readonly version: number
  /** Whole milliseconds since the epoch; `list` orders by it. `null`: the thread does not exist yet, and `list` leaves it out. */
  readonly updatedAt: number | null
  /** Milliseconds since the epoch at which the lease of its run ends. `null`: no run holds it. */
  readonly leaseUntil: number | null
  /** Bytes that its owner can't use elsewhere, in a store with a limit for them. */
  readonly spare?: number
  /** JSON text. */
  readonly body: string
}

/** A message, or the usage of a run. */
export interface ItemRow {
  /** Unique in its thread: a letter and a hash. */
  readonly name: string
  /** The version of the thread at which it was last written. */
  readonly version: number
  /** Its place among the items of the thread. It never changes. */
  readonly place: number
  readonly size: number
  /** JSON text. */
  readonly meta: string
  /** JSON text. */
  readonly body: string
}

/** A thread's header, and which of the requested items exist. */
export interface ThreadLook {
  readonly header: HeaderRow | undefined
  readonly items: readonly Pick<ItemRow, 'name' | 'place' | 'size'>[]
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Written in one atomic step, only if the header has not changed since it was read. */
export interface ThreadWrite {
  readonly owner: string
  readonly thread: string
  /** The header as it was read. Absent: there must be none. */
  readonly before: HeaderRow | undefined
  /** The new header, or `null` to remove the thread with all its items. */
  readonly header: HeaderRow | null
  /** Added, or replaced by name. */
  readonly items: readonly ItemRow[]
}

/** A position in the list of an owner: behind the thread `thread` when it had this `updatedAt`. */
export interface ListPosition {
  readonly updatedAt: number
  readonly thread: string
}

/** What a backend must be able to do. Owners and threads are hashes. Each method is one atomic step. */
export interface ThreadRows {
  look(owner: string, thread: string, items: readonly string[]): Promise<ThreadLook>
  /** The header, and all items written after version `after` by their `place`; `undefined` if there is no header. */
  read(
    owner: string,
    thread: string,
    after: number,
  ): Promise<
    | {
        readonly header: HeaderRow
        readonly items: readonly Pick<ItemRow, 'name' | 'meta' | 'body'>[]
        readonly now: number
      }
    | undefined
  >
  /** `changed`: nothing was written, because the header has changed since it was read. `full`: the store has no room. */
  write(write: ThreadWrite): Promise<'written' | 'changed' | 'full'>
  /** How many threads of this owner `list` would list. */
  count(owner: string): Promise<number>
  /** Headers with an `updatedAt`, by `updatedAt` and then by `thread`, both descending. */
  list(
    owner: string,
    limit: number,
    after: ListPosition | undefined,
  ): Promise<{ readonly headers: readonly HeaderRow[]; readonly now: number }>
  /** Headers of all owners whose `leaseUntil` has passed, the oldest first. */
  lapsed(limit: number): Promise<readonly HeaderRow[]>
}

/** Storage for {@link createThreads}, which implements everything that a thread store promises. */
export interface ThreadBackend {
  /** Stable identity of what is stored. */
  readonly id: string
  /** Whether threads survive a restart of this process. */
  readonly durable: boolean
  /** Does `work` within the time for one operation. Failures to reach the store reject with `ledger-unavailable`. */
  within<Result>(work: (rows: ThreadRows) => Promise<Result>): Promise<Result>
}
