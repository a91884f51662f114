import type { SqlDatabase } from './sql-rows.js'

/** The type of a column that numbers the rows in the order in which they came. */
export function sqlSequence(dialect: SqlDatabase['dialect']): string {
  return dialect === 'postgres'
    ? 'bigint generated always as identity primary key'
    : 'integer primary key autoincrement'
}

/** The tables of a ledger, in the words of a database. `owner`, `key`, `list` and `tag` are hashes; `kept_until` is in milliseconds since the epoch. */
export function ledgerTables(dialect: SqlDatabase['dialect'], prefix: string): readonly string[] {
  const number = sqlSequence(dialect)
  // the long texts come last: SQLite reads a long row from its beginning
  return [
    `create table if not exists ${prefix}rows (
  seq ${number},
  owner text not null, key text not null, version text not null, list text, tag text,
  size bigint not null, kept_until double precision not null,
  record text not null, state text not null, words text,
  unique (owner, key))`,
    `create index if not exists ${prefix}rows_list on ${prefix}rows (owner, list, seq) where list is not null`,
    `create index if not exists ${prefix}rows_tag on ${prefix}rows (owner, tag, seq) where tag is not null`,
    `create index if not exists ${prefix}rows_past on ${prefix}rows (kept_until)`,
    `create table if not exists ${prefix}log (seq ${number}, line text not null)`,
    `create table if not exists ${prefix}meta (name text primary key, value text not null)`,
  ]
}
