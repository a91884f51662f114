import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ChatClient, fetchServerSentEvents, type ServerSentEventsOptions } from '@countersign/client'
import { until } from '@countersign/testing'
import { expect, onTestFinished, test, vi } from 'vitest'

interface Received {
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: Readonly<Record<string, unknown>>
}

/** A server on loopback that notes each request and replies `Hello.`, unless `statusOf` refuses it. */
async function openServer(statusOf: (request: Received) => number = () => 200) {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const noted = { url: request.url ?? '', headers: request.headers, body: JSON.parse(text || '{}') }
    received.push(noted)
    const { threadId, runId } = noted.body
    const run = { threadId, runId }
    const messageId = `m${received.length}`
    const events = [
      { type: 'RUN_STARTED', ...run },
      { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: 'Hello.' },
      { type: 'TEXT_MESSAGE_END', messageId },
      { type: 'RUN_FINISHED', ...run },
    ]
    response.writeHead(statusOf(noted), { 'content-type': 'text/event-stream' })
    response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { received, origin: `http://127.0.0.1:${port}` }
}

function chat(url: Parameters<typeof fetchServerSentEvents>[0], options?: ServerSentEventsOptions) {
  const client = new ChatClient({ connection: fetchServerSentEvents(url, options), threadId: 't1' })
  onTestFinished(() => client.dispose())
  return client
}

test('H2 the URL may be a function, which is called for each request', async () => {
  const { received, origin } = await openServer()
  let count = 0
  const client = chat(async () => `${origin}/chat/${++count}`)
  await client.sendMessage('one')
  await client.sendMessage('two')
  expect(received.map(({ url }) => url)).toEqual(['/chat/1', '/chat/2'])
})

test('H2 prepareRequest replaces the URL, the headers or the body of a request', async () => {
  const { received, origin } = await openServer()
  const client = chat(`${origin}/chat`, {
    headers: { 'x-app': 'one' },
    prepareRequest: ({ url, headers, body }) => ({
      url: `${url}?signed`,
      headers: { ...headers, 'x-signature': 'abc' },
      body: { ...(body as object), tenant: 'acme' },
    }),
  })
  expect(await client.sendMessage('hi')).toEqual({ status: 'sent' })
  expect(received).toMatchObject([
    {
      url: '/chat?signed',
      headers: { 'x-app': 'one', 'x-signature': 'abc', 'content-type': 'application/json' },
      body: { tenant: 'acme', threadId: 't1' },
    },
  ])
})

test('H2 a header counts once, however its name is written: the one given last wins, and ours over all', async () => {
  const { received, origin } = await openServer()
  const connection = fetchServerSentEvents(origin, {
    headers: {
      'Content-Type': 'text/plain',
      Authorization: 'of the connection',
      'X-Trace': 'of the connection',
    },
    prepareRequest: ({ headers }) => ({ headers: { ...headers, 'X-Tenant': 'acme', 'X-TRACE': 'prepared' } }),
  })
  const client = new ChatClient({ connection, headers: { authorization: 'of the client' } })
  onTestFinished(() => client.dispose())
  await client.sendMessage('one')
  await client.sendMessage('two', { headers: { AUTHORIZATION: 'of the message', 'x-tenant': 'other' } })
  const own = { 'content-type': 'application/json', 'x-trace': 'prepared', 'x-tenant': 'acme' }
  expect(received.map(({ headers }) => headers)).toMatchObject([
    { ...own, authorization: 'of the client' },
    { ...own, authorization: 'of the message' },
  ])
})

test('H2 after a 401 the token is renewed and the same request is sent once more', async () => {
  let token = 'old'
  const { received, origin } = await openServer(({ headers }) =>
    headers.authorization === 'Bearer new' ? 200 : 401,
  )
  const client = chat(origin, {
    headers: () => ({ authorization: `Bearer ${token}` }),
    onUnauthorized: async () => {
      token = 'new'
    },
  })
  expect(await client.sendMessage('hi')).toEqual({ status: 'sent' })
  expect(received.map(({ headers }) => headers.authorization)).toEqual(['Bearer old', 'Bearer new'])
  expect(received[0]?.body).toEqual(received[1]?.body)
})

test('H2 requests that get 401 at the same time share one renewal: a refresh token may count only once', async () => {
  let token = 'old'
  let renewals = 0
  let responses = 0
  const { origin } = await openServer(({ headers }) => (headers.authorization === 'Bearer new' ? 200 : 401))
  const options: ServerSentEventsOptions = {
    headers: () => ({ authorization: `Bearer ${token}` }),
    fetch: async (...request) => {
      const response = await fetch(...request)
      responses++
      return response
    },
    onUnauthorized: async () => {
      renewals++
      await vi.waitUntil(() => responses === 2)
      token = 'new'
    },
  }
  const both = [chat(origin, options), chat(origin, options)]
  const sent = { status: 'sent' }
  expect(await Promise.all(both.map((client) => client.sendMessage('hi')))).toEqual([sent, sent])
  expect(renewals).toBe(1)
})

test('H2 a second 401 is not repeated: it is the error of the run', async () => {
  const { received, origin } = await openServer(() => 401)
  const client = chat(origin, { onUnauthorized: () => undefined })
  expect(await client.sendMessage('hi')).toMatchObject({
    status: 'failed',
    error: { code: 'http-status', data: { status: 401 } },
  })
  expect(received).toHaveLength(2)
})

test('H13 onResponse sees each response, also one that is refused, before its body is read', async () => {
  let status = 200
  const { origin } = await openServer(() => status)
  const seen: [number, boolean][] = []
  const client = chat(origin, { onResponse: ({ status, bodyUsed }) => void seen.push([status, bodyUsed]) })
  await client.sendMessage('hi')
  status = 500
  await client.sendMessage('again')
  await until(client, ({ isLoading }) => !isLoading)
  expect(seen).toEqual([
    [200, false],
    [500, false],
  ])
})
