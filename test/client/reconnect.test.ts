import { ChatClient, type ChatStatus, type Connection, fetchServerSentEvents } from '@countersign/client'
import { type ReconnectOptions, reconnecting } from '@countersign/client/reconnect'
import {
  createAgent,
  handleChat,
  memoryLedger,
  memoryRunLog,
  rejoinResponse,
  scriptedModel,
  tool,
} from '@countersign/server'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'

afterEach(() => vi.unstubAllGlobals())

type Cut = 'end' | 'error' | 'silence'

interface NetworkOptions {
  /** After how many frames each response breaks, one after the other; a response without a number is whole. */
  readonly cuts: number[]
  readonly how?: Cut
  /** Responses to GET before the server is reached: each of these statuses once, 0 for an unreachable server. */
  readonly refusals?: number[]
}

/** A server with a model that asks once, behind a network that breaks its streams. */
function setUp({ cuts, how = 'error', refusals = [] }: NetworkOptions, options: ReconnectOptions = {}) {
  const requests: string[] = []
  const executed: string[] = []
  const send = tool({
    name: 'send',
    description: 'Sends.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    execute: ({ to }) => {
      executed.push(to)
      return 'sent'
    },
  })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'user'
      ? [
          { type: 'text-delta', delta: 'Let ' },
          { type: 'text-delta', delta: 'me see.' },
          { type: 'tool-call', id: 'c1', name: 'send', arguments: '{"to":"ada"}' },
          { type: 'finish', reason: 'tool_calls' },
        ]
      : [
          { type: 'text-delta', delta: 'Done ' },
          { type: 'text-delta', delta: 'and dusted.' },
          { type: 'finish', reason: 'stop' },
        ],
  )
  const agent = createAgent({
    model,
    tools: [send],
    runLog: memoryRunLog(),
    approvals: { ledger: memoryLedger(), secret: 'a secret of more than thirty-two characters' },
    warn: () => {},
  })
  const context = { subject: 'ada' }
  const network: typeof fetch = async (input, init) => {
    const request = new Request(input, { ...init, signal: null })
    const { method } = request
    requests.push(method)
    const refusal = method === 'GET' ? refusals.shift() : undefined
    if (refusal === 0) throw new TypeError('fetch failed')
    if (refusal !== undefined) return new Response('busy', { status: refusal })
    const response =
      method === 'GET'
        ? await rejoinResponse(agent, request, { context })
        : await handleChat(agent, request, { context, goOnFor: 60_000 })
    return response.body
      ? new Response(broken(response.body, cuts.shift(), how, init?.signal), response)
      : response
  }
  const plain = fetchServerSentEvents('http://server.test/chat', { fetch: network, rejoin: true })
  const client = new ChatClient({
    connection: reconnecting(plain, { delay: 1, ...options }),
    threadId: 't',
    notify: 'sync',
    onError: () => {},
  })
  onTestFinished(() => client.dispose())
  const statuses: ChatStatus[] = []
  client.subscribe(() => {
    const { status } = client.getSnapshot()
    if (statuses.at(-1) !== status) statuses.push(status)
  })
  return { client, requests, executed, statuses }
}

/** Divides what was sent together into its frames. */
function frameByFrame(): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      for (const frame of new TextDecoder().decode(chunk).split(/(?<=\n\n)/))
        controller.enqueue(new TextEncoder().encode(frame))
    },
  })
}

/** A body that breaks after some frames. `silence`: it stays open and says nothing, until it is aborted. */
function broken(
  body: ReadableStream<Uint8Array>,
  cut = Number.POSITIVE_INFINITY,
  how: Cut,
  signal: AbortSignal | null | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.pipeThrough(frameByFrame()).getReader()
  let frames = 0
  return new ReadableStream(
    {
      async pull(controller) {
        if (frames++ < cut) {
          const { value, done } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
          return
        }
        await reader.cancel()
        if (how === 'end') return controller.close()
        const error = new TypeError('network error')
        if (how === 'error') return controller.error(error)
        await new Promise((resolve) => signal?.addEventListener('abort', resolve))
        controller.error(error)
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  )
}

async function playOut({ client }: ReturnType<typeof setUp>) {
  await client.sendMessage('go')
  const [card] = client.getSnapshot().pendingApprovals
  await client.addToolApprovalResponse({ id: card?.approval.id ?? '', approved: true })
  const { messages, status } = client.getSnapshot()
  return {
    status,
    parts: messages.flatMap(({ parts }) =>
      parts.map((part) => {
        if (part.type === 'text') return part.text
        return part.type === 'tool-call' ? [part.id, part.state, part.approval?.delivery] : part.type
      }),
    ),
  }
}

describe.each(['end', 'error'] as const)('a stream that breaks (%s)', (how) => {
  test('T16 behind any event of a run: the client reconnects, and the conversation equals that of an undisturbed run', async () => {
    const whole = await playOut(setUp({ cuts: [] }))
    expect(whole).toEqual({
      status: 'ready',
      parts: ['go', 'Let me see.', ['c1', 'complete', 'settled'], 'tool-result', 'Done and dusted.'],
    })
    let most = 0
    for (let first = 1; first < 14; first++) {
      for (const cuts of [[first], [99, first], [first, 1, 1, 1, 1, 99, first, 1, 1]]) {
        const chat = setUp({ cuts, how })
        expect([cuts, await playOut(chat)]).toEqual([cuts, whole])
        expect([cuts, chat.executed]).toEqual([cuts, ['ada']])
        expect(chat.requests.filter((method) => method === 'POST')).toHaveLength(2)
        most = Math.max(most, chat.requests.length)
      }
    }
    expect(most).toBeGreaterThan(6)
  })
})

test('T17 the status is `reconnecting` until the stream is back, and the text so far stays', async () => {
  const chat = setUp({ cuts: [4], refusals: [0, 503, 429] })
  const texts: string[] = []
  chat.client.subscribe(() => {
    const [, reply] = chat.client.getSnapshot().messages
    const [part] = reply?.parts ?? []
    if (part?.type === 'text' && texts.at(-1) !== part.text) texts.push(part.text)
  })
  await chat.client.sendMessage('go')
  expect(chat.statuses).toEqual(['submitted', 'streaming', 'reconnecting', 'streaming', 'awaiting-approval'])
  expect(texts).toEqual(['Let ', 'Let me see.'])
  expect(chat.requests).toEqual(['POST', 'GET', 'GET', 'GET', 'GET'])
})

test('T17 the waits double up to a limit, less up to a half of each at random; then the run fails, and retry() rejoins it', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const waits: number[] = []
  const timeout = globalThis.setTimeout
  vi.stubGlobal('setTimeout', (work: () => void, ms = 0, ...more: unknown[]) => {
    if (ms > 1 && ms < 20_000) waits.push(ms)
    return timeout(work, ms > 20_000 ? ms : 0, ...more)
  })
  const chat = setUp({ cuts: [3], refusals: Array(8).fill(0) }, { delay: 500 })
  const sent = chat.client.sendMessage('go')
  while (chat.client.getSnapshot().isLoading) await vi.advanceTimersByTimeAsync(1)
  expect(await sent).toMatchObject({ status: 'failed', error: { code: 'connection-failed' } })
  const longest = [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]
  const paused = waits.filter((ms) => !Number.isInteger(ms))
  expect(paused).toHaveLength(longest.length)
  for (const [at, most] of longest.entries()) {
    expect(paused[at]).toBeLessThanOrEqual(most)
    expect(paused[at]).toBeGreaterThanOrEqual(most / 2)
  }
  expect(new Set(paused).size).toBe(paused.length)
  expect(chat.client.getSnapshot()).toMatchObject({
    status: 'error',
    messages: [{}, { parts: [{ text: 'Let ' }] }],
  })
  const again = chat.client.retry()
  while (chat.client.getSnapshot().isLoading) await vi.advanceTimersByTimeAsync(1)
  await again
  expect(chat.client.getSnapshot().status).toBe('awaiting-approval')
  expect(chat.requests.filter((method) => method === 'POST')).toHaveLength(1)
})

test('T17 nothing is tried while the browser is offline, and at once when it is online again', async () => {
  const browser = new EventTarget()
  const state = { onLine: false }
  vi.stubGlobal('navigator', state)
  vi.stubGlobal('addEventListener', browser.addEventListener.bind(browser))
  const chat = setUp({ cuts: [3] })
  const sent = chat.client.sendMessage('go')
  await vi.waitUntil(() => chat.client.getSnapshot().status === 'reconnecting')
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(chat.requests).toEqual(['POST'])
  state.onLine = true
  browser.dispatchEvent(new Event('online'))
  expect(await sent).toEqual({ status: 'sent' })
  expect(chat.requests).toEqual(['POST', 'GET'])
})

test('T17 stop() ends the wait for the next try', async () => {
  const chat = setUp({ cuts: [3] }, { delay: 60_000 })
  const sent = chat.client.sendMessage('go')
  await vi.waitUntil(() => chat.client.getSnapshot().status === 'reconnecting')
  chat.client.stop()
  expect(await sent).toEqual({ status: 'stopped' })
  expect(chat.requests).toEqual(['POST', 'DELETE'])
  expect(chat.client.getSnapshot()).toMatchObject({
    status: 'ready',
    messages: [{}, { parts: [{ text: 'Let ' }] }],
  })
})

test('T17 streams that end before their first event are tries, and end them', async () => {
  const chat = setUp({ cuts: [3, 1, 1, 1, 1, 1], how: 'end' }, { attempts: 3 })
  expect(await chat.client.sendMessage('go')).toMatchObject({ status: 'failed' })
  expect(chat.requests).toEqual(['POST', 'GET', 'GET', 'GET'])
})

test('T18 a connection that says nothing for three heartbeats is lost, and the run is rejoined', async () => {
  const chat = setUp({ cuts: [4, 2], how: 'silence' }, { heartbeat: 10 })
  expect(await chat.client.sendMessage('go')).toEqual({ status: 'sent' })
  expect(chat.statuses).toContain('reconnecting')
  expect(chat.client.getSnapshot().status).toBe('awaiting-approval')
})

test('a refused rejoin is not repeated: the run fails with what broke it', async () => {
  const chat = setUp({ cuts: [3], refusals: [403] })
  expect(await chat.client.sendMessage('go')).toMatchObject({ error: { code: 'connection-failed' } })
  expect(chat.requests).toEqual(['POST', 'GET'])
})

test('a request that was never answered is looked for once, and then fails', async () => {
  const fetch = vi.fn(async () => {
    throw new TypeError('fetch failed')
  })
  const plain = fetchServerSentEvents('http://server.test/chat', { fetch, rejoin: true })
  const client = new ChatClient({ connection: reconnecting(plain, { delay: 60_000 }), onError: () => {} })
  expect(await client.sendMessage('go')).toMatchObject({ error: { code: 'connection-failed' } })
  expect(fetch).toHaveBeenCalledTimes(2)
})

test('a run that the server stopped meanwhile, because nobody read it, is no complete answer', async () => {
  let opened = 0
  const connection: Connection = {
    async *connect({ threadId, runId }) {
      opened++
      yield { type: 'RUN_STARTED', threadId, runId }
      yield { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' }
      yield { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Half' }
      throw new TypeError('network error')
    },
    async *rejoin({ threadId, runId }) {
      yield { type: 'TEXT_MESSAGE_END', messageId: 'm' }
      const metadata = { finishReason: 'disconnected' }
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'cancelled' }, metadata }
    },
  }
  const client = new ChatClient({ connection: reconnecting(connection, { delay: 1 }), onError: () => {} })
  expect(await client.sendMessage('go')).toMatchObject({ error: { code: 'truncated-stream' } })
  expect(opened).toBe(1)
})

test('options that cannot work are refused by name', () => {
  const able: Connection = { async *connect() {}, async *rejoin() {} }
  expect(() => reconnecting({ async *connect() {} })).toThrow(
    '`connection` has to be one with `rejoin: true`',
  )
  for (const [name, value] of Object.entries({ attempts: 0, delay: -1, heartbeat: Number.NaN }))
    expect(() => reconnecting(able, { [name]: value })).toThrow(`\`${name}\` has to be of the kind number`)
})
