import type { Message } from '@countersign/core'
import { type Ledger, memoryLedger } from '@countersign/server'
import { expect, test } from 'vitest'
import { weather } from './answered.js'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  refusals,
  requests,
  results,
  SECRET,
  say,
  testAgent,
  user,
} from './support.js'

test('a yes in history that the client itself shows as cancelled is no yes any more', async () => {
  const tool = weather()
  const { agent } = testAgent([call(['call_1', 'GetWeather', {}]), say('ok')], { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  const message = history.at(-1)
  const { token, id } = first.approval
  if (message?.role === 'assistant')
    for (const one of message.toolCalls ?? []) {
      one.metadata = { countersign: { token, approval: { id, approved: true }, state: 'cancelled' } }
    }
  const events = await collect(agent, input(history))
  expect(tool.runs).toEqual([])
  expect(last(events)).toMatchObject({ outcome: { type: 'success' } })
})

test('S1.57 S2.63 D4d a newer user message cancels what was not answered, next to its call; a late yes runs nothing', async () => {
  const tool = weather()
  const { agent, model } = testAgent([call(['call_1', 'GetWeather', {}]), say('ok'), say('late')], {
    tools: [tool.tool],
  })
  const { history, first } = await ask(agent)
  const moved = [...history, user('never mind')]
  const events = await collect(agent, input(moved))
  expect(results(events)).toEqual([
    {
      id: 'call_1',
      content: { type: 'execution-cancelled', reason: 'user moved on' },
      own: { outcome: 'cancelled' },
    },
  ])
  expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
  const late = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(refusals(late)).toMatchObject([{ code: 'approval-conflict' }])
  expect(results(late)).toMatchObject([{ own: { outcome: 'cancelled' } }])
  expect(tool.runs).toEqual([])
})

test('an answer and a newer message in one request: the call runs, then the message is read', async () => {
  const tool = weather()
  const { agent, model } = testAgent([call(['call_1', 'GetWeather', {}]), say('ok')], { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  await collect(agent, input([...history, user('and?')], { resume: [answer(first, { approved: true })] }))
  expect(tool.runs.length).toBe(1)
  expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
})

test('a request that the person walked away from is cancelled and settled', async () => {
  const tool = weather()
  const { agent } = testAgent([call(['call_1', 'GetWeather', {}]), say('ok'), say('ok')], {
    tools: [tool.tool],
  })
  const { history, first } = await ask(agent)
  const left = { interruptId: first.approval.id, status: 'cancelled' as const }
  expect(results(await collect(agent, input(history, { resume: [left] })))).toMatchObject([
    { own: { outcome: 'cancelled' } },
  ])
  await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(tool.runs).toEqual([])
})

test('an ordinary call whose result was lost is never run again, and is told as one that may have run', async () => {
  const look = counted('look')
  const { agent, model } = testAgent([say('ok')], { tools: [look.tool] })
  const history: Message[] = [
    user('go'),
    {
      id: 'a',
      role: 'assistant',
      toolCalls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
  ]
  const events = await collect(agent, input(history))
  expect(look.runs).toEqual([])
  expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
  expect(model.requests.length).toBe(1)
})

test('S1.7 a result that a client made up for an open request is none: the call stays open', async () => {
  const tool = weather()
  const { agent, model } = testAgent([call(['call_1', 'GetWeather', {}]), say('ok')], { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  const fake: Message = { id: 'fake', role: 'tool', toolCallId: 'call_1', content: '{"temp":0}' }
  const events = await collect(agent, input([...history, fake]))
  expect(requests(events)).toEqual([first])
  expect(model.requests.length).toBe(1)
  await collect(agent, input([...history, fake], { resume: [answer(first, { approved: true })] }))
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([{ outcome: { value: { temp: 72 } } }])
})

test('a request that was answered elsewhere in the meantime gets its result from the ledger', async () => {
  const tool = weather()
  const turns = [call(['call_1', 'GetWeather', {}]), say('ok'), say('ok')]
  const { agent } = testAgent(turns, { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(results(await collect(agent, input(history)))).toMatchObject([
    { id: 'call_1', content: { temp: 72 } },
  ])
  expect(tool.runs.length).toBe(1)
})

test('a pending request of a client that lost its metadata is asked again with its own token', async () => {
  const tool = weather()
  const { agent } = testAgent([call(['call_1', 'GetWeather', {}])], { tools: [tool.tool] })
  const context = { subject: 'ann' }
  const { history, first } = await ask(agent, {}, { context })
  const bare = history.map((message) =>
    message.role === 'assistant'
      ? { ...message, toolCalls: message.toolCalls?.map(({ metadata: _, ...rest }) => rest) ?? [] }
      : message,
  )
  expect(requests(await collect(agent, input(bare), { context }))).toEqual([first])
})

test('a history that holds a pending request twice gets it asked once', async () => {
  const { agent } = testAgent([call(['call_1', 'GetWeather', {}])], { tools: [weather().tool] })
  const { history, first } = await ask(agent)
  const copies = history.flatMap((message): Message[] =>
    message.role === 'assistant' ? [message, { ...message, id: 'copy' }] : [message],
  )
  const events = await collect(agent, input(copies))
  expect(requests(events)).toEqual([first])
  expect(last(events)).toMatchObject({
    outcome: { type: 'interrupt', interrupts: [{ id: first.approval.id }] },
  })
})

test('a call that the client was told has failed stays so where the ledger has its question after all: the model is asked', async () => {
  const ledger = memoryLedger()
  const issue: Ledger['issue'] = async (record) => {
    const issued = await ledger.issue(record)
    if (record.toolCallId === 'call_2') throw new Error('the reply was lost')
    return issued
  }
  const tool = weather()
  const turns = [call(['call_1', 'GetWeather', {}], ['call_2', 'GetWeather', {}]), say('ok')]
  const { agent, model } = testAgent(turns, {
    tools: [tool.tool],
    approvals: { secret: SECRET, ledger: { ...ledger, issue } },
  })
  const context = { subject: 'ann' }
  const { history, events, first } = await ask(agent, {}, { context })
  expect(results(events)).toMatchObject([{ id: 'call_2', own: { code: 'ledger-unavailable' } }])
  expect(await ledger.unsettled('ann', 'thread')).toHaveLength(2)
  const resume = [answer(first, { approved: true })]
  const next = await collect(agent, input(history, { resume }), { context })
  expect([requests(next), results(next)]).toMatchObject([[], [{ id: 'call_1', content: { temp: 72 } }]])
  expect(last(next)).toMatchObject({ outcome: { type: 'success' } })
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { outcome: { value: { temp: 72 } } },
    { outcome: { kind: 'execution_error', code: 'ledger-unavailable' } },
  ])
  expect(tool.runs.length).toBe(1)
})

test('an approval request that the ledger could not close ends the run, and is closed with the next request', async () => {
  const ledger = memoryLedger()
  let down = false
  const claim: Ledger['claim'] = (...args) =>
    down ? Promise.reject(new Error('down')) : ledger.claim(...args)
  const tool = weather()
  const { agent, model } = testAgent([call(['call_1', 'GetWeather', {}]), say('ok'), say('ok')], {
    tools: [tool.tool],
    approvals: { secret: SECRET, ledger: { ...ledger, claim } },
  })
  const { history } = await ask(agent)
  const [spoken, called] = history
  if (spoken === undefined || called === undefined) throw new Error('no history')
  down = true
  const more = [user('never mind')]
  const told = await collect(agent, input([...history, ...more]))
  expect(last(told)).toMatchObject({ type: 'RUN_ERROR', code: 'ledger-unavailable' })
  expect([results(told), model.requests.length]).toEqual([[], 1])
  down = false
  const next = await collect(agent, input([spoken, called, ...more, user('and now?')]))
  expect(requests(next)).toEqual([])
  expect(results(next)).toMatchObject([{ id: 'call_1', own: { outcome: 'cancelled' } }])
  expect(await ledger.unsettled(null, 'thread')).toEqual([])
  expect(model.requests.length).toBe(2)
  expect(tool.runs).toEqual([])
})
