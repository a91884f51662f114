// The ledgers that several processes share, opened by a process of its own.
import { redisAnswerChannel, redisLedger, redisRunLog } from '@countersign/redis'
import { type AgentOptions, type Ledger, statelessLedger } from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import {
  ensureSchema,
  fromPg,
  fromSqlite,
  type SqlConnection,
  sqlAnswerChannel,
  sqlLedger,
  sqlRunLog,
} from '@countersign/sql'
import { Pool } from 'pg'
import { createClient } from 'redis'
import type { SharedLedger } from './processes.js'

type Shared = Pick<AgentOptions, 'runLog' | 'answerChannel'> & { readonly ledger: Ledger }

async function sqlLedgerOf(connection: SqlConnection, prefix: string): Promise<Ledger> {
  const options = prefix === '' ? {} : { prefix }
  await ensureSchema(connection, options)
  return sqlLedger(connection, options)
}

async function openSqlite(path: string) {
  const sqlite = await import(['node', 'sqlite'].join(':')).catch(() => import('@photostructure/sqlite'))
  const database = new sqlite.DatabaseSync(path)
  for (const pragma of ['busy_timeout = 5000', 'journal_mode = wal', 'synchronous = full'])
    database.exec(`pragma ${pragma}`)
  return database
}

/** Opens what several processes share. `lease`: milliseconds that the log of a run outlives its process. */
export async function openShared(ledger: SharedLedger, lease: number): Promise<Shared> {
  if (ledger.kind === 'stateless') return { ledger: statelessLedger({ acceptReplay: true }) }
  if (ledger.kind === 'file') return { ledger: await fileLedger(ledger.path) }
  if (ledger.kind === 'sqlite')
    return { ledger: await sqlLedgerOf(fromSqlite(await openSqlite(ledger.path)), '') }
  if (ledger.kind === 'postgres') {
    const pool = new Pool({ connectionString: ledger.url }).on('error', () => {})
    const connection = fromPg(pool)
    const { prefix } = ledger
    return {
      ledger: await sqlLedgerOf(connection, prefix),
      runLog: sqlRunLog(connection, { prefix, lease }),
      answerChannel: sqlAnswerChannel(connection, { prefix }),
    }
  }
  const client = createClient({ url: ledger.url }).on('error', () => {})
  await client.connect()
  const { prefix } = ledger
  return {
    ledger: redisLedger(client, { prefix }),
    runLog: redisRunLog(client, { prefix, lease }),
    answerChannel: redisAnswerChannel(client, { prefix }),
  }
}
