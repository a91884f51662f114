import type { SqlDatabase } from './sql-rows.js'

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
