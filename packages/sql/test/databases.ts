import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SqliteModule } from '@countersign/server/node'
import {
  ensureSchema,
  fromD1,
  fromLibsql,
  fromPGlite,
  fromPg,
  fromPostgres,
  fromSqlite,
  type SqlConnection,
} from '@countersign/sql'
import { PGlite } from '@electric-sql/pglite'
import { createClient } from '@libsql/client'
import { Pool } from 'pg'
import postgres from 'postgres'
import { afterAll } from 'vitest'
import { postgresForTests } from '../../../scripts/postgres.mjs'

/** A database that the tests of a file share; each test uses tables of its own. */
export interface TestDatabase {
  readonly name: string
  readonly isThere: boolean
  /** Two connections to the same database, where it can have two. */
  readonly connect: () => Promise<readonly [SqlConnection, SqlConnection]>
}

const sqlite = await import(['node', 'sqlite'].join(':')).catch(() => import('@photostructure/sqlite'))

let count = 0
/** A prefix that no other test uses. */
export function newPrefix(): string {
  return `t${process.pid}_${++count}_`
}

/**
 * The databases of one test file, closed after it. `npm test` takes PostgreSQL, or PGlite where there is none, and SQLite as D1 offers it; the
 * long form takes all.
 */
export async function useDatabases(untested: string) {
  const closers: (() => unknown)[] = []
  const server = await postgresForTests(untested)
  const folder = await mkdtemp(join(tmpdir(), 'countersign-sql-'))
  closers.push(() => rm(folder, { recursive: true, force: true }))
  if (server !== undefined) closers.push(server.stop)
  afterAll(async () => {
    for (const close of closers.reverse()) await close()
  })
  const url = server?.url ?? ''

  /** Of the server of this file, and closed after it; of another one, whoever asked closes it. */
  function newPool(connectionString = url, max = 10): Pool {
    const pool = new Pool({ connectionString, max })
    pool.on('error', () => {})
    if (connectionString === url) closers.push(() => pool.end())
    return pool
  }

  function openSqlite() {
    const database = new sqlite.DatabaseSync(join(folder, 'rows.sqlite'))
    for (const pragma of ['journal_mode = wal', 'synchronous = off', 'busy_timeout = 5000'])
      database.exec(`pragma ${pragma}`)
    closers.push(() => database.close())
    return database
  }

  function openPostgresJs() {
    const sql = postgres(url, { max: 10, onnotice: () => {} })
    closers.push(() => sql.end({ timeout: 1 }))
    return fromPostgres(sql)
  }

  async function openPGlite(): Promise<[SqlConnection, SqlConnection]> {
    const database = await PGlite.create()
    closers.push(() => database.close())
    return [fromPGlite(database), fromPGlite(database)]
  }

  function openLibsql() {
    const client = createClient({ url: `file:${join(folder, 'rows.libsql')}` })
    closers.push(() => client.close())
    return fromLibsql(client)
  }

  const isThere = server !== undefined
  const all: TestDatabase[] = [
    { name: 'PostgreSQL by pg', isThere, connect: async () => [fromPg(newPool()), fromPg(newPool())] },
    {
      name: "D1's interface",
      isThere: true,
      connect: async () => [fromD1(d1Of(openSqlite())), fromD1(d1Of(openSqlite()))],
    },
    { name: 'PGlite', isThere: true, connect: openPGlite },
    { name: 'PostgreSQL by Postgres.js', isThere, connect: async () => [openPostgresJs(), openPostgresJs()] },
    {
      name: 'SQLite',
      isThere: true,
      connect: async () => [fromSqlite(openSqlite()), fromSqlite(openSqlite())],
    },
    { name: 'libSQL', isThere: true, connect: async () => [openLibsql(), openLibsql()] },
  ]
  const short = all.slice(0, isThere ? 2 : 3)
  const databases = (process.env.TEST_FULL === '1' ? all : short).map((database) => ({
    ...database,
    connect: once(database.connect),
  }))

  /** Tables of its own in a database, seen through two connections. */
  async function newTables(database: TestDatabase) {
    const [one, other] = await database.connect()
    const prefix = newPrefix()
    await ensureSchema(one, { prefix })
    return { one, other, prefix }
  }

  return { databases, newTables, newPool, url }
}

/** What D1 offers of a database, over SQLite: a prepared statement takes at most 100 values, as D1's does. */
function d1Of(database: InstanceType<SqliteModule['DatabaseSync']>): Parameters<typeof fromD1>[0] {
  return {
    prepare: (text) => ({
      bind: (...values) => ({
        all: async () => {
          if (values.length > 100) throw new Error('too many SQL variables')
          return { results: database.prepare(text).all(...values) }
        },
      }),
    }),
  }
}

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => {
    made ??= make()
    return made
  }
}
