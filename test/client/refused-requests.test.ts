import { createServer } from 'node:http'
import { aiSdk } from '@countersign/ai-sdk'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import {
  approvalView,
  ChatClient,
  fetchServerSentEvents,
  nextStep,
  type ToolCallPart,
} from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { webSocket } from '@countersign/client/web-socket'
import { type AgentOptions, createAgent, memoryLedger, scriptedModel, tool } from '@countersign/server'
import { toNodeHandler, toSocketHandler } from '@countersign/server/node'
import { passMacrotasks, until } from '@countersign/testing'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { z } from 'zod'
import { call, say } from '../../packages/server/test/support.js'
import { listening } from '../engine/listening.js'
import { answerFetch } from '../interop/fetch-server.js'
import { memoryPersistence } from './fake-browser.js'

/** A proxy in front of a server takes bodies up to `proxy.limit` bytes. It asks twice in one turn. */
const proxy = { limit: Number.POSITIVE_INFINITY }
beforeEach(() => {
  proxy.limit = Number.POSITIVE_INFINITY
})

async function serve(options: Partial<AgentOptions> = {}) {
  const ran: unknown[] = []
  const write = tool({
    name: 'write',
    description: 'Writes a file.',
    input: z.object({ text: z.string() }),
    needsApproval: true,
    allowEdits: true,
    execute: ({ text }) => {
      ran.push(text.length > 20 ? text.length : text)
      return 'written'
    },
  })
  const agent = createAgent({
    tools: [write],
    model: scriptedModel([
      call(['c1', 'write', { text: 'one' }], ['c2', 'write', { text: 'two' }]),
      say('Done.'),
      say('Yes.'),
    ]),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
    onError: () => {},
    ...options,
  })
  const context = { subject: 'ann' }
  const serveRun = toNodeHandler(agent, { context: () => context })
  const server = createServer((request, response) => {
    if (Number(request.headers['content-length'] ?? 0) > proxy.limit) {
      request.resume()
      response.writeHead(413, { 'content-type': 'text/html' }).end('<h1>413</h1>')
    } else if (request.url === '/ai-sdk')
      answerFetch((asked) => handleAiSdkChat(agent, asked, { context }), request, response)
    else serveRun(request, response)
  })
  return { ran, agent, url: `http://${await listening(server)}/` }
}

function open(
  connection: ReturnType<typeof fetchServerSentEvents>,
  persistence?: ReturnType<typeof persistent>,
) {
  const client = new ChatClient({ connection, threadId: 'thread', ...(persistence && { persistence }) })
  onTestFinished(() => client.dispose())
  const part = (id: string) =>
    client
      .getSnapshot()
      .messages.flatMap(({ parts }) => parts)
      .find((one): one is ToolCallPart => one.type === 'tool-call' && one.id === id) ?? expect.fail(id)
  const answer = (id: string, approved: boolean, more: { input?: unknown; reason?: string } = {}) =>
    client.addToolApprovalResponse({ id: part(id).approval?.id ?? '', approved, ...more })
  return { client, part, answer }
}

const long = { text: 'x'.repeat(50_000) }
const reason = 'y'.repeat(50_000)

for (const [name, connect] of [
  ['AG-UI', (url: string) => fetchServerSentEvents(url)],
  ['the AI SDK', (url: string) => aiSdk({ api: `${url}ai-sdk` })],
] as const)
  test(`a request that is refused for its size opens its requests again, over ${name}`, async () => {
    const { ran, url } = await serve()
    const { client, part, answer } = open(connect(url))
    await client.sendMessage('go')
    proxy.limit = 20_000
    const [, told = expect.fail('nothing told')] = await Promise.all([
      answer('c1', false, { reason }),
      answer('c2', true),
    ])
    expect(told).toMatchObject({ status: 'refused', code: 'request-refused' })
    expect(nextStep(told)).toMatchObject({ state: 'unused', next: 'correct' })
    for (const id of ['c1', 'c2']) {
      expect(part(id)).toMatchObject({ state: 'approval-requested', error: { code: 'request-refused' } })
      expect(nextStep(part(id))).toBe(nextStep(told))
      expect(approvalView(part(id))).toMatchObject({ status: 'open', approved: undefined })
    }
    const { status, error, pendingApprovals } = client.getSnapshot()
    expect([status, error?.data.status, pendingApprovals.length]).toEqual(['error', 413, 2])

    // to answer one of them alone sends nothing of the other
    expect(await Promise.race([answer('c1', false, { reason: 'no' }), passMacrotasks(5)])).not.toEqual({
      status: 'sent',
    })
    expect(ran).toEqual([])
    expect(await answer('c2', true)).toEqual({ status: 'sent' })
    expect([ran, part('c1').state, part('c2').state]).toEqual([['two'], 'denied', 'complete'])
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(await answer('c1', true)).toEqual({ status: 'already-answered' })
  })

test.each([
  ['the socket takes no larger message (1009)', { maxPayload: 20_000 }, undefined],
  ['the server gives the reason as it closes (1008)', {}, 'request-too-large'],
])(
  'over a WebSocket, a request that is too large opens its requests again: %s',
  async (_, limits, closeReason) => {
    const { ran, agent } = await serve()
    const server = createServer()
    const url = `ws://${await listening(server)}/`
    const sockets = new WebSocketServer({ server, ...limits })
    const serveRun = toSocketHandler(agent, { context: () => ({ subject: 'ann' }) })
    sockets.on('connection', (socket, request) => {
      serveRun(socket, request)
      if (closeReason !== undefined)
        socket.prependListener('message', (data) => {
          if (String(data).length > 20_000) socket.close(1008, closeReason)
        })
    })
    const { client, part, answer } = open(webSocket(url, { WebSocket }))
    const sent = client.sendMessage('go')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 2)
    for (const socket of sockets.clients) socket.terminate()
    await sent

    // The run is gone, so the answers go in a request.
    const [, told = expect.fail('nothing told')] = await Promise.all([
      answer('c1', false, { reason }),
      answer('c2', true),
    ])
    expect(told).toMatchObject({ status: 'refused', code: 'request-refused' })
    const { error, pendingApprovals } = client.getSnapshot()
    expect([error?.code, error?.data.code, pendingApprovals.length]).toEqual([
      'run-error',
      'request-too-large',
      2,
    ])
    for (const id of ['c1', 'c2'])
      expect(part(id)).toMatchObject({ state: 'approval-requested', error: { code: 'request-refused' } })
    expect(ran).toEqual([])
    await Promise.all([answer('c1', false, { reason: 'no' }), answer('c2', true)])
    expect([ran, part('c1').state, part('c2').state]).toEqual([['two'], 'denied', 'complete'])
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  },
)

test('what the user says instead of answering again withdraws the requests, and nothing runs', async () => {
  const { ran, url } = await serve()
  const { client, part, answer } = open(fetchServerSentEvents(url))
  await client.sendMessage('go')
  proxy.limit = 20_000
  await Promise.all([answer('c1', true, { input: long }), answer('c2', true)])
  proxy.limit = Number.POSITIVE_INFINITY
  expect(await client.sendMessage('No, stop.')).toEqual({ status: 'sent' })
  expect([ran, part('c1').state, part('c2').state]).toEqual([[], 'cancelled', 'cancelled'])
})

test('arguments that were edited too long can be edited again after a reload', async () => {
  const { ran, url } = await serve()
  const storage = persistent(memoryPersistence())
  const before = open(fetchServerSentEvents(url), storage)
  await before.client.sendMessage('go')
  proxy.limit = 20_000
  await Promise.all([before.answer('c1', true, { input: long }), before.answer('c2', true)])
  before.client.dispose()

  const { part, client, answer } = open(fetchServerSentEvents(url), storage)
  await client.restore()
  expect(client.getSnapshot().pendingApprovals.length).toBe(2)
  await Promise.all([answer('c1', true, { input: { text: 'short' } }), answer('c2', true)])
  expect([ran.toSorted(), part('c1').state, part('c2').state]).toEqual([
    ['short', 'two'],
    'complete',
    'complete',
  ])
})

test('an answer that may have arrived before is not opened again by a later refusal', async () => {
  const { ran, url } = await serve()
  const server = { isCut: true }
  const fetch: typeof globalThis.fetch = async (...asked) => {
    const response = await globalThis.fetch(...asked)
    if (!server.isCut) return response
    await response.text()
    throw new TypeError('the reply was lost')
  }
  server.isCut = false
  const { client, part, answer } = open(fetchServerSentEvents(url, { fetch }))
  await client.sendMessage('go')
  server.isCut = true
  await Promise.all([answer('c1', true), answer('c2', true)])
  expect(ran.toSorted()).toEqual(['one', 'two'])
  proxy.limit = 100
  server.isCut = false
  await client.retry()
  expect(client.getSnapshot().error?.data.status).toBe(413)
  expect(part('c1')).toMatchObject({ state: 'approval-responded', approval: { delivery: 'waiting' } })
  proxy.limit = Number.POSITIVE_INFINITY
  await client.retry()
  expect([ran.toSorted(), part('c1').state, part('c2').state]).toEqual([
    ['one', 'two'],
    'complete',
    'complete',
  ])
})

test('over the AI SDK, whose servers keep no ledger, only retry() sends an answer again whose reply was lost', async () => {
  const bodies: string[] = []
  const stream = (id: string, chunks: readonly object[]) =>
    new Response(
      [{ type: 'start', messageId: id }, ...chunks, { type: 'finish' }]
        .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
        .join(''),
      { headers: { 'content-type': 'text/event-stream' } },
    )
  const asks = [
    { type: 'tool-input-available', toolCallId: 'c1', toolName: 'pay', input: {} },
    { type: 'tool-approval-request', toolCallId: 'c1', approvalId: 'a1' },
  ]
  const fetch: typeof globalThis.fetch = async (_, init) => {
    bodies.push(String(init?.body))
    if (bodies.length === 2) throw new TypeError('the reply was lost')
    return stream(`m${bodies.length}`, bodies.length === 1 ? asks : [])
  }
  const { client, part, answer } = open(aiSdk({ api: 'http://localhost/chat', fetch }))
  await client.sendMessage('go')
  await answer('c1', true)
  expect(part('c1').approval?.delivery).toBe('unknown')
  await client.sendMessage('and?')
  expect(bodies[2]).not.toContain('approval-responded')
})

test('an answer whose request only broke off cannot be given anew: the server may have it', async () => {
  const { url } = await serve()
  let broken = false
  const fetch: typeof globalThis.fetch = (...asked) =>
    broken ? Promise.reject(new TypeError('no network')) : globalThis.fetch(...asked)
  const { client, part, answer } = open(fetchServerSentEvents(url, { fetch }))
  await client.sendMessage('go')
  broken = true
  await Promise.all([answer('c1', true), answer('c2', true)])
  expect(part('c1').approval).toMatchObject({ approved: true, delivery: 'waiting' })
  expect(approvalView(part('c1'))?.status).toBe('responded')
  expect(await answer('c1', false)).toEqual({ status: 'already-answered' })
})

test('a message or an edit so long that a server would refuse it with its whole conversation is refused at once', async () => {
  const { ran, url } = await serve()
  const { client, part, answer } = open(fetchServerSentEvents(url))
  const huge = 'x'.repeat(3 * 2 ** 20)
  expect(await client.sendMessage(huge)).toMatchObject({
    status: 'refused',
    error: { code: 'invalid-argument', message: expect.stringContaining('2097152') },
  })
  expect(await client.sendMessage('€'.repeat(2 ** 20))).toMatchObject({ status: 'refused' })
  await client.sendMessage('go')
  expect(await answer('c1', true, { input: { text: new Date(Number.NaN) } })).toMatchObject({
    reason: expect.stringContaining('Invalid Date'),
  })
  expect(await answer('c1', true, { input: { text: huge } })).toMatchObject({
    status: 'refused',
    code: 'approval-malformed',
    reason: expect.stringContaining('2097152'),
  })
  await Promise.all([answer('c1', true), answer('c2', true)])
  expect([ran.toSorted(), part('c1').state]).toEqual([['one', 'two'], 'complete'])
})

test('arguments that were edited to nest deeper than a server takes can be edited again', async () => {
  const { ran, url } = await serve()
  const { client, part, answer } = open(fetchServerSentEvents(url))
  await client.sendMessage('go')
  let text: unknown = 'x'
  for (let level = 0; level < 70; level++) text = [text]
  await Promise.all([answer('c1', true, { input: { text } }), answer('c2', true)])
  expect(client.getSnapshot().error?.data.status).toBe(400)
  await Promise.all([answer('c1', true, { input: { text: 'flat' } }), answer('c2', true)])
  expect([ran.toSorted(), part('c1').state]).toEqual([['flat', 'two'], 'complete'])
})

test('what is given counts as it is when it is given, also while a chat loads', async () => {
  const { ran, url } = await serve()
  const storage = persistent(memoryPersistence())
  const before = open(fetchServerSentEvents(url), storage)
  await before.client.sendMessage('go')
  const id = before.part('c1').approval?.id ?? ''
  const other = before.part('c2').approval?.id ?? ''
  before.client.dispose()
  const { client } = open(fetchServerSentEvents(url), storage)
  const response = { id, approved: false, reason: 'no' }
  const edited = { id: other, approved: true, input: { text: 'as given' } }
  const given = [client.addToolApprovalResponse(response), client.addToolApprovalResponse(edited)]
  Object.assign(response, { approved: true })
  edited.input.text = 'changed since'
  await Promise.all(given)
  expect(ran).toEqual(['as given'])
})

test("a tool's result beyond limits.resultSize is an error that says that the tool ran, and the conversation goes on", async () => {
  const big = tool({
    name: 'write',
    description: 'Reads a file.',
    input: z.object({ text: z.string() }),
    needsApproval: ({ text }) => text === 'two',
    execute: () => 'x'.repeat(5 * 2 ** 20),
  })
  const { url } = await serve({ tools: [big] })
  const { client, part, answer } = open(fetchServerSentEvents(url))
  await client.sendMessage('go')
  await answer('c2', true)
  for (const id of ['c1', 'c2'])
    expect(part(id)).toMatchObject({
      state: 'error',
      error: { code: 'result-too-large', message: expect.stringContaining('ran') },
    })
  expect(await client.sendMessage('and now?')).toEqual({ status: 'sent' })
  expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
})

test('limits.resultSize is as the application says', async () => {
  const { url } = await serve({ limits: { resultSize: 8 } })
  const { client, part, answer } = open(fetchServerSentEvents(url))
  await client.sendMessage('go')
  await Promise.all([answer('c1', true), answer('c2', true)])
  expect(part('c1').error?.message).toContain('at most 8')
  await expect(serve({ limits: { resultSize: 0 } })).rejects.toThrow('limits.resultSize')
})
