import type { Ledger } from '@countersign/server'
import {
  checkOptions,
  createLedger,
  type LedgerLimits,
  ledgerLimitRules,
  method,
  milliseconds,
  sqlRows,
  text,
  wholeNumber,
} from '@countersign/server/ledger-kit'
import type { SqlConnection } from './connection.js'
import { openDatabase } from './database.js'
import { prefixOf } from './schema.js'

export interface SqlLedgerOptions extends LedgerLimits {
  /** Prefix of the tables' names: letters, digits and `_`, optionally after a schema and a dot. Default `countersign_`. */
  readonly prefix?: string | undefined
  /** Bound into tokens; must be the same on all servers that are to accept them. Default: `sql:` and the prefix. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: the database's clock, so that the servers' clocks need not agree on leases. */
  readonly now?: (() => number) | undefined
  /** Milliseconds after which an operation without a response from the database fails. Default 5,000. */
  readonly timeout?: number | undefined
  /** Approximate number of audit lines kept; the oldest are dropped first. Default 100,000. */
  readonly maxAuditEntries?: number | undefined
}

/**
 * A ledger in PostgreSQL or SQLite, for servers on several machines. It needs its tables: `ensureSchema(connection)`, or the statements in
 * `schema/`. Every change of a row is a single statement that writes only if nobody has written since it was read, so it needs no
 * transaction and works with any pool. Expired rows are removed when others are written. An operation without a timely response
 * rejects with `ledger-unavailable`; later operations work again once the database can be reached.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * const connection = fromPg(new Pool({ connectionString: process.env.DATABASE_URL }))
 * await ensureSchema(connection)
 * const agent = createAgent({ model, tools, approvals: { ledger: sqlLedger(connection), secret } })
 */
export function sqlLedger(connection: SqlConnection, options: SqlLedgerOptions = {}): Ledger {
  checkOptions('sqlLedger', options, {
    ...ledgerLimitRules,
    prefix: text,
    id: text,
    now: method,
    timeout: milliseconds,
    maxAuditEntries: wholeNumber,
  })
  const prefix = prefixOf(options.prefix)
  const database = openDatabase(connection, options.timeout)
  const rows = sqlRows(database, {
    prefix,
    id: options.id ?? `sql:${prefix}`,
    now: options.now,
    maxLogLines: options.maxAuditEntries ?? 100_000,
  })
  return createLedger(rows, options)
}
