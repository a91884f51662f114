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

function open() {
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
    createAgent({ model, tools: [remove], threads, approvals: { secret, ledger }, warn: () => {} })
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
    error: { code: 'http-status', data: { status: 404 } },
  })
  expect(client.getSnapshot().messages).toHaveLength(3)
  expect(seen).toEqual([1])
  expect(await loadThread(agent(), { subject: 'ann', threadId: 't' })).toBeUndefined()
})
