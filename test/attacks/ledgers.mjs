// The ledgers that attacks are played against.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { createClient } from 'redis'
import { postgresForTests } from '../../scripts/postgres.mjs'
import { redisForTests } from '../../scripts/redis.mjs'
import { folder } from './build.mjs'

const kinds = ['memory', 'file', 'redis', 'postgres']

let made = 0

/**
 * Opens what ledgers of a kind need; nothing where there is no Redis. `open(server, options)` makes a new and empty one, with how it is
 * closed. `forProcesses()` describes one for `openDescribed`: each process opens it anew.
 */
export async function ledgersOf(kind) {
  switch (kind) {
    case 'memory':
      return ledgers(kind, (server, options) => server.memoryLedger(options))
    case 'file':
      return ledgers(kind, (server, options) => server.fileLedger(newFile(), options))
    case 'redis':
      return redisLedgers()
    case 'postgres':
      return postgresLedgers()
    default:
      throw new Error(`There is no ledger "${kind}"; there are ${kinds.join(', ')}.`)
  }
}

/** The kind that attacks are played against where none is asked for. */
export const inMemory = await ledgersOf('memory')

function ledgers(kind, make) {
  return {
    kind,
    open: async (server, options) => {
      const ledger = await make(server, options)
      return { ledger, close: () => ledger.close?.() }
    },
    // memory has no processes to share it
    forProcesses: () => ({ file: newFile() }),
    stop: async () => {},
  }
}

async function redisLedgers() {
  const redis = await redisForTests('the attacks against a ledger in Redis')
  if (redis === undefined) return undefined
  const { url } = redis
  const client = await createClient({ url }).connect()
  return {
    kind: 'redis',
    open: async (server, options) => ({
      ledger: server.redisLedger(client, { prefix: newPrefix(), ...options }),
      close: () => {},
    }),
    forProcesses: () => ({ url, prefix: newPrefix() }),
    async stop() {
      await client.close()
      await redis.stop()
    },
  }
}

async function postgresLedgers() {
  const postgres = await postgresForTests('the attacks against a ledger in PostgreSQL')
  if (postgres === undefined) return undefined
  const { url } = postgres
  const pool = new pg.Pool({ connectionString: url }).on('error', () => {})
  return {
    kind: 'postgres',
    open: async (server, options) => ({
      ledger: await sqlLedgerOf(server, pool, newTables(), options),
      close: () => {},
    }),
    forProcesses: () => ({ url, tables: newTables() }),
    async stop() {
      await pool.end()
      await postgres.stop()
    },
  }
}

async function sqlLedgerOf(server, pool, prefix, options) {
  const connection = server.fromPg(pool)
  await server.ensureSchema(connection, { prefix })
  return server.sqlLedger(connection, { prefix, ...options })
}

/** The ledger that several processes share. */
export async function openDescribed(server, { file, url, prefix, tables }) {
  if (tables !== undefined) {
    const pool = new pg.Pool({ connectionString: url }).on('error', () => {})
    return sqlLedgerOf(server, pool, tables)
  }
  if (file !== undefined) return server.fileLedger(file)
  return server.redisLedger(await createClient({ url }).connect(), { prefix })
}

function newFile() {
  mkdirSync(folder, { recursive: true })
  return join(folder, `ledger-${process.pid}-${++made}.sqlite`)
}

function newTables() {
  return `a${process.pid}_${++made}_`
}

function newPrefix() {
  return `attacks:${process.pid}:${Date.now().toString(36)}:${++made}:`
}
