import type { Ledger } from '@countersign/server'
import { createLedger, type LedgerLimits, positive, sqlRows } from '@countersign/server/ledger-kit'
import type { SqlConnection } from './connection.js'
import { openDatabase } from './database.js'
import { prefixOf } from './schema.js'

export interface SqlLedgerOptions extends LedgerLimits {
  /** What the names of the tables begin with: letters, digits and `_`, after a schema and a dot if you like. Default `countersign_`. */
  readonly prefix?: string | undefined
  /** Bound into tokens; the same on every server that shall accept them. Default: `sql:` and the prefix. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: the clock of the database, so that the clocks of the servers need not agree on a lease. */
  readonly now?: (() => number) | undefined
  /** Milliseconds until an operation that the database does not answer is given up. Default 5,000. */
  readonly timeout?: number | undefined
  /** Lines of the audit trail kept, about; the oldest go first. Default 100,000. */
  readonly maxAuditEntries?: number | undefined
}

/**
 * A ledger in PostgreSQL or SQLite, for servers on several machines. It needs its tables: `ensureSchema(connection)`, or the statements in
 * `schema/`. Every change of a row is a single statement that only writes where nobody wrote since it was read, so it needs no transaction and
 * works through any pool. Rows that have outlived their time are removed as others are written. An operation that the database does not
 * answer in time rejects with `ledger-unavailable`, and the next one works again when it can be reached.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * const connection = fromPg(new Pool({ connectionString: process.env.DATABASE_URL }))
 * await ensureSchema(connection)
 * const agent = createAgent({ model, tools, approvals: { ledger: sqlLedger(connection), secret } })
 */
export function sqlLedger(connection: SqlConnection, options: SqlLedgerOptions = {}): Ledger {
  const prefix = prefixOf(options.prefix)
  const database = openDatabase(connection, positive('timeout', options.timeout ?? 5000))
  const rows = sqlRows(database, {
    prefix,
    id: options.id ?? `sql:${prefix}`,
    now: options.now,
    maxLogLines: positive('maxAuditEntries', options.maxAuditEntries ?? 100_000),
  })
  return createLedger(rows, options)
}
