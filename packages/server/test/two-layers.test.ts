import type { AGUIEvent, Message } from '@countersign/core'
import { type Agent, prepareMessagesForModel } from '@countersign/server'
import { expect, test } from 'vitest'
import { call, collect, counted, fold, input, requests, SECRET, say, testAgent, user } from './support.js'

const context = { subject: 'ann' }

/** A conversation of many turns whose every call is gated, asked about also as a call, and answered by its result; or not gated. */
async function converse(turns: number, needsApproval: boolean) {
  const send = counted('send', { needsApproval })
  let calls = 0
  let ids = 0
  const turn = ({ messages }: { messages: readonly { role: string }[] }) =>
    messages.at(-1)?.role === 'user' ? call([`c${++calls}`, 'send', { n: calls }]) : say(`done ${calls}`)
  const { agent, model } = testAgent(turn, {
    tools: [send.tool],
    generateId: () => `m${++ids}`,
    approvals: { secret: SECRET, askAsTool: true },
  })
  let stored: Message[] = []
  const run = async (added: Message) => {
    stored.push(added)
    const events = await collect(agent, input(stored), { context })
    stored = fold(stored, events)
    return events
  }
  for (let n = 1; n <= turns; n++) {
    const events = await run(user(`turn ${n}`, `u${n}`))
    const [asked] = requests(events)
    if (asked !== undefined) await run(decision(asked.approval.id))
  }
  return { agent, model, stored, send }
}

const decision = (toolCallId: string): Message => ({
  id: `decision-${toolCallId}`,
  role: 'tool',
  toolCallId,
  content: JSON.stringify({ decision: 'approve', scope: 'once', toolName: 'send' }),
})

test('S3.69 what is stored holds everything: the call, the question, the decision and the result', async () => {
  const { stored } = await converse(1, true)
  const [message] = stored.filter(({ role }) => role === 'assistant')
  if (message?.role !== 'assistant') throw new Error('no call')
  const [original, question] = message.toolCalls ?? []
  expect(original).toMatchObject({ id: 'c1', function: { name: 'send' } })
  expect(question).toMatchObject({ function: { name: 'client.requestApproval' } })
  const results = stored.flatMap((one) => (one.role === 'tool' ? [one.toolCallId] : []))
  expect(results).toEqual([question?.id, 'c1'])
})

test('S3.70 S3.77 no model call sees a client. call, its result, or anything else of an approval, streaming or not', async () => {
  const { model, stored, agent } = await converse(3, true)
  await agent.generate(input([...stored, user('and?', 'last')]), { context })
  expect(model.requests.length).toBeGreaterThan(6)
  for (const { messages } of model.requests) {
    const text = JSON.stringify(messages)
    for (const artefact of ['client.', 'approval', 'cs1.', 'decision']) expect(text).not.toContain(artefact)
  }
})

test('S3.78 with 50 approvals the model gets exactly what it gets without any', async () => {
  const asked = await converse(50, true)
  const unasked = await converse(50, false)
  expect(asked.send.runs).toHaveLength(50)
  expect(asked.model.requests.at(-1)?.messages).toEqual(unasked.model.requests.at(-1)?.messages)
})

test('S3.75 what is stored is not changed by preparing it', async () => {
  const { stored } = await converse(2, true)
  const before = JSON.stringify(stored)
  deepFreeze(stored)
  prepareMessagesForModel(stored)
  expect(JSON.stringify(stored)).toBe(before)
})

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  Object.freeze(value)
  Object.values(value).forEach(deepFreeze)
}

test('S3.74 a tool whose call id begins with approval_ is no approval', async () => {
  const look = counted('look')
  const { agent, model } = testAgent([call(['approval_1', 'look', {}]), say('ok')], {
    tools: [look.tool],
    approvals: { secret: SECRET, askAsTool: true },
  })
  await collect(agent, input([user('go')]))
  expect(look.runs).toHaveLength(1)
  expect(JSON.stringify(model.requests[1]?.messages)).toContain('approval_1')
})

/** The stored conversation with whatever the client added, as another run of the agent gets it. */
async function next(agent: Agent, messages: readonly Message[]): Promise<readonly AGUIEvent[]> {
  return collect(agent, input(messages), { context })
}

test('S3.71 S3.72 S3.73 a client. call and its result leave no orphan, whatever their ids; a message that held nothing else is dropped', async () => {
  const { agent, model } = testAgent([say('ok')], { tools: [counted('look').tool] })
  const named = (id: string) => ({
    id,
    type: 'function' as const,
    function: { name: 'client.x', arguments: '{}' },
  })
  const look = { id: 'c1', type: 'function' as const, function: { name: 'look', arguments: '{}' } }
  const messages: Message[] = [
    user('go'),
    { id: 'only', role: 'assistant', toolCalls: [named('no-prefix')] },
    { id: 't1', role: 'tool', toolCallId: 'no-prefix', content: '{}' },
    { id: 'text', role: 'assistant', content: 'Hm.', toolCalls: [named('another')] },
    { id: 't2', role: 'tool', toolCallId: 'another', content: '{}' },
    { id: 'mixed', role: 'assistant', toolCalls: [named('third'), look] },
    { id: 't3', role: 'tool', toolCallId: 'third', content: '{}' },
    { id: 't4', role: 'tool', toolCallId: 'c1', content: '1' },
    user('and?'),
  ]
  await next(agent, messages)
  expect(
    model.requests[0]?.messages.map(({ role, content }) => [
      role,
      JSON.stringify(content).includes('client.'),
    ]),
  ).toEqual([
    ['user', false],
    ['assistant', false],
    ['assistant', false],
    ['tool', false],
    ['user', false],
  ])
})

test('S3.76 the order is kept; a result without a call is left out; an open call is closed where it stands', async () => {
  const { agent, model } = testAgent([say('ok')], { tools: [counted('look').tool] })
  const look = (id: string) => ({
    id,
    type: 'function' as const,
    function: { name: 'look', arguments: '{}' },
  })
  const messages: Message[] = [
    user('one'),
    { id: 'orphan', role: 'tool', toolCallId: 'nobody', content: '1' },
    { id: 'a1', role: 'assistant', toolCalls: [look('c1')] },
    user('two'),
    { id: 'a2', role: 'assistant', toolCalls: [look('c2')] },
    { id: 't2', role: 'tool', toolCallId: 'c2', content: '2' },
    user('three'),
  ]
  await next(agent, messages)
  const seen = model.requests[0]?.messages ?? []
  expect(seen.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'user',
    'assistant',
    'tool',
    'user',
  ])
  expect(seen[2]).toMatchObject({ content: [{ toolCallId: 'c1', outcome: { code: 'interrupted' } }] })
})
