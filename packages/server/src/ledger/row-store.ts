import { CountersignError } from '@countersign/core'
import type { Owner } from './ledger.js'

/** What a ledger keeps of one approval or one grant. The three texts are JSON. */
export interface Row {
  /** Written once, when the row is made. */
  readonly record: string
  /** Replaced whenever the row changes. */
  readonly state: string
  /** Long texts of a person, which `list` and `latest` leave out. */
  readonly words?: string | undefined
  /** The list that the row is in, among the rows of its owner. A row that changes may leave its list, or enter one. */
  readonly list?: string | undefined
  /** By which `latest` finds it, among the rows of its owner. Never changes. */
  readonly tag?: string | undefined
  /** Milliseconds since the epoch. From then on the store may remove the row. */
  readonly keptUntil: number
  /** The row may go whenever its store needs room, the oldest first: what is forgotten is asked about again. */
  readonly expendable?: boolean | undefined
  /** What may take the place of `state` where a store needs room. */
  readonly shortState?: string | undefined
}

/** A row as a store gives it back. */
export interface StoredRow extends Pick<Row, 'record' | 'state' | 'words' | 'keptUntil'> {
  /** Another one after each change, and never one that any row has had before. */
  readonly version: string
}

/** What becomes of the row of the first key. */
export interface Change<Result> {
  readonly result: Result
  /** The new row, or `null` to remove it. Absent: nothing changes. */
  readonly row?: Row | null | undefined
  /** How many rows the row's list may have, and how many bytes their `record` texts together. Beyond it the change does not fit. */
  readonly room?: Room | undefined
  /** The row's list keeps only so many rows; the oldest are removed. */
  readonly newest?: number | undefined
  /** The result where the change does not fit. Default: the update rejects with `ledger-unavailable`. */
  readonly whenFull?: Result | undefined
  /**
   * What the row was before, where the change must not stand if its caller was told that it failed. A store that cannot be sure takes it back,
   * until the time given in milliseconds since the epoch.
   */
  readonly undo?: { readonly row: Row; readonly until: number } | undefined
}

export interface Room {
  readonly rows: number
  readonly bytes: number
}

/** Decides with the rows as they are now (milliseconds since the epoch). Pure: it may be called several times. */
export type Decide<Result> = (rows: readonly (StoredRow | undefined)[], now: number) => Change<Result>

export interface ListedRows {
  readonly rows: readonly StoredRow[]
  /** Milliseconds since the epoch. */
  readonly now: number
}

/**
 * Where a ledger keeps its rows. All that a ledger promises is decided above it, in `createLedger`; a store only has to read and write a row
 * as one step. Keys, lists and tags are names of any length, and each owner has names of their own. A store that cannot be reached rejects
 * with `ledger-unavailable`.
 */
export interface RowStore {
  /** Stable identity of what is stored. */
  readonly id: string
  /** Whether rows survive a restart of this process. */
  readonly durable: boolean
  /** Whether this store may use `shortState`, which costs a hash of each long outcome. Default false. */
  readonly shortens?: boolean | undefined
  /**
   * Reads the rows of these keys, one to three, and writes what `decide` makes of the first, as one step: nobody changes any of them in
   * between. A store that has no such step is made by {@link compareAndSwap}.
   */
  update<Result>(owner: Owner, keys: readonly string[], decide: Decide<Result>): Promise<Result>
  /** The rows of a list, without their `words`, in the order in which they entered it. */
  list(owner: Owner, list: string): Promise<ListedRows>
  /** Of each tag the row that was made last, without its `words`; in any order. */
  latest(owner: Owner, tags: readonly string[]): Promise<readonly StoredRow[]>
  /** Adds a line to the log. `group` is whose line it is: a store that keeps few lines keeps some of everybody's. */
  append(line: string, group: string): Promise<void>
  /** The log, oldest line first, as far as it is kept. */
  lines(): AsyncIterable<string>
  /** Resolves when the row may have changed, or `signal` aborts. Optional. */
  readonly changed?: ((owner: Owner, key: string, signal: AbortSignal) => Promise<void>) | undefined
}

/**
 * The result of a change that does not fit.
 *
 * @throws CountersignError `ledger-unavailable` where the change names none.
 */
export function resultWhenFull<Result>({ whenFull }: Change<Result>): Result {
  if (whenFull !== undefined) return whenFull
  throw new CountersignError('ledger-unavailable', 'The ledger has no room for this answer.')
}
