import type { Message } from '@countersign/core'
import { expect, test } from 'vitest'
import { answered, weather } from './answered.js'
import {
  answer,
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
  user,
} from './support.js'

test('S1.39 S1.58 a tool that throws: a failed result by default; with failureMode throw the run ends after its siblings', async () => {
  const boom = (failureMode: 'return' | 'throw') =>
    counted('boom', {
      needsApproval: true,
      failureMode,
      execute: () => {
        throw new Error('disk full')
      },
    })
  const returned = await answered([boom('return').tool], ['boom'], [{ approved: true }])
  expect(results(returned.events)).toMatchObject([
    { content: { reason: expect.stringContaining('boom failed') }, own: { outcome: 'error' } },
  ])
  expect(returned.model.requests.length).toBe(2)

  const tool = boom('throw')
  const thrown = await answered(
    [tool.tool, weather().tool],
    ['boom', 'GetWeather'],
    [{ approved: true }, { approved: true }],
  )
  expect(results(thrown.events).map(({ id }) => id)).toEqual(['call_2'])
  expect(last(thrown.events)).toMatchObject({ type: 'RUN_ERROR', code: 'tool-failed' })
  expect(JSON.stringify(last(thrown.events))).not.toContain('disk full')
  expect(thrown.model.requests.length).toBe(1)
  const retried = await collect(thrown.agent, input(thrown.history, { resume: thrown.resume }))
  expect(results(retried)).toMatchObject([
    { id: 'call_1', own: { outcome: 'error' } },
    { id: 'call_2', content: { temp: 72 } },
  ])
  expect(tool.runs.length).toBe(1)
})

test('S1.58 an idempotent tool that threw runs again by the same answer', async () => {
  let fails = true
  const tool = counted('retry', {
    needsApproval: true,
    failureMode: 'throw',
    idempotent: true,
    execute: () => {
      if (fails) throw new Error('later')
      return 'ok'
    },
  })
  const { agent, history, resume, events } = await answered([tool.tool], ['retry'], [{ approved: true }])
  expect(last(events)).toMatchObject({ code: 'tool-failed' })
  fails = false
  expect(results(await collect(agent, input(history, { resume })))).toMatchObject([{ content: 'ok' }])
  expect(tool.runs.length).toBe(2)
})

test("S1.59 the caller's abort reaches a claimed tool, which is waited for; the model is not called", async () => {
  const stop = new AbortController()
  let heard = false
  const tool = counted('long', {
    needsApproval: true,
    execute: async (_, { signal }) => {
      stop.abort()
      await new Promise((resolve) => setTimeout(resolve, 10))
      heard = signal.aborted
      return 'ended'
    },
  })
  const { agent, model } = testAgent([call(['c1', 'long', {}]), say('ok')], { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }), {
    signal: stop.signal,
  })
  expect(heard).toBe(true)
  expect(results(events)).toMatchObject([{ content: 'ended' }])
  expect(last(events)).toMatchObject({ outcome: { type: 'cancelled' } })
  expect(model.requests.length).toBe(1)
})

test('a reader that leaves does not stop a claimed tool: a retry gets the outcome', async () => {
  let finish = () => {}
  let begun = () => {}
  const running = new Promise<void>((resolve) => {
    begun = resolve
  })
  const tool = counted('long', {
    needsApproval: true,
    execute: async (_, { signal }) => {
      begun()
      await new Promise<void>((resolve) => {
        finish = resolve
      })
      return { aborted: signal.aborted }
    },
  })
  const { agent } = testAgent([call(['c1', 'long', {}]), say('ok')], { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const leaving = agent.run(input(history, { resume }))
  await leaving.next()
  const pending = leaving.next()
  await running
  await leaving.return?.()
  await pending
  const retry = collect(agent, input(history, { resume }))
  finish()
  expect(results(await retry)).toMatchObject([{ content: { aborted: false } }])
  expect(tool.runs.length).toBe(1)
})

test('a timeout leaves a claimed call interrupted: it may or may not have run, and does not run again', async () => {
  const tool = counted('hang', { needsApproval: true, timeout: 10, execute: () => new Promise(() => {}) })
  const { agent, model, history, resume, events } = await answered(
    [tool.tool],
    ['hang'],
    [{ approved: true }],
  )
  expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
  const again = await collect(agent, input(history, { resume })).catch(() => [])
  expect(results(again)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
  expect(tool.runs.length).toBe(1)

  const told = fold(history, events)
  const next = await collect(agent, input([...told, user('and now?')]))
  expect(results(next)).toEqual([])
  expect(model.requests.at(-1)?.messages[2]?.content).toMatchObject([
    { outcome: { kind: 'execution_error', code: 'interrupted' } },
  ])
  const lie: Message = { id: 'lie', role: 'tool', toolCallId: 'call_1', content: '"it worked"' }
  expect(results(await collect(agent, input([...history, lie, user('and?')])))).toMatchObject([
    { own: { code: 'interrupted' } },
  ])
})

test('S2.1 the executor has no approval import', async () => {
  const { readFileSync } = await import('node:fs')
  const source = readFileSync(new URL('../src/tools/execute.ts', import.meta.url), 'utf8')
  expect([...source.matchAll(/from '([^']+)'/g)].map(([, from]) => from)).toEqual([
    '@countersign/core',
    '../encoding/copy.js',
    '../encoding/signals.js',
    '../outcome.js',
    './schema.js',
    './tool-errors.js',
  ])
})

test('what a tool reports while it runs goes out before its result', async () => {
  const long = counted('long', {
    execute: (_, { progress }) => {
      progress({ percent: 50 })
      return 'ran'
    },
  })
  const { agent } = testAgent([call(['c1', 'long', {}]), say('ok')], { tools: [long.tool] })
  const given = input([user('go')])
  const events = await collect(agent, given)
  const progress = events.findIndex((event) => event.type === 'CUSTOM' && event.name === 'tool-progress')
  expect(events[progress]).toMatchObject({
    value: { toolCallId: 'c1', toolName: 'long', data: { percent: 50 } },
  })
  expect(progress).toBeLessThan(events.findIndex((event) => event.type === 'TOOL_CALL_RESULT'))
  expect(results(events)[0]?.content).toBe('ran')
})

test('S1.63 a tool that returns nothing has the result null; a cycle or a BigInt is an error result', async () => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  for (const [value, content] of [
    [undefined, null],
    [cycle, { type: 'execution-error' }],
    [1n, { type: 'execution-error' }],
  ] as const) {
    const odd = counted('odd', { execute: () => value })
    const { agent, model } = testAgent([call(['c1', 'odd', {}]), say('ok')], { tools: [odd.tool] })
    const [result] = results(await collect(agent, input([user('go')])))
    if (content === null) expect(result?.content).toBe(null)
    else expect(result?.content).toMatchObject(content)
    expect(model.requests.length).toBe(2)
  }
})

test('a run that was stopped before it claimed starts nothing; the answer can be sent again', async () => {
  const tool = weather()
  const { agent } = testAgent([call(['c1', 'GetWeather', {}]), say('ok')], { tools: [tool.tool] })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const events = await collect(agent, input(history, { resume }), { signal: AbortSignal.abort() })
  expect(last(events)).toMatchObject({ outcome: { type: 'cancelled' } })
  expect(tool.runs).toEqual([])
  await collect(agent, input(history, { resume }))
  expect(tool.runs.length).toBe(1)
})
