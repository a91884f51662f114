import { createAgent, tool } from '@countersign/server'
import {
  ensureSchema,
  fromSqlite,
  sqlAnswerChannel,
  sqlLedger,
  sqlRunLog,
  sqlThreads,
} from '@countersign/sql'
import { z } from 'zod'
import { database } from './database.js'
import { model } from './model.js'

database.exec(
  'create table if not exists orders (id integer primary key, item text, count integer, customer text)',
)
const insertOrder = database.prepare('insert into orders (item, count, customer) values (?, ?, ?)')

const placeOrder = tool({
  name: 'place_order',
  description: 'Orders something to drink.',
  input: z.object({ item: z.string(), count: z.number().int().positive() }),
  needsApproval: true,
  allowEdits: ['count'],
  execute: async ({ item, count }, { context }) => {
    const { lastInsertRowid } = insertOrder.run(item, count, String(context.subject))
    return `Order ${lastInsertRowid} is placed: ${count} ${item}.`
  },
})

const connection = fromSqlite(database)
await ensureSchema(connection)

export const agent = createAgent({
  model,
  tools: [placeOrder],
  threads: sqlThreads(connection),
  runLog: sqlRunLog(connection),
  answerChannel: sqlAnswerChannel(connection),
  approvals: { ledger: sqlLedger(connection) }, // and COUNTERSIGN_SECRET in the environment
})
