import {
  type HeaderRow,
  type ItemRow,
  type SqlDatabase,
  type SqlQuery,
  type SqlRow,
  sqlClock,
  type ThreadRows,
  type ThreadWrite,
} from '@countersign/server/ledger-kit'
import { threadStatements } from './sql-thread-statements.js'

/** The rows of threads in the table `table`, over one connection. */
export function sqlThreadRows(
  dialect: SqlDatabase['dialect'],
  table: string,
  clockOf: (() => number) | undefined,
): (query: SqlQuery) => ThreadRows {
  const clock = sqlClock(dialect)
  const statements = threadStatements(dialect, table)
  const nowOf = (row: SqlRow | undefined) => clockOf?.() ?? Math.floor(Number(row?.clock))

  return (query) => ({
    async look(_, thread, items) {
      const found = await query(
        `select ${clock} as clock, r.thread, r.item, r.stamp, r.version, r.updated_at, r.lease_until, r.place, r.size,
          case when r.item = '' then r.body end as body
        from ${statements.lookup}`,
        [JSON.stringify(['', ...items]), thread],
      )
      return {
        header: found.filter((row) => row.item === '').map(headerOf)[0],
        items: found.filter(isItem).map(itemOf),
        now: nowOf(found[0]),
      }
    },

    async read(_, thread, after) {
      const columns = `${clock} as clock, thread, item, stamp, version, updated_at, lease_until, place, size, meta, body`
      const found = await query(
        `select ${columns} from ${table} where thread = ? and item = ''
        union all select ${columns} from ${table} where thread = ? and version > ? and item <> '' order by place`,
        [thread, thread, after],
      )
      const header = found.filter((row) => row.item === '').map(headerOf)[0]
      return header && { header, items: found.filter(isItem).map(itemOf), now: nowOf(found[0]) }
    },

    async write(write) {
      const { thread, before, header } = write
      const rows = header === null ? '' : JSON.stringify(rowsOf(write, header))
      const [text, values] =
        header === null
          ? statements.remove(thread, before?.stamp ?? '')
          : before === undefined
            ? statements.insert(rows, thread)
            : statements.update(rows, thread, before.stamp)
      try {
        const written = await query(text, values)
        return written.length > 0 ? 'written' : 'changed'
      } catch (error) {
        if (error instanceof Error && NO_ROOM.test(error.message)) return 'full'
        throw error
      }
    },

    async count(owner) {
      const [row] = await query(
        `select count(*) as threads from ${table} where owner = ? and updated_at is not null`,
        [owner],
      )
      return Number(row?.threads)
    },

    async list(owner, limit, after) {
      const rest = 'and (updated_at, thread) < (cast(? as double precision), cast(? as text))'
      const found = await query(
        `select ${clock} as clock, thread, stamp, version, updated_at, lease_until, body from ${table}
        where owner = ? and updated_at is not null ${after === undefined ? '' : rest}
        order by updated_at desc, thread desc limit ${limit}`,
        after === undefined ? [owner] : [owner, after.updatedAt, after.thread],
      )
      return { headers: found.map(headerOf), now: nowOf(found[0]) }
    },

    async lapsed(limit) {
      const now = clockOf === undefined ? clock : 'cast(? as double precision)'
      const found = await query(
        `select thread, stamp, version, updated_at, lease_until, body from ${table}
        where lease_until <= ${now} order by lease_until limit ${limit}`,
        clockOf === undefined ? [] : [clockOf()],
      )
      return found.map(headerOf)
    },
  })
}

/** What databases say of a value that is too large for them, or of a disk or database that is full. */
const NO_ROOM = /too big|disk is full|no space left|maximum DB size/i

/** The header and the items as rows with the columns that `threadStatements` writes. */
function rowsOf({ owner, thread, items }: ThreadWrite, header: HeaderRow): readonly object[] {
  const { stamp, version, updatedAt, leaseUntil, body } = header
  const times = { updated_at: updatedAt, lease_until: leaseUntil }
  return [
    { thread, item: '', owner, stamp, version, ...times, place: -1, size: 0, meta: '', body },
    ...items.map(({ name, ...rest }) => ({ thread, item: name, ...rest })),
  ]
}

function headerOf(row: SqlRow): HeaderRow {
  return {
    ...{ thread: String(row.thread), stamp: String(row.stamp), version: Number(row.version) },
    updatedAt: row.updated_at == null ? null : Number(row.updated_at),
    leaseUntil: row.lease_until == null ? null : Number(row.lease_until),
    body: String(row.body),
  }
}

function isItem({ item }: SqlRow): boolean {
  return item != null && item !== ''
}

function itemOf(row: SqlRow): ItemRow {
  return {
    ...{
      name: String(row.item),
      version: Number(row.version),
      place: Number(row.place),
      size: Number(row.size),
    },
    ...{ meta: String(row.meta), body: String(row.body) },
  }
}
