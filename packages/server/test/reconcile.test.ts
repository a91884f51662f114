import type { Message, ToolCall } from '@countersign/core'
import {
  assertReconciled,
  cancelAllPending,
  findUnansweredCalls,
  isReconciled,
  prepareMessagesForModel,
  withResults,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { weather } from './answered.js'
import { call, collect, counted, fold, input, last, results, say, testAgent, user } from './support.js'

const toolCall = (id: string, name = 'look', metadata?: Record<string, unknown>): ToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: '{}' },
  ...(metadata && { metadata: { countersign: metadata } }),
})
const assistant = (id: string, ...toolCalls: ToolCall[]): Message => ({ id, role: 'assistant', toolCalls })
const result = (toolCallId: string, id = `r_${toolCallId}`): Message => ({
  id,
  role: 'tool',
  toolCallId,
  content: '1',
})

/** What a server does with a stored conversation that something cut off: close, go on, ask the model. */
async function goOn(stored: readonly Message[], reason: string, text: string) {
  const closed = withResults(stored, cancelAllPending(stored, reason))
  const { agent, model } = testAgent([say('ok')], { tools: [counted('look').tool] })
  const events = await collect(agent, input([...closed, user(text)]))
  expect(last(events)).toMatchObject({ metadata: { finishReason: 'stop' } })
  return { closed, seen: model.requests[0]?.messages ?? [], told: results(events) }
}

test('S2.61 a stream that was aborted in its calls goes on', async () => {
  const stored = [user('go'), assistant('a', toolCall('c1'), toolCall('c2')), result('c1')]
  const { closed, seen } = await goOn(stored, 'aborted', 'next')
  expect(closed.map(({ id }) => id).slice(1)).toEqual(['a', 'r_c1', 'cancelled_a_c2'])
  expect(seen.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
})

test('S2.61 a server that crashed between a call and its result goes on', async () => {
  const { seen } = await goOn([user('go'), assistant('a', toolCall('c1'))], 'the server stopped', 'next')
  expect(seen[2]?.content).toEqual([
    {
      type: 'tool-result',
      toolCallId: 'c1',
      toolName: 'look',
      outcome: { kind: 'cancelled', reason: 'the server stopped' },
    },
  ])
})

test('S2.61 an old checkpoint with several open turns goes on, each closure beside its call', async () => {
  const stored = [
    user('one', 'u1'),
    assistant('a', toolCall('c')),
    user('two', 'u2'),
    assistant('b', toolCall('c')),
  ]
  const { closed, seen } = await goOn(stored, 'stale', 'next')
  expect(closed.map(({ id }) => id)).toEqual(['u1', 'a', 'cancelled_a_c', 'u2', 'b', 'cancelled_b_c'])
  expect(isReconciled(closed)).toBe(true)
  expect(seen.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'user',
    'assistant',
    'tool',
    'user',
  ])
})

test('S2.62 a route that keeps the history: load, close, append what the person says, run', async () => {
  const tool = weather()
  const { agent, model } = testAgent([call(['call_1', 'GetWeather', {}]), say('As you like.')], {
    tools: [tool.tool],
  })
  const store = new Map<string, readonly Message[]>()
  const route = async (threadId: string, text: string) => {
    const stored = store.get(threadId) ?? []
    const closed = withResults(stored, cancelAllPending(stored, 'user moved on'))
    const given = input([...closed, user(text)], { threadId })
    const events = await collect(agent, given)
    store.set(threadId, fold(given.messages, events))
    return events
  }
  await route('t', 'What is the weather?')
  expect(isReconciled(store.get('t') ?? [])).toBe(false)
  // the question was still open in the ledger: the run settles it there, and tells the client what the store knows already
  const events = await route('t', 'Never mind.')
  expect(results(events)).toMatchObject([{ id: 'call_1', content: { reason: 'user moved on' } }])
  expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
  expect(model.requests[1]?.messages[2]?.content).toMatchObject([
    { outcome: { kind: 'cancelled', reason: 'user moved on' } },
  ])
  expect(tool.runs).toEqual([])
})

test('S2.65 a call that a client tool still works on is not closed by the run', async () => {
  const view = { name: 'view', description: 'Shows', parameters: { type: 'object' } }
  const history = [
    user('go'),
    assistant('a', toolCall('c1', 'view', { state: 'executing' }), toolCall('c2')),
    result('c2'),
  ]
  const { agent, model } = testAgent([say('no')], { tools: [counted('look').tool] })
  const events = await collect(agent, input(history, { tools: [view] }))
  expect(results(events)).toEqual([])
  expect(last(events)).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } })
  expect(model.requests.length).toBe(0)
})

test('S2.66 an open call of the provider gets no result of ours', async () => {
  const history = [user('go'), assistant('a', toolCall('c1', 'search', { providerExecuted: true }))]
  expect(findUnansweredCalls(history)).toEqual([])
  expect(cancelAllPending(history)).toEqual([])
  const { agent, model } = testAgent([say('ok')])
  expect(results(await collect(agent, input([...history, user('next')])))).toEqual([])
  expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
})

test('U.7 a history that nobody reconciled is not sent: the error names the call and the way out', () => {
  const fail = (history: readonly Message[]) => () => assertReconciled(history)
  const open = [user('go'), assistant('a', toolCall('c1'))]
  expect(fail(prepareMessagesForModel(open))).toThrow(/c1 has no result.*cancelAllPending/)
  expect(fail([...open, user('next'), result('c1')])).toThrow('c1')
  expect(fail([...open, result('c1'), result('c1', 'again')])).toThrow('does not follow its call')
  expect(fail([result('c1')])).toThrow('does not follow its call')
  expect(fail([assistant('a', toolCall('c', 'client.requestApproval')), result('c')])).toThrow('client.')
  expect(fail([assistant('a', toolCall('c', 'x', { token: 'cs1.x' })), result('c')])).toThrow('approval')
  expect(fail([{ id: 'a', role: 'assistant', content: '' }])).toThrow('empty')
  expect(fail([assistant('a', toolCall('c'), toolCall('c')), result('c')])).toThrow('one id')
  expect(fail([...open, result('c1'), user('next')])).not.toThrow()
})

test('U.7 a scripted model refuses what no provider would take', async () => {
  const { model } = testAgent([say('ok'), say('ok')])
  const ask = async () => {
    const content = [{ type: 'tool-call', id: 'c1', name: 'look', arguments: '{}' }] as const
    const request = { messages: [{ role: 'assistant', content }], tools: [] } as const
    for await (const _ of model.stream(request, { signal: new AbortController().signal })) break
  }
  await expect(ask()).rejects.toMatchObject({ code: 'unreconciled-history' })
})
