import {
  type ApprovalRecord,
  type ApprovalRef,
  type ApprovalState,
  type LedgerEntry,
  ledgerKey,
  type Owner,
} from './ledger.js'
import { keptUntil } from './ledger-row.js'
import type { UnavailableOutcome } from './outcome.js'

interface Row extends LedgerEntry {
  /** Characters of the record and of the answer's arguments. */
  readonly size: number
}

/** What the rows of one owner take. */
interface OwnerUse {
  rows: number
  size: number
  /** Keys of this owner's outcomes that may be dropped, oldest first. */
  readonly droppable: Set<string>
}

interface ApprovalLimits {
  readonly maxRecords: number
  readonly maxSize: number
  readonly maxRecordsPerOwner: number
  readonly maxSizePerOwner: number
}

/**
 * The approvals of a memory ledger: rows by owner, thread and id, within a number of rows and a number of characters, of each owner and of
 * all. Stored outcomes give way to records, the owner's own first, then the oldest; a record that has not outlived its time gives way to
 * nothing.
 */
export class MemoryApprovals {
  readonly #rows = new Map<string, Row>()
  /** Keys of the rows of each thread that are not done. */
  readonly #unsettled = new Map<string, Set<string>>()
  /** The key of the row that was issued last for a call. */
  readonly #ofCall = new Map<string, string>()
  /** Outcomes that may be dropped, oldest first, with what is then kept of them. */
  readonly #droppable = new Map<
    string,
    { readonly owner: Owner; readonly size: number; readonly trace: UnavailableOutcome }
  >()
  readonly #owners = new Map<Owner, OwnerUse>()
  #size = 0
  /** Nothing can be swept before this time, milliseconds since the epoch. */
  #sweepFrom = Number.POSITIVE_INFINITY
  /** Sweeping waits until this many rows, so that its cost stays constant per row. */
  #sweepAt = 1024

  constructor(private readonly limits: ApprovalLimits) {}

  get(ref: ApprovalRef): Row | undefined {
    return this.#rows.get(rowKey(ref))
  }

  unsettled(owner: Owner, threadId: string): LedgerEntry[] {
    const keys = this.#unsettled.get(ledgerKey(owner, threadId)) ?? []
    return [...keys].flatMap((key) => this.#rows.get(key) ?? [])
  }

  settled(owner: Owner, threadId: string, toolCallIds: readonly string[]): LedgerEntry[] {
    return toolCallIds.flatMap((toolCallId) => {
      const key = this.#ofCall.get(ledgerKey(owner, threadId, toolCallId))
      const row = key === undefined ? undefined : this.#rows.get(key)
      return row?.state.phase === 'done' ? [row] : []
    })
  }

  /** Whether there was room for it. */
  insert(record: ApprovalRecord, now: number): boolean {
    const size = JSON.stringify(record).length
    if (this.#rows.size >= this.#sweepAt) this.#sweep(now)
    if (!this.#hasRoom(record.owner, 1, size)) this.#sweep(now)
    if (!this.#makeRoom(record.owner, 1, size)) return false
    this.#use(record.owner, 1, size)
    this.#put({ record, state: { phase: 'issued' }, size })
    this.#ofCall.set(callKey(record), rowKey(record))
    return true
  }

  /**
   * Replaces the state of a row. Whether there was room for it: a state without edited arguments and without a large outcome
   * always fits. `trace` marks the outcome as one that may be dropped later.
   */
  update(row: Row, state: ApprovalState, trace?: UnavailableOutcome): boolean {
    // a row that is taken up again has its former outcome no more
    this.#forgetOutcome(rowKey(row.record))
    const size = row.size - editSize(row.state) + editSize(state)
    const outcomeSize = trace?.bytes ?? 0
    const { owner } = row.record
    const key = rowKey(row.record)
    if (!this.#makeRoom(owner, 0, size - row.size + outcomeSize)) return false
    const use = this.#use(owner, 0, size - row.size + outcomeSize)
    if (trace !== undefined) {
      this.#droppable.set(key, { owner, size: outcomeSize, trace })
      use.droppable.add(key)
    }
    this.#put({ record: row.record, state, size })
    return true
  }

  #put(row: Row): void {
    this.#rows.set(rowKey(row.record), row)
    this.#sweepFrom = Math.min(this.#sweepFrom, keptUntil(row))
    this.#index(row.record, row.state)
  }

  /** Counts what an owner takes, or gives back. Whoever has nothing is forgotten. */
  #use(owner: Owner, rows: number, size: number): OwnerUse {
    const use = this.#owners.get(owner) ?? { rows: 0, size: 0, droppable: new Set<string>() }
    this.#size += size
    use.rows += rows
    use.size += size
    if (use.rows > 0) this.#owners.set(owner, use)
    else this.#owners.delete(owner)
    return use
  }

  /** What one owner may take. Who has no name shares with all who have none, and leaves room for the others. */
  #share(owner: Owner): { readonly rows: number; readonly size: number } {
    const { maxRecords, maxSize, maxRecordsPerOwner, maxSizePerOwner } = this.limits
    if (owner === null) return { rows: Math.ceil(maxRecords / 2), size: Math.ceil(maxSize / 2) }
    return { rows: maxRecordsPerOwner, size: maxSizePerOwner }
  }

  #hasRoom(owner: Owner, rows: number, size: number): boolean {
    const own = this.#owners.get(owner)
    const share = this.#share(owner)
    return (
      this.#rows.size + rows <= this.limits.maxRecords &&
      this.#size + size <= this.limits.maxSize &&
      (own?.rows ?? 0) + rows <= share.rows &&
      (own?.size ?? 0) + size <= share.size
    )
  }

  #makeRoom(owner: Owner, rows: number, size: number): boolean {
    if (size <= 0 && rows === 0) return true
    const own = this.#owners.get(owner)
    for (const key of own?.droppable ?? []) {
      if ((own?.size ?? 0) + size <= this.#share(owner).size) break
      this.#dropOutcome(key)
    }
    for (const key of this.#droppable.keys()) {
      if (this.#size + size <= this.limits.maxSize) break
      this.#dropOutcome(key)
    }
    return this.#hasRoom(owner, rows, size)
  }

  #forgetOutcome(key: string): UnavailableOutcome | undefined {
    const dropped = this.#droppable.get(key)
    if (dropped === undefined) return undefined
    this.#droppable.delete(key)
    this.#use(dropped.owner, 0, -dropped.size).droppable.delete(key)
    return dropped.trace
  }

  #dropOutcome(key: string): void {
    const trace = this.#forgetOutcome(key)
    if (trace === undefined) return
    const row = this.#rows.get(key)
    if (row?.state.phase !== 'done') return
    this.#rows.set(key, { ...row, state: { ...row.state, outcome: trace } })
  }

  #sweep(now: number): void {
    if (now < this.#sweepFrom) return
    this.#sweepFrom = Number.POSITIVE_INFINITY
    for (const [key, row] of this.#rows) {
      const until = keptUntil(row)
      if (now >= until) this.#remove(key, row)
      else this.#sweepFrom = Math.min(this.#sweepFrom, until)
    }
    this.#sweepAt = Math.max(1024, 2 * this.#rows.size)
  }

  #remove(key: string, row: Row): void {
    this.#dropOutcome(key)
    this.#rows.delete(key)
    this.#use(row.record.owner, -1, -row.size)
    this.#unindex(row.record)
    if (this.#ofCall.get(callKey(row.record)) === key) this.#ofCall.delete(callKey(row.record))
  }

  #index(record: ApprovalRecord, state: ApprovalState): void {
    if (state.phase === 'done') {
      this.#unindex(record)
      return
    }
    const thread = ledgerKey(record.owner, record.threadId)
    const keys = this.#unsettled.get(thread)
    if (keys === undefined) this.#unsettled.set(thread, new Set([rowKey(record)]))
    else keys.add(rowKey(record))
  }

  #unindex(record: ApprovalRecord): void {
    const thread = ledgerKey(record.owner, record.threadId)
    const keys = this.#unsettled.get(thread)
    keys?.delete(rowKey(record))
    if (keys?.size === 0) this.#unsettled.delete(thread)
  }
}

/** The key of an approval in a map. */
export function rowKey({ owner, threadId, approvalId }: ApprovalRef): string {
  return ledgerKey(owner, threadId, approvalId)
}

function callKey({ owner, threadId, toolCallId }: ApprovalRecord): string {
  return ledgerKey(owner, threadId, toolCallId)
}

function editSize(state: ApprovalState): number {
  if (state.phase === 'issued' || state.answer.decision !== 'approve') return 0
  return state.answer.arguments?.length ?? 0
}
