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
  let isSending = false
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const send = tool({
    name: 'send',
    description: 'Sends a message.',
    input: z.object({}),
    needsApproval: true,
    execute: async () => {
      isSending = true
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
  return { agent, letGo: () => letGo(), isSending: () => isSending }
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
      const { agent, letGo, isSending } = setUp()
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
      await vi.waitUntil(isSending)
      const down = shutDown(agent, server, sockets, 20_000)
      letGo()
      await down
      await answer
      const { messages, status } = client.getSnapshot()
      const parts = messages.flatMap(({ parts }) => parts)
      const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [part.state] : []))
      expect([calls, status, errors]).toEqual([['complete'], 'ready', []])
      expect(JSON.stringify(messages)).toContain('a time.')
    },
  )

/** A page that takes what is sent when the test says so, and the run's `waitUntil`. */
interface SlowPage {
  /** What was taken. */
  text(): string
  /** Whether something waits to be taken. */
  isHeld(): boolean
  take(): void
  readonly waited: Promise<void> | undefined
}

function slowNode(agent: Agent): SlowPage {
  let text = ''
  let held: { readonly chunk: string; readonly written: () => void } | undefined
  const connection = new Duplex({
    read() {},
    write(chunk, _, written) {
      held = { chunk: String(chunk), written }
    },
  })
  connection.on('error', () => {})
  let waited: Promise<void> | undefined
  const waitUntil = (work: Promise<void>) => {
    waited = work
  }
  createServer(toNodeHandler(agent, { context: () => context, waitUntil })).emit('connection', connection)
  const body = JSON.stringify(input())
  const head = `POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
  connection.push(`${head}\r\n\r\n${body}`)
  return {
    text: () => text,
    isHeld: () => held !== undefined,
    take() {
      const { chunk = '', written } = held ?? {}
      held = undefined
      text += chunk
      written?.()
    },
    get waited() {
      return waited
    },
  }
}

/** Asks for the next part of a response only once it has taken the one before. */
function slowResponse(agent: Agent): SlowPage {
  let text = ''
  let held: string | undefined
  let waited: Promise<void> | undefined
  const waitUntil = (work: Promise<void>) => {
    waited = work
  }
  const utf8 = new TextDecoder()
  const reading = handleChat(agent, request(input()), { context, waitUntil }).then(({ body }) =>
    body?.getReader(),
  )
  const ask = async () => {
    const { value } = (await (await reading)?.read()) ?? {}
    held = value && utf8.decode(value)
  }
  void ask()
  return {
    text: () => text,
    isHeld: () => held !== undefined,
    take() {
      text += held ?? ''
      held = undefined
      void ask()
    },
    get waited() {
      return waited
    },
  }
}

function slowSocket(agent: Agent): SlowPage {
  let text = ''
  let sent = ''
  let receive: (event: { readonly data: unknown }) => void = () => {}
  const socket: ServerSocket = {
    readyState: 1,
    get bufferedAmount() {
      return sent.length
    },
    send(data) {
      sent += data
    },
    close() {},
    addEventListener(type: string, listener: (event: { readonly data: unknown }) => void) {
      if (type === 'message') receive = listener
    },
  }
  serveSocket(agent, socket, new Request('http://localhost/'), { context: () => context })
  receive({ data: JSON.stringify({ type: 'run', input: input() }) })
  return {
    text: () => text,
    isHeld: () => sent !== '',
    take() {
      text += sent
      sent = ''
    },
    waited: undefined,
  }
}

const slowPages = { Node: slowNode, 'a Response': slowResponse, 'a WebSocket': slowSocket }

/** Takes everything up to the last part, which it leaves. */
async function readToEnd(page: SlowPage, letGo: () => void): Promise<void> {
  const takeUntil = (isThere: () => boolean) =>
    vi.waitUntil(() => {
      if (page.isHeld() && !isThere()) page.take()
      return isThere()
    })
  await takeUntil(() => page.text().includes('Once upon '))
  letGo()
  await vi.waitUntil(page.isHeld)
}

test.each(Object.entries(slowPages))(
  'drain waits until the end of a run has been taken from %s',
  async (_, open) => {
    const { agent, letGo } = setUp()
    const page = open(agent)
    await readToEnd(page, letGo)
    const done: string[] = []
    const drained = agent.drain().then(() => void done.push('drained'))
    const waited = page.waited?.then(() => void done.push('waited'))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(done).toEqual([])
    await vi.waitUntil(() => {
      if (page.isHeld()) page.take()
      return done.includes('drained')
    })
    await Promise.all([drained, waited])
    expect(page.text()).toContain('RUN_FINISHED')
  },
)

test.each(Object.entries(slowPages))(
  'drain does not wait for ever until the end of a run is taken from %s',
  async (_, open) => {
    const { agent, letGo } = setUp({ limits: { stallTime: 50 } })
    const page = open(agent)
    await readToEnd(page, letGo)
    await agent.drain()
    await page.waited
    expect(page.text()).not.toContain('RUN_FINISHED')
  },
)

test('drain does not wait for a page that follows a run of another process: the page gets the rest elsewhere', async () => {
  const runLog = memoryRunLog()
  const { agent: ofRun, letGo } = setUp({ runLog })
  const elsewhere = setUp({ runLog }).agent
  const next = setUp({ runLog }).agent
  await isBegun(readFrom(handleChat(ofRun, request(input()), { context })))
  const get = (lastEventId?: string) =>
    new Request('http://localhost/?threadId=t&runId=r1', {
      headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
    })
  const page = (await rejoinResponse(elsewhere, get(), { context })).body?.getReader()
  const utf8 = new TextDecoder()
  let seen = ''
  while (!seen.includes('Once upon ')) seen += utf8.decode((await page?.read())?.value)
  await elsewhere.drain()
  await page?.cancel()
  const rejoined = readFrom(rejoinResponse(next, get(/id: (\S+)\n[^\n]*\n*$/.exec(seen)?.[1]), { context }))
  letGo()
  await vi.waitUntil(() => rejoined.hasEnded)
  expect(rejoined.text).toContain('a time.')
  expect(rejoined.text).not.toContain('Once upon ')
})
