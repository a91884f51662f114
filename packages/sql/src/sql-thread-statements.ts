import type { SqlDatabase, SqlValue } from '@countersign/server/ledger-kit'

type Statement = readonly [text: string, values: SqlValue[]]

/**
 * The statements that change a thread. Each returns a row if it has changed anything. The rows to write are one JSON text, because databases
 * limit the number of parameters.
 */
export interface ThreadStatements {
  /** The rows `r` of some items, one each, empty if there is none. Parameters: a JSON array of their names, and the thread. */
  readonly lookup: string
  /** Creates a thread that does not exist. */
  insert(rows: string, thread: string): Statement
  /** Changes the header and adds or replaces items, if the header still has this stamp. */
  update(rows: string, thread: string, stamp: string): Statement
  /** Removes all rows of a thread, if the header still has this stamp. */
  remove(thread: string, stamp: string): Statement
}

// A thread is one header, whose item is '', and one row for each message and each run's usage. They share a table because SQLite cannot
// write to two tables in one statement.

/** The columns to write, with their types in PostgreSQL. */
const columns = [
  ...['thread text', 'item text', 'owner text', 'stamp text', 'version bigint'],
  ...['updated_at double precision', 'lease_until double precision', 'place bigint', 'size bigint'],
  ...['meta text', 'body text'],
]
const names = columns.map((column) => column.replace(/ .*/, ''))
/** The columns that change if the row exists. */
const changing = names.filter((name) => !['thread', 'item', 'owner', 'place'].includes(name))
const replaced = `do update set ${changing.map((name) => `${name} = excluded.${name}`).join(', ')}`

export function threadStatements(dialect: SqlDatabase['dialect'], table: string): ThreadStatements {
  return dialect === 'postgres' ? postgresStatements(table) : sqliteStatements(table)
}

/**
 * The first part of each statement, `h`, writes the header; the second writes the items if the first has. Of two concurrent
 * statements, the second waits for the first one's header, finds another stamp, and writes nothing.
 */
function postgresStatements(table: string): ThreadStatements {
  const rows = `n as (select * from json_to_recordset(cast(cast(? as text) as json)) as n(${columns.join(', ')}))`
  const insert = `insert into ${table} (${names.join(', ')}) select ${names.map((name) => `n.${name}`).join(', ')}`
  const items = `i as (${insert} from n, h where n.item <> '' on conflict (thread, item) ${replaced})`
  const header = changing.map((name) => `${name} = n.${name}`).join(', ')
  return {
    // With a limit for each name, so that each is looked up in the index, however many names the planner expects.
    lookup: `json_array_elements_text(cast(cast(? as text) as json)) n
      left join lateral (select * from ${table} where thread = ? and item = n.value limit 1) r on true`,
    insert: (all) => [
      `with ${rows}, h as (${insert} from n where n.item = '' on conflict (thread, item) do nothing returning 1), ${items}
      select 1 as written from h`,
      [all],
    ],
    update: (all, _, stamp) => [
      `with ${rows}, h as (update ${table} t set ${header} from n
        where n.item = '' and t.thread = n.thread and t.item = '' and t.stamp = cast(? as text) returning 1), ${items}
      select 1 as written from h`,
      [all, stamp],
    ],
    remove: (thread, stamp) => [
      `with h as (delete from ${table} where thread = ? and item = '' and stamp = ? returning 1),
        i as (delete from ${table} using h where thread = ? and item <> '')
      select 1 as written from h`,
      [thread, stamp, thread],
    ],
  }
}

/** A statement of SQLite has exclusive access while it writes. */
function sqliteStatements(table: string): ThreadStatements {
  const values = names.map((name) => `json_extract(value, '$.${name}')`).join(', ')
  const header = `exists (select 1 from ${table} where thread = ? and item = ''`
  const insert = (condition: string) =>
    `insert into ${table} (${names.join(', ')}) select ${values} from json_each(?)
    where ${condition} on conflict (thread, item) ${replaced} returning item`
  return {
    lookup: `json_each(?) n left join ${table} r on r.thread = ? and r.item = n.value`,
    insert: (rows, thread) => [insert(`not ${header})`), [rows, thread]],
    update: (rows, thread, stamp) => [insert(`${header} and stamp = ?)`), [rows, thread, stamp]],
    remove: (thread, stamp) => [
      `delete from ${table} where thread = ? and ${header} and stamp = ?) returning item`,
      [thread, thread, stamp],
    ],
  }
}
