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
import { type AgentOptions, createAgent, memoryLedger, scriptedModel, tool } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
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
  return { ran, url: `http://${await listening(server)}/` }
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

for (const [name, connect] of [
  ['AG-UI', (url: string) => fetchServerSentEvents(url)],
  ['the AI SDK', (url: string) => aiSdk({ api: `${url}ai-sdk` })],
] as const) {
  describe(`a request that is refused for its size, over ${name}`, () => {
    const reason = 'y'.repeat(50_000)

    test('leaves each answer in it as it was given, and lets the person answer anew', async () => {
      const { ran, url } = await serve()
      const { client, part, answer } = open(connect(url))
      await client.sendMessage('go')
      proxy.limit = 20_000
      const [, told = expect.fail('nothing told')] = await Promise.all([
        answer('c1', false, { reason }),
        answer('c2', true),
      ])
      expect(told).toMatchObject({ status: 'failed', error: { data: { status: 413 } } })
      expect(nextStep(told)).toMatchObject({ state: 'kept', next: 'correct' })
      expect(part('c1')).toMatchObject({
        state: 'approval-responded',
        approval: { approved: false, reason, delivery: 'refused' },
      })
      expect(part('c2').approval).toMatchObject({ approved: true, delivery: 'refused' })
      expect(nextStep(part('c1'))).toBe(nextStep(told))
      const view = approvalView(part('c1'))
      expect([view?.status, view?.disabled, view?.choices.map(({ disabled }) => disabled)]).toEqual([
        'open',
        false,
        [false, false, false].slice(0, view?.choices.length),
      ])

      expect(await answer('c1', false, { reason: 'no' })).toEqual({ status: 'sent' })
      expect([ran, part('c1').state, part('c2').state]).toEqual([['two'], 'denied', 'complete'])
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
      expect(await answer('c1', true)).toEqual({ status: 'already-answered' })
    })

    test('is sent again as it was by retry(), where the server takes it now', async () => {
      const { ran, url } = await serve()
      const { client, part, answer } = open(connect(url))
      await client.sendMessage('go')
      proxy.limit = 20_000
      await Promise.all([answer('c1', false, { reason }), answer('c2', true)])
      proxy.limit = Number.POSITIVE_INFINITY
      await client.retry()
      expect([ran, part('c1').state, part('c2').state]).toEqual([['two'], 'denied', 'complete'])
      expect(part('c1').approval?.delivery).toBe('settled')
    })
  })
}

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
  expect(part('c1').approval).toMatchObject({ input: long, delivery: 'refused' })
  expect(approvalView(part('c1'))?.edit).toMatchObject({ status: 'offered', input: long })
  expect(await answer('c1', true, { input: { text: 'short' } })).toEqual({ status: 'sent' })
  expect([ran.toSorted(), part('c1').state, part('c2').state]).toEqual([
    ['short', 'two'],
    'complete',
    'complete',
  ])
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
  await client.sendMessage('go')
  expect(await answer('c1', true, { input: { text: huge } })).toMatchObject({
    status: 'refused',
    code: 'approval-malformed',
    reason: expect.stringContaining('2097152'),
  })
  await Promise.all([answer('c1', true), answer('c2', true)])
  expect([ran, part('c1').state]).toEqual([['one', 'two'], 'complete'])
})

test('arguments that were edited to nest deeper than a server takes can be edited again', async () => {
  const { ran, url } = await serve()
  const { client, part, answer } = open(fetchServerSentEvents(url))
  await client.sendMessage('go')
  let text: unknown = 'x'
  for (let level = 0; level < 70; level++) text = [text]
  await Promise.all([answer('c1', true, { input: { text } }), answer('c2', true)])
  expect(client.getSnapshot().error?.data.status).toBe(400)
  expect(part('c1').approval?.delivery).toBe('refused')
  expect(await answer('c1', true, { input: { text: 'flat' } })).toEqual({ status: 'sent' })
  expect([ran.toSorted(), part('c1').state]).toEqual([['flat', 'two'], 'complete'])
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
