import {
  createAgent,
  handleChat,
  type ModelEvent,
  memoryRunLog,
  memoryThreads,
  scriptedModel,
  threadResponse,
  tool,
} from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { openPage } from './threads-server.js'

const call: ModelEvent[] = [
  { type: 'tool-call', id: 'c1', name: 'write', arguments: '{}' },
  { type: 'finish', reason: 'tool_calls' },
]
const reply: ModelEvent[] = [
  { type: 'text-delta', delta: '{"city":"Oslo"}' },
  { type: 'finish', reason: 'stop' },
]

test('T31 T32 two browsers show what was written and the structured reply alike: live, loaded, and after it was replaced', async () => {
  const points: number[] = []
  const write = tool({
    name: 'write',
    description: 'Writes.',
    input: z.object({}),
    async execute(_, { write }) {
      points.push(points.length)
      await write({ type: 'data', id: 'chart', name: 'chart', data: points })
      await write({ type: 'source', id: 's1', url: 'https://example.org/a' })
      await write({ type: 'metadata', metadata: { cost: points.length } })
      return 'ok'
    },
  })
  const agent = createAgent({
    model: scriptedModel([call, reply, call, reply]),
    tools: [write],
    output: z.object({ city: z.string() }),
    threads: memoryThreads(),
    runLog: memoryRunLog(),
    warn: () => {},
  })
  const options = { context: { subject: 'ada' } }
  const handle = (request: Request) =>
    request.method === 'POST' ? handleChat(agent, request, options) : threadResponse(agent, request, options)
  const first = openPage({ handle })
  await first.client.sendMessage('Go')
  const second = openPage({ handle })
  const messagesOf = ({ client }: typeof first) => client.getSnapshot().messages
  await vi.waitFor(() => expect(messagesOf(second)).toEqual(messagesOf(first)))
  expect(messagesOf(second).slice(1)).toMatchObject([
    {
      metadata: { cost: 1 },
      parts: [{ type: 'tool-call' }, { type: 'source', id: 's1' }, { type: 'tool-result' }],
    },
    { id: 'chart', parts: [{ type: 'data', name: 'chart', data: [0] }] },
    { parts: [{ type: 'text', output: { city: 'Oslo' }, outputState: 'final' }] },
  ])
  await first.client.sendMessage('Again')
  expect(messagesOf(first)[2]).toMatchObject({ id: 'chart', parts: [{ data: [0, 1] }] })
  await vi.waitFor(() => expect(messagesOf(second)).toEqual(messagesOf(first)))
  const posts = first.requests.filter(({ method }) => method === 'POST')
  expect(posts[1]?.body).toMatchObject({ messages: [{ content: 'Again' }] })
  expect([first.errors, second.errors]).toEqual([[], []])
})
