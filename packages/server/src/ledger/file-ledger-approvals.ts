import { CALL_OF_RECORD } from './file-ledger-schema.js'
import { column, type Database, type SqliteStatement } from './file-ledger-sqlite.js'
import type { ApprovalRecord, ApprovalRef, ApprovalState, LedgerEntry, Owner } from './ledger.js'
import { joinState, keptUntil, splitState } from './ledger-row.js'

/** Rows that one issue removes at most, so that it costs the same however many are past their time. */
const SWEPT_AT_ONCE = 8

/** The approvals of a file ledger. Its methods are parts of a transaction. */
export class FileApprovals {
  readonly #get: SqliteStatement
  readonly #insert: SqliteStatement
  readonly #update: SqliteStatement
  readonly #unsettled: SqliteStatement
  readonly #openBytes: SqliteStatement
  readonly #settled: SqliteStatement
  readonly #sweep: SqliteStatement
  readonly #sizes: SqliteStatement

  constructor(
    database: Database,
    private readonly maxSize: number,
    private readonly maxOpenBytes: number,
  ) {
    this.#get = database.prepare('select record, state, words from approvals where key = ?')
    this.#insert = database.prepare(
      'insert into approvals (key, thread, open, kept_until, record, state) values (?, ?, 1, ?, ?, ?)',
    )
    this.#update = database.prepare(
      'update approvals set state = ?, words = ?, open = ?, kept_until = ? where key = ?',
    )
    this.#unsettled = database.prepare(
      'select record, state from approvals where thread = ? and open = 1 order by seq',
    )
    this.#openBytes = database.prepare(
      'select sum(length(cast(record as blob))) as bytes from approvals where thread = ? and open = 1',
    )
    this.#settled = database.prepare(
      `select max(seq), record, state, open from approvals
       where thread = ? and ${CALL_OF_RECORD} in (select value from json_each(?)) group by ${CALL_OF_RECORD}`,
    )
    this.#sweep = database.prepare(
      'delete from approvals where seq in (select seq from approvals where kept_until <= ? limit ?)',
    )
    this.#sizes = database.prepare(
      'select p.page_count as pages, f.freelist_count as free, s.page_size as size from pragma_page_count p, pragma_freelist_count f, pragma_page_size s',
    )
  }

  get(ref: ApprovalRef): LedgerEntry | undefined {
    const row = this.#get.get(rowKey(ref))
    return row === undefined ? undefined : entryOf(row)
  }

  unsettled(owner: Owner, threadId: string): LedgerEntry[] {
    return this.#unsettled.all(threadKey(owner, threadId)).map(entryOf)
  }

  settled(owner: Owner, threadId: string, toolCallIds: readonly string[]): LedgerEntry[] {
    const rows = this.#settled.all(threadKey(owner, threadId), JSON.stringify(toolCallIds))
    return rows.filter((row) => Number(column(row, 'open')) === 0).map(entryOf)
  }

  /** Whether there was room for it. Only what has outlived its time makes room. */
  insert(record: ApprovalRecord, now: number): boolean {
    this.#sweep.run(now, SWEPT_AT_ONCE)
    if (this.#isFull()) this.#sweep.run(now, -1)
    if (this.#isFull()) return false
    const thread = threadKey(record.owner, record.threadId)
    const text = JSON.stringify(record)
    const open = Number(column(this.#openBytes.get(thread), 'bytes') ?? 0)
    if (open + Buffer.byteLength(text) > this.maxOpenBytes) return false
    const entry: LedgerEntry = { record, state: { phase: 'issued' } }
    this.#insert.run(rowKey(record), thread, keptUntil(entry), text, JSON.stringify(entry.state))
    return true
  }

  update(record: ApprovalRecord, state: ApprovalState): void {
    const open = state.phase === 'done' ? 0 : 1
    const texts = splitState(state)
    this.#update.run(texts.state, texts.words, open, keptUntil({ record, state }), rowKey(record))
  }

  #isFull(): boolean {
    const sizes = this.#sizes.get()
    const [pages, free, size] = ['pages', 'free', 'size'].map((name) => Number(column(sizes, name)))
    return ((pages ?? 0) - (free ?? 0)) * (size ?? 0) >= this.maxSize
  }
}

/** The answer has its words where the row was read with them. */
function entryOf(row: unknown): LedgerEntry {
  const words = column(row, 'words')
  return {
    record: JSON.parse(String(column(row, 'record'))),
    state: joinState(String(column(row, 'state')), typeof words === 'string' ? words : null),
  }
}

function rowKey({ owner, threadId, approvalId }: ApprovalRef): string {
  return JSON.stringify([owner, threadId, approvalId])
}

function threadKey(owner: Owner, threadId: string): string {
  return JSON.stringify([owner, threadId])
}
