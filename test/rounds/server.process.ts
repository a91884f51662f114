// A server of `rounds.ts`, as a process of its own: `node process <RoundsConfig as JSON>` prints its URL once it listens.
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { createAgent, type ModelEvent, type ModelRequest, scriptedModel, tool } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { ensureSchema, fromPg, sqlAnswerChannel, sqlLedger, sqlRunLog, sqlThreads } from '@countersign/sql'
import { Pool } from 'pg'
import * as z from 'zod'
import { type RoundsConfig, wordsOf } from './config.js'

const config: RoundsConfig = JSON.parse(process.argv[2] ?? '')
const { log, page, postgres, prefix, lease, words, pace } = config

/** One line of the log that all processes append to, written by one call of the system. */
const write = (line: string) => appendFileSync(log, `${line}\n`)

const work = tool({
  name: 'work',
  description: 'Does a job',
  input: z.object({ job: z.string() }),
  needsApproval: true,
  execute: async ({ job }) => {
    write(`start ${job}`)
    await pause(pace * 5)
    write(`end ${job}`)
    return `${job} is done`
  },
})

/** "ask N": words and a call for approval, then words. Anything else: words alone. Each reply has its own words. */
async function* script({ messages }: ModelRequest): AsyncGenerator<ModelEvent> {
  const last = messages.findLast(({ role }) => role === 'user')
  const text =
    last?.role === 'user' ? last.content.map((part) => ('text' in part ? part.text : '')).join('') : ''
  const job = /^ask (.+)$/.exec(text)?.[1]
  const isAnswered = messages.at(-1)?.role === 'tool'
  write(`stream ${process.pid} ${text}`)
  for (const word of wordsOf(`${text}${isAnswered ? ' after' : ''}`, words)) {
    yield { type: 'text-delta', delta: word }
    await pause(pace)
  }
  if (job !== undefined && !isAnswered) {
    yield { type: 'tool-call', id: `call_${job}`, name: 'work', arguments: JSON.stringify({ job }) }
    yield { type: 'finish', reason: 'tool_calls' }
  } else yield { type: 'finish', reason: 'stop' }
}

const connection = fromPg(new Pool({ connectionString: postgres }).on('error', () => {}))
await ensureSchema(connection, { prefix })
const agent = createAgent({
  model: scriptedModel(script),
  tools: [work],
  threads: sqlThreads(connection, { prefix }),
  runLog: sqlRunLog(connection, { prefix, lease }),
  answerChannel: sqlAnswerChannel(connection, { prefix }),
  approvals: {
    secret: 'countersign-test-secret-0123456789abcdef',
    ledger: sqlLedger(connection, { prefix }),
    lease,
  },
  warn: () => {},
  onError: () => {},
})

// Ends the runs of a process that was killed, as each server may at any time.
setInterval(() => void agent.recover().catch(() => {}), 500)

const chat = toNodeHandler(agent, {
  context: (_: IncomingMessage) => ({ subject: 'ann' }),
  goOnFor: 20_000,
  keepAlive: 1000,
})
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  if (pathname === '/chat') return void chat(request, response)
  const isScript = pathname === '/page.js'
  response.setHeader('content-type', `${isScript ? 'text/javascript' : 'text/html'}; charset=utf-8`)
  response.end(
    isScript ? readFileSync(page) : '<!doctype html><body><pre></pre><script src="/page.js"></script>',
  )
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
})
