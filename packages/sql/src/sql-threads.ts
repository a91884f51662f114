import type { ThreadLimits, ThreadStore } from '@countersign/server'
import {
  checkOptions,
  createThreads,
  method,
  milliseconds,
  text,
  threadLimitRules,
} from '@countersign/server/ledger-kit'
import type { SqlConnection } from './connection.js'
import { openDatabase } from './database.js'
import { prefixOf } from './schema.js'
import { sqlThreadRows } from './sql-thread-rows.js'

export interface SqlThreadsOptions extends ThreadLimits {
  /** Prefix of the tables' names: letters, digits and `_`, optionally after a schema and a dot. Default `countersign_`. */
  readonly prefix?: string | undefined
  /** Identifies what is stored. Default: `sql:` and the prefix. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: the database's clock, so that the servers' clocks need not agree on leases. */
  readonly now?: (() => number) | undefined
  /** Milliseconds after which an operation without a response from the database fails. Default 5,000. */
  readonly timeout?: number | undefined
}

/**
 * Threads in PostgreSQL or SQLite, for servers on several machines: one row per message. It needs the tables of `ensureSchema`. Every
 * change is a single statement that writes only if nobody has written since the thread was read, so it needs no transaction and works
 * with any pool. Threads are kept until they are removed. An operation without a timely response rejects with
 * `ledger-unavailable`; later operations work again once the database can be reached.
 *
 * A change that the database has no room for is refused with the limit `store`. D1 accepts at most 2,000,000 bytes in one statement, so set a
 * smaller `maxMessageBytes` there.
 *
 * @throws CountersignError `invalid-option`
 */
export function sqlThreads(connection: SqlConnection, options: SqlThreadsOptions = {}): ThreadStore {
  checkOptions('sqlThreads', options, {
    ...threadLimitRules,
    prefix: text,
    id: text,
    now: method,
    timeout: milliseconds,
  })
  const prefix = prefixOf(options.prefix)
  const database = openDatabase(connection, options.timeout)
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
