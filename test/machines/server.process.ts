// A server as a process of its own, for the tests beside it: `node process <ServerConfig as JSON>` prints its URL once it listens.
import { appendFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import {
  createAgent,
  type Ledger,
  type ModelEvent,
  type ModelRequest,
  scriptedModel,
  tool,
} from '@countersign/server'
import { toNodeAnswerHandler, toNodeGrantsHandler, toNodeHandler } from '@countersign/server/node'
import * as z from 'zod'
import type { ServerConfig, Step } from './processes.js'
import { openShared } from './shared-ledger.js'

const config: ServerConfig = JSON.parse(process.argv[2] ?? '')

/** Ends this process where it stands, as kill -9 does, if it is to end at this step. */
async function reach(step: Step): Promise<void> {
  if (config.dieAt !== step) return
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => {})
}

/** One line of the tools' own log, written by one call of the system and only ever appended. */
function write(what: 'start' | 'end', key: string, job: string): void {
  appendFileSync(config.log, `${what} ${key} ${job}\n`)
}

const work = tool({
  name: 'work',
  description: 'Does a job',
  input: z.object({ job: z.string() }),
  needsApproval: true,
  scopes: ['once', 'session'],
  execute: async ({ job }, { idempotencyKey }) => {
    await reach('claimed')
    write('start', idempotencyKey, job)
    await reach('started')
    await pause(config.toolMs * ((job.length * 7 + job.charCodeAt(job.length - 1) * 3) % 10) * 0.1)
    write('end', idempotencyKey, job)
    await reach('ran')
    return { job }
  },
})

let made = 0

/** A message that is a JSON list of jobs becomes one call for each. */
function script({ messages }: ModelRequest): ModelEvent[] {
  const last = messages.at(-1)
  const text =
    last?.role === 'user' ? last.content.map((part) => ('text' in part ? part.text : '')).join('') : '[]'
  const jobs: string[] = JSON.parse(text)
  return [
    ...jobs.map(
      (job): ModelEvent => ({
        type: 'tool-call',
        id: `call_${process.pid}_${++made}`,
        name: 'work',
        arguments: JSON.stringify({ job }),
      }),
    ),
    ...(jobs.length === 0 ? [{ type: 'text-delta' as const, delta: 'done' }] : []),
    { type: 'finish', reason: jobs.length === 0 ? 'stop' : 'tool_calls' },
  ]
}

/** The ledger, whose process may end at one of its steps. */
function mortal(ledger: Ledger): Ledger {
  return {
    ...ledger,
    async issue(record) {
      const issued = await ledger.issue(record)
      await reach('asked')
      return issued
    },
    async claim(ref, answer, holder, lease) {
      if (answer.decision === 'approve') await reach('answered')
      return ledger.claim(ref, answer, holder, lease)
    },
    async complete(ref, holder, outcome) {
      const completed = await ledger.complete(ref, holder, outcome)
      await reach('completed')
      return completed
    },
  }
}

const { ledger, ...rest } = await openShared(config.ledger, config.lease)
const agent = createAgent({
  ...rest,
  model: scriptedModel(script),
  tools: [work],
  approvals: {
    secret: 'countersign-test-secret-0123456789abcdef',
    ledger: mortal(ledger),
    lease: config.lease,
    wait: 10_000,
  },
  warn: () => {},
  onError: () => {},
})

/** Stands for a real sign-in. */
const known = {
  context: ({ headers }: IncomingMessage) => ({ subject: String(headers['x-user'] ?? 'ann') }),
}
const chat = toNodeHandler(agent, { ...known, goOnFor: 10_000 })
const live = toNodeHandler(agent, { ...known, goOnFor: 10_000, live: true })
const answers = toNodeAnswerHandler(agent, known)
const grants = toNodeGrantsHandler(agent, known)
const routes = new Map([
  ['/chat', chat],
  ['/live', live],
  ['/answers', answers],
  ['/grants', grants],
])
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost')
  const serve = routes.get(pathname)
  if (serve === undefined) response.writeHead(404).end()
  else void serve(request, response)
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`)
})
