import { ChatClient, type ChatClientOptions, type ToolCallPart } from '@countersign/client'
import { clientTool } from '@countersign/core'
import { until } from '@countersign/testing'
import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { type Cannot, column, type Row } from './matrix.js'
import { prompts } from './our-agent.js'

/** A server of somebody else on the loopback interface. */
export interface PeerServer {
  /** How our client reaches it. */
  readonly options: Pick<ChatClientOptions, 'connection' | 'compat' | 'onWarning'>
  /** Whom mails were sent to, in order: what really happened. */
  readonly sent: readonly string[]
  /** How many requests it got. */
  requests(): number
}

export type OpenServer = () => Promise<PeerServer>

interface Meeting {
  readonly server: PeerServer
  readonly client: ChatClient
  readonly located: readonly string[]
  /** Another client with the messages that this one shows, as after a reload. */
  reload(): ChatClient
}

async function meet(open: OpenServer): Promise<Meeting> {
  const server = await open()
  const located: string[] = []
  const locate = clientTool({
    name: 'get_location',
    description: 'Where the person is.',
    input: z.object({}),
    execute: () => {
      located.push('Oslo')
      return { place: 'Oslo' }
    },
  })
  const create = (initialMessages: ChatClientOptions['initialMessages'] = []) => {
    const client = new ChatClient({
      ...server.options,
      threadId: 'thread-1',
      tools: [locate],
      initialMessages,
    })
    onTestFinished(client.dispose)
    return client
  }
  const client = create()
  return {
    server,
    client,
    located,
    reload() {
      const { messages } = client.getSnapshot()
      client.dispose()
      return create(JSON.parse(JSON.stringify(messages)))
    },
  }
}

const calls = (client: ChatClient): ToolCallPart[] =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])))

const said = (client: ChatClient): string =>
  client
    .getSnapshot()
    .messages.flatMap(({ role, parts }) =>
      role === 'assistant' ? parts.map((part) => (part.type === 'text' ? part.text : '')) : [],
    )
    .join('')

const pending = (client: ChatClient): string[] =>
  client.getSnapshot().pendingApprovals.map(({ approval }) => approval?.id ?? '')

const pendingInputs = (client: ChatClient) => client.getSnapshot().pendingApprovals.map(({ input }) => input)

async function answer(
  client: ChatClient,
  ...answers: readonly { approved: boolean; reason?: string; input?: unknown }[]
): Promise<string[]> {
  const ids = pending(client)
  const results = answers.map((one, index) =>
    client.addToolApprovalResponse({ id: ids[index] ?? '', ...one }),
  )
  return (await Promise.all(results)).map(({ status }) => status)
}

/** The column of our client on a server. */
export function ourClient(
  name: string,
  open: OpenServer,
  otherwise: { readonly [R in Row]?: (() => Promise<void>) | Cannot } = {},
): void {
  column(name, cells(open), otherwise)
}

const no = { approved: false, reason: 'too risky' }

/** What every server does, row by row. */
function cells(open: OpenServer): Readonly<Record<Row, () => Promise<void>>> {
  return {
    async 'plain text'() {
      const { client } = await meet(open)
      expect(await client.sendMessage(prompts.hello)).toEqual({ status: 'sent' })
      expect(said(client)).toBe('Hello, Ada.')
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', isLoading: false })
    },
    async 'tool call'() {
      const { client } = await meet(open)
      await client.sendMessage(prompts.weather)
      expect(calls(client)).toMatchObject([
        { name: 'weather', state: 'complete', input: { city: 'Oslo' }, output: { degrees: 21 } },
      ])
      expect(said(client)).toContain('It is: ')
    },
    async approve() {
      const { client, server } = await meet(open)
      await client.sendMessage(prompts.mail)
      expect(pendingInputs(client)).toEqual([{ to: 'ada' }])
      expect(server.sent).toEqual([])
      expect(await answer(client, { approved: true })).toEqual(['sent'])
      expect(server.sent).toEqual(['ada'])
      expect(calls(client)).toMatchObject([{ state: 'complete', output: { to: 'ada', state: 'sent' } }])
      expect(said(client)).toContain('Done: ')
      expect(server.requests()).toBe(2)
    },
    async 'deny with reason'() {
      const { client, server } = await meet(open)
      await client.sendMessage(prompts.mail)
      expect(await answer(client, no)).toEqual(['sent'])
      expect(server.sent).toEqual([])
      expect(calls(client)).toMatchObject([{ state: 'denied', approval: { reason: 'too risky' } }])
      expect(said(client)).toContain('too risky')
    },
    async edit() {
      const { client, server } = await meet(open)
      await client.sendMessage(prompts.mail)
      expect(calls(client)).toMatchObject([{ approval: { allowEdits: true } }])
      expect(await answer(client, { approved: true, input: { to: 'bob' } })).toEqual(['sent'])
      expect(server.sent).toEqual(['bob'])
      expect(said(client)).toContain('bob')
    },
    async 'two in parallel'() {
      const { client, server } = await meet(open)
      await client.sendMessage(prompts.two)
      expect(pendingInputs(client)).toEqual([{ to: 'ada' }, { to: 'bob' }])
      await answer(client, { approved: true }, no)
      expect(server.sent).toEqual(['ada'])
      expect(calls(client).map(({ state }) => state)).toEqual(['complete', 'denied'])
      expect(said(client)).toContain('too risky')
      expect(server.requests()).toBe(2)
    },
    async chained() {
      const { client, server } = await meet(open)
      await client.sendMessage(prompts.chain)
      await answer(client, { approved: true })
      expect(server.sent).toEqual(['ada'])
      expect(pendingInputs(client)).toEqual([{ to: 'bob' }])
      await answer(client, { approved: true })
      expect(server.sent).toEqual(['ada', 'bob'])
      expect(calls(client).map(({ state }) => state)).toEqual(['complete', 'complete'])
      expect(said(client)).toContain('Done: ')
      expect(server.requests()).toBe(3)
    },
    async 'client tool'() {
      const { client, located, server } = await meet(open)
      await client.sendMessage(prompts.where)
      await until(client, ({ status }) => status === 'ready' && said(client).includes('You are'))
      expect(located).toEqual(['Oslo'])
      expect(said(client)).toContain('Oslo')
      expect(calls(client)).toMatchObject([{ state: 'complete', output: { place: 'Oslo' } }])
      expect(server.requests()).toBe(2)
    },
    async error() {
      const { client } = await meet(open)
      expect(await client.sendMessage(prompts.fail)).toMatchObject({ status: 'failed' })
      expect(client.getSnapshot().status).toBe('error')
      expect(await client.sendMessage(prompts.hello)).toEqual({ status: 'sent' })
      expect(said(client)).toContain('Hello, Ada.')
    },
    async abort() {
      const { client } = await meet(open)
      void client.sendMessage(prompts.slow)
      await until(client, () => said(client).includes('well'))
      client.stop()
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', isLoading: false })
      const before = said(client)
      expect(await client.sendMessage(prompts.hello)).toEqual({ status: 'sent' })
      expect(said(client)).toBe(`${before}Hello, Ada.`)
    },
    async reload() {
      const { client, server, reload } = await meet(open)
      await client.sendMessage(prompts.mail)
      const again = reload()
      expect(pendingInputs(again)).toEqual([{ to: 'ada' }])
      expect(await answer(again, { approved: true })).toEqual(['sent'])
      expect(server.sent).toEqual(['ada'])
      expect(said(again)).toContain('Done: ')
    },
  }
}
