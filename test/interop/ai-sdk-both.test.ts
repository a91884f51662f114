import { aiSdk } from '@countersign/ai-sdk'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { ChatClient, clientTool } from '@countersign/client'
import { createAgent, scriptedModel, toolDefinition } from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openAiSdkAgent } from './ai-sdk-server.js'
import { serveFetch } from './fetch-server.js'
import { prompts } from './our-agent.js'

/** Our client on our route for clients of the AI SDK, as a page has it that moves from one to the other. */
async function open() {
  const agent = await openAiSdkAgent()
  const warnings: string[] = []
  const client = new ChatClient({
    threadId: 'thread-1',
    connection: aiSdk({ api: agent.url }),
    tools: [
      clientTool({ name: 'get_location', description: 'Where.', input: z.object({}), execute: () => 'Oslo' }),
    ],
    onWarning: (message) => warnings.push(message),
  })
  onTestFinished(client.dispose)
  const calls = () =>
    client
      .getSnapshot()
      .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])))
  const pending = () => client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)
  const answer = (id: string | undefined, approved: boolean) =>
    client.addToolApprovalResponse({ id: id ?? '', approved })
  return { agent, client, calls, pending, answer, warnings }
}

test('our client is asked by our AI SDK route, with whole arguments, and its approval runs the call once', async () => {
  const { agent, client, calls, pending, answer, warnings } = await open()
  expect(await client.sendMessage(prompts.mail)).toEqual({ status: 'sent' })
  expect(calls()).toMatchObject([{ state: 'approval-requested', input: { to: 'ada' } }])
  expect(await answer(pending()[0], true)).toEqual({ status: 'sent' })
  expect(calls()).toMatchObject([{ state: 'complete', output: { to: 'ada', state: 'sent' } }])
  expect(agent.sent).toEqual(['ada'])
  expect(warnings).toEqual([])
})

test('a denial, two answers in one request, and a chained question, over our AI SDK route', async () => {
  const denied = await open()
  await denied.client.sendMessage(prompts.mail)
  expect(await denied.answer(denied.pending()[0], false)).toEqual({ status: 'sent' })
  expect(denied.calls()).toMatchObject([{ state: 'denied' }])
  expect(denied.agent.sent).toEqual([])

  const two = await open()
  await two.client.sendMessage(prompts.two)
  const [ada, bob] = two.pending()
  expect(await Promise.all([two.answer(ada, true), two.answer(bob, false)])).toMatchObject([
    { status: 'waiting' },
    { status: 'sent' },
  ])
  expect(two.calls()).toMatchObject([{ state: 'complete' }, { state: 'denied' }])
  expect(two.agent.sent).toEqual(['ada'])

  const chained = await open()
  await chained.client.sendMessage(prompts.chain)
  await chained.answer(chained.pending()[0], true)
  expect(chained.pending()).toHaveLength(1)
  await chained.answer(chained.pending()[0], true)
  expect(chained.agent.sent).toEqual(['ada', 'bob'])
  for (const { warnings } of [denied, two, chained]) expect(warnings).toEqual([])
})

test('a tool of the page runs on the page, and a chat that moves on closes what it was asked, over our AI SDK route', async () => {
  const { agent, client, calls, pending, warnings } = await open()
  await client.sendMessage(prompts.where)
  await expect.poll(() => client.getSnapshot().status).toBe('ready')
  expect(calls()).toMatchObject([{ name: 'get_location', state: 'complete', output: 'Oslo' }])
  await client.sendMessage(prompts.mail)
  expect(pending()).toHaveLength(1)
  expect(await client.sendMessage(prompts.hello)).toEqual({ status: 'sent' })
  expect(calls().at(-1)).toMatchObject({ state: 'cancelled' })
  expect(agent.sent).toEqual([])
  expect(warnings).toEqual([])
})

test('a client tool that needs approval runs on the page after it, over our AI SDK route', async () => {
  const definition = toolDefinition({
    name: 'wipe',
    description: 'Wipes the page.',
    input: z.object({ all: z.boolean() }),
    needsApproval: true,
  })
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [
          { type: 'text-delta', delta: 'Done.' },
          { type: 'finish', reason: 'stop' },
        ]
      : [
          { type: 'tool-call', id: 'c1', name: 'wipe', arguments: '{"all":true}' },
          { type: 'finish', reason: 'tool_calls' },
        ],
  )
  const agent = createAgent({ model, tools: [definition.client(() => null)], warn: () => {} })
  const url = await serveFetch((request) => handleAiSdkChat(agent, request, { context: { subject: 'ada' } }))
  const ran: unknown[] = []
  const client = new ChatClient({
    threadId: 'thread-1',
    connection: aiSdk({ api: url }),
    tools: [definition.client((input) => ran.push(input))],
  })
  onTestFinished(client.dispose)
  await client.sendMessage('go')
  const [asked] = client.getSnapshot().pendingApprovals
  expect(ran).toEqual([])
  await client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved: true })
  const parts = () => client.getSnapshot().messages.flatMap((message) => message.parts)
  await expect.poll(() => parts().some((part) => part.type === 'text' && part.text === 'Done.')).toBe(true)
  expect(ran).toEqual([{ all: true }])
  expect(parts().find(({ type }) => type === 'tool-call')).toMatchObject({ state: 'complete', output: 1 })
})
