import { aiSdk } from '@countersign/ai-sdk'
import { handleAiSdkChat, loadAiSdkChat } from '@countersign/ai-sdk/server'
import { ChatClient } from '@countersign/client'
import type { Preview } from '@countersign/core'
import {
  createAgent,
  type ModelEvent,
  memoryLedger,
  memoryThreads,
  scriptedModel,
  tool,
} from '@countersign/server'
import { isToolUIPart } from 'ai'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { chatInit, PlainChat } from './ai-sdk-chat.js'
import { serveFetch } from './fetch-server.js'

const diff = (before: string): Preview => ({ kind: 'diff', before, after: 'new' })

async function open(threads?: ReturnType<typeof memoryThreads>) {
  const world = { text: 'one', written: [] as unknown[] }
  const write = tool({
    name: 'write',
    description: 'Writes the file.',
    input: z.object({ text: z.string() }),
    needsApproval: true,
    message: 'Write it?',
    redact: () => ({ text: '***' }),
    preview: () => diff(world.text),
    execute: (_, context) => {
      world.written.push(context.preview)
      return 'written'
    },
  })
  const done: ModelEvent[] = [
    { type: 'text-delta', delta: 'Done.' },
    { type: 'finish', reason: 'stop' },
  ]
  const model = scriptedModel([
    [
      { type: 'tool-call', id: 'c1', name: 'write', arguments: '{"text":"new"}' },
      { type: 'finish', reason: 'tool_calls' },
    ],
    done,
  ])
  const approvals = { ledger: memoryLedger(), secret: 'a secret of more than thirty-two characters' }
  const agent = createAgent({ model, tools: [write], approvals, threads })
  const url = await serveFetch((request) => handleAiSdkChat(agent, request, { context: { subject: 'ada' } }))
  return { world, url, model, agent }
}

test('V13 our client on our AI SDK route: the preview is carried, and a change is asked about again', async () => {
  const { world, url, model } = await open()
  const client = new ChatClient({ threadId: 'thread-1', connection: aiSdk({ api: url }) })
  onTestFinished(client.dispose)
  const [pending] = [() => client.getSnapshot().pendingApprovals[0]?.approval]
  await client.sendMessage('go')
  expect(pending()?.preview).toEqual(diff('one'))
  world.text = 'two'
  await client.addToolApprovalResponse({ id: pending()?.id ?? '', approved: true })
  expect(pending()).toMatchObject({ preview: diff('two'), previous: diff('one') })
  expect(model.requests).toHaveLength(1)
  await client.addToolApprovalResponse({ id: pending()?.id ?? '', approved: true })
  expect(world.written).toEqual([diff('two')])
})

test('V13 a chat of the AI SDK: the preview is in the descriptor, and a change is asked about again', async () => {
  const { world, url, model } = await open()
  const chat: PlainChat = new PlainChat(chatInit({ url, locate: () => '' }, fetch, [], () => chat))
  const asked = () => {
    const part = chat.messages.at(-1)?.parts.find(isToolUIPart)
    return part?.state === 'approval-requested' ? part.approval : undefined
  }
  await chat.sendMessage({ text: 'go' })
  await expect.poll(asked).toMatchObject({ descriptor: { preview: diff('one') } })
  const first = asked()?.id ?? ''
  world.text = 'two'
  await chat.addToolApprovalResponse({ id: first, approved: true })
  await expect.poll(asked).toMatchObject({ descriptor: { preview: diff('two'), previous: diff('one') } })
  expect(model.requests).toHaveLength(1)
  await chat.addToolApprovalResponse({ id: asked()?.id ?? '', approved: true })
  await expect.poll(() => world.written).toEqual([diff('two')])
})

test('V13 a chat of the AI SDK that is loaded from the server has open requests as they were sent, and its first answer counts', async () => {
  const { world, url, agent } = await open(memoryThreads())
  const first: PlainChat = new PlainChat(chatInit({ url, locate: () => '' }, fetch, [], () => first))
  const askedIn = ({ messages }: Pick<PlainChat, 'messages'>) =>
    messages.at(-1)?.parts.find(isToolUIPart)?.approval
  await first.sendMessage({ text: 'go' })
  await expect.poll(() => askedIn(first)).toMatchObject({ requestReason: 'Write it?' })
  const loaded = await loadAiSdkChat(agent, { subject: 'ada', chatId: first.id })
  const messages: PlainChat['messages'] = JSON.parse(JSON.stringify(loaded))
  const init = chatInit({ url, locate: () => '' }, fetch, [], () => chat)
  const chat: PlainChat = new PlainChat({ ...init, id: first.id, messages })
  expect(askedIn(chat)).toEqual(askedIn(first))
  await chat.addToolApprovalResponse({ id: askedIn(chat)?.id ?? '', approved: true })
  await expect.poll(() => world.written).toEqual([diff('one')])
})

test.each(['preview', 'approvalDescriptor'])(
  'V13 our client on our AI SDK route: without the %s, which something on the way removed, an approval is refused',
  async (removed) => {
    const { world, url } = await open()
    const without = (key: string, value: unknown) => (key === removed ? undefined : value)
    const proxy: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      const lines = (await response.text()).split('\n').map((line) => {
        const isChunk = line.startsWith('data: {')
        return isChunk ? `data: ${JSON.stringify(JSON.parse(line.slice(6)), without)}` : line
      })
      return new Response(lines.join('\n'), { status: response.status, headers: response.headers })
    }
    const client = new ChatClient({ threadId: 'thread-1', connection: aiSdk({ api: url, fetch: proxy }) })
    onTestFinished(client.dispose)
    await client.sendMessage('go')
    const [pending] = client.getSnapshot().pendingApprovals
    expect(pending?.approval?.preview).toBeUndefined()
    await client.addToolApprovalResponse({ id: pending?.approval?.id ?? '', approved: true })
    expect(world.written).toEqual([])
  },
)
