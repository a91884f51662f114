import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

const closers: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closers.reverse()) await close()
})

let count = 0
/** A prefix that no other test uses. */
export function newPrefix(): string {
  return `t${process.pid}_${++count}_`
}

/** A database that tests share; each uses tables of its own. */
export interface TestDatabase {
  readonly name: string
  /** Two connections to the same database, where it can have two. */
  readonly connect: () => Promise<readonly [SqlConnection, SqlConnection]>
  readonly isThere: boolean
}

const server = await postgresForTests('the ledger in PostgreSQL')
if (server !== undefined) closers.push(server.stop)
export const url = server?.url ?? ''

const folder = await mkdtemp(join(tmpdir(), 'countersign-sql-'))
closers.push(() => rm(folder, { recursive: true, force: true }))

const sqlite = await import(['node', 'sqlite'].join(':')).catch(() => import('@photostructure/sqlite'))

function once<Value>(make: () => Promise<Value>): () => Promise<Value> {
  let made: Promise<Value> | undefined
  return () => {
    made ??= make()
    return made
  }
}

/** Of the server that tests share, and closed after them; of another one, whoever asked closes it. */
export function newPool(connectionString = url, max = 10): Pool {
  const pool = new Pool({ connectionString, max })
  pool.on('error', () => {})
  if (connectionString === url) closers.push(() => pool.end())
  return pool
}

function openSqlite() {
  const database = new sqlite.DatabaseSync(join(folder, 'rows.sqlite'))
  database.exec('pragma journal_mode = wal')
  database.exec('pragma synchronous = off')
  database.exec('pragma busy_timeout = 5000')
  closers.push(() => database.close())
  return database
}

/** What D1 offers of a database, over SQLite: a prepared statement takes at most 100 values, as D1's does. */
function d1Of(database: ReturnType<typeof openSqlite>): Parameters<typeof fromD1>[0] {
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

const all: TestDatabase[] = [
  {
    name: 'PostgreSQL by pg',
    isThere: server !== undefined,
    connect: async () => [fromPg(newPool()), fromPg(newPool())],
  },
  {
    name: 'PostgreSQL by Postgres.js',
    isThere: server !== undefined,
    connect: async () => {
      const open = () => {
        const sql = postgres(url, { max: 10, onnotice: () => {} })
        closers.push(() => sql.end({ timeout: 1 }))
        return fromPostgres(sql)
      }
      return [open(), open()]
    },
  },
  {
    name: 'PGlite',
    isThere: true,
    connect: async () => {
      const database = await PGlite.create()
      closers.push(() => database.close())
      return [fromPGlite(database), fromPGlite(database)]
    },
  },
  {
    name: 'SQLite',
    isThere: true,
    connect: async () => [fromSqlite(openSqlite()), fromSqlite(openSqlite())],
  },
  {
    name: 'libSQL',
    isThere: true,
    connect: async () => {
      const open = () => {
        const client = createClient({ url: `file:${join(folder, 'rows.libsql')}` })
        closers.push(() => client.close())
        return fromLibsql(client)
      }
      return [open(), open()]
    },
  },
  {
    name: "D1's interface",
    isThere: true,
    connect: async () => [fromD1(d1Of(openSqlite())), fromD1(d1Of(openSqlite()))],
  },
]

export const databases: readonly TestDatabase[] = all.map((database) => ({
  ...database,
  connect: once(database.connect),
}))

/** Tables of its own in a database, seen through two connections. */
export async function newTables(database: TestDatabase) {
  const [one, other] = await database.connect()
  const prefix = newPrefix()
  await ensureSchema(one, { prefix })
  return { one, other, prefix }
}
