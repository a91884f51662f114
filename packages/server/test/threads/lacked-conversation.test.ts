import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { webSocket } from '@countersign/client/web-socket'
import type { AGUIEvent, Message } from '@countersign/core'
import { toAGUIMessages } from '@countersign/core'
import {
  createAgent,
  handleChat,
  loadThread,
  memoryLedger,
  memoryThreads,
  type ServerSocket,
  scriptedModel,
  serveSocket,
} from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'
import { call, counted, input, SECRET, say, user } from '../support.js'

// The thread store lacks the conversation that a page sends: it was switched on later, was lost, or the conversation was removed.

const context = { subject: 'ann' }
const who = { subject: 'ann', threadId: 'thread' }

/** A model that does what nobody has done yet. */
function serve(options: { readonly acceptUploads?: boolean } = {}) {
  const seen: string[][] = []
  const pay = counted('pay')
  const ask = counted('ask', { needsApproval: true })
  let calls = 0
  let threads: ReturnType<typeof memoryThreads> | undefined = memoryThreads()
  const make = () =>
    createAgent({
      model: scriptedModel(({ messages }) => {
        seen.push(messages.map(({ role }) => role))
        const said = messages.findLast(({ role }) => role === 'user')
        const text = JSON.stringify(said?.content)
        if (messages.at(-1)?.role === 'tool' || !/Pay|Ask/.test(text)) return say('Done.')
        return call([`c${++calls}`, text.includes('Pay') ? 'pay' : 'ask', {}])
      }),
      tools: [pay.tool, ask.tool],
      threads,
      approvals: { ledger: memoryLedger(), secret: SECRET },
      warn: () => {},
      ...options,
    })
  let agent = make()
  const restart = (next: typeof threads) => {
    threads = next
    agent = make()
  }
  const fetch: typeof globalThis.fetch = async (url, init) =>
    handleChat(agent, new Request(String(url), init), { context })
  const stored = async () =>
    (await loadThread(agent, who))?.messages.map(({ role, parts }) => [
      role,
      ...parts.map((part) => (part.type === 'text' ? part.text : part.type)),
    ])
  return { agent: () => agent, fetch, ran: pay.runs, asked: ask.runs, seen, stored, restart }
}

function clientOf(connection: ConstructorParameters<typeof ChatClient>[0]['connection']) {
  const client = new ChatClient({ connection, threadId: who.threadId })
  onTestFinished(() => client.dispose())
  return client
}

const page = (fetch: typeof globalThis.fetch) =>
  clientOf(fetchServerSentEvents('http://localhost/chat', { fetch }))

/** What a page with a finished exchange sends with its next message. */
const whole = async (before: string) => {
  const { fetch } = serve()
  const client = page(fetch)
  await client.sendMessage(before)
  return toAGUIMessages(client.getSnapshot().messages)
}

for (const [how, change] of [
  ['was removed', async ({ agent }: ReturnType<typeof serve>) => agent().removeThread(who, context)],
  ['was lost with its store', async ({ restart }: ReturnType<typeof serve>) => restart(memoryThreads())],
] as const)
  test(`If the server does not have the conversation: it refuses such a request with thread-unknown and stores nothing; it ${how}`, async () => {
    const server = serve()
    const client = page(server.fetch)
    await client.sendMessage('Pay Ann.')
    expect(server.ran).toHaveLength(1)
    await change(server)
    const asked = server.seen.length
    const end = await client.sendMessage('Thanks.')
    expect([end.status, client.getSnapshot().status]).toEqual(['failed', 'error'])
    expect(client.getSnapshot().error).toMatchObject({
      message: expect.stringMatching(/does not have the conversation.*new one/s),
      data: { status: 404, body: expect.stringContaining('thread-unknown') },
    })
    expect(client.getSnapshot().error?.message, 'a page shows it to its user').not.toMatch(
      /createAgent|acceptUploads/,
    )
    expect([server.ran.length, server.seen.length]).toEqual([1, asked])
    expect(await server.stored()).toBeUndefined()
  })

test('a conversation that began before the agent had threads is refused, and goes on with acceptUploads', async () => {
  for (const acceptUploads of [false, true]) {
    const server = serve({ acceptUploads })
    server.restart(undefined)
    const client = page(server.fetch)
    await client.sendMessage('Pay Ann.')
    server.restart(memoryThreads())
    await client.sendMessage('Thanks.')
    expect(server.ran).toHaveLength(1)
    expect(client.getSnapshot().status).toBe(acceptUploads ? 'ready' : 'error')
    expect(await server.stored()).toEqual(
      acceptUploads
        ? [
            ['user', 'Pay Ann.'],
            ['assistant', 'tool-call', 'tool-result'],
            ['assistant', 'Done.'],
            ['user', 'Thanks.'],
            ['assistant', 'Done.'],
          ]
        : undefined,
    )
  }
})

test('with acceptUploads the model sees what was done, never the words of the user alone', async () => {
  const server = serve({ acceptUploads: true })
  const messages = [...(await whole('Pay Ann.')), user('Thanks.')]
  const response = await server.fetch('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input(messages)),
  })
  expect(await response.text()).toContain('MESSAGES_SNAPSHOT')
  expect(server.seen).toEqual([['user', 'assistant', 'tool', 'assistant', 'user']])
})

test('an agent that is run in the process refuses it too', async () => {
  const server = serve()
  const events: AGUIEvent[] = []
  const messages = [...(await whole('Pay Ann.')), user('Thanks.')]
  for await (const event of server.agent().run(input(messages), { context })) events.push(event)
  expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'thread-unknown' })
  expect([server.ran, server.seen]).toEqual([[], []])
})

test('over a WebSocket it is refused too', async () => {
  const server = serve()
  class Socket extends EventTarget {
    readyState = 0
    bufferedAmount = 0
    readonly #toServer: ((event: { readonly data: unknown }) => void)[] = []
    constructor() {
      super()
      queueMicrotask(() => {
        const socket = {
          readyState: 1,
          bufferedAmount: 0,
          send: (data: string) => void this.dispatchEvent(Object.assign(new Event('message'), { data })),
          close: () => this.close(),
          addEventListener: (type: string, listener: (event: { readonly data: unknown }) => void) => {
            if (type === 'message') this.#toServer.push(listener)
          },
        } satisfies ServerSocket & { readyState: number }
        const opened = new Request('http://localhost/', { headers: { host: 'localhost' } })
        serveSocket(server.agent(), socket, opened, { context: () => context })
        this.readyState = 1
        this.dispatchEvent(new Event('open'))
      })
    }
    send(data: string) {
      for (const listener of this.#toServer) listener({ data })
    }
    close() {
      this.readyState = 3
      this.dispatchEvent(new Event('close'))
    }
  }
  const client = clientOf(webSocket('ws://localhost/', { WebSocket: Socket as never }))
  await client.sendMessage('Pay Ann.')
  server.restart(memoryThreads())
  await server.agent().removeThread(who, context)
  client.setOptions({ connection: webSocket('ws://localhost/', { WebSocket: Socket as never }) })
  expect(await client.sendMessage('Thanks.')).toMatchObject({ status: 'failed' })
  expect(client.getSnapshot().error?.message).toContain('does not have the conversation')
  expect([server.ran.length, await server.stored()]).toEqual([1, undefined])
})

const says = (id: string, role: 'user' | 'assistant', text: string) => ({
  ...{ id, role },
  parts: [{ type: 'text', text }],
})

test('the route of the AI SDK refuses it too, and takes the whole copy with acceptUploads', async () => {
  const chat = [
    says('m1', 'user', 'Pay Ann.'),
    says('m2', 'assistant', 'Done.'),
    says('m3', 'user', 'Thanks.'),
  ]
  const answer = {
    ...{ id: 'm2', role: 'assistant' },
    parts: [
      {
        ...{ type: 'tool-pay', toolCallId: 'c9', state: 'approval-responded', input: {} },
        approval: { id: 'a1', approved: true },
      },
    ],
  }
  for (const [messages, roles] of [
    [chat, ['user', 'assistant', 'user']],
    [[says('m1', 'user', 'Ask Ann.'), answer], undefined],
  ] as const)
    for (const acceptUploads of [false, true]) {
      const server = serve({ acceptUploads })
      const request = new Request('http://localhost/', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: who.threadId, messages }),
      })
      const response = await handleAiSdkChat(server.agent(), request, { context })
      const text = await response.text()
      expect(response.status).toBe(acceptUploads ? 200 : 404)
      if (!acceptUploads) expect(text).toContain('thread-unknown')
      if (!acceptUploads) expect(await server.stored()).toBeUndefined()
      if (roles) expect(server.seen).toEqual(acceptUploads ? [roles] : [])
      expect([server.ran, server.asked]).toEqual([[], []])
    }
})

test('a store that has only the beginning of a conversation refuses what follows the part that it lacks', async () => {
  const server = serve({ acceptUploads: true })
  const before = await whole('Hello.')
  const post = (messages: readonly Message[]) =>
    server.fetch('http://localhost/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input(messages)),
    })
  await (await post(before.slice(0, 1))).text()
  const lost: Message[] = [user('Pay Ann.', 'lost'), { id: 'a2', role: 'assistant', content: 'Paid.' }]
  const response = await post([...before, ...lost, user('Thanks.')])
  expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('thread-unknown')])
  expect(server.ran).toEqual([])
})

test('what shows no earlier exchange begins a conversation: failed messages of the user, and a greeting of the page', async () => {
  const greeting: Message = { id: 'hello', role: 'assistant', content: 'How can I help?' }
  for (const messages of [
    [user('One'), user('Two')],
    [greeting, user('One')],
  ]) {
    const server = serve()
    const response = await server.fetch('http://localhost/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input(messages)),
    })
    expect([response.status, (await response.text()).includes('Done.')]).toEqual([200, true])
  }
})

test('a call, a result or an answer without any message of the user continues a conversation as well', async () => {
  const asked: Message = {
    ...{ id: 'a', role: 'assistant' },
    toolCalls: [{ id: 'c1', type: 'function', function: { name: 'pay', arguments: '{}' } }],
  }
  const result: Message = { id: 'r', role: 'tool', toolCallId: 'c1', content: 'paid' }
  const resume = [{ interruptId: 'i', status: 'resolved' as const, payload: { approved: true } }]
  const server = serve()
  for (const given of [input([asked, user('Go on.')]), input([result]), input([], { resume })]) {
    const response = await server.fetch('http://localhost/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(given),
    })
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('thread-unknown')])
  }
})

test('an agent without threads warns of a page that sends only what is new, unless the application adds the rest', async () => {
  const warnings: string[] = []
  const model = scriptedModel(() => say('Done.'))
  const agent = createAgent({ model, warn: (text) => warnings.push(text) })
  const forwardedProps = { countersign: { after: 'u1' } }
  await agent.generate({
    ...input([
      { ...user('One'), id: 'u1' },
      { ...user('Two'), id: 'u2' },
    ]),
    forwardedProps,
  })
  expect(warnings.filter((text) => text.includes('`threads`'))).toEqual([])
  await agent.generate({ ...input([user('Two', 'u2')]), forwardedProps })
  expect(warnings.filter((text) => text.includes('`threads`'))).toHaveLength(1)
})
