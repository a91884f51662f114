import { expect, test } from 'vitest'
import {
  createAgent,
  handleChat,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  scriptedModel,
} from '../../src/index.js'

const text = (delta: string) => [
  { type: 'text-delta' as const, delta },
  { type: 'finish' as const, reason: 'stop' as const },
]

function start() {
  let asked = 0
  const agent = createAgent({
    model: scriptedModel(() => text(`reply ${++asked}`)),
    threads: memoryThreads(),
    runLog: memoryRunLog(),
    approvals: { ledger: memoryLedger(), secret: 'a secret of more than thirty-two characters' },
    warn: () => {},
  })
  const post = (runId: string, id: string, goOnFor: number, signal?: AbortSignal) => {
    const messages = [{ id, role: 'user', content: id }]
    const body = JSON.stringify({
      threadId: 't',
      runId,
      messages,
      tools: [],
      context: [],
      protocolVersion: '1.0',
    })
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost/', {
      method: 'POST',
      headers,
      body,
      signal: signal ?? null,
    })
    return handleChat(agent, request, { context: { subject: 'ada' }, goOnFor })
  }
  const stored = async () => {
    const thread = await agent.threads?.load({ owner: 'ada', threadId: 't' })
    return { run: thread?.run, messages: thread?.messages.length }
  }
  return { post, stored, asked: () => asked }
}

test('a page that leaves before its run starts gets its reply: the run goes on as for one that leaves later', async () => {
  const { post, stored } = start()
  const left = new AbortController()
  const response = post('run-1', 'hello', 60_000, left.signal)
  left.abort()
  await response
  await expect.poll(stored).toEqual({ run: undefined, messages: 2 })
})

test('a request that is repeated by a page that is gone asks the model nothing', async () => {
  const { post, stored, asked } = start()
  await (await post('run-1', 'hello', 60_000)).text()
  const left = new AbortController()
  const response = post('run-2', 'hello', 60_000, left.signal)
  left.abort()
  await response
  await expect.poll(stored).toEqual({ run: undefined, messages: 2 })
  expect(asked()).toBe(1)
})

test('without goOnFor, a run whose page has left does not start, and releases its thread', async () => {
  const { post, stored, asked } = start()
  const left = new AbortController()
  const response = post('run-1', 'hello', 0, left.signal)
  left.abort()
  await response
  await expect.poll(stored).toEqual({ run: undefined, messages: 1 })
  expect(asked()).toBe(0)
})
