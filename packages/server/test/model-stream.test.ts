import { clientTool } from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import type { ModelEvent } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import {
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  last,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

const gated = { needsApproval: true } as const

test('S2.39 an unknown tool and a client. tool of the model are refused; the others run', async () => {
  const look = counted('look')
  const { agent } = testAgent(
    [call(['c1', 'gone', {}], ['c2', 'client.requestApproval', {}], ['c3', 'look', {}]), say('ok')],
    {
      tools: [look.tool],
    },
  )
  const events = await collect(agent, input([user('go')]))
  const byId = new Map(results(events).map((result) => [result.id, result]))
  expect(byId.get('c1')?.content).toMatchObject({ type: 'execution-unknown_tool' })
  expect(byId.get('c1')?.own).toEqual({ outcome: 'error' })
  expect(byId.get('c2')?.own).toEqual({ outcome: 'denied' })
  expect(look.runs.length).toBe(1)
})

test('one step is one message: text, reasoning and calls share its id, and text resumes under it', async () => {
  const look = counted('look')
  const turn: ModelEvent[] = [
    { type: 'reasoning-delta', delta: 'hm' },
    { type: 'reasoning-end', signature: 'sig' },
    { type: 'text-delta', delta: 'one' },
    { type: 'tool-call-start', id: 'c1', name: 'look' },
    { type: 'tool-call-delta', id: 'c1', delta: '{"a"' },
    { type: 'tool-call-delta', id: 'c1', delta: ':1}' },
    { type: 'tool-call-end', id: 'c1' },
    { type: 'text-delta', delta: 'two' },
    { type: 'usage', usage: { inputTokens: 1, outputTokens: 2 } },
    { type: 'finish', reason: 'tool_calls' },
  ]
  const { agent, model } = testAgent([turn, say('end')], { tools: [look.tool] })
  const events = await collect(agent, input([user('go')]))
  const step = events.slice(
    1,
    events.findIndex((event) => event.type === 'TOOL_CALL_RESULT'),
  )
  const text = step.filter((event) => event.type === 'TEXT_MESSAGE_START')
  const start = step.find((event) => event.type === 'TOOL_CALL_START')
  const thought = step.find((event) => event.type === 'REASONING_MESSAGE_START')
  const id = text[0]?.messageId
  expect(text.map(({ messageId }) => messageId).every((one) => one === id)).toBe(true)
  expect(start?.parentMessageId).toBe(id)
  expect(thought?.metadata).toEqual({ countersign: { messageId: id } })
  expect(types(events)).toContain('REASONING_ENCRYPTED_VALUE')
  expect(model.requests[1]?.messages[1]).toEqual({
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'hm', signature: 'sig' },
      { type: 'text', text: 'one' },
      { type: 'tool-call', id: 'c1', name: 'look', arguments: '{"a":1}' },
      { type: 'text', text: 'two' },
    ],
  })
  expect(last(events)).toMatchObject({ usage: [{ inputTokens: 1, outputTokens: 2 }] })
})

test('ids that a provider repeats are made unique over the history', async () => {
  const look = counted('look')
  const { agent } = testAgent([call(['0', 'look', {}]), call(['0', 'look', {}]), say('end')], {
    tools: [look.tool],
  })
  const events = await collect(agent, input([user('go')]))
  const ids = events.flatMap((event) => (event.type === 'TOOL_CALL_START' ? [event.toolCallId] : []))
  expect(new Set(ids).size).toBe(2)
  expect(results(events).map(({ id }) => id)).toEqual(ids)
})

test('a model that breaks off or throws is an error with a code; what it said is kept and internals are not told', async () => {
  const told: unknown[] = []
  const onError = (error: unknown) => told.push(error)
  const broken = testAgent([[{ type: 'text-delta', delta: 'half' }]], { onError })
  const events = await collect(broken.agent, input([user('go')]))
  expect(types(events)).toEqual([
    'RUN_STARTED',
    'TEXT_MESSAGE_START',
    'TEXT_MESSAGE_CONTENT',
    'TEXT_MESSAGE_END',
    'RUN_ERROR',
  ])
  expect(last(events)).toMatchObject({ code: 'model-failed' })
  const thrown = testAgent(
    [
      () => {
        throw new Error('key sk-123 was refused')
      },
    ],
    { onError },
  )
  const failure = last(await collect(thrown.agent, input([user('go')])))
  expect(failure).toMatchObject({ type: 'RUN_ERROR', code: 'model-failed' })
  expect(JSON.stringify(failure)).not.toContain('sk-123')
  expect(told.length).toBe(2)
  await expect(thrown.agent.generate(input([user('go')]))).rejects.toMatchObject({ code: 'run-error' })
})

test('a peer without protocolVersion gets nothing that 0.x rejects', async () => {
  const pick = clientTool({ name: 'pick', description: 'Picks', input: z.object({}), execute: () => 1 })
  const send = counted('send', gated)
  const tools = [pick, send.tool]
  const old = (messages = [user('go')]) => {
    const { protocolVersion: _, ...rest } = input(messages)
    return rest
  }
  const pending = last(await collect(testAgent([call(['c1', 'pick', {}])], { tools }).agent, old()))
  // deployed clients take a success without pending ids for one that leaves them nothing
  expect(pending).toMatchObject({ type: 'RUN_FINISHED' })
  expect(pending).not.toHaveProperty('outcome')
  const asked = last(await collect(testAgent([call(['c1', 'send', {}])], { tools }).agent, old()))
  const interrupts =
    asked.type === 'RUN_FINISHED' && asked.outcome?.type === 'interrupt' ? asked.outcome.interrupts : []
  expect(interrupts.length).toBe(1)
  expect(interrupts[0]).not.toHaveProperty('expiresAt')
  const stopped = await collect(testAgent([say('x')], { tools }).agent, old(), {
    signal: AbortSignal.abort(),
  })
  expect(last(stopped)).toMatchObject({ type: 'RUN_ERROR', code: 'aborted' })
})

test('an aborted run closes what is open and ends as cancelled', async () => {
  const stop = new AbortController()
  async function* turn(): AsyncGenerator<ModelEvent> {
    yield { type: 'text-delta', delta: 'a' }
    yield { type: 'tool-call-start', id: 'c1', name: 'look' }
    stop.abort()
    yield { type: 'text-delta', delta: 'b' }
  }
  const look = counted('look')
  const { agent } = testAgent([turn], { tools: [look.tool] })
  const events = await collect(agent, input([user('go')]), { signal: stop.signal })
  expect(last(events)).toMatchObject({ outcome: { type: 'cancelled' } })
  expect(results(events)).toMatchObject([{ id: 'c1', own: { outcome: 'cancelled' } }])
  expect(look.runs).toEqual([])
})

test('the strict reader takes every run of these tests, and folding one gives a history that can be sent back', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}]), say('sent')], { tools: [send.tool] })
  const { events, history } = await ask(agent)
  const reader = createEventReader()
  for (const event of events) reader.push(event, () => {})
  reader.end()
  expect(fold([], events).length).toBe(1)
  expect(history.at(-1)).toMatchObject({ role: 'assistant', toolCalls: [{ id: 'c1' }] })
})
