import {
  ChatClient,
  type Connection,
  fetchHttpStream,
  fetchServerSentEvents,
  stream,
} from '@countersign/client'
import type { AGUIEvent } from '@countersign/core'
import { compat, tanstack } from '@countersign/tanstack'
import { passMacrotasks } from '@countersign/testing'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { call, finish, open as openChat, resultOf, server } from './foreign-server.js'
import { failOnUnhandledRejections, saidBy } from './open-chat.js'

failOnUnhandledRejections()

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
})

/** A server, or a proxy before it, that sends what it is told to and never ends a response. */
function endless(status: number, contentType: string) {
  let body: ReadableStreamDefaultController<Uint8Array> | undefined
  let cancelled = 0
  let runId = ''
  const encoder = new TextEncoder()
  return {
    get cancelled() {
      return cancelled
    },
    get runId() {
      return runId
    },
    send: (text: string) => body?.enqueue(encoder.encode(text)),
    fetch: async (_: unknown, init: RequestInit = {}) => {
      runId = JSON.parse(String(init.body)).runId
      return new Response(
        new ReadableStream<Uint8Array>({
          start(controller) {
            body = controller
          },
          cancel() {
            cancelled++
          },
        }),
        { status, headers: { 'content-type': contentType } },
      )
    },
  }
}

const url = 'http://chat.test/chat'
const sse = (event: AGUIEvent) => `data: ${JSON.stringify(event)}\n\n`
const line = (event: AGUIEvent) => `${JSON.stringify(event)}\n`

const said = (runId: string, delta: string): AGUIEvent[] => [
  { type: 'RUN_STARTED', threadId: 't', runId },
  { type: 'TEXT_MESSAGE_START', messageId: `m-${delta}` },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: `m-${delta}`, delta },
  { type: 'TEXT_MESSAGE_END', messageId: `m-${delta}` },
]
const finished = (runId: string): AGUIEvent => ({ type: 'RUN_FINISHED', threadId: 't', runId })

function open(connection: Connection) {
  const told: string[] = []
  const client = new ChatClient({
    connection,
    threadId: 't',
    onError: ({ code }) => told.push(code),
    onFinish: () => told.push('finish'),
  })
  onTestFinished(() => client.dispose())
  return { client, told }
}

describe.each([
  ['server-sent events', 'text/event-stream', sse, fetchServerSentEvents],
  ['lines of JSON', 'application/x-ndjson', line, fetchHttpStream],
] as const)('a response that never ends, with %s', (_, contentType, frame, connect) => {
  test('is over soon after RUN_FINISHED, and closed', async () => {
    const server = endless(200, contentType)
    const { client, told } = open(connect(url, { fetch: server.fetch }))
    const sent = client.sendMessage('hi')
    await passMacrotasks(2)
    server.send([...said(server.runId, 'Hello.'), finished(server.runId)].map(frame).join(''))
    await passMacrotasks(2)
    expect(client.getSnapshot().status).toBe('streaming')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(await sent).toEqual({ status: 'sent' })
    expect([saidBy(client), told, server.cancelled]).toEqual(['Hello.', ['finish'], 1])
  })

  test('is over soon after RUN_ERROR with that error, and closed', async () => {
    const server = endless(200, contentType)
    const { client, told } = open(connect(url, { fetch: server.fetch }))
    const sent = client.sendMessage('hi')
    await passMacrotasks(2)
    server.send(
      [...said(server.runId, 'Hel'), { type: 'RUN_ERROR', message: 'No.' } as const].map(frame).join(''),
    )
    await passMacrotasks(2)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { message: 'No.' } })
    expect(await sent).toMatchObject({ status: 'failed', error: { code: 'run-error' } })
    expect([told, server.cancelled]).toEqual([['run-error'], 1])
  })

  test('goes on as long as another run follows in it', async () => {
    const server = endless(200, contentType)
    const { client, told } = open(connect(url, { fetch: server.fetch }))
    void client.sendMessage('hi')
    await passMacrotasks(2)
    server.send([...said(server.runId, 'One.'), finished(server.runId)].map(frame).join(''))
    await passMacrotasks(2)
    server.send(said(server.runId, 'Two.').map(frame).join(''))
    await passMacrotasks(2)
    await vi.advanceTimersByTimeAsync(60_000)
    expect([client.getSnapshot().status, saidBy(client), told]).toEqual(['streaming', 'One. Two.', []])
    server.send(frame(finished(server.runId)))
    await passMacrotasks(2)
    await vi.advanceTimersByTimeAsync(60_000)
    expect([client.getSnapshot().status, told]).toEqual(['ready', ['finish']])
  })

  test('has nothing more to say when the user stops it after its last event', async () => {
    const server = endless(200, contentType)
    const { client, told } = open(connect(url, { fetch: server.fetch }))
    void client.sendMessage('hi')
    await passMacrotasks(2)
    server.send([...said(server.runId, 'Hello.'), finished(server.runId)].map(frame).join(''))
    await passMacrotasks(2)
    client.stop()
    await vi.advanceTimersByTimeAsync(60_000)
    expect([client.getSnapshot().status, told, server.cancelled]).toEqual(['ready', [], 1])
  })
})

test.each([401, 500])('a %d whose body never ends fails with what it said until then', async (status) => {
  const server = endless(status, 'text/plain')
  const { client, told } = open(fetchServerSentEvents(url, { fetch: server.fetch }))
  const sent = client.sendMessage('hi')
  await passMacrotasks(2)
  server.send('Sign in.')
  await passMacrotasks(2)
  await vi.advanceTimersByTimeAsync(60_000)
  expect(client.getSnapshot().error?.data).toEqual({ status, body: 'Sign in.' })
  expect(await sent).toMatchObject({ status: 'failed', error: { code: 'http-status' } })
  expect([told, server.cancelled]).toEqual([['http-status'], 1])
})

test('of a refusal as much is read as is told, however much comes', async () => {
  const server = endless(500, 'text/plain')
  const { client } = open(fetchServerSentEvents(url, { fetch: server.fetch }))
  void client.sendMessage('hi')
  await passMacrotasks(2)
  for (let n = 0; n < 3; n++) server.send('x'.repeat(600))
  await passMacrotasks(2)
  expect(client.getSnapshot().error?.data).toEqual({ status: 500, body: 'x'.repeat(1000) })
  expect(server.cancelled).toBe(1)
})

test.each([
  ['a header of two lines', url, { 'x-name': 'Zoe\nof Berlin' }],
  ['a header that is not Latin-1', url, { 'x-name': 'Зоя' }],
  ['an address that is none', 'http://', {}],
])('of %s the failed request says where its reason is', async (_, address, headers) => {
  const { client } = open(fetchServerSentEvents(address, { headers }))
  const result = await client.sendMessage('hi')
  expect(result).toMatchObject({ status: 'failed', error: { code: 'connection-failed' } })
  expect(client.getSnapshot().error?.message).toContain('(see `cause`)')
  expect(client.getSnapshot().error?.cause).toBeInstanceOf(TypeError)
})

test.each([
  ['compat', compat()],
  ['tanstack', tanstack()],
])('over %s, a run whose stream stays open is over all the same', async (_, translation) => {
  const connection = stream(async function* (input, { signal }) {
    yield { type: 'RUN_STARTED', threadId: input.threadId, runId: input.runId }
    yield* call('c1', 1)
    yield finish(input, ['a1', 'c1'])
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  const { client, pending } = openChat({ connection, compat: translation })
  const sent = client.sendMessage('x')
  await vi.advanceTimersByTimeAsync(3000)
  expect(client.getSnapshot().isLoading).toBe(false)
  expect(await sent).toEqual({ status: 'sent' })
  expect(pending()).toEqual([['a1', 'c1', { n: 1 }]])
})

test('over tanstack, a tool of the server may take longer than any proxy', async () => {
  const connection = stream(async function* (input) {
    const { threadId, runId } = input
    yield { type: 'RUN_STARTED', threadId, runId }
    yield* call('c1', 1)
    yield { type: 'RUN_FINISHED', threadId, runId, finishReason: 'tool_calls' }
    await new Promise((resolve) => setTimeout(resolve, 60_000))
    yield resultOf('c1')
    yield finish(input)
  })
  const { client, calls } = openChat({ connection, compat: tanstack() })
  const sent = client.sendMessage('x')
  await vi.advanceTimersByTimeAsync(70_000)
  expect(await sent).toEqual({ status: 'sent' })
  expect(calls()).toMatchObject([{ state: 'complete' }])
})

test('a second run that comes long after the first one in its stream is not lost in silence', async () => {
  const later = new Promise((resolve) => setTimeout(resolve, 1300))
  const { connection } = server(async function* (input) {
    yield finish(input)
    await later
    yield { type: 'RUN_STARTED', threadId: input.threadId, runId: 'second' }
    yield finish({ ...input, runId: 'second' })
  })
  const { client, warnings } = openChat({ connection })
  const sent = client.sendMessage('x')
  await vi.advanceTimersByTimeAsync(3000)
  expect(await sent).toEqual({ status: 'sent' })
  expect(warnings).toEqual([expect.stringContaining('endless-response')])
})
