import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { ChatClient, fetchServerSentEvents, postAnswers } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  handleChat,
  type Model,
  memoryLedger,
  memoryRunLog,
  rejoinResponse,
  type ServerSocket,
  serveSocket,
  tool,
} from '@countersign/server'
import {
  socketServerLimits,
  toNodeAnswerHandler,
  toNodeHandler,
  toSocketHandler,
} from '@countersign/server/node'
import { expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { z } from 'zod'
import { readPage } from '../docs/markdown.js'
import { answerFetch } from '../interop/fetch-server.js'
import { listening } from './listening.js'

const context = { subject: 'ann' }

/** An agent that says `Once upon `, then `a time.` once it is let go. Told to send, it calls a tool, which waits for the same. */
function setUp(more: Partial<AgentOptions> = {}) {
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const send = tool({
    name: 'send',
    description: 'Sends a message.',
    input: z.object({}),
    needsApproval: true,
    execute: async () => {
      await gate
      return 'sent'
    },
  })
  const model: Model = {
    id: 'test/m',
    async *stream({ messages }, { signal }) {
      const last = JSON.stringify(messages.at(-1))
      if (last.includes('Send it.')) {
        yield { type: 'tool-call', id: 'c1', name: 'send', arguments: '{}' }
        yield { type: 'finish', reason: 'tool_calls' }
        return
      }
      yield { type: 'text-delta', delta: 'Once upon ' }
      await Promise.race([gate, once(signal, 'abort')])
      if (signal.aborted) return
      yield { type: 'text-delta', delta: 'a time.' }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const approvals = { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() }
  const stores = { runLog: memoryRunLog() }
  const agent = createAgent({
    model,
    tools: [send],
    ...stores,
    warn: () => {},
    onError: () => {},
    ...more,
    approvals,
  })
  return { agent, letGo: () => letGo() }
}

const input = (content = 'Tell me a story.'): RunAgentInput => ({
  ...{ threadId: 't', runId: 'r1', protocolVersion: '1.0', tools: [], context: [] },
  messages: [{ id: 'u1', role: 'user', content }],
})

const posted = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

const request = (body: unknown) => new Request('http://localhost/', posted(body))

/** A handler of one's own: it writes the events of a run as they come. */
async function writeRun(agent: Agent, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  for await (const event of agent.run(input(), { context })) response.write(`${JSON.stringify(event)}\n`)
  response.end()
}

/** An agent behind every kind of route, on the loopback interface. */
async function listen(agent: Agent) {
  const own = { context: () => context, live: true, goOnFor: 60_000 }
  const ofAiSdk = (request: Request) => handleAiSdkChat(agent, request, { context })
  const ofFetch = (request: Request) =>
    request.method === 'GET'
      ? rejoinResponse(agent, request, { context })
      : handleChat(agent, request, { context, goOnFor: 60_000 })
  type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>
  const routes: Readonly<Record<string, Handler>> = {
    '/': toNodeHandler(agent, own),
    '/answers': toNodeAnswerHandler(agent, { context: () => context }),
    '/fetch': (request, response) => answerFetch(ofFetch, request, response),
    '/ai-sdk': (request, response) => answerFetch(ofAiSdk, request, response),
    '/own': (_, response) => writeRun(agent, response),
  }
  const server = createServer((request, response) => {
    const [path = '/'] = (request.url ?? '/').split('?')
    void routes[path]?.(request, response)
  })
  const sockets = new WebSocketServer({ server, ...socketServerLimits })
  sockets.on('connection', toSocketHandler(agent, own))
  return { server, sockets, url: `http://${await listening(server)}` }
}

/** What has arrived so far, and whether its connection has ended, however it has. */
interface Reading {
  text: string
  hasEnded: boolean
}

function readFrom(responding: Promise<Response>): Reading {
  const reading: Reading = { text: '', hasEnded: false }
  const utf8 = new TextDecoder()
  const read = async () => {
    for await (const chunk of (await responding).body ?? [])
      reading.text += utf8.decode(chunk, { stream: true })
  }
  void read()
    .catch(() => {})
    .finally(() => {
      reading.hasEnded = true
    })
  return reading
}

const isBegun = (reading: Reading) => vi.waitUntil(() => reading.text.includes('Once upon '))

function readSocket(url: string): Reading {
  const reading: Reading = { text: '', hasEnded: false }
  const socket = new WebSocket(url.replace('http', 'ws'))
  socket.on('open', () => socket.send(JSON.stringify({ type: 'run', input: input() })))
  socket.on('message', (data) => {
    reading.text += String(data)
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    reading.hasEnded = true
  })
  return reading
}

/** Another page that takes up the run of the first one. */
async function rejoin(url: string, path: string): Promise<Reading> {
  await isBegun(readFrom(fetch(`${url}${path}`, posted(input()))))
  return readFrom(fetch(`${url}${path}?threadId=t&runId=r1`))
}

const aiSdkRequest = {
  id: 't',
  trigger: 'submit-message',
  messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Tell me a story.' }] }],
}

/** Every way by which a page reads a run. */
const ways: Readonly<Record<string, (url: string) => Reading | Promise<Reading>>> = {
  'event stream of Node': (url) => readFrom(fetch(`${url}/`, posted(input()))),
  'event stream of Node, taken up': (url) => rejoin(url, '/'),
  'event stream of a Response': (url) => readFrom(fetch(`${url}/fetch`, posted(input()))),
  'event stream of a Response, taken up': (url) => rejoin(url, '/fetch'),
  'AI SDK': (url) => readFrom(fetch(`${url}/ai-sdk`, posted(aiSdkRequest))),
  WebSocket: (url) => readSocket(url),
  'a handler of one’s own': (url) => readFrom(fetch(`${url}/own`)),
}

const [, section = ''] = readPage('docs/deploy.md').split('## Shut down')
const codeOf = (start: string) => new RegExp(`\`\`\`ts\\n(${start}[\\s\\S]*?)\`\`\``).exec(section)?.[1] ?? ''

interface Process {
  once(signal: string, act: () => Promise<void>): void
  exit(): void
}

/** Runs the code of the documentation, which resolves with the end of its process. */
function asDocumented(agent: Agent, server: Server, sockets: WebSocketServer, within: number): Promise<void> {
  const code = codeOf('process').replace('20_000', String(within))
  return new Promise<void>((exit) => {
    const once = async (_: string, act: () => Promise<void>) => {
      await act()
      new Function('sockets', codeOf('for'))(sockets)
    }
    const process: Process = { once, exit }
    new Function('process', 'agent', 'server', code)(process, agent, server)
  })
}

/** Closes everything in the moment in which the agent says that nothing is open. */
async function atOnce(agent: Agent, server: Server, sockets: WebSocketServer, within: number): Promise<void> {
  await agent.drain({ within })
  server.close()
  server.closeAllConnections()
  for (const socket of sockets.clients) socket.terminate()
}

const ends = { 'the shutdown that Deploy describes': asDocumented, 'a shutdown that closes at once': atOnce }

for (const [end, shutDown] of Object.entries(ends))
  for (const [way, open] of Object.entries(ways)) {
    test(`${end} sends the end of a run that ends in time: ${way}`, async () => {
      const { agent, letGo } = setUp()
      const { server, sockets, url } = await listen(agent)
      const reading = await open(url)
      await isBegun(reading)
      const down = shutDown(agent, server, sockets, 20_000)
      letGo()
      await down
      await vi.waitUntil(() => reading.hasEnded)
      expect(reading.text).toContain('a time.')
      expect(reading.text).toMatch(/"type":"(?:RUN_FINISHED|finish)"/)
    })

    test(`${end} tells the reader of a run that was stopped why: ${way}`, async () => {
      const { agent, letGo } = setUp()
      onTestFinished(letGo)
      const { server, sockets, url } = await listen(agent)
      const reading = await open(url)
      await isBegun(reading)
      await shutDown(agent, server, sockets, 0)
      await vi.waitUntil(() => reading.hasEnded)
      expect(reading.text).toMatch(/"code":"shutting-down"|"errorText":"This server is shutting down/)
    })
  }

for (const [end, shutDown] of Object.entries(ends))
  test.each(['by the next request', 'into the open run'])(
    `${end} shows the result of an approved call that ends in time: answered %s`,
    async (how) => {
      const { agent, letGo } = setUp()
      const { server, sockets, url } = await listen(agent)
      const live = how === 'into the open run'
      const sse = fetchServerSentEvents(live ? url : `${url}/fetch`)
      const connection = live ? { ...sse, ...postAnswers(`${url}/answers`) } : sse
      const errors: string[] = []
      const client = new ChatClient({ connection, onError: ({ code }) => void errors.push(code) })
      onTestFinished(() => client.dispose())
      void client.sendMessage('Send it.')
      const asked = () => client.getSnapshot().pendingApprovals[0]?.approval.id
      await vi.waitUntil(
        () => asked() !== undefined && (live || client.getSnapshot().status === 'awaiting-approval'),
      )
      const answer = client.addToolApprovalResponse({ id: asked() ?? '', approved: true })
      const call = () =>
        client
          .getSnapshot()
          .messages.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool-call'))[0]
      await vi.waitUntil(() => call()?.state === 'executing' || call()?.approval?.delivery === 'sent')
      const down = shutDown(agent, server, sockets, 20_000)
      letGo()
      await down
      await vi.waitUntil(() => client.getSnapshot().status !== 'streaming')
      expect([call()?.state, client.getSnapshot().status, errors]).toEqual(['complete', 'ready', []])
      expect(await answer).toMatchObject({ status: 'sent' })
      expect(JSON.stringify(client.getSnapshot().messages)).toContain('a time.')
    },
  )
