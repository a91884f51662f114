import type { SqlRow, SqlValue } from '@countersign/server/ledger-kit'

/**
 * A database, as this package uses it: a function that runs one statement. Parameters are `$1`, `$2` in PostgreSQL and `?` in SQLite. For
 * an ORM or a driver that is not listed here, write your own.
 *
 * @example
 * const connection: SqlConnection = {
 *   dialect: 'postgres',
 *   query: async (text, values) => (await prisma.$queryRawUnsafe(text, ...values)),
 * }
 */
export interface SqlConnection {
  readonly dialect: 'postgres' | 'sqlite'
  /** Resolves with the rows that the statement returns, as objects. It must be committed by then. */
  query(text: string, values: readonly SqlValue[]): Promise<readonly SqlRow[]>
  /**
   * Calls `told` whenever another connection runs `pg_notify` on the channel, until the returned function is called. Optional: without it,
   * `sqlAnswerChannel` polls.
   */
  listen?(channel: string, told: () => void): Promise<() => Promise<void>>
}

interface PgClient {
  query(text: string): Promise<unknown>
  on(event: 'notification' | 'error', listener: () => void): unknown
  release(destroy?: boolean): void
}

/** The pools whose errors are heard: an application may pass one for each request. */
const heard = new WeakSet<object>()

/**
 * A pool of the package `pg`. Listening takes one of its connections; a pool that has only one does not listen. An idle connection that
 * breaks, as when the database restarts, is replaced by the pool. It ends no process; to log it, listen to the pool's event `error`.
 */
export function fromPg(pool: {
  query(text: string, values: SqlValue[]): Promise<{ rows: SqlRow[] }>
  connect(): Promise<PgClient>
  on?(event: 'error', listener: () => void): unknown
  readonly options?: { readonly max?: number | undefined } | undefined
}): SqlConnection {
  if (!heard.has(pool)) pool.on?.('error', () => {})
  heard.add(pool)
  const connection: SqlConnection = {
    dialect: 'postgres',
    query: async (text, values) => (await pool.query(text, [...values])).rows,
  }
  if (pool.options?.max === 1) return connection
  return {
    ...connection,
    listen: async (channel, told) => {
      const client = await pool.connect()
      client.on('notification', told)
      client.on('error', () => {})
      try {
        await client.query(`listen "${channel}"`)
      } catch (error) {
        client.release(true)
        throw error
      }
      return async () => client.release(true)
    },
  }
}

/** A client of the package `postgres` (Postgres.js). */
export function fromPostgres(sql: {
  unsafe(text: string, values: SqlValue[]): PromiseLike<readonly SqlRow[]>
  listen(channel: string, told: () => void): PromiseLike<{ unlisten(): PromiseLike<void> }>
}): SqlConnection {
  return {
    dialect: 'postgres',
    query: async (text, values) => sql.unsafe(text, [...values]),
    listen: async (channel, told) => {
      const { unlisten } = await sql.listen(channel, told)
      return async () => unlisten()
    },
  }
}

/** A database of the package `@electric-sql/pglite`. */
export function fromPGlite(database: {
  query(text: string, values: SqlValue[]): Promise<{ rows: unknown[] }>
  listen(channel: string, told: () => void): Promise<() => Promise<void>>
}): SqlConnection {
  return {
    dialect: 'postgres',
    query: async (text, values) => (await database.query(text, [...values])).rows.filter(isRow),
    listen: (channel, told) => database.listen(`"${channel}"`, told),
  }
}

/** A client of the package `@libsql/client`: a file, a server, or Turso. */
export function fromLibsql(client: {
  execute(statement: { sql: string; args: SqlValue[] }): Promise<{ rows: ArrayLike<unknown> }>
}): SqlConnection {
  return {
    dialect: 'sqlite',
    query: async (sql, values) =>
      Array.from((await client.execute({ sql, args: [...values] })).rows).filter(isRow),
  }
}

/** A D1 database of Cloudflare: the binding. */
export function fromD1(database: {
  prepare(text: string): { bind(...values: SqlValue[]): { all(): Promise<{ results: unknown[] }> } }
}): SqlConnection {
  return {
    dialect: 'sqlite',
    query: async (text, values) =>
      (
        await database
          .prepare(text)
          .bind(...values)
          .all()
      ).results.filter(isRow),
  }
}

interface SqliteStatement {
  all(...values: SqlValue[]): unknown[]
  run(...values: SqlValue[]): unknown
  /** better-sqlite3 only: whether the statement returns rows. */
  readonly reader?: boolean
}

/**
 * A database of `node:sqlite`, `@photostructure/sqlite` or `better-sqlite3`. Its calls block the process; for a single file with locking,
 * use `fileLedger` of `@countersign/server/node`.
 */
export function fromSqlite(database: { prepare(text: string): SqliteStatement }): SqlConnection {
  return {
    dialect: 'sqlite',
    query: async (text, values) => {
      const statement = database.prepare(text)
      if (statement.reader !== false) return statement.all(...values).filter(isRow)
      statement.run(...values)
      return []
    },
  }
}

function isRow(row: unknown): row is SqlRow {
  return typeof row === 'object' && row !== null
}
