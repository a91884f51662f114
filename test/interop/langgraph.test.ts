import { setTimeout as sleep } from 'node:timers/promises'
import { ChatClient, type ChatClientOptions, type ToolCallPart } from '@countersign/client'
import { isRecord } from '@countersign/core'
import type { LangGraphOptions } from '@countersign/langgraph'
import { until } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { langGraphPrompts } from './langgraph-agent.js'
import { type LangGraphServer, openLangGraph } from './langgraph-server.js'
import type { Cannot } from './matrix.js'
import { prompts } from './our-agent.js'
import { ourClient } from './our-client.js'

const threadId = '0b0e7a52-6c1e-4f43-9d3c-1f0c9a3f7b11'

async function openChat(more: Partial<LangGraphOptions> = {}, options: Partial<ChatClientOptions> = {}) {
  const server = await openLangGraph(more)
  const warnings: string[] = []
  const create = (initialMessages: ChatClientOptions['initialMessages'] = []) => {
    const onWarning = (message: string) => warnings.push(message)
    const client = new ChatClient({ threadId, ...server.options, ...options, initialMessages, onWarning })
    onTestFinished(client.dispose)
    return client
  }
  return { server, client: create(), create, warnings }
}

const calls = (client: ChatClient): ToolCallPart[] =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])))

const texts = (client: ChatClient): string[] =>
  client
    .getSnapshot()
    .messages.map(({ parts }) => parts.map((part) => (part.type === 'text' ? part.text : '')).join(''))

const pending = (client: ChatClient) =>
  client.getSnapshot().pendingApprovals.map(({ approval }) => approval?.id ?? '')

/** The messages that the server keeps, as type and text. */
async function kept({ apiUrl }: LangGraphServer): Promise<string[]> {
  const response = await fetch(`${apiUrl}/threads/${threadId}/state`)
  const { values }: { values: { messages: readonly { type: string; content: string }[] } } =
    await response.json()
  return values.messages.map(({ type, content }) => `${type}: ${content}`)
}

const twoInParallel: Cannot = {
  reason:
    'humanInTheLoopMiddleware of LangChain.js drops the approved calls of a turn in which another was rejected; the client tells that they did not run (two approvals of one turn do)',
  async prove() {
    const denied = await openChat()
    await denied.client.sendMessage(prompts.two)
    const [first = '', second = ''] = pending(denied.client)
    const no = denied.client.addToolApprovalResponse({ id: second, approved: false, reason: 'too risky' })
    expect(denied.server.requests()).toBe(1)
    await Promise.all([denied.client.addToolApprovalResponse({ id: first, approved: true }), no])
    expect(denied.server.sent).toEqual([])
    expect(calls(denied.client)).toMatchObject([
      { state: 'cancelled', error: { message: expect.stringContaining('without running it') } },
      { state: 'denied', approval: { reason: 'too risky' } },
    ])
    expect(denied.server.bodies.at(-1)?.command).toEqual({
      resume: {
        [first.split(':')[0] ?? '']: {
          decisions: [{ type: 'approve' }, { type: 'reject', message: 'too risky' }],
        },
      },
    })
    const { client, server } = await openChat()
    await client.sendMessage(prompts.two)
    await Promise.all(pending(client).map((id) => client.addToolApprovalResponse({ id, approved: true })))
    expect(server.sent.toSorted()).toEqual(['ada', 'bob'])
    expect(calls(client).map(({ state }) => state)).toEqual(['complete', 'complete'])
    expect(server.requests()).toBe(2)
  },
}

ourClient('our client on a LangGraph server (@langchain/langgraph-api 2.0.0)', openLangGraph, {
  'two in parallel': twoInParallel,
})

test('an interrupt of a LangGraph tool that asks for something else is answered with whatever the graph waits for', async () => {
  const { client, server, create, warnings } = await openChat()
  await client.sendMessage(langGraphPrompts.folder)
  expect(client.getSnapshot().interrupts).toMatchObject([
    { message: 'Which folder?', metadata: { 'langgraph:value': { choices: ['logs', 'mail'] } } },
  ])
  client.dispose()
  const again = create(JSON.parse(JSON.stringify(client.getSnapshot().messages)))
  expect(await again.sendMessage(langGraphPrompts.folder)).toEqual({ status: 'sent' })
  const [interrupt] = again.getSnapshot().interrupts
  const answer = { id: interrupt?.id ?? '', payload: 'logs' }
  expect(await again.respondToInterrupt(answer)).toEqual({ status: 'sent' })
  expect(texts(again).at(-1)).toBe('It goes to logs.')
  expect(server.requests()).toBe(3)
  expect(warnings).toEqual([])
})

test('a message of the user closes the question that it passes by, and LangGraph keeps a valid conversation', async () => {
  const { client, server, warnings } = await openChat()
  await client.sendMessage(prompts.mail)
  await client.sendMessage(prompts.hello)
  expect(calls(client)).toMatchObject([{ state: 'cancelled' }])
  expect(texts(client).at(-1)).toBe('Hello, Ada.')
  expect(server.sent).toEqual([])
  expect(await kept(server)).toEqual([
    'human: mail ada',
    'ai: ',
    'tool: The user continued without answering.',
    'human: hello',
    'ai: Hello, Ada.',
  ])
  expect(warnings).toEqual([])
})

test('an approval that was given before the user spoke is delivered before their message', async () => {
  const { client, server } = await openChat()
  await client.sendMessage(prompts.two)
  const [id = ''] = pending(client)
  void client.addToolApprovalResponse({ id, approved: true })
  await client.sendMessage(prompts.hello)
  await until(client, ({ status }) => status === 'ready')
  expect(
    server.bodies.map(({ command, input }) => (command ? 'command' : isRecord(input) && 'input')),
  ).toEqual(['input', 'command', 'input'])
  expect(texts(client).at(-1)).toBe('Hello, Ada.')
  expect(calls(client).every(({ state }) => state === 'cancelled')).toBe(true)
  expect((await kept(server)).slice(-2)).toEqual(['human: hello', 'ai: Hello, Ada.'])
})

/** A response that breaks off after so many bytes; later ones are whole. */
function breaking(bytes: number, isBroken: (url: string, init?: RequestInit) => boolean): typeof fetch {
  return async (url, init) => {
    const response = await fetch(url, init)
    if (!isBroken(String(url), init)) return response
    let left = bytes
    const body = response.body?.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        async transform(chunk, controller) {
          const part = chunk.slice(0, left)
          left -= part.length
          if (part.length > 0) controller.enqueue(part)
          if (left > 0) return
          await sleep(30)
          controller.error(new Error('The network is gone.'))
        },
      }),
    )
    return new Response(body ?? null, { headers: response.headers })
  }
}

test('a run whose stream broke off is taken up where it stopped', async () => {
  let broken = false
  const lost = (_: string, init?: RequestInit) => {
    const isFirst = !broken && String(init?.body).includes('resume')
    broken ||= isFirst
    return isFirst
  }
  const { client, server, warnings } = await openChat({ fetch: breaking(200, lost) })
  await client.sendMessage(prompts.mail)
  const [id = ''] = pending(client)
  expect(await client.addToolApprovalResponse({ id, approved: true })).toMatchObject({ status: 'failed' })
  await client.retry()
  expect(server.asked.at(-1)).toBe('GET /runs/RUN/stream')
  expect(server.sent).toEqual(['ada'])
  expect(calls(client)).toMatchObject([{ state: 'complete' }])
  expect(texts(client).at(-1)).toContain('Done: ')
  expect(warnings).toEqual([])
})

test('after a reload a run that broke off is shown from the server, and nothing of it is run again', async () => {
  const lost = (_: string, init?: RequestInit) => String(init?.body).includes('resume')
  const { client, server, create, warnings } = await openChat({ fetch: breaking(200, lost) })
  await client.sendMessage(prompts.mail)
  const [id = ''] = pending(client)
  await client.addToolApprovalResponse({ id, approved: true })
  await until(client, () => server.sent.length === 1)
  await sleep(300)
  client.dispose()
  const again = create(JSON.parse(JSON.stringify(client.getSnapshot().messages)))
  await again.retry()
  await again.retry()
  expect(server.sent).toEqual(['ada'])
  expect(calls(again)).toMatchObject([{ state: 'complete', output: { to: 'ada' } }])
  expect(texts(again).at(-1)).toContain('Done: ')
  expect(warnings).toEqual([])
})

test('the same answer once more, from somewhere else, runs nothing again', async () => {
  const { client, server } = await openChat()
  await client.sendMessage(prompts.mail)
  const [id = ''] = pending(client)
  await client.addToolApprovalResponse({ id, approved: true })
  const response = await fetch(`${server.apiUrl}/threads/${threadId}/runs/wait`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ assistant_id: 'agent', command: server.bodies.at(-1)?.command }),
  })
  await response.text()
  expect(server.sent).toEqual(['ada'])
  expect((await kept(server)).filter((line) => line.startsWith('tool'))).toHaveLength(1)
})

test('an answer that is not wanted is taken out of the conversation of the server too', async () => {
  const { client, server } = await openChat()
  await client.sendMessage(prompts.hello)
  await client.regenerate()
  expect(texts(client)).toEqual([prompts.hello, 'Hello, Ada.'])
  expect(await kept(server)).toEqual(['human: hello', 'ai: Hello, Ada.'])
})

test('a graph that failed goes on from the step that failed', async () => {
  const { client, server } = await openChat()
  await client.sendMessage(prompts.fail)
  await client.retry()
  expect(server.bodies.map(({ input }) => input)).toMatchObject([{ messages: [{}] }, null])
  expect(client.getSnapshot().status).toBe('error')
})

test('a stopped run is cancelled at the server before the next one begins', async () => {
  const { client, server } = await openChat()
  void client.sendMessage(prompts.slow)
  await until(client, () => texts(client).some((text) => text.includes('well')))
  client.stop()
  await client.sendMessage(prompts.hello)
  expect(server.asked).toEqual([
    'GET /state',
    'POST /runs/stream',
    'POST /runs/RUN/cancel',
    'GET /state',
    'POST /runs/stream',
  ])
  expect(await kept(server)).toEqual(['human: slow', 'human: hello', 'ai: Hello, Ada.'])
})

test('calls that need no approval run with those that got one', async () => {
  const { client, server } = await openChat()
  await client.sendMessage(langGraphPrompts.mixed)
  const [id = ''] = pending(client)
  await client.addToolApprovalResponse({ id, approved: true })
  expect(server.sent).toEqual(['ada'])
  expect(calls(client)).toMatchObject([
    { name: 'weather', state: 'complete', output: { degrees: 21 } },
    { name: 'send_mail', state: 'complete', output: { to: 'ada' } },
  ])
})
