import type { Message } from '@countersign/core'
import { expect, test } from 'vitest'
import { answered, toolMessage, weather } from './answered.js'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  last,
  refusals,
  requests,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

test('S1.33 S1.40 an approved call is executed: one result with its value in the model input', async () => {
  const tool = weather()
  const { model } = await answered([tool.tool], ['GetWeather'], [{ approved: true }])
  expect(toolMessage(model)).toEqual([
    {
      type: 'tool-result',
      toolCallId: 'call_1',
      toolName: 'GetWeather',
      outcome: { kind: 'ok', value: { temp: 72 } },
    },
  ])
  expect(tool.runs.length).toBe(1)
})

test('S1.34 S1.41 S0.46 a denied call: one failure with the reason', async () => {
  const tool = weather()
  const { model, events } = await answered([tool.tool], ['GetWeather'], [{ approved: false, reason: 'No.' }])
  expect(toolMessage(model)).toMatchObject([
    { toolCallId: 'call_1', outcome: { kind: 'denied', reason: 'No.' } },
  ])
  expect(results(events)[0]?.content).toEqual({ type: 'execution-denied', reason: 'No.' })
  expect(tool.runs).toEqual([])
})

test('S0.47 a denial without a reason has none', async () => {
  const { events } = await answered([weather().tool], ['GetWeather'], [{ approved: false }])
  expect(results(events)[0]?.content).toEqual({ type: 'execution-denied' })
})

test('S0.49 the reason of an approval is in neither arguments nor result', async () => {
  const tool = weather()
  const { events, model } = await answered(
    [tool.tool],
    ['GetWeather'],
    [{ approved: true, reason: 'because' }],
  )
  expect(tool.runs).toEqual([{ n: 1 }])
  expect(JSON.stringify([results(events), model.requests.at(-1)])).not.toContain('because')
})

test('S0.48 S1.5 S1.13 S1.38 approve, deny, approve: approved results first, then the denied, all before the model', async () => {
  const slow = counted('slow', {
    needsApproval: true,
    execute: (args) => new Promise((resolve) => setTimeout(resolve, 20 / Number(args.n), args.n)),
  })
  const payloads = [{ approved: true }, { approved: false }, { approved: true }]
  const { events, model } = await answered([slow.tool], ['slow', 'slow', 'slow'], payloads)
  expect(results(events).map(({ id }) => id)).toEqual(['call_1', 'call_3', 'call_2'])
  expect(slow.runs.length).toBe(2)
  expect(types(events).lastIndexOf('TOOL_CALL_RESULT')).toBeLessThan(
    types(events).indexOf('TEXT_MESSAGE_START'),
  )
  expect(model.requests.length).toBe(2)
})

test('S1.44 with concurrency 1 one call runs at a time, by default all at once', async () => {
  for (const [concurrency, most] of [
    [1, 1],
    ['unbounded', 3],
  ] as const) {
    let running = 0
    let peak = 0
    const slow = counted('slow', {
      needsApproval: true,
      execute: async () => {
        peak = Math.max(peak, ++running)
        await new Promise((resolve) => setTimeout(resolve, 5))
        running--
      },
    })
    await answered([slow.tool], ['slow', 'slow', 'slow'], Array(3).fill({ approved: true }), { concurrency })
    expect(peak).toBe(most)
  }
})

test('S1.48 D4 one answered, one not: the answered one runs, the other is asked again, the model is not called', async () => {
  const tool = weather()
  const { events, asked, model } = await answered(
    [tool.tool],
    ['GetWeather', 'GetWeather'],
    [{ approved: true }],
  )
  expect(results(events).map(({ id }) => id)).toEqual(['call_1'])
  expect(requests(events)).toEqual([asked[1]])
  expect(last(events)).toMatchObject({
    outcome: { type: 'interrupt', interrupts: [{ id: asked[1]?.approval.id }] },
  })
  expect(model.requests.length).toBe(1)
})

test('S1.7 S1.37 S1.50 a call that has its result is not run again', async () => {
  const tool = weather()
  const { agent, history, events, resume, model } = await answered(
    [tool.tool],
    ['GetWeather'],
    [{ approved: true }],
  )
  const whole = fold(history, events)
  const untilResult = whole.slice(0, whole.findIndex(({ role }) => role === 'tool') + 1)
  const second = await collect(agent, input(untilResult, { resume }))
  expect([results(second), refusals(second)]).toEqual([[], []])
  expect(model.requests.length).toBe(3)
  // where the model has spoken since, none of its turns is due (F60)
  const third = await collect(agent, input(whole, { resume }))
  expect([results(third), refusals(third)]).toEqual([[], []])
  expect(model.requests.length).toBe(3)
  expect(tool.runs.length).toBe(1)
})

test('the third door: a decision in history whose call has no result is an answer', async () => {
  const tool = weather()
  const { agent, model } = testAgent([call(['call_1', 'GetWeather', {}]), say('ok')], { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  const decide = (approval: Record<string, unknown>) => {
    const copy = structuredClone(history) as Message[]
    const message = copy.at(-1)
    if (message?.role === 'assistant')
      for (const one of message.toolCalls ?? []) {
        one.metadata = {
          countersign: { token: first.approval.token, approval: { id: first.approval.id, ...approval } },
        }
      }
    return copy
  }
  const events = await collect(agent, input(decide({ approved: true })))
  expect(results(events)).toMatchObject([{ id: 'call_1', content: { temp: 72 } }])
  expect(tool.runs.length).toBe(1)
  expect(model.requests.length).toBe(2)
})

test('S1.55 D9 two answers for one approval: the first verified one wins', async () => {
  const tool = weather()
  const { agent } = testAgent([call(['call_1', 'GetWeather', {}]), say('ok')], { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  const resume = [
    answer(first, { approved: true }, 'cs1.forged'),
    answer(first, { approved: false }),
    answer(first, { approved: true }),
  ]
  const events = await collect(agent, input(history, { resume }))
  expect(refusals(events)).toEqual([])
  expect(results(events)).toMatchObject([{ own: { outcome: 'denied' } }])
  expect(tool.runs).toEqual([])
})

test('S1.42 S1.8 a plain conversation without tools: a normal answer, the prompt as it came', async () => {
  const { agent, model } = testAgent([say('hello')])
  const events = await collect(agent, input([user('hi')]))
  expect(last(events)).toMatchObject({ metadata: { finishReason: 'stop' } })
  expect(model.requests[0]?.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'hi' }] }])
})

test('S1.43 S1.29 an answer without any call is ignored with a refusal; the run goes on', async () => {
  for (const tools of [[], [weather().tool]]) {
    const { agent } = testAgent([say('hello')], { tools })
    const resume = [
      { interruptId: 'approval_orphan', status: 'resolved' as const, payload: { approved: true } },
    ]
    const events = await collect(agent, input([user('hi')], { resume }))
    expect(refusals(events)).toEqual([
      { approvalId: 'approval_orphan', code: 'approval-not-found', message: expect.any(String) },
    ])
    expect(last(events)).toMatchObject({ type: 'RUN_FINISHED', metadata: { finishReason: 'stop' } })
  }
})
