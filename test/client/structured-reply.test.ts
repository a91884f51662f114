import { ChatClient, fetchServerSentEvents, type UIMessage } from '@countersign/client'
import type { TextPart } from '@countersign/core'
import {
  type AgentOptions,
  createAgent,
  handleChat,
  type ModelEvent,
  scriptedModel,
  tool,
} from '@countersign/server'
import { byHand, event, finish, scriptedConnection, started } from '@countersign/testing'
import { beforeEach, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { serveFetch } from '../interop/fetch-server.js'
import { FakeBrowser, quiet, shown } from './fake-browser.js'

// In production a plain chat is read without what a structured reply needs: it is loaded with the first of its texts.
beforeEach(() => void vi.stubEnv('NODE_ENV', 'production'))

const value = { city: 'Oslo', stops: ['Fjord', 'Opera'] }
const json = JSON.stringify(value)
const words = (delta: string): ModelEvent => ({ type: 'text-delta', delta })
const stop: ModelEvent = { type: 'finish', reason: 'stop' }
const calls = (name: string): ModelEvent[] => [
  { type: 'tool-call', id: 'c1', name, arguments: '{}' },
  { type: 'finish', reason: 'tool_calls' },
]

const textOf = (messages: readonly UIMessage[]) =>
  messages
    .flatMap(({ role, parts }) => (role === 'assistant' ? parts : []))
    .findLast((part): part is TextPart => part.type === 'text')

/** A page whose server is on the loopback interface; `seen` has every text part it has shown. */
async function open(options: Omit<AgentOptions, 'onError' | 'warn'>) {
  const agent = createAgent({ ...options, onError: () => {}, warn: () => {} })
  const url = await serveFetch((request) => handleChat(agent, request))
  const client = new ChatClient({ connection: fetchServerSentEvents(url), threadId: 't', notify: 'sync' })
  const seen: TextPart[] = []
  client.subscribe(() => {
    const part = textOf(client.getSnapshot().messages)
    if (part !== undefined && part !== seen.at(-1)) seen.push(part)
  })
  return { client, seen }
}

test('T31 H12 a page shows a structured reply as it arrives, and in the end as the server has validated it', async () => {
  const model = scriptedModel([[...(json.match(/.{1,4}/g) ?? []).map(words), stop]])
  const { client, seen } = await open({
    model,
    output: z.object({ city: z.string(), stops: z.array(z.string()) }),
  })
  await client.sendMessage('Where?')
  expect(seen.at(-1)).toEqual({ type: 'text', text: json, output: value, outputState: 'final' })
  const partial = seen.filter(({ outputState }) => outputState === 'partial')
  expect(partial.length).toBeGreaterThan(1)
  for (const { output } of partial)
    expect(value).toMatchObject(
      Object(output).city === undefined ? {} : { city: expect.stringContaining(Object(output).city) },
    )
})

test('T31 H12 a reply that does not fit is an error that can be retried; its text stays until then, without a value', async () => {
  const model = scriptedModel([
    [words('{"city":1}'), stop],
    [words(json), stop],
  ])
  const { client } = await open({ model, output: z.object({ city: z.string() }) })
  await client.sendMessage('Where?')
  expect(client.getSnapshot().error?.data.code).toBe('invalid-output')
  expect(textOf(client.getSnapshot().messages)).toEqual({ type: 'text', text: '{"city":1}' })
  await client.retry()
  expect(client.getSnapshot().error).toBeUndefined()
  expect(textOf(client.getSnapshot().messages)).toMatchObject({
    output: { city: 'Oslo' },
    outputState: 'final',
  })
})

test('T32 what a tool has written stays when the run fails after it, once, and metadata is on the message', async () => {
  const write = tool({
    name: 'write',
    description: 'Writes.',
    input: z.object({}),
    async execute(_, { write }) {
      await write({ type: 'data', name: 'chart', data: { points: [1] } })
      await write({ type: 'metadata', metadata: { cost: 3 } })
      return 'ok'
    },
  })
  const model = scriptedModel([calls('write'), [words('It is')], [words('It is done.'), stop]])
  const { client } = await open({ model, tools: [write] })
  await client.sendMessage('Go')
  expect(client.getSnapshot().error?.data.code).toBe('model-failed')
  await client.retry()
  const { messages } = client.getSnapshot()
  expect(messages.map(({ parts }) => parts.map(({ type }) => type))).toEqual([
    ['text'],
    ['tool-call', 'tool-result'],
    ['data'],
    ['text'],
  ])
  expect(messages[1]?.metadata).toMatchObject({ cost: 3 })
  expect(textOf(messages)?.text).toBe('It is done.')
})

test('T31 every tab shows the same of a structured reply, also one that is opened in the middle', async () => {
  const browser = new FakeBrowser()
  const server = scriptedConnection([byHand])
  const tabs = [browser.open(server)]
  await quiet()
  void tabs[0]?.client.sendMessage('go')
  const run = await server.request(1)
  const own = (output: unknown) => ({ messageId: 'm', metadata: { countersign: { output } } })
  for (const step of [
    started(),
    event({ type: 'TEXT_MESSAGE_START', role: 'assistant', ...own('partial') }),
    ...[json.slice(0, 13), json.slice(13, 30), json.slice(30)].map((delta) =>
      event({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta }),
    ),
    event({ type: 'TEXT_MESSAGE_END', ...own(true) }),
    finish(),
  ]) {
    run.emit(step)
    await quiet()
    tabs.push(browser.open(server))
    await quiet()
    const [first, ...others] = tabs.map(({ client }) => shown(client))
    for (const other of others) expect(other).toEqual(first)
  }
  expect(tabs.map(({ client }) => textOf(client.getSnapshot().messages)?.output)).toEqual(
    tabs.map(() => value),
  )
})
