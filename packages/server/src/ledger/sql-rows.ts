import { byteLength, sha256 } from '../encoding/bytes.js'
import { compareAndSwap, type RemoteRows, type Swap, swapOf } from './compare-and-swap.js'
import type { Owner } from './ledger.js'
import { type Decide, type ListedRows, type RowStore, resultWhenFull, type StoredRow } from './row-store.js'

export type SqlValue = string | number | null
export type SqlRow = Readonly<Record<string, unknown>>

/** Runs one statement, whose parameters are written `?`, and resolves with the rows that it returns. */
export type SqlQuery = (text: string, values: readonly SqlValue[]) => Promise<readonly SqlRow[]>

/** A database, for the duration of one operation. */
export interface SqlSession {
  readonly query: SqlQuery
  /** Milliseconds left for the operation. */
  readonly left: () => number
}

/** Does `work` in one transaction, with the same session. */
export type SqlTransaction = <Result>(session: SqlSession, work: () => Promise<Result>) => Promise<Result>

export interface SqlDatabase {
  readonly dialect: 'postgres' | 'sqlite'
  /** Runs `work` with the database. Failures to reach it reject with `ledger-unavailable`. */
  readonly session: <Result>(work: (session: SqlSession) => Promise<Result>) => Promise<Result>
  /**
   * A transaction that excludes all other writers. Without it, rows are compared and swapped, each by a single statement, which needs no
   * transaction.
   */
  readonly transaction?: SqlTransaction | undefined
  /** SHA-256 in base64url. Default: Web Crypto's. */
  readonly hash?: ((text: string) => string | Promise<string>) | undefined
  /** Whether there is no room for more approvals. Default: always room. */
  readonly isFull?: ((session: SqlSession) => Promise<boolean>) | undefined
}

export interface SqlRowOptions {
  readonly id: string
  /** Prefix of the tables' names. */
  readonly prefix: string
  /** Milliseconds since the epoch. Default: the database's clock. */
  readonly now?: (() => number) | undefined
  /** How many lines of the log are kept. */
  readonly maxLogLines: number
}

/** One sweep every so many inserts, with a limit on the rows it removes, so that every insert costs the same. */
const SWEEP = { every: 16, rows: 128 }
const PAGE = 256
/** Some databases allow only 100 parameters (D1). */
const TAGS_AT_ONCE = 90
const ALL = 1_000_000_000

/** Rows in an SQL database: PostgreSQL, SQLite or a database compatible with SQLite. Its tables are in `sql-schema.ts`. */
export function sqlRows(database: SqlDatabase, options: SqlRowOptions): RowStore {
  const { dialect, session: open, isFull, transaction } = database
  const { ownerName, nameOf } = sqlNames(database)
  const { id, prefix, now: clockOf, maxLogLines } = options
  const table = `${prefix}rows`
  const log = `${prefix}log`
  const clock = sqlClock(dialect)
  // If a grant in progress relies on a row that a revocation removes, the revocation waits, and then finds the grant.
  const lock = dialect === 'postgres' ? 'for share' : ''
  let inserts = 0
  let appended = 0

  const nowOf = (row: SqlRow | undefined) => clockOf?.() ?? Number(row?.clock)
  const time = clockOf === undefined ? clock : 'cast(? as double precision)'
  const timeValues = () => (clockOf === undefined ? [] : [clockOf()])

  async function get(query: SqlQuery, owner: Owner, keys: readonly string[]) {
    const name = await ownerName(owner)
    const names = await Promise.all(keys.map(nameOf))
    const places = names.map(() => '?').join(', ')
    const found = await query(
      `select ${clock} as clock, r.* from (select 1 as one) o left join ${table} r on r.owner = ? and r.key in (${places})`,
      [name, ...names],
    )
    const rows = names.map((key) => found.find((row) => row.key === key)).map((row) => row && storedRow(row))
    return { rows, now: nowOf(found[0]), clock: Number(found[0]?.clock) }
  }

  /** The condition under which a statement writes, and its values. */
  async function conditionOf(owner: string, { others, notAfter }: Swap) {
    const keys = await Promise.all(others.map(({ key }) => nameOf(key)))
    const row = `select 1 from ${table} h where h.owner = ? and h.key = ?`
    const text = others.map(({ version }) =>
      version === undefined ? ` and not exists (${row})` : ` and exists (${row} and h.version = ? ${lock})`,
    )
    const values = others.flatMap(({ version }, index) => [
      owner,
      keys[index] ?? '',
      ...(version === undefined ? [] : [version]),
    ])
    return {
      text: `${clock} <= cast(? as double precision)${text.join('')}`,
      values: [Math.min(notAfter, Number.MAX_SAFE_INTEGER), ...values],
    }
  }

  async function swap(session: SqlSession, swap: Swap): Promise<'swapped' | 'changed' | 'full'> {
    const { query } = session
    const owner = await ownerName(swap.owner)
    const key = await nameOf(swap.key)
    const list = swap.row?.list === undefined ? null : await nameOf(swap.row.list)
    const condition = await conditionOf(owner, swap)
    const { row, was, room, newest } = swap
    if (row === null) {
      const gone = await query(
        `delete from ${table} where owner = ? and key = ? and version = ? and ${condition.text} returning seq`,
        [owner, key, was ?? '', ...condition.values],
      )
      return gone.length > 0 ? 'swapped' : 'changed'
    }
    const keptUntil = Math.min(row.keptUntil, Number.MAX_SAFE_INTEGER)
    const words = row.words ?? null
    if (was !== undefined) {
      const written = await query(
        `update ${table} set version = ?, list = ?, kept_until = ?, state = ?, words = ? where owner = ? and key = ? and version = ? and ${condition.text} returning seq`,
        [row.version, list, keptUntil, row.state, words, owner, key, was, ...condition.values],
      )
      return written.length > 0 ? 'swapped' : 'changed'
    }
    const size = byteLength(row.record)
    if (room !== undefined) {
      await sweep(session)
      const [open] = await query(
        `select count(*) as rows, coalesce(sum(size), 0) as bytes from ${table} where owner = ? and list = ? and kept_until > ${time}`,
        [owner, list, ...timeValues()],
      )
      if (Number(open?.rows) >= room.rows || Number(open?.bytes) + size > room.bytes) return 'full'
      if (await isFull?.(session)) return 'full'
    }
    const tag = row.tag === undefined ? null : await nameOf(row.tag)
    const written = await query(
      `insert into ${table} (owner, key, version, list, tag, size, kept_until, record, state, words)
      select cast(? as text), cast(? as text), cast(? as text), cast(? as text), cast(? as text), cast(? as bigint), cast(? as double precision),
        cast(? as text), cast(? as text), cast(? as text)
      where ${condition.text} on conflict (owner, key) do nothing returning seq`,
      [
        ...[owner, key, row.version, list, tag, size, keptUntil, row.record, row.state, words],
        ...condition.values,
      ],
    )
    if (newest !== undefined && written.length > 0) {
      await query(
        `delete from ${table} where seq in (select seq from ${table} where owner = ? and list = ? order by seq desc limit ${ALL} offset ?)`,
        [owner, list, newest],
      )
    }
    return written.length > 0 ? 'swapped' : 'changed'
  }

  /** Removes expired rows: a few now and then, or all of them if the database is full. */
  async function sweep(session: SqlSession): Promise<void> {
    const remove = (rows: number) =>
      session.query(
        `delete from ${table} where seq in (select seq from ${table} where kept_until <= ${time} limit ${rows})`,
        timeValues(),
      )
    if (++inserts % SWEEP.every === 1) await remove(SWEEP.rows)
    if (await isFull?.(session)) await remove(ALL)
  }

  const remoteOf = (session: SqlSession): RemoteRows => ({
    get: (owner, keys) => get(session.query, owner, keys),
    swap: (one) => swap(session, one),
  })
  const swapping = compareAndSwap((work) => open((session) => work(remoteOf(session), session.left)))

  /** Reads and writes in one transaction; an update that only reads needs none. */
  async function alone<Result>(
    session: SqlSession,
    transact: SqlTransaction,
    owner: Owner,
    keys: readonly string[],
    decide: Decide<Result>,
  ): Promise<Result> {
    const decideNow = async () => {
      const { rows, now } = await get(session.query, owner, keys)
      return { row: rows[0], change: decide(rows, now), now }
    }
    const first = await decideNow()
    if (first.change.row === undefined) return first.change.result
    return transact(session, async () => {
      const { row, change, now } = await decideNow()
      if (change.row === undefined || (change.row === null && row === undefined)) return change.result
      const always = { now, notAfter: Number.POSITIVE_INFINITY }
      const outcome = await swap(session, swapOf(owner, keys, [row], change, always))
      return outcome === 'full' ? resultWhenFull(change) : change.result
    })
  }

  /** The rows of a list. The query returns the time even if it finds no row. */
  async function listed(session: SqlSession, owner: Owner, list: string): Promise<ListedRows> {
    const names = await Promise.all([ownerName(owner), nameOf(list)])
    const found = await session.query(
      `select ${clock} as clock, ${SHORT_COLUMNS} from (select 1 as one) o left join ${table} r on r.owner = ? and r.list = ? order by r.seq`,
      names,
    )
    return { rows: found.filter((row) => row.key != null).map(storedRow), now: nowOf(found[0]) }
  }

  return {
    id,
    durable: true,
    update: (owner, keys, decide) =>
      transaction === undefined
        ? swapping(owner, keys, decide)
        : open((session) => alone(session, transaction, owner, keys, decide)),
    list: (owner, list) => open((session) => listed(session, owner, list)),
    latest: (owner, tags) =>
      open(async (session) => {
        const name = await ownerName(owner)
        const rows: StoredRow[] = []
        for (let from = 0; from < tags.length; from += TAGS_AT_ONCE) {
          const names = await Promise.all(tags.slice(from, from + TAGS_AT_ONCE).map(nameOf))
          const places = names.map(() => '?').join(', ')
          const found = await session.query(
            `select ${SHORT_COLUMNS} from ${table} r where r.seq in (select max(seq) from ${table} where owner = ? and tag in (${places}) group by tag)`,
            [name, ...names],
          )
          rows.push(...found.map(storedRow))
        }
        return rows
      }),
    append: (line) =>
      open(async (session) => {
        const insert = () => session.query(`insert into ${log} (line) values (?)`, [line])
        const trim = () =>
          session.query(`delete from ${log} where seq <= (select max(seq) from ${log}) - ?`, [maxLogLines])
        if (transaction !== undefined) await transaction(session, () => insert().then(trim))
        else await insert()
        // Without a transaction, each statement is a round trip.
        if (transaction === undefined && ++appended % 64 === 0) await trim()
      }),
    async *lines() {
      for (let after = 0; ; ) {
        const from = after
        const page = await open(({ query }) =>
          query(`select seq, line from ${log} where seq > ? order by seq limit ${PAGE}`, [from]),
        )
        for (const { seq, line } of page) {
          yield String(line)
          after = Number(seq)
        }
        if (page.length < PAGE) return
      }
    },
  }
}

/** All columns except `words`. */
const SHORT_COLUMNS = 'r.owner, r.key, r.version, r.list, r.tag, r.kept_until, r.record, r.state'

/** The database's time, in milliseconds since the epoch. */
export function sqlClock(dialect: SqlDatabase['dialect']): string {
  return dialect === 'postgres'
    ? 'cast(extract(epoch from clock_timestamp()) * 1000 as double precision)'
    : `((julianday('now') - 2440587.5) * 86400000.0)`
}

/** Names are stored as hashes: databases limit the length of indexed texts and replace unpaired surrogates. */
export function sqlNames({ hash = sha256 }: Pick<SqlDatabase, 'hash'>) {
  const nameOf = async (text: string) => hash(JSON.stringify(text))
  // An owner of `null` differs from every string.
  return { nameOf, ownerName: (owner: Owner) => nameOf(JSON.stringify(owner)) }
}

function storedRow(row: SqlRow): StoredRow {
  return {
    version: String(row.version),
    record: String(row.record),
    state: String(row.state),
    words: row.words == null ? undefined : String(row.words),
    keptUntil: Number(row.kept_until),
  }
}

/** The type of a column that numbers rows in insertion order. */
export function sqlSequence(dialect: SqlDatabase['dialect']): string {
  return dialect === 'postgres'
    ? 'bigint generated always as identity primary key'
    : 'integer primary key autoincrement'
}

/**
 * An index named after its table and purpose. If the prefix has a schema (`app.countersign_`), SQLite expects it only before the name of
 * the index, PostgreSQL only before the table.
 */
export function sqlIndex(
  dialect: SqlDatabase['dialect'],
  prefix: string,
  table: string,
  finds: string,
  columns: string,
): string {
  const bare = prefix.slice(prefix.indexOf('.') + 1)
  const [ofIndex, ofTable] = dialect === 'sqlite' ? [prefix, bare] : [bare, prefix]
  return `create index if not exists ${ofIndex}${table}_${finds} on ${ofTable}${table} ${columns}`
}

/** The tables of a ledger. `owner`, `key`, `list` and `tag` are hashes; `kept_until` is in milliseconds since the epoch. */
export function ledgerTables(dialect: SqlDatabase['dialect'], prefix: string): readonly string[] {
  const number = sqlSequence(dialect)
  const find = (by: string, columns: string) => sqlIndex(dialect, prefix, 'rows', by, columns)
  // The long texts come last: SQLite reads a long row from its start.
  return [
    `create table if not exists ${prefix}rows (
  seq ${number},
  owner text not null, key text not null, version text not null, list text, tag text,
  size bigint not null, kept_until double precision not null,
  record text not null, state text not null, words text,
  unique (owner, key))`,
    find('list', '(owner, list, seq) where list is not null'),
    find('tag', '(owner, tag, seq) where tag is not null'),
    find('past', '(kept_until)'),
    `create table if not exists ${prefix}log (seq ${number}, line text not null)`,
    `create table if not exists ${prefix}meta (name text primary key, value text not null)`,
  ]
}
