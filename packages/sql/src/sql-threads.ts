import type { ThreadLimits, ThreadStore } from '@countersign/server'
import { createThreads, positive } from '@countersign/server/ledger-kit'
import type { SqlConnection } from './connection.js'
import { openDatabase } from './database.js'
import { prefixOf } from './schema.js'
import { sqlThreadRows } from './sql-thread-rows.js'

export interface SqlThreadsOptions extends ThreadLimits {
  /** What the names of the tables begin with: letters, digits and `_`, after a schema and a dot if you like. Default `countersign_`. */
  readonly prefix?: string | undefined
  /** Names what is stored. Default: `sql:` and the prefix. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: the clock of the database, so that the clocks of the servers need not agree on a lease. */
  readonly now?: (() => number) | undefined
  /** Milliseconds until an operation that the database does not answer is given up. Default 5,000. */
  readonly timeout?: number | undefined
}

/**
 * Threads in PostgreSQL or SQLite, for servers on several machines: one row for each message. It needs the tables of `ensureSchema`. Every
 * change is a single statement that only writes where nobody has written since the thread was read, so it needs no transaction and works
 * through any pool. Threads are kept until they are removed. An operation that the database does not answer in time rejects with
 * `ledger-unavailable`, and the next one works again when it can be reached.
 *
 * D1 takes at most 2,000,000 bytes in one statement: a change that has more rejects with `ledger-unavailable` there, so set `maxMessageBytes` to
 * less.
 *
 * @throws CountersignError `invalid-option`
 */
export function sqlThreads(connection: SqlConnection, options: SqlThreadsOptions = {}): ThreadStore {
  const prefix = prefixOf(options.prefix)
  const database = openDatabase(connection, positive('timeout', options.timeout ?? 5000))
  const rows = sqlThreadRows(database.dialect, `${prefix}threads`, options.now)
  return createThreads(
    {
      id: options.id ?? `sql:${prefix}`,
      durable: true,
      within: (work) => database.session(({ query }) => work(rows(query))),
    },
    options,
  )
}
