import type { Message } from '@countersign/core'
import type { ModelEvent, ModelMessage } from '@countersign/server'
import { expect, test } from 'vitest'
import { collect, counted, input, say, testAgent, user } from './support.js'

/** What a model said in one step goes back to it in the order in which it said it, every piece with its provider's metadata. */

const interleaved: ModelEvent[] = [
  { type: 'reasoning-delta', delta: 'one' },
  { type: 'reasoning-end', signature: 's1', metadata: { n: 1 } },
  { type: 'text-delta', delta: 'First, ' },
  { type: 'text-end', metadata: { n: 2 } },
  { type: 'text-delta', delta: 'look.' },
  { type: 'text-end', metadata: { n: 3 } },
  { type: 'tool-call', id: 'a', name: 'look', arguments: '{}', metadata: { n: 4 } },
  { type: 'reasoning-end', signature: 's2', metadata: { n: 5 } },
  { type: 'text-delta', delta: 'Then again.' },
  { type: 'tool-call', id: 'b', name: 'look', arguments: '{}' },
  { type: 'finish', reason: 'tool_calls' },
]

const parts = [
  { type: 'reasoning', text: 'one', signature: 's1', metadata: { n: 1 } },
  { type: 'text', text: 'First, ', metadata: { n: 2 } },
  { type: 'text', text: 'look.', metadata: { n: 3 } },
  { type: 'tool-call', id: 'a', name: 'look', arguments: '{}', metadata: { n: 4 } },
  { type: 'reasoning', text: '', signature: 's2', metadata: { n: 5 } },
  { type: 'text', text: 'Then again.' },
  { type: 'tool-call', id: 'b', name: 'look', arguments: '{}' },
]

function saidIn(messages: readonly ModelMessage[] | undefined): readonly object[] {
  const said = messages?.find(({ role }) => role === 'assistant')
  return said !== undefined && typeof said.content !== 'string' ? said.content : []
}

test('parts keep their order within a run', async () => {
  const { agent, model } = testAgent([interleaved, say('end')], { tools: [counted('look').tool] })
  await collect(agent, input([user('go')]))
  expect(saidIn(model.requests[1]?.messages)).toEqual(parts)
})

/** A history as a client sends it, with this said of the order of its parts. */
function history(own: Record<string, unknown>, calls: readonly string[] = ['a', 'b']): Message[] {
  const thought = (id: string, content: string, encryptedValue: string, n: number): Message => ({
    id,
    role: 'reasoning',
    content,
    encryptedValue,
    metadata: { countersign: { messageId: 'said', provider: { scripted: { n } } } },
  })
  return [
    user('go'),
    thought('r1', 'one', 's1', 1),
    thought('r2', '', 's2', 5),
    {
      id: 'said',
      role: 'assistant',
      content: 'First, look.Then again.',
      toolCalls: calls.map((id) => ({
        id,
        type: 'function',
        function: { name: id === 'asked' ? 'client.requestApproval' : 'look', arguments: '{}' },
        ...(id === 'a' && { metadata: { countersign: { provider: { scripted: { n: 4 } } } } }),
      })),
      metadata: { countersign: own },
    },
    ...calls.map((id): Message => ({ id: `result_${id}`, role: 'tool', toolCallId: id, content: '1' })),
    { ...user('and?'), id: 'user_2' },
  ]
}

const texts = [
  { length: 7, provider: { scripted: { n: 2 } } },
  { length: 5, provider: { scripted: { n: 3 } } },
  { length: 11, provider: { other: { n: 0 } } },
]

async function sent(messages: Message[]): Promise<readonly object[]> {
  const { agent, model } = testAgent([say('end')], { tools: [counted('look').tool] })
  await collect(agent, input(messages))
  return saidIn(model.requests[0]?.messages)
}

test('parts keep their order in what a client sends, whatever else it has between them', async () => {
  const source = { type: 'source', id: 's' }
  const order = ['r', 12, source, 'c', 'o', 'r', 11, 'c', 'o']
  expect(await sent(history({ order, texts }))).toEqual(parts)
  const asked = ['r', 12, 'c', 'c', 'r', 11, 'c', 'o', 'o', 'o']
  expect(await sent(history({ order: asked, texts }, ['a', 'asked', 'b']))).toEqual(parts)
})

test('an order or pieces that do not fit lose nothing: the parts come as everybody assumes them', async () => {
  const usual = [parts[0], parts[4], { type: 'text', text: 'First, look.Then again.' }, parts[3], parts[6]]
  const wrong = [
    {},
    { order: ['r', 12, 'c'] },
    { order: 'r' },
    { order: [Number.NaN, -1, 'r', 'r', 'c', 'c'] },
    { texts: [{ length: 7 }] },
    { texts: [{ length: -1 }, { length: 24 }] },
    { texts: [{ length: 0.5 }, { length: 22.5 }, null] },
  ]
  for (const own of wrong) expect(await sent(history(own))).toEqual(usual)
})

test('a model that pauses is called again with what it said, and goes on', async () => {
  const search: ModelEvent = {
    type: 'tool-call',
    id: 's',
    name: 'search',
    arguments: '{}',
    providerExecuted: true,
  }
  const { agent, model } = testAgent([
    [{ type: 'text-delta', delta: 'Looking.' }, search, { type: 'finish', reason: 'pause' }],
    [{ type: 'tool-result', toolCallId: 's', outcome: { kind: 'ok', value: 3 } }, ...say('Found.')],
  ])
  const events = await collect(agent, input([user('go')]))
  expect(model.requests).toHaveLength(2)
  expect(saidIn(model.requests[1]?.messages)).toMatchObject([{ text: 'Looking.' }, { id: 's' }])
  expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', metadata: { finishReason: 'stop' } })
  expect(events.map(({ type }) => type)).toContain('TOOL_CALL_RESULT')
})
