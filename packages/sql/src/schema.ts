import { CountersignError } from '@countersign/core'
import {
  checkOptions,
  ledgerTables,
  type Rules,
  sqlIndex,
  sqlSequence,
  text,
} from '@countersign/server/ledger-kit'
import type { SqlConnection } from './connection.js'

/**
 * The version of the tables; a process refuses newer ones. It stays the same while tables are only added, so that servers of the
 * earlier version still work alongside new ones.
 */
const SCHEMA_VERSION = 1

export interface SchemaOptions {
  /** Prefix of the tables' names. Default `countersign_`. */
  readonly prefix?: string | undefined
}

const schemaRules: Rules<SchemaOptions> = { prefix: text }

/** @throws CountersignError `invalid-option` for a prefix that can't be part of a name. */
export function prefixOf(prefix = 'countersign_'): string {
  if (/^([a-z_][a-z0-9_]{0,40}\.)?[a-z_][a-z0-9_]{0,30}$/i.test(prefix)) return prefix
  throw new CountersignError(
    'invalid-option',
    'prefix must be up to 31 letters, digits and "_", after a schema and a dot if you like.',
    { option: 'prefix', value: prefix },
  )
}

function answerTables(dialect: SqlConnection['dialect'], prefix: string): readonly string[] {
  return [
    `create table if not exists ${prefix}listening (
  run text primary key, listener text not null, kept_until double precision not null)`,
    `create table if not exists ${prefix}answers (
  seq ${sqlSequence(dialect)},
  id text not null unique, run text not null, listener text not null, kept_until double precision not null,
  parcel text not null, reply text)`,
    sqlIndex(dialect, prefix, 'answers', 'of', '(listener, seq)'),
  ]
}

function runLogTables(dialect: SqlConnection['dialect'], prefix: string): readonly string[] {
  return [
    `create table if not exists ${prefix}runs (
  name text primary key, writer text not null, state text not null, kept_until double precision not null)`,
    sqlIndex(dialect, prefix, 'runs', 'past', '(kept_until)'),
    `create table if not exists ${prefix}events (
  writer text not null, n bigint not null, events text not null, primary key (writer, n))`,
  ]
}

/**
 * `thread`, `item` and `owner` are hashes; times are milliseconds since the epoch. The long texts come last: SQLite reads a long row from
 * its start.
 */
function threadTables(dialect: SqlConnection['dialect'], prefix: string): readonly string[] {
  return [
    `create table if not exists ${prefix}threads (
  thread text not null, item text not null, owner text, stamp text, version bigint not null,
  updated_at double precision, lease_until double precision, place bigint not null, size bigint not null,
  meta text not null, body text not null, primary key (thread, item))`,
    sqlIndex(dialect, prefix, 'threads', 'changed', '(thread, version)'),
    sqlIndex(
      dialect,
      prefix,
      'threads',
      'listed',
      '(owner, updated_at, thread) where updated_at is not null',
    ),
    sqlIndex(dialect, prefix, 'threads', 'held', '(lease_until) where lease_until is not null'),
  ]
}

/** The statements that create missing tables, for your own migrations. {@link ensureSchema} runs the same. */
export function schemaStatements(dialect: SqlConnection['dialect'], options: SchemaOptions = {}): string[] {
  checkOptions('schemaStatements', options, schemaRules)
  const prefix = prefixOf(options.prefix)
  return [
    ...ledgerTables(dialect, prefix),
    ...runLogTables(dialect, prefix),
    ...answerTables(dialect, prefix),
    ...threadTables(dialect, prefix),
    `insert into ${prefix}meta (name, value) values ('schema', '${SCHEMA_VERSION}') on conflict (name) do nothing`,
  ]
}

/**
 * Creates missing tables. Can be called any number of times, by several processes at once.
 *
 * @throws CountersignError `ledger-unavailable` if the database can't be reached, or a newer version of this package created its tables.
 */
export async function ensureSchema(connection: SqlConnection, options: SchemaOptions = {}): Promise<void> {
  checkOptions('ensureSchema', options, schemaRules)
  const prefix = prefixOf(options.prefix)
  const statements = schemaStatements(connection.dialect, options)
  try {
    if (connection.dialect === 'sqlite') for (const one of statements) await connection.query(one, [])
    // Under a lock, because several processes may start at once: PostgreSQL fails if two create the same table concurrently.
    else
      await connection.query(
        `do $$ begin perform pg_advisory_xact_lock(${LOCK}); ${statements.join('; ')}; end $$`,
        [],
      )
    const [row] = await connection.query(`select value from ${prefix}meta where name = 'schema'`, [])
    const version = Number(row?.value)
    if (version <= SCHEMA_VERSION) return
    throw new Error(
      `its tables are of version ${version}, and this version of the package knows ${SCHEMA_VERSION}. Update it`,
    )
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new CountersignError('ledger-unavailable', `The database cannot be used: ${reason}.`, {}, error)
  }
}

/** An arbitrary number for the lock, which nobody else should use. */
const LOCK = 7_276_117_003
