import type { Message } from '@countersign/core'
import { prepareMessagesForModel } from '@countersign/server'
import { expect, test } from 'vitest'
import { answered, toolMessage, weather } from './answered.js'
import { answer, ask, call, collect, counted, fold, input, results, say, testAgent, user } from './support.js'

const artefacts = /approval|cs1\.|countersign/
/** Everything any model was sent. */
const prompts = (model: { readonly requests: readonly { readonly messages: unknown }[] }) =>
  JSON.stringify(model.requests.map(({ messages }) => messages))

test('S1.3 the handler runs before the model is asked, never after', async () => {
  const order: string[] = []
  const tool = weather({ execute: () => order.push('handler') })
  const { agent } = testAgent(
    ({ messages }) => {
      order.push('model')
      return messages.some(({ role }) => role === 'tool') ? say('ok') : call(['c1', 'GetWeather', {}])
    },
    { tools: [tool.tool] },
  )
  const { history, first } = await ask(agent)
  await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(order).toEqual(['model', 'handler', 'model'])
})

for (const approved of [true, false]) {
  test(`${approved ? 'S1.45' : 'S1.46'} streaming: call and result are in the model input, request and answer are not`, async () => {
    const tool = weather()
    const { model } = await answered([tool.tool], ['GetWeather'], [{ approved }])
    expect(toolMessage(model)).toMatchObject([
      { toolCallId: 'call_1', outcome: { kind: approved ? 'ok' : 'denied' } },
    ])
    expect(model.requests.at(-1)?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(prompts(model)).not.toMatch(artefacts)
  })
}

test('S1.4 S1.47 streaming and not streaming: the same results, the same model input', async () => {
  const seen = async (way: 'run' | 'generate') => {
    const tool = counted('send', { needsApproval: true })
    const calls = call(['c1', 'send', { n: 1 }], ['c2', 'send', { n: 2 }], ['c3', 'send', { n: 3 }])
    const { agent, model } = testAgent([calls, say('ok')], { tools: [tool.tool] })
    const { history, asked } = await ask(agent)
    const resume = asked.map((one, index) => answer(one, { approved: index !== 1 }))
    const given = input(history, { resume })
    const events = way === 'run' ? await collect(agent, given) : (await agent.generate(given)).events
    const [, second] = model.requests
    // approved calls run side by side: neither their starts nor their ends have an order
    const sorted = (values: readonly unknown[]) => values.map((value) => JSON.stringify(value)).toSorted()
    return {
      results: sorted(results(events)),
      runs: sorted(tool.runs),
      roles: second?.messages.map(({ role }) => role),
      answers: second?.messages.at(-1)?.content,
      artefacts: artefacts.test(prompts(model)),
    }
  }
  const streamed = await seen('run')
  expect(streamed.artefacts).toBe(false)
  expect(await seen('generate')).toEqual(streamed)
})

test('S1.6 the history keeps call and answer; only the copy for the model is clean', async () => {
  const { model, history, events } = await answered([weather().tool], ['GetWeather'], [{ approved: true }])
  const after = fold(history, events)
  expect(after.slice(0, history.length)).toEqual(history)
  expect(JSON.stringify(history)).toMatch(/cs1\./)
  expect(prompts(model)).not.toMatch(artefacts)
})

/** A conversation in which an approved call has its result. */
async function settled(turns = [call(['call_1', 'GetWeather', {}]), say('one'), say('two'), say('three')]) {
  const tool = weather()
  const { agent, model } = testAgent(turns, { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true, reason: 'fine' })]
  const decided = history.map((message): Message => {
    if (message.role !== 'assistant') return message
    const { token, id } = first.approval
    const metadata = { countersign: { token, approval: { id, approved: true, reason: 'fine' } } }
    return { ...message, toolCalls: message.toolCalls?.map((one) => ({ ...one, metadata })) ?? [] }
  })
  return { tool, agent, model, decided, resume }
}

test('S1.49 a second round with a new message and old answers: still clean, streaming or not', async () => {
  const { tool, agent, model, decided, resume } = await settled()
  const first = await collect(agent, input(decided, { resume }))
  const next = [...fold(decided, first), user('and tomorrow?')]
  await collect(agent, input(next))
  await agent.generate(input([...next, user('again')]))
  expect([tool.runs.length, model.requests.length]).toEqual([1, 4])
  expect(prompts(model)).not.toMatch(artefacts)
})

test('S1.51 without streaming the answer holds the results, and a second turn runs nothing', async () => {
  const { tool, agent, decided, resume } = await settled()
  const { messages, events } = await agent.generate(input(decided, { resume }))
  expect(results(events)).toMatchObject([{ id: 'call_1', content: { temp: 72 } }])
  const parts = messages.flatMap((message) => message.parts)
  expect(parts).toContainEqual(
    expect.objectContaining({ type: 'tool-call', state: 'complete', output: { temp: 72 } }),
  )
  await agent.generate(input([...fold(decided, events), user('again')], { resume }))
  expect(tool.runs.length).toBe(1)
})

test('S1.52 a model that follows its prompt from step to step gets a clean one that only grows', async () => {
  const look = counted('look')
  const tool = weather()
  const turns = [call(['c1', 'GetWeather', {}]), call(['c2', 'look', {}]), say('ok')]
  const { agent, model } = testAgent(turns, { tools: [tool.tool, look.tool] })
  const { history, first } = await ask(agent)
  await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  const [, second, third] = model.requests.map(({ messages }) => messages)
  expect(third?.slice(0, second?.length)).toEqual(second)
  expect(third?.length).toBe((second?.length ?? 0) + 2)
  expect(prompts(model)).not.toMatch(artefacts)
})

test('S1.53 the prompt is cleaned also where the agent has no tools and every answer is old', async () => {
  const { agent, decided, resume } = await settled()
  const events = await collect(agent, input(decided, { resume }))
  const bare = testAgent([say('ok')])
  await collect(bare.agent, input([...fold(decided, events), user('thanks')]))
  expect(bare.model.requests[0]?.messages.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
    'user',
  ])
  expect(prompts(bare.model)).not.toMatch(artefacts)
})

test('S1.54 a message that this leaves empty is gone; its neighbours stay in order', async () => {
  const history: Message[] = [
    user('one', 'u1'),
    {
      id: 'a1',
      role: 'assistant',
      toolCalls: [
        { id: 'c1', type: 'function', function: { name: 'client.requestApproval', arguments: '{}' } },
      ],
    },
    { id: 'r1', role: 'tool', toolCallId: 'c1', content: '{"approved":true}' },
    user('two', 'u2'),
    { id: 'a2', role: 'assistant', content: '' },
    user('three', 'u3'),
  ]
  expect(prepareMessagesForModel(history).map(({ id }) => id)).toEqual(['u1', 'u2', 'u3'])
  const { agent, model } = testAgent([say('ok')])
  await collect(agent, input(history))
  expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(['user', 'user', 'user'])
})

test('S1.11 of a tool that streams only the last value is the result; without one it is an error', async () => {
  const values = (...list: readonly unknown[]) =>
    weather({
      execute: async function* () {
        yield* list
      },
    })
  const one = await answered([values({ temp: 1 }, { temp: 72 }).tool], ['GetWeather'], [{ approved: true }])
  expect(results(one.events)).toMatchObject([{ id: 'call_1', content: { temp: 72 } }])
  expect(toolMessage(one.model)).toMatchObject([{ outcome: { kind: 'ok', value: { temp: 72 } } }])
  const none = await answered([values().tool], ['GetWeather'], [{ approved: true }])
  expect(results(none.events)).toMatchObject([
    { content: { type: 'execution-error' }, own: { outcome: 'error' } },
  ])
})

test('S1.12 concurrency bounds answered and fresh calls alike; by default nothing does', async () => {
  const peaks = async (concurrency?: number) => {
    let running = 0
    let peak = 0
    const execute = async () => {
      peak = Math.max(peak, ++running)
      await new Promise((resolve) => setTimeout(resolve, 2))
      running--
    }
    const gated = counted('gated', { needsApproval: true, execute })
    const safe = counted('safe', { execute })
    const four = (name: string) =>
      call(...['1', '2', '3', '4'].map((id) => [`${name}${id}`, name, {}] as const))
    const { agent } = testAgent([four('gated'), four('safe'), say('ok')], {
      tools: [gated.tool, safe.tool],
      ...(concurrency !== undefined && { concurrency }),
    })
    const { history, asked } = await ask(agent)
    const events = await collect(
      agent,
      input(history, { resume: asked.map((one) => answer(one, { approved: true })) }),
    )
    expect(results(events).length).toBe(8)
    return peak
  }
  expect(await peaks(2)).toBe(2)
  expect(await peaks()).toBe(4)
})

test('S0.70 the scripted model answers streaming and not, and keeps every prompt it got', async () => {
  const { agent, model } = testAgent([say('one'), say('two')], { system: 'be kind' })
  await collect(agent, input([user('first')]))
  expect((await agent.generate(input([user('second')]))).text).toBe('two')
  expect(model.requests).toMatchObject([
    { system: 'be kind', messages: [{ role: 'user', content: [{ text: 'first' }] }], tools: [] },
    { system: 'be kind', messages: [{ role: 'user', content: [{ text: 'second' }] }], tools: [] },
  ])
})
