import { CountersignError } from '@countersign/core'
import type { Owner } from './ledger.js'

/** What a ledger stores for one approval or one grant. `record`, `state` and `words` are JSON. */
export interface Row {
  /** Written once, when the row is made. */
  readonly record: string
  /** Replaced whenever the row changes. */
  readonly state: string
  /** Long texts written by the user, which `list` and `latest` omit. */
  readonly words?: string | undefined
  /** The list of its owner that contains the row. A change may move a row out of its list, or into one. */
  readonly list?: string | undefined
  /** `latest` finds the row by it, among the rows of its owner. Never changes. */
  readonly tag?: string | undefined
  /** Milliseconds since the epoch. From then on the store may remove the row. */
  readonly keptUntil: number
  /** The store may drop the row when it needs room, oldest first: the user is then asked for approval again. */
  readonly expendable?: boolean | undefined
  /** Characters that a store with limited room keeps for `state` and `words`, whatever they have now: an answer and its outcome must fit. */
  readonly reserved?: number | undefined
  /** May replace these when a store needs room. */
  readonly short?: Pick<Row, 'state' | 'words' | 'reserved'> | undefined
}

/** A row as a store returns it. */
export interface StoredRow extends Pick<Row, 'record' | 'state' | 'words' | 'keptUntil'> {
  /** Changes with every write, and is never one that any row has had before. */
  readonly version: string
}

/** The change to the row of the first key. */
export interface Change<Result> {
  readonly result: Result
  /** The new row, or `null` to remove it. Absent: no change. */
  readonly row?: Row | null | undefined
  /** How many rows the row's list may have, and how many bytes their `record` texts together. Beyond that, the change does not fit. */
  readonly room?: Room | undefined
  /** The row's list keeps only this many rows; the oldest are removed. */
  readonly newest?: number | undefined
  /**
   * The result if the change does not fit. Default: the update rejects with `ledger-unavailable`, or an expendable row is dropped at once.
   */
  readonly whenFull?: Result | undefined
  /**
   * The previous row, for a change that must not stand if its caller was told that it failed. A store that can't be sure restores it,
   * until this time, in milliseconds since the epoch.
   */
  readonly undo?: { readonly row: Row; readonly until: number } | undefined
}

export interface Room {
  readonly rows: number
  readonly bytes: number
}

/** Decides from the current rows and time (milliseconds since the epoch). Pure: may be called several times. */
export type Decide<Result> = (rows: readonly (StoredRow | undefined)[], now: number) => Change<Result>

export interface ListedRows {
  readonly rows: readonly StoredRow[]
  /** Milliseconds since the epoch. */
  readonly now: number
}

/**
 * Where a ledger keeps its rows. `createLedger` decides everything that a ledger promises; a store only has to read and write a row in one
 * atomic step. Keys, lists and tags are strings of any length, separate for each owner. A store that can't be reached rejects with
 * `ledger-unavailable`.
 */
export interface RowStore {
  /** Stable identity of what is stored. */
  readonly id: string
  /** Whether rows survive a restart of this process. */
  readonly durable: boolean
  /** Whether this store may use `short`, which costs a hash of each long outcome. Default false. */
  readonly shortens?: boolean | undefined
  /**
   * Reads the rows of one to three keys and writes what `decide` returns for the first, in one atomic step: nobody changes any of them in
   * between. {@link compareAndSwap} implements it for stores without such a step.
   */
  update<Result>(owner: Owner, keys: readonly string[], decide: Decide<Result>): Promise<Result>
  /** The rows of a list in the order in which they entered it, without their `words`. */
  list(owner: Owner, list: string): Promise<ListedRows>
  /** For each tag, the row that was created last, without its `words`; in any order. */
  latest(owner: Owner, tags: readonly string[]): Promise<readonly StoredRow[]>
  /** Adds a line to the log. A store that keeps few lines keeps some of every `group`. */
  append(line: string, group: string): Promise<void>
  /** The log, oldest line first, as far as it is kept. */
  lines(): AsyncIterable<string>
  /** Resolves when the row may have changed, or `signal` aborts. Optional. */
  readonly changed?: ((owner: Owner, key: string, signal: AbortSignal) => Promise<void>) | undefined
}

/**
 * The result of a change that does not fit.
 *
 * @throws CountersignError `ledger-unavailable` if the change has no `whenFull`.
 */
export function resultWhenFull<Result>({ whenFull }: Change<Result>): Result {
  if (whenFull !== undefined) return whenFull
  throw new CountersignError('ledger-unavailable', 'The ledger has no room for this answer.')
}
