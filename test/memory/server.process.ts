// A server as a process of its own, for the tests beside it: `node process <ServerConfig as JSON>` prints its port once it listens.
import { createServer, type IncomingMessage } from 'node:http'
import { CountersignError } from '@countersign/core'
import { redisLedger } from '@countersign/redis'
import {
  createAgent,
  type Ledger,
  type Limits,
  type Model,
  type ModelEvent,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  tool,
} from '@countersign/server'
import {
  fileLedger,
  socketServerLimits,
  toNodeAnswerHandler,
  toNodeGrantsHandler,
  toNodeHandler,
  toSocketHandler,
} from '@countersign/server/node'
import { createClient } from 'redis'
import { WebSocketServer } from 'ws'
import * as z from 'zod'

export interface ServerConfig {
  readonly limits?: Limits
  /** Approvals that the ledger keeps. */
  readonly maxRecords?: number
  /** Characters that it keeps. */
  readonly maxSize?: number
  /** Default: in memory. */
  readonly ledger?:
    | { readonly kind: 'file'; readonly path: string }
    | { readonly kind: 'redis'; readonly url: string; readonly prefix: string }
}

const { limits, maxRecords, maxSize, ledger }: ServerConfig = JSON.parse(process.argv[2] ?? '{}')

async function openLedger(): Promise<Ledger> {
  if (ledger === undefined) return memoryLedger({ maxRecords, maxSize })
  if (ledger.kind === 'file') return fileLedger(ledger.path)
  const client = createClient({ url: ledger.url }).on('error', () => {})
  await client.connect()
  return redisLedger(client, { prefix: ledger.prefix })
}

const mail = tool({
  name: 'mail',
  description: 'Sends a mail',
  input: z.object({ to: z.string() }),
  needsApproval: true,
  execute: async () => 'sent',
})
let reports = 0
const report = tool({
  name: 'report',
  description: 'Reports again and again',
  input: z.object({ times: z.number() }),
  execute: async ({ times }, { progress }) => {
    const text = JSON.stringify('x'.repeat(1000))
    for (let at = 0; at < times; at++) {
      // each with a text of its own
      progress({ at, data: JSON.parse(text) })
      reports++
      // as a tool does that reads something else
      if (at % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    return 'done'
  },
})

const long = tool({
  name: 'long',
  description: 'Gives a long text',
  input: z.object({ times: z.number() }),
  // each a text of its own, with two bytes for a character
  execute: async ({ times }) => `漢${Math.random()}${'x'.repeat(times)}`,
})

const pay = tool({
  name: 'pay',
  description: 'Pays an invoice',
  input: z.object({ to: z.string() }),
  needsApproval: true,
  redact: ({ to }) => ({ to, account: '[REDACTED]' }),
  mandates: ({ to }) => [
    { id: 'always', label: 'Pay this one', where: [{ field: 'to', is: to }] },
    { id: 'never', label: 'Never pay this one', where: [{ field: 'to', is: to }], decide: 'deny' },
  ],
  execute: async () => 'paid',
})

let count = 0
const toolCall = (name: string, input: unknown): ModelEvent => ({
  type: 'tool-call',
  id: `call-${++count}`,
  name,
  arguments: JSON.stringify(input),
})

/** `ask 3` asks three times, `fill 9` asks once with nine characters, `pay 9 x` pays somebody whose name begins so and has nine characters, `report 5` reports five times, `long 9` gives nine characters again and again; to anything else it says hello. It keeps nothing. */
const model: Model = {
  id: 'script',
  async *stream({ messages }) {
    const last = messages.at(-1)
    const said = last?.role === 'user' ? JSON.stringify(last.content) : ''
    const again = last?.role === 'tool' ? JSON.stringify(messages.at(0)?.content) : ''
    const [, verb, times = '1', name = ''] =
      /(ask|fill|pay|report) (\d+) ?(\w*)/.exec(said) ?? /(long) (\d+)/.exec(said + again) ?? []
    if (verb === 'ask')
      for (let at = 0; at < Number(times); at++) yield toolCall('mail', { to: 'ann@example.org' })
    else if (verb === 'fill') yield toolCall('mail', { to: 'x'.repeat(Number(times)) })
    else if (verb === 'pay') yield toolCall('pay', { to: name.padEnd(Number(times), 'я') })
    else if (verb === 'report' || verb === 'long') yield toolCall(verb, { times: Number(times) })
    else yield { type: 'text-delta', delta: 'Hello.' }
    yield { type: 'finish', reason: verb === undefined ? 'stop' : 'tool_calls' }
  },
}

const agent = createAgent({
  model,
  tools: [mail, pay, report, long],
  limits,
  approvals: { ledger: await openLedger() },
  warn: () => {},
})

/** Whether the stores of the other agent, which keeps conversations, have stopped answering. */
let stalled: Promise<void> | undefined
const waiting =
  <Given extends unknown[], Result>(work: (...given: Given) => Promise<Result>) =>
  async (...given: Given) => {
    await stalled
    return work(...given)
  }
const store = memoryThreads()
const log = memoryRunLog()
const keeping = createAgent({
  model,
  limits: { ...limits, cachedThreadBytes: 1 },
  threads: { ...store, load: waiting(store.load), rename: waiting(store.rename) },
  runLog: { ...log, read: waiting(log.read) },
  approvals: { ledger: memoryLedger() },
  warn: () => {},
})

/** The user is the word of a header. Whoever says none is turned away. */
function context({ headers }: IncomingMessage) {
  const user = headers['x-user']
  if (typeof user === 'string' && user !== '') return { subject: user }
  throw new CountersignError('invalid-request', 'Sign in.', { status: 401 })
}

const chat = toNodeHandler(agent, { context })
const kept = toNodeHandler(keeping, { context })
const live = toNodeHandler(agent, { context, live: true })
const answer = toNodeAnswerHandler(agent, { context })
const grants = toNodeGrantsHandler(agent, { context })
const server = createServer((request, response) => {
  const { url = '' } = request
  if (url.startsWith('/reported'))
    response.setHeader('content-length', String(reports).length).end(String(reports))
  else if (url.startsWith('/stall')) {
    stalled = new Promise(() => {})
    response.end()
  } else if (url.startsWith('/kept')) void kept(request, response)
  else if (url.startsWith('/live')) void live(request, response)
  else if (url.startsWith('/answer')) void answer(request, response)
  else if (url.startsWith('/grants')) void grants(request, response)
  else void chat(request, response)
})
const sockets = new WebSocketServer({ server, ...socketServerLimits })
sockets.on('connection', toSocketHandler(agent, { context }))
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
