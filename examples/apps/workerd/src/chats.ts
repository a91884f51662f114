import { DurableObject } from 'cloudflare:workers'
import { type Agent, createAgent, handleChat, threadResponse, tool } from '@countersign/server'
import {
  ensureSchema,
  type SqlConnection,
  sqlAnswerChannel,
  sqlLedger,
  sqlRunLog,
  sqlThreads,
} from '@countersign/sql'
import { z } from 'zod'
import { model } from './model'

export interface Env {
  readonly CHATS: DurableObjectNamespace<Chats>
  readonly COUNTERSIGN_SECRET: string
}

/**
 * Everything of one user: conversations, approval requests and orders, in the SQLite of a Durable Object. Bindings and the secret belong to
 * its environment, so the agent is made here, and not where the module is loaded.
 */
export class Chats extends DurableObject<Env> {
  readonly #agent: Promise<Agent>

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env)
    this.#agent = ctx.blockConcurrencyWhile(() => startAgent(ctx.storage.sql, env))
  }

  async chat(request: Request, user: string): Promise<Response> {
    const agent = await this.#agent
    const context = { subject: user }
    if (request.method !== 'POST') return threadResponse(agent, request, { context })
    const waitUntil = (work: Promise<unknown>) => this.ctx.waitUntil(work)
    return handleChat(agent, request, { context, goOnFor: 60_000, waitUntil })
  }
}

async function startAgent(sql: SqlStorage, env: Env): Promise<Agent> {
  sql.exec('create table if not exists orders (id integer primary key, item text, count integer)')

  const placeOrder = tool({
    name: 'place_order',
    description: 'Orders something to drink.',
    input: z.object({ item: z.string(), count: z.number().int().positive() }),
    needsApproval: true,
    allowEdits: ['count'],
    execute: async ({ item, count }) => {
      const { id } = sql
        .exec('insert into orders (item, count) values (?, ?) returning id', item, count)
        .one()
      return `Order ${id} is placed: ${count} ${item}.`
    },
  })

  const connection: SqlConnection = {
    dialect: 'sqlite',
    query: async (text, values) => sql.exec(text, ...values).toArray(),
  }
  await ensureSchema(connection)
  return createAgent({
    model,
    tools: [placeOrder],
    threads: sqlThreads(connection),
    runLog: sqlRunLog(connection),
    answerChannel: sqlAnswerChannel(connection),
    approvals: { ledger: sqlLedger(connection), secret: env.COUNTERSIGN_SECRET },
  })
}
