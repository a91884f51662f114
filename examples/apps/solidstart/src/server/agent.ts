import { createAgent, tool } from '@countersign/server'
import {
  ensureSchema,
  fromSqlite,
  sqlAnswerChannel,
  sqlLedger,
  sqlRunLog,
  sqlThreads,
} from '@countersign/sql'
import { DatabaseSync } from '@photostructure/sqlite'
import { z } from 'zod'
import { model } from './model'

async function start() {
  const database = new DatabaseSync(process.env.DATABASE ?? 'chat.db')
  database.exec('pragma busy_timeout = 5000; pragma journal_mode = wal; pragma synchronous = full')
  database.exec('create table if not exists orders (id integer primary key, item text, count integer)')

  const placeOrder = tool({
    name: 'place_order',
    description: 'Orders something to drink.',
    input: z.object({ item: z.string(), count: z.number().int().positive() }),
    needsApproval: true,
    allowEdits: ['count'],
    execute: async ({ item, count }) => {
      const { lastInsertRowid } = database
        .prepare('insert into orders (item, count) values (?, ?)')
        .run(item, count)
      return `Order ${lastInsertRowid} is placed: ${count} ${item}.`
    },
  })

  const connection = fromSqlite(database)
  await ensureSchema(connection)
  return createAgent({
    model,
    tools: [placeOrder],
    threads: sqlThreads(connection),
    runLog: sqlRunLog(connection),
    answerChannel: sqlAnswerChannel(connection),
    approvals: { ledger: sqlLedger(connection) }, // and COUNTERSIGN_SECRET in the environment
  })
}

let started: ReturnType<typeof start> | undefined

/** The agent of this process. It starts with the first request, not when the build loads this file. If it could not, the next one tries again. */
export function getAgent() {
  started ??= start().catch((error) => {
    started = undefined
    throw error
  })
  return started
}
