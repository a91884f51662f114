import { aiSdk, fromAiSdkMessages } from '@countersign/ai-sdk'
import { ChatClient, type ChatClientOptions, type ToolCallPart } from '@countersign/client'
import { isToolUIPart } from 'ai'
import { expect, onTestFinished, test } from 'vitest'
import { brokenAfter, finish, openRoute, type Route, resultsOf, say } from './ai-sdk-route.js'
import { serveFetch } from './fetch-server.js'
import { prompts } from './our-agent.js'

function open(route: Pick<Route, 'options'>, more: Partial<ChatClientOptions> = {}): ChatClient {
  const client = new ChatClient({ threadId: 'thread-1', ...route.options, ...more })
  onTestFinished(client.dispose)
  return client
}

const pending = (client: ChatClient) =>
  client.getSnapshot().pendingApprovals.map(({ approval }) => approval?.id ?? '')

const calls = (client: ChatClient): ToolCallPart[] =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])))

const said = (client: ChatClient) =>
  client
    .getSnapshot()
    .messages.flatMap(({ role, parts }) =>
      role === 'assistant' ? parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
    )

const sentTools = (route: Route, index: number) =>
  route.bodies[index]?.messages.flatMap(({ parts }) => parts.filter(isToolUIPart)) ?? []

const secret = 'a-secret-of-this-test-0123456789abcdef'

test('a request says what the SDK says: id, messages, trigger, messageId, and what the application adds', async () => {
  const route = await openRoute({
    client: { body: () => ({ tenant: 'a' }), headers: { 'x-a': '1' } },
  })
  const client = open(route, { forwardedProps: { model: 'small' } })
  await client.sendMessage(prompts.mail)
  await client.addToolApprovalResponse({ id: pending(client)[0] ?? '', approved: true })
  await client.regenerate()
  const [first, second, third] = route.bodies
  expect(first).toMatchObject({ tenant: 'a', model: 'small', id: 'thread-1', trigger: 'submit-message' })
  expect(first?.messages).toMatchObject([{ role: 'user', parts: [{ type: 'text', text: prompts.mail }] }])
  expect(second).toMatchObject({ trigger: 'submit-message', messageId: second?.messages.at(-1)?.id })
  expect(second?.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(third).toMatchObject({ trigger: 'regenerate-message' })
  expect(third?.messages).toEqual(first?.messages)
})

test('a signature goes back as it came, and the server that made it takes the answer', async () => {
  const route = await openRoute({ secret })
  const client = open(route)
  await client.sendMessage(prompts.mail)
  expect(await client.addToolApprovalResponse({ id: pending(client)[0] ?? '', approved: true })).toEqual({
    status: 'sent',
  })
  const [part] = sentTools(route, 1)
  expect(part).toMatchObject({ state: 'approval-responded', input: { to: 'ada' } })
  expect(part?.approval).toEqual({ id: expect.any(String), signature: expect.any(String), approved: true })
  expect(route.sent).toEqual(['ada'])
})

test("what a model's provider says beside a thought or a call reaches it again, in its place", async () => {
  const route = await openRoute({
    *stream({ prompt }, number) {
      if (resultsOf(prompt).length > 0) return yield* say('Done.')
      yield { type: 'stream-start', warnings: [] }
      yield { type: 'reasoning-start', id: 'r' }
      yield { type: 'reasoning-delta', id: 'r', delta: 'Hm.' }
      yield { type: 'reasoning-end', id: 'r', providerMetadata: { anthropic: { signature: `s${number}` } } }
      yield { type: 'text-start', id: 't' }
      yield { type: 'text-delta', id: 't', delta: 'I will.' }
      yield { type: 'text-end', id: 't', providerMetadata: { openai: { itemId: 'i1' } } }
      yield {
        type: 'tool-call',
        toolCallId: 'c1',
        toolName: 'send_mail',
        input: '{"to":"ada"}',
        providerMetadata: { google: { thoughtSignature: 'g1' } },
      }
      yield finish('tool-calls')
    },
  })
  const client = open(route)
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: pending(client)[0] ?? '', approved: true })
  const assistant = route.model.doStreamCalls[1]?.prompt.find(({ role }) => role === 'assistant')
  expect(assistant?.content).toMatchObject([
    { type: 'reasoning', text: 'Hm.', providerOptions: { anthropic: { signature: 's1' } } },
    { type: 'text', text: 'I will.', providerOptions: { openai: { itemId: 'i1' } } },
    { type: 'tool-call', providerOptions: { google: { thoughtSignature: 'g1' } } },
  ])
})

test('the user speaks while one of two is answered: the approval is carried out once, the other one is closed, then the words go', async () => {
  const route = await openRoute({ secret })
  const client = open(route)
  await client.sendMessage(prompts.two)
  const [first = ''] = pending(client)
  expect(await client.addToolApprovalResponse({ id: first, approved: true })).toEqual({ status: 'waiting' })
  expect(await client.sendMessage(prompts.hello)).toEqual({ status: 'sent' })
  expect(route.sent).toEqual(['ada'])
  expect(calls(client)).toMatchObject([
    { state: 'complete', approval: { delivery: 'settled' } },
    { state: 'cancelled' },
  ])
  expect(said(client)).toEqual(['Hello, Ada.'])
  expect(resultsOf(route.model.doStreamCalls.at(-1)?.prompt ?? [])).toEqual([
    expect.stringContaining('sent'),
    expect.stringContaining('Nobody answered'),
  ])
  await client.sendMessage(prompts.hello)
  expect(route.sent).toEqual(['ada'])
  expect(said(client)).toEqual(['Hello, Ada.', 'Hello, Ada.'])
})

test('the user speaks while one of two is denied: the denial and its reason are in the history', async () => {
  const route = await openRoute()
  const client = open(route)
  await client.sendMessage(prompts.two)
  await client.addToolApprovalResponse({ id: pending(client)[1] ?? '', approved: false, reason: 'too risky' })
  await client.sendMessage(prompts.hello)
  expect(route.requests()).toBe(2)
  expect(route.sent).toEqual([])
  expect(JSON.stringify(resultsOf(route.model.doStreamCalls.at(-1)?.prompt ?? []))).toContain('too risky')
  expect(said(client)).toEqual(['Hello, Ada.'])
})

test('the user moves on from a request: it is closed, and nothing later fails for it', async () => {
  const route = await openRoute()
  const client = open(route)
  await client.sendMessage(prompts.mail)
  const [id = ''] = pending(client)
  expect(await client.sendMessage(prompts.hello)).toEqual({ status: 'sent' })
  expect(await client.addToolApprovalResponse({ id, approved: true })).toMatchObject({ status: 'closed' })
  await client.sendMessage(prompts.mail)
  await client.addToolApprovalResponse({ id: pending(client)[0] ?? '', approved: true })
  expect(route.sent).toEqual(['ada'])
})

test('a continuation that fails leaves open what became of the answer, and retry sends it', async () => {
  const route = await openRoute({
    around: (response, request) => (request === 2 ? new Response('busy', { status: 500 }) : response),
  })
  const client = open(route)
  await client.sendMessage(prompts.mail)
  const [id = ''] = pending(client)
  expect(await client.addToolApprovalResponse({ id, approved: true })).toMatchObject({
    status: 'failed',
    error: { code: 'http-status', data: { status: 500, body: 'busy' } },
  })
  expect(calls(client)).toMatchObject([{ state: 'approval-responded', approval: { delivery: 'unknown' } }])
  await client.retry()
  expect(calls(client)).toMatchObject([{ state: 'complete' }])
})

test('an answer whose run broke off is not sent again because the user speaks: it may have run', async () => {
  const route = await openRoute({
    around: (response, request) => (request === 2 ? brokenAfter(response, 1) : response),
  })
  const client = open(route)
  await client.sendMessage(prompts.mail)
  await client.addToolApprovalResponse({ id: pending(client)[0] ?? '', approved: true })
  expect(calls(client)).toMatchObject([{ state: 'approval-responded', approval: { delivery: 'unknown' } }])
  const before = route.sent.length
  expect(await client.sendMessage(prompts.hello)).toEqual({ status: 'sent' })
  expect(route.sent).toHaveLength(before)
  expect(JSON.stringify(resultsOf(route.model.doStreamCalls.at(-1)?.prompt ?? []))).toContain(
    'may or may not have run',
  )
})

test('an answer that was given before a reload is kept, and is sent with its sibling', async () => {
  const route = await openRoute({ secret })
  const client = open(route)
  await client.sendMessage(prompts.two)
  await client.addToolApprovalResponse({ id: pending(client)[0] ?? '', approved: true })
  const { messages } = client.getSnapshot()
  client.dispose()
  const again = open(route, { initialMessages: JSON.parse(JSON.stringify(messages)) })
  expect(pending(again)).toHaveLength(1)
  await again.addToolApprovalResponse({ id: pending(again)[0] ?? '', approved: false })
  expect(route.sent).toEqual(['ada'])
  expect(route.requests()).toBe(2)
})

test('an answer that may have arrived before a reload is sent with retry(), and only then', async () => {
  let isDown = true
  const route = await openRoute({ secret })
  const api = await serveFetch(async (request) =>
    isDown && posts++ > 0
      ? new Response('busy', { status: 503 })
      : fetch(route.api, { method: 'POST', headers: request.headers, body: await request.text() }),
  )
  let posts = 0
  const connection = aiSdk({ api })
  const client = open(route, { connection })
  await client.sendMessage(prompts.mail)
  await client.addToolApprovalResponse({ id: pending(client)[0] ?? '', approved: true })
  const { messages } = client.getSnapshot()
  client.dispose()
  isDown = false
  const again = open(route, { connection, initialMessages: JSON.parse(JSON.stringify(messages)) })
  await again.restore()
  expect(route.sent).toEqual([])
  await again.retry()
  expect(route.sent).toEqual(['ada'])
  expect(calls(again)).toMatchObject([{ state: 'complete' }])
})

test("a conversation out of the SDK's own store goes on, with its request open", async () => {
  const route = await openRoute({ secret })
  const client = open(route)
  await client.sendMessage(prompts.mail)
  await client.addToolApprovalResponse({ id: pending(client)[0] ?? '', approved: false })
  const stored = route.bodies[1]?.messages ?? []
  const asked = JSON.parse(
    JSON.stringify(stored)
      .replace('approval-responded', 'approval-requested')
      .replace('"approved":false,', '')
      .replace(',"approved":false', ''),
  )
  const again = open(route, { initialMessages: fromAiSdkMessages(asked) })
  expect(again.getSnapshot().pendingApprovals).toMatchObject([{ name: 'send_mail', input: { to: 'ada' } }])
  await again.addToolApprovalResponse({ id: pending(again)[0] ?? '', approved: true })
  expect(route.sent).toEqual(['ada'])
})

for (const mode of ['replay', 'rest'] as const) {
  test(`a stream that broke off is taken up (${mode}), and nothing is told twice`, async () => {
    const route = await openRoute({
      goesOn: true,
      stream: () => say('One, ', 'two, ', 'three.'),
      around: (response, request) => (request === 1 ? brokenAfter(response, 4) : response),
    })
    const api = mode === 'replay' ? route.api : await restOf(route.api, 4)
    const client = open(route, { connection: aiSdk({ api, resume: mode }) })
    expect(await client.sendMessage('count')).toMatchObject({
      status: 'failed',
      error: { code: 'connection-failed' },
    })
    expect(said(client)).toEqual(['One, '])
    await client.retry()
    expect(said(client)).toEqual(['One, two, three.'])
    expect(route.requests()).toBe(1)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  })
}

/** A route whose streams go on after so many chunks. */
async function restOf(api: string, skip: number): Promise<string> {
  const url = await serveFetch(async (request) => {
    const { pathname } = new URL(request.url)
    const target = api.replace('/api/chat', pathname)
    if (request.method === 'POST')
      return fetch(target, { method: 'POST', headers: request.headers, body: await request.text() })
    const text = await (await fetch(target)).text()
    const rest = text.split('\n\n').slice(skip).join('\n\n')
    return new Response(rest, { headers: { 'content-type': 'text/event-stream' } })
  })
  return `${url}/api/chat`
}

test('where there is nothing to take up the request is repeated', async () => {
  const url = await serveFetch(async (request) => {
    if (request.method === 'GET') return new Response(null, { status: 204 })
    const route = posts++ === 0 ? 'data: {"type":"start"}\n\n' : whole
    return new Response(route, { headers: { 'content-type': 'text/event-stream' } })
  })
  let posts = 0
  const whole = [
    { type: 'start' },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'Hi.' },
    { type: 'text-end', id: '0' },
    { type: 'finish' },
  ]
    .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
    .join('')
  const client = open({ options: { connection: aiSdk({ api: `${url}/chat`, resume: 'replay' }) } })
  expect(await client.sendMessage('hello')).toMatchObject({
    status: 'failed',
    error: { code: 'truncated-stream' },
  })
  await client.retry()
  expect(posts).toBe(2)
  expect(said(client)).toEqual(['Hi.'])
})

test('what the server decides by itself is not asked, and goes back as it came', async () => {
  for (const toolApproval of ['approved', 'denied'] as const) {
    const route = await openRoute({ toolApproval })
    const client = open(route)
    await client.sendMessage(prompts.mail)
    expect(pending(client)).toEqual([])
    expect(route.sent).toEqual(toolApproval === 'approved' ? ['ada'] : [])
    expect(calls(client)).toMatchObject([{ state: toolApproval === 'approved' ? 'complete' : 'denied' }])
    await client.sendMessage(prompts.hello)
    expect(sentTools(route, 1)).toMatchObject([
      {
        state: toolApproval === 'approved' ? 'output-available' : 'output-denied',
        approval: { isAutomatic: true, approved: toolApproval === 'approved' },
      },
    ])
    expect(said(client).at(-1)).toBe('Hello, Ada.')
  }
})

test('edited arguments out of a store are refused before anything is sent', async () => {
  const route = await openRoute()
  const client = open(route)
  await client.sendMessage(prompts.mail)
  const messages = client.getSnapshot().messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      part.type === 'tool-call' && part.approval
        ? {
            ...part,
            state: 'approval-responded' as const,
            approval: {
              ...part.approval,
              approved: true,
              input: { to: 'bob' },
              delivery: 'waiting' as const,
            },
          }
        : part,
    ),
  }))
  const again = open(route, { initialMessages: messages })
  await again.retry()
  expect(again.getSnapshot().error).toMatchObject({
    code: 'invalid-argument',
    message: expect.stringContaining('no place'),
  })
  expect(route.requests()).toBe(1)
})

test('a stream that breaks the rules of the SDK is an error, never a silent success', async () => {
  const start = { type: 'start' }
  const cases: readonly [readonly object[], string][] = [
    [[start, { type: 'text-delta', id: '0', delta: 'x' }, { type: 'finish' }], 'protocol-violation'],
    [
      [start, { type: 'tool-output-available', toolCallId: 'c', output: 1 }, { type: 'finish' }],
      'protocol-violation',
    ],
    [[start, { type: 'text-start' }, { type: 'finish' }], 'malformed-event'],
    [[start, { type: 'text-start', id: '0' }], 'truncated-stream'],
    [[start, { type: 'error', errorText: 'No.' }], 'run-error'],
  ]
  for (const [chunks, code] of cases) {
    const body = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
    const api = await serveFetch(
      async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
    )
    const client = open({ options: { connection: aiSdk({ api }) } })
    expect(await client.sendMessage('x')).toMatchObject({ status: 'failed', error: { code } })
  }
  const html = await serveFetch(async () => new Response('<p>', { headers: { 'content-type': 'text/html' } }))
  const client = open({ options: { connection: aiSdk({ api: html }) } })
  expect(await client.sendMessage('x')).toMatchObject({ error: { code: 'not-an-event-stream' } })
})

test('chunks of types that nobody knows yet are left out', async () => {
  const chunks = [
    { type: 'start', extra: 1 },
    { type: 'hologram-start', id: 1 },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'Hi.' },
    { type: 'text-end', id: '0' },
    { type: 'finish' },
  ]
  const body = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
  const api = await serveFetch(
    async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  )
  const client = open({ options: { connection: aiSdk({ api }) } })
  expect(await client.sendMessage('x')).toEqual({ status: 'sent' })
  expect(said(client)).toEqual(['Hi.'])
})
