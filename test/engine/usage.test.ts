import { ChatClient, stream } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import {
  type AgentOptions,
  createAgent,
  loadThread,
  type Model,
  type ModelEvent,
  memoryLedger,
  memoryThreads,
  threadResponse,
  tool,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'

// The model calls a tool once and then replies. Each of its steps reports what it used.

const context = { subject: 'ann' }
const secret = 'only for this test, 32 bytes long!'
const labels = { provider: 'test', model: 'large' }
const first = { ...labels, inputTokens: 10, outputTokens: 1 }
const second = { ...labels, inputTokens: 12, outputTokens: 2, reasoningTokens: 1 }
const used = ({ provider: _, model: __, ...usage }: typeof first): ModelEvent => ({ type: 'usage', usage })

/** `last`: how the second step ends. */
function setUp(last: () => ModelEvent | Promise<ModelEvent>, more: Partial<AgentOptions> = {}) {
  const model: Model = {
    id: 'test/large',
    async *stream({ messages }) {
      if (messages.at(-1)?.role === 'user') {
        yield { type: 'tool-call', id: 'c1', name: 'look', arguments: '{}' }
        yield used(first)
        yield { type: 'finish', reason: 'tool_calls' }
        return
      }
      yield { type: 'text-delta', delta: 'It is noon.' }
      yield used(second)
      yield await last()
    },
  }
  const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'noon' })
  const approvals = { secret, ledger: memoryLedger() }
  return createAgent({
    model,
    tools: [look],
    approvals,
    threads: memoryThreads(),
    onError: () => {},
    ...more,
  })
}

const finish = (): ModelEvent => ({ type: 'finish', reason: 'stop' })
const fail = () => Promise.reject(new Error('overloaded'))

let runs = 0
const input = (content: string): RunAgentInput => ({
  threadId: 't',
  runId: `run-${++runs}`,
  protocolVersion: '1.0',
  messages: [{ id: `u${runs}`, role: 'user', content }],
  tools: [],
  context: [],
})

async function lastOf(events: AsyncIterable<AGUIEvent>): Promise<AGUIEvent | undefined> {
  let last: AGUIEvent | undefined
  for await (const event of events) last = event
  return last
}

test('T37 each step of a run reports its usage, with the model it came from; the thread keeps it for each run and sums it', async () => {
  const agent = setUp(finish)
  expect(await lastOf(agent.run(input('What time is it?'), { context }))).toMatchObject({
    type: 'RUN_FINISHED',
    usage: [first, second],
  })
  await lastOf(agent.run(input('And now?'), { context }))
  const stored = await agent.threads?.load({ owner: 'ann', threadId: 't' })
  expect(stored?.usage.map(({ usage }) => usage)).toEqual([
    [first, second],
    [first, second],
  ])
  const total = [{ ...labels, inputTokens: 44, outputTokens: 6, reasoningTokens: 2 }]
  expect(await loadThread(agent, { subject: 'ann', threadId: 't' })).toMatchObject({ usage: total })
  const response = await threadResponse(agent, new Request('http://localhost/chat?threadId=t'), { context })
  expect(await response.json()).toMatchObject({ usage: total })
})

test('T37 the usage of models that differ is summed apart', async () => {
  const threads = memoryThreads()
  const small = setUp(finish, { threads })
  await lastOf(small.run(input('What time is it?'), { context }))
  const model: Model = {
    id: 'large',
    async *stream() {
      yield { type: 'usage', usage: { inputTokens: 1, model: 'large-2' } }
      yield finish()
    },
  }
  await lastOf(setUp(finish, { threads, model }).run(input('And now?'), { context }))
  const { usage } = (await loadThread(small, { subject: 'ann', threadId: 't' })) ?? {}
  expect(usage).toEqual([
    { ...labels, inputTokens: 22, outputTokens: 3, reasoningTokens: 1 },
    { provider: 'large', model: 'large-2', inputTokens: 1 },
  ])
})

test('T37 a run that failed, or was stopped, reports what it had used, and the thread keeps it', async () => {
  const failing = setUp(fail)
  expect(await lastOf(failing.run(input('go'), { context }))).toMatchObject({
    type: 'RUN_ERROR',
    usage: [first, second],
  })
  const stop = new AbortController()
  const stopped = setUp(() => {
    stop.abort()
    return finish()
  })
  const run = stopped.run(input('go'), { context, signal: stop.signal })
  expect(await lastOf(run)).toMatchObject({ outcome: { type: 'cancelled' }, usage: [first, second] })
  for (const agent of [failing, stopped]) {
    const thread = await loadThread(agent, { subject: 'ann', threadId: 't' })
    expect(thread?.usage).toEqual([{ ...labels, inputTokens: 22, outputTokens: 3, reasoningTokens: 1 }])
  }
})

test('T37 what a run has used is stored while it is open, so that a crash does not lose it', async () => {
  let inTheMiddle: unknown
  const agent = setUp(async () => {
    inTheMiddle = (await agent.threads?.load({ owner: 'ann', threadId: 't' }))?.usage
    return finish()
  })
  await lastOf(agent.run(input('go'), { context }))
  expect(inTheMiddle).toEqual([{ runId: expect.any(String), usage: [first] }])
})

test('T37 the client has the usage of the last run in onFinish and in its snapshot, also when the run failed', async () => {
  const finished: unknown[] = []
  let isFailing = false
  const agent = setUp(() => (isFailing ? fail() : finish()))
  const client = new ChatClient({
    connection: stream((given, { signal }) => agent.run(given, { signal, context })),
    onFinish: ({ usage }) => void finished.push(usage),
  })
  expect(client.getSnapshot().usage).toEqual([])
  await client.sendMessage('What time is it?')
  expect(finished).toEqual([[first, second]])
  expect(client.getSnapshot().usage).toEqual([first, second])
  client.clear()
  expect(client.getSnapshot().usage).toEqual([])
  isFailing = true
  await client.sendMessage('And now?')
  expect(client.getSnapshot()).toMatchObject({ status: 'error', usage: [first, second] })
  client.dispose()
})
