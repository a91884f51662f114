import type { ModelEvent } from '@countersign/server'
import { expect, test } from 'vitest'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  last,
  requests,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

const gated = { needsApproval: true } as const

test('S4.1 the loop calls the model again with the results until it answers in text', async () => {
  const look = counted('look')
  const { agent, model } = testAgent(
    [call(['c1', 'look', {}]), call(['c2', 'look', { n: 2 }]), say('done')],
    {
      tools: [look.tool],
    },
  )
  const events = await collect(agent, input([user('go')]))
  expect(look.runs).toEqual([{}, { n: 2 }])
  expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 5])
  expect(model.requests[1]?.messages.at(-1)).toEqual({
    role: 'tool',
    content: [
      {
        type: 'tool-result',
        toolCallId: 'c1',
        toolName: 'look',
        outcome: { kind: 'ok', value: { done: 'look' } },
      },
    ],
  })
  expect(last(events)).toMatchObject({
    type: 'RUN_FINISHED',
    outcome: { type: 'success' },
    metadata: { finishReason: 'stop' },
  })
})

test('S4.2 S4.5 S4.7 S0.28 S0.29 one gated call: START, ARGS, END, CUSTOM, RUN_FINISHED; the handler does not run', async () => {
  const send = counted('send', gated)
  const { agent, model } = testAgent([call(['c1', 'send', { to: 'a' }])], { tools: [send.tool] })
  const { events } = await ask(agent)
  expect(types(events)).toEqual([
    'RUN_STARTED',
    'TOOL_CALL_START',
    'TOOL_CALL_ARGS',
    'TOOL_CALL_END',
    'CUSTOM approval-requested',
    'RUN_FINISHED',
  ])
  expect(send.runs).toEqual([])
  expect(results(events)).toEqual([])
  expect(model.requests.length).toBe(1)
})

test('S4.4 the request holds exactly the call, its parsed input and the approval', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', '{"to": "a", "n": 1}'])], { tools: [send.tool] })
  const { first } = await ask(agent)
  expect(Object.keys(first).sort()).toEqual(['approval', 'input', 'toolCallId', 'toolName'])
  expect(first).toMatchObject({ toolCallId: 'c1', toolName: 'send', input: { to: 'a', n: 1 } })
  expect(first.approval).toMatchObject({ needsApproval: true, options: ['deny', 'once'] })
  expect(first.approval.id).toMatch(/^approval_[\w-]{22}$/)
})

test('S4.6 a run that asks ends with finish reason tool_calls and one interrupt with the same data', async () => {
  const send = counted('send', { ...gated, allowEdits: ['to'], message: 'Sends a mail.' })
  const { agent } = testAgent([call(['c1', 'send', { to: 'a' }])], {
    tools: [send.tool],
    now: () => 1_700_000_000_500,
  })
  const { events, first } = await ask(agent)
  const finished = last(events)
  expect(finished).toMatchObject({ metadata: { finishReason: 'tool_calls' }, outcome: { type: 'interrupt' } })
  const interrupt =
    finished.type === 'RUN_FINISHED' && finished.outcome?.type === 'interrupt'
      ? finished.outcome.interrupts[0]
      : undefined
  expect(interrupt).toMatchObject({
    id: first.approval.id,
    reason: 'tool_call',
    toolCallId: 'c1',
    message: 'Sends a mail.',
    expiresAt: '2023-11-15T22:13:20.000Z',
    metadata: { countersign: first },
  })
  expect(Object.keys(interrupt?.responseSchema ?? {})).toEqual(['type', 'properties', 'required'])
  expect(interrupt?.responseSchema).toMatchObject({
    properties: { editedArgs: { type: 'object' } },
    required: ['approved'],
  })
})

test('the token is in TOOL_CALL_END, the event and the interrupt; editedArgs only where edits are allowed', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}])], { tools: [send.tool] })
  const { events, first } = await ask(agent)
  const end = events.find((event) => event.type === 'TOOL_CALL_END')
  expect(end?.metadata).toEqual({ countersign: { token: first.approval.token } })
  expect(first.approval.token).toMatch(/^cs1\./)
  expect(JSON.stringify(last(events))).not.toContain('editedArgs')
})

test('a request goes out while the model still streams, not after it', async () => {
  const send = counted('send', gated)
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  async function* turn(): AsyncGenerator<ModelEvent> {
    yield { type: 'tool-call', id: 'c1', name: 'send', arguments: '{}' }
    await held
    yield { type: 'text-delta', delta: 'I asked you.' }
    yield { type: 'finish', reason: 'tool_calls' }
  }
  const { agent } = testAgent([turn], { tools: [send.tool] })
  const seen: string[] = []
  for await (const event of agent.run(input([user('go')]))) {
    seen.push(event.type)
    if (event.type === 'CUSTOM') release()
  }
  expect(seen.indexOf('CUSTOM')).toBeLessThan(seen.indexOf('TEXT_MESSAGE_START'))
})

test('S4.8 S1.1 S0.45 an approval runs the stored call, then the model, and replays nothing', async () => {
  const send = counted('send', gated)
  const { agent, model } = testAgent([call(['c1', 'send', { to: 'a' }]), say('sent')], { tools: [send.tool] })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(types(events)).toEqual([
    'RUN_STARTED',
    'TOOL_CALL_RESULT',
    'TEXT_MESSAGE_START',
    'TEXT_MESSAGE_CONTENT',
    'TEXT_MESSAGE_END',
    'RUN_FINISHED',
  ])
  expect(results(events)).toEqual([{ id: 'c1', content: { done: 'send' }, own: undefined }])
  expect(send.runs).toEqual([{ to: 'a' }])
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { toolCallId: 'c1', outcome: { kind: 'ok' } },
  ])
})

test('S4.9 S1.2 a denial is a denied result, and the model answers', async () => {
  const send = counted('send', gated)
  const { agent, model } = testAgent([call(['c1', 'send', {}]), say('fine')], { tools: [send.tool] })
  const { history, first } = await ask(agent)
  const events = await collect(
    agent,
    input(history, { resume: [answer(first, { approved: false, reason: 'no' })] }),
  )
  expect(results(events)).toEqual([
    { id: 'c1', content: { type: 'execution-denied', reason: 'no' }, own: { outcome: 'denied' } },
  ])
  expect(send.runs).toEqual([])
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { outcome: { kind: 'denied', reason: 'no' } },
  ])
})

test('S4.11 S0.13 empty arguments are {}; invalid ones are an error result and no request', async () => {
  const send = counted('send', gated)
  const turns = [
    call(['c1', 'send', ''], ['c2', 'send', '{"a":'], ['c3', 'send', '{"a":1,"a":2}'], ['c4', 'send', '[]']),
  ]
  const { agent } = testAgent(turns, { tools: [send.tool] })
  const { events, asked } = await ask(agent)
  expect(asked.map(({ toolCallId, input: args }) => [toolCallId, args])).toEqual([['c1', {}]])
  expect(results(events).map(({ id, own }) => [id, own])).toEqual([
    ['c2', { outcome: 'error' }],
    ['c3', { outcome: 'error' }],
    ['c4', { outcome: 'error' }],
  ])
  expect(results(events)[0]?.content).toMatchObject({
    type: 'execution-error',
    reason: expect.stringContaining('send'),
  })
})

test('S4.12 pre-resolution does not consume a model iteration; the limit ends the run', async () => {
  const send = counted('send', gated)
  const look = counted('look')
  const { agent } = testAgent([call(['c1', 'send', {}]), call(['c2', 'look', {}])], {
    tools: [send.tool, look.tool],
    maxSteps: 1,
  })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(results(events).map(({ id }) => id)).toEqual(['c1', 'c2'])
  expect(last(events)).toMatchObject({ metadata: { finishReason: 'max_steps' } })
})

test('S0.30 S0.33 two gated calls get two requests with ids of the injected generator', async () => {
  let n = 0
  const send = counted('send', gated)
  const generateId = () => `approval_${++n}`
  const { agent } = testAgent([call(['c1', 'send', {}], ['c2', 'send', {}])], {
    tools: [send.tool],
    approvals: { generateId },
  })
  const { asked } = await ask(agent)
  expect(asked.map(({ approval }) => approval.id)).toEqual(['approval_1', 'approval_2'])
})

test('S0.32 S0.37 a safe sibling runs at once; the finish comes after all results and requests', async () => {
  const look = counted('look')
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}], ['c2', 'look', {}])], {
    tools: [look.tool, send.tool],
  })
  const { events } = await ask(agent)
  expect(look.runs.length).toBe(1)
  expect(results(events)).toMatchObject([{ id: 'c2', content: { done: 'look' } }])
  expect(types(events).at(-1)).toBe('RUN_FINISHED')
})

test('S0.31 S0.34 S0.35 generate gives the same: requests for gated calls, results for the others', async () => {
  const send = counted('send', { needsApproval: (args) => args.to === 'all' })
  const turns = [call(['c1', 'send', { to: 'all' }], ['c2', 'send', { to: 'me' }])]
  const streamed = await ask(testAgent(turns, { tools: [send.tool] }).agent)
  expect(streamed.asked.map(({ toolCallId }) => toolCallId)).toEqual(['c1'])
  const generated = await testAgent(turns, { tools: [send.tool] }).agent.generate(input([user('go')]))
  expect(generated.outcome).toBe('interrupt')
  expect(generated.interrupts.map(({ toolCallId }) => toolCallId)).toEqual(['c1'])
  const parts = generated.messages.at(-1)?.parts.filter((part) => part.type === 'tool-call')
  expect(parts?.map((part) => part.type === 'tool-call' && part.state)).toEqual([
    'approval-requested',
    'complete',
  ])
  expect(send.runs).toEqual([{ to: 'me' }, { to: 'me' }])
})

test('S0.36 a call the provider runs is neither asked about nor run here', async () => {
  let asked = 0
  const send = counted('send', { needsApproval: () => ++asked > 0 })
  const turn: ModelEvent[] = [
    { type: 'tool-call', id: 'c1', name: 'send', arguments: '{}', providerExecuted: true },
    { type: 'tool-result', toolCallId: 'c1', outcome: { kind: 'ok', value: 1 } },
    ...say('done'),
  ]
  const { agent, model } = testAgent([turn, say('bye')], { tools: [send.tool] })
  const question = [user('go')]
  const events = await collect(agent, input(question))
  expect([asked, send.runs.length, requests(events).length, model.requests.length]).toEqual([0, 0, 0, 1])
  const next = await collect(agent, input([...fold(question, events), user('and?')]))
  expect(last(next)).toMatchObject({ metadata: { finishReason: 'stop' } })
  expect(model.requests[1]?.messages[1]?.content).toMatchObject([
    { type: 'text' },
    { type: 'tool-call', providerExecuted: true },
  ])
})

test('S0.38 after a request no further model call is made in that run', async () => {
  const send = counted('send', gated)
  const look = counted('look')
  const { agent, model } = testAgent([call(['c1', 'look', {}], ['c2', 'send', {}]), say('no')], {
    tools: [look.tool, send.tool],
  })
  await ask(agent)
  expect(model.requests.length).toBe(1)
})

test('S0.39 with runTools: false calls come back untouched', async () => {
  const send = counted('send', gated)
  const { agent } = testAgent([call(['c1', 'send', {}])], { tools: [send.tool], runTools: false })
  const events = await collect(agent, input([user('go')]))
  expect([requests(events).length, results(events).length, send.runs.length]).toEqual([0, 0, 0])
  expect(last(events)).toMatchObject({ outcome: { pendingToolCallIds: ['c1'] } })
})
