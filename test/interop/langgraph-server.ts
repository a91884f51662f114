import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type LangGraphOptions, langGraph } from '@countersign/langgraph'
import { agentParts } from './langgraph-agent.js'
import type { PeerServer } from './our-client.js'

export interface LangGraphServer extends PeerServer {
  readonly apiUrl: string
  /** What was asked of it, in order: the method, and the path below the thread. */
  readonly asked: readonly string[]
  /** Bodies of the requests that began a run, in order. */
  readonly bodies: readonly Readonly<Record<string, unknown>>[]
}

const sent: string[] = []
let started: Promise<string> | undefined

/** LangGraph's own development server, in memory and in this process; it ends with it. */
async function start(): Promise<string> {
  process.env.LOG_LEVEL = 'silent'
  const { startServer } = await import('@langchain/langgraph-api/server')
  Object.assign(globalThis, { [Symbol.for('countersign.test.langgraph')]: agentParts(sent) })
  // it writes what it keeps now and then; each test begins without any of it
  const cwd = join(import.meta.dirname, '../../.countersign/langgraph')
  mkdirSync(cwd, { recursive: true })
  const graphs = { agent: `${join(import.meta.dirname, 'langgraph-graph.mjs')}:agent` }
  // its workers look for runs at random times within a second: many of them find one soon
  const { host } = await startServer({ port: 0, nWorkers: 20, host: '127.0.0.1', cwd, graphs })
  return `http://${host}`
}

/** The server without a conversation, and our client's way to it. */
export async function openLangGraph(options: Partial<LangGraphOptions> = {}): Promise<LangGraphServer> {
  started ??= start()
  const apiUrl = await started
  const all = { runs: true, threads: true, checkpointer: true }
  const headers = { 'content-type': 'application/json' }
  await fetch(`${apiUrl}/internal/truncate`, { method: 'POST', headers, body: JSON.stringify(all) })
  sent.length = 0
  const asked: string[] = []
  const bodies: Readonly<Record<string, unknown>>[] = []
  const counting: typeof fetch = (url, init) => {
    const path = new URL(String(url)).pathname
      .replace(/^\/threads\/[^/]+/, '')
      .replace(/[0-9a-f-]{36}/, 'RUN')
    asked.push(`${init?.method ?? 'GET'} ${path}`)
    if (path === '/runs/stream') bodies.push(JSON.parse(String(init?.body)))
    return (options.fetch ?? fetch)(url, init)
  }
  const connection = langGraph({ apiUrl, assistantId: 'agent', ...options, fetch: counting })
  return { apiUrl, asked, bodies, sent, options: { connection }, requests: () => bodies.length }
}
