import type { AGUIEvent, Message, RunAgentInput } from '@countersign/core'
import {
  createAgent,
  memoryLedger,
  memoryThreads,
  scriptedModel,
  type ThreadStore,
} from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { call, counted, SECRET, say, user } from '../support.js'

// No call runs whose result would not fit into its thread.

function setUp(
  maxMessages: number,
  ...calls: readonly (readonly [id: string, name: string, input: unknown])[]
) {
  const store = memoryThreads({ maxMessages })
  let refused = 0
  const threads: ThreadStore = {
    ...store,
    id: 'counting',
    async append(key, change) {
      const result = await store.append(key, change)
      if (result.status === 'full') refused++
      return result
    },
  }
  const send = counted('send', { needsApproval: true })
  const look = counted('look', {
    execute: async ({ parts = [], waits }, { write }) => {
      for (const name of [parts].flat()) await write({ type: 'data', name: String(name), data: 1 })
      if (waits) await vi.waitUntil(() => refused > 0)
      return 'seen'
    },
  })
  const agent = createAgent({
    model: scriptedModel([call(...calls), say('Done.'), say('Done.')]),
    tools: [send.tool, look.tool],
    threads,
    approvals: { secret: SECRET, ledger: memoryLedger() },
    warn: () => {},
    onError: () => {},
  })
  let runs = 0
  const run = async (messages: Message[], more: Partial<RunAgentInput> = {}) => {
    const input = { threadId: 't', runId: `run-${++runs}`, messages, protocolVersion: '1.0', ...more }
    const events: AGUIEvent[] = []
    for await (const event of agent.run(input, { context: { subject: 'ann' } })) events.push(event)
    return events
  }
  const roles = async () =>
    (await threads.load({ owner: 'ann', threadId: 't' }))?.messages.map(
      ({ message }): string => JSON.parse(message).role,
    )
  return { run, roles, ran: () => send.runs.length + look.runs.length }
}

const full = { type: 'RUN_ERROR', code: 'thread-full' }

test('a call whose result would not fit into the thread is not asked about, and the run says that the thread is full', async () => {
  const { run, roles, ran } = setUp(2, ['c1', 'send', {}])
  const events = await run([user('Send it.')])
  expect(events.at(-1)).toMatchObject(full)
  expect(JSON.stringify(events)).not.toContain('approval-requested')
  expect(await roles()).toEqual(['user'])
  expect(ran()).toBe(0)
})

test('a call without approval whose result would not fit into the thread does not run', async () => {
  const { run, roles, ran } = setUp(2, ['c1', 'look', {}])
  expect((await run([user('Look.')])).at(-1)).toMatchObject(full)
  expect(await roles()).toEqual(['user'])
  expect(ran()).toBe(0)
})

test('of two calls of which only one result fits, the second is not asked about, and the run says that the thread is full', async () => {
  const { run, ran } = setUp(3, ['c1', 'send', {}], ['c2', 'send', {}])
  const events = await run([user('Send both.')])
  expect(events.at(-1)).toMatchObject(full)
  expect(JSON.stringify(events)).not.toContain('"toolCallId":"c2","toolName"')
  expect(ran()).toBe(0)
})

test('the room for the result of an approved call is kept until the answer: it is stored, although the reply does not fit', async () => {
  const { run, roles, ran } = setUp(3, ['c1', 'send', {}])
  const last = (await run([user('Send it.')])).at(-1)
  const outcome = last?.type === 'RUN_FINISHED' ? last.outcome : undefined
  const interruptId = (outcome?.type === 'interrupt' && outcome.interrupts[0]?.id) || ''
  const resume = [{ interruptId, status: 'resolved' as const, payload: { approved: true } }]
  expect((await run([], { resume })).at(-1)).toMatchObject(full)
  expect(await roles()).toEqual(['user', 'assistant', 'tool'])
  expect(ran()).toBe(1)
  expect((await run([], { resume })).at(-1)).toMatchObject(full)
  expect(ran()).toBe(1)
})

for (const waits of [false, true])
  test(`data parts take no room that was kept for the result of their call${waits ? ', also if they are to be stored before it' : ''}: it is stored without them, and the run says that the thread is full`, async () => {
    const { run, roles, ran } = setUp(3, ['c1', 'look', { parts: ['map', 'list'], waits }])
    expect((await run([user('Look.')])).at(-1)).toMatchObject(full)
    expect(await roles()).toEqual(['user', 'assistant', 'tool'])
    expect(JSON.stringify(await run([]))).not.toContain('interrupted')
    expect(ran()).toBe(1)
  })

test('a thread that is full of data parts takes the results of all calls that run', async () => {
  const { run, roles, ran } = setUp(4, ['c1', 'look', { parts: ['map'] }], ['c2', 'look', { waits: true }])
  expect((await run([user('Look twice.')])).at(-1)).toMatchObject(full)
  expect(await roles()).toEqual(['user', 'assistant', 'tool', 'tool'])
  expect(ran()).toBe(2)
})
