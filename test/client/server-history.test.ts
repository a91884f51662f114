import { ChatClient, fetchServerSentEvents, type ToolCallPart } from '@countersign/client'
import { serverHistory } from '@countersign/client/server-history'
import type { RunAgentInput } from '@countersign/core'
import {
  createAgent,
  handleChat,
  loadThread,
  type Model,
  memoryLedger,
  memoryThreads,
  tool,
} from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'

const secret = 'only for this test, 32 bytes long!'

function open(options: { readonly acceptUploads?: boolean } = {}) {
  const ran: string[] = []
  const remove = tool({
    name: 'remove',
    description: 'Removes a file.',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => ran.push(path),
  })
  const seen: number[] = []
  const model: Model = {
    id: 'test/model',
    async *stream({ messages }) {
      seen.push(messages.length)
      const last = messages.at(-1)
      if (last?.role === 'user' && JSON.stringify(last.content).includes('remove'))
        yield { type: 'tool-call', id: 'c1', name: 'remove', arguments: '{"path":"a.txt"}' }
      else yield { type: 'text-delta', delta: 'Done. '.repeat(200) }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  let threads = memoryThreads()
  const ledger = memoryLedger()
  const agent = () =>
    createAgent({
      model,
      tools: [remove],
      threads,
      approvals: { secret, ledger },
      warn: () => {},
      ...options,
    })
  const bodies: (RunAgentInput & { readonly size: number })[] = []
  const fetch: typeof globalThis.fetch = (url, init) => {
    bodies.push({ ...JSON.parse(String(init?.body)), size: String(init?.body).length })
    return handleChat(agent(), new Request(String(url), init), { context: { subject: 'ann' } })
  }
  const connection = serverHistory(fetchServerSentEvents('http://localhost/chat', { fetch }))
  const client = new ChatClient({ connection, threadId: 't' })
  onTestFinished(() => client.dispose())
  const forget = () => {
    threads = memoryThreads()
  }
  return { client, bodies, ran, seen, forget, agent }
}

test('T7: a request brings only the messages that the server lacks, and after an answer only the answer', async () => {
  const { client, bodies, ran, seen, agent } = open()
  for (const text of ['one', 'two', 'three', 'remove it']) await client.sendMessage(text)
  expect(bodies.map(({ messages }) => messages.map(({ role }) => role))).toEqual([
    ['user'],
    ['user'],
    ['user'],
    ['user'],
  ])
  expect(Math.abs((bodies[3]?.size ?? 0) - (bodies[1]?.size ?? 0))).toBeLessThan(20)
  const [call] = client.getSnapshot().pendingApprovals as readonly ToolCallPart[]
  await client.addToolApprovalResponse({ id: call?.approval?.id ?? '', approved: true })
  expect(ran).toEqual(['a.txt'])
  expect(bodies[4]).toMatchObject({ messages: [], resume: [{ payload: { approved: true } }] })
  expect(seen).toEqual([1, 3, 5, 7, 9])
  const thread = await loadThread(agent(), { subject: 'ann', threadId: 't' })
  const texts = (messages: readonly { readonly parts: readonly object[] }[] = []) =>
    messages.map(({ parts }) =>
      parts.map((part) => ('text' in part ? part.text : 'type' in part && part.type)),
    )
  expect(texts(thread?.messages)).toEqual(texts(client.getSnapshot().messages))
})

test('T8: a server that does not have the conversation refuses it with thread-unknown, and nothing is lost', async () => {
  const { client, seen, forget, agent } = open()
  await client.sendMessage('one')
  forget()
  await client.sendMessage('two')
  expect(client.getSnapshot()).toMatchObject({
    status: 'error',
    error: {
      code: 'http-status',
      message: expect.stringContaining('does not have the conversation'),
      data: { status: 404, body: expect.stringContaining('thread-unknown') },
    },
  })
  expect(client.getSnapshot().messages).toHaveLength(3)
  expect(seen).toEqual([1])
  expect(await loadThread(agent(), { subject: 'ann', threadId: 't' })).toBeUndefined()
})

test('T8: where the server accepts uploads, the page brings its copy, and the conversation goes on', async () => {
  const { client, seen, bodies, forget, agent } = open({ acceptUploads: true })
  await client.sendMessage('one')
  forget()
  expect(await client.sendMessage('two')).toEqual({ status: 'sent' })
  expect(seen).toEqual([1, 3])
  expect(bodies.map(({ messages }) => messages.length)).toEqual([1, 1, 3])
  expect(client.getSnapshot()).toMatchObject({ status: 'ready', messages: { length: 4 } })
  const stored = await loadThread(agent(), { subject: 'ann', threadId: 't' })
  expect(stored?.messages.map(({ id }) => id)).toEqual(client.getMessageIds())
  await client.sendMessage('three')
  expect(bodies.at(-1)?.messages).toHaveLength(1)
})

test('T8: no approval is taken over with an uploaded copy: its answer runs nothing, and the model learns that the call may have run', async () => {
  const { client, ran, forget, agent } = open({ acceptUploads: true })
  await client.sendMessage('remove it')
  const [call] = client.getSnapshot().pendingApprovals
  forget()
  await client.addToolApprovalResponse({ id: call?.approval.id ?? '', approved: true })
  expect(ran).toEqual([])
  expect(client.getSnapshot().pendingApprovals).toEqual([])
  const stored = await loadThread(agent(), { subject: 'ann', threadId: 't' })
  expect(
    stored?.messages.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool-call')),
  ).toMatchObject([
    {
      name: 'remove',
      state: 'error',
      error: { message: expect.stringContaining('may or may not have run') },
    },
  ])
})
