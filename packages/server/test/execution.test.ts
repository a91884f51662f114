import type { Message } from '@countersign/core'
import { memoryLedger } from '@countersign/server'
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
  refusals,
  requests,
  results,
  SECRET,
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
    '../encoding/bytes.js',
    '../encoding/copy.js',
    '../encoding/signals.js',
    '../observe/run-observer.js',
    '../outcome.js',
    './execution.js',
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

/** A tool that ends when it is told to, or never. */
function endless(more: Parameters<typeof counted>[1] = {}) {
  let end = (_: unknown) => {}
  let begun = () => {}
  const running = new Promise<void>((resolve) => {
    begun = resolve
  })
  const signals: AbortSignal[] = []
  const { tool, runs } = counted('endless', {
    needsApproval: true,
    ...more,
    execute: (_, { signal }) => {
      signals.push(signal)
      begun()
      return new Promise((resolve) => {
        end = resolve
      })
    },
  })
  return { tool, runs, running, signals, end: (value: unknown) => end(value) }
}

const WAIT = 50
const impatient = () => ({ secret: SECRET, ledger: memoryLedger(), wait: WAIT })
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Approves the call of a tool, and ends the run that carries the answer out: by the caller's signal, or as a reader that leaves. */
async function stopped(tool: ReturnType<typeof endless>, how: 'signal' | 'leaving') {
  const { agent, model } = testAgent([call(['c1', 'endless', {}]), say('ok'), say('ok')], {
    tools: [tool.tool],
    approvals: impatient(),
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const stop = new AbortController()
  const run = agent.run(input(history, { resume }), { signal: stop.signal })
  await run.next()
  const pending = run.next()
  await tool.running
  if (how === 'signal') stop.abort()
  else await run.return?.()
  return { agent, model, history, resume, pending }
}

test.each(['signal', 'leaving'] as const)(
  'an approved tool that never settles is left once its run has ended (%s): its call is interrupted, and the conversation goes on',
  async (how) => {
    const tool = endless()
    const { agent, model, history, resume, pending } = await stopped(tool, how)
    await pending
    const next = [...history, user('and now?')]
    const events = await collect(agent, input(next, { resume }))
    const interrupted = { own: { outcome: 'error', code: 'interrupted' } }
    expect(results(events)).toMatchObject([interrupted])
    expect(last(events)).toMatchObject({ outcome: { type: 'success' } })
    expect(model.requests.length).toBe(2)
    expect(tool.signals.map(({ aborted }) => aborted)).toEqual([true])
    tool.end('too late')
    await pause(0)
    expect(results(await collect(agent, input(next, { resume })))).toMatchObject([interrupted])
    expect(tool.runs.length).toBe(1)
  },
)

test('an approved tool with a timeout of its own has that long to end after its run was stopped', async () => {
  const tool = endless({ timeout: 60_000 })
  const { agent, history, resume, pending } = await stopped(tool, 'leaving')
  await pause(2 * WAIT)
  const waiting = collect(agent, input(history, { resume }))
  tool.end('ended')
  await pending
  expect(results(await waiting)).toMatchObject([{ content: 'ended' }])
})

test('a run that cannot ask the model because an approved call is still running says so, and asks it once the call has ended', async () => {
  const tool = endless()
  const { agent, model } = testAgent([call(['c1', 'endless', {}]), say('ok'), say('ok')], {
    tools: [tool.tool],
    approvals: impatient(),
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const carried = collect(agent, input(history, { resume }))
  await tool.running
  const message = expect.stringMatching(/still running/)
  for (const given of [input(history, { resume }), input([...history, user('hello')], { resume })]) {
    const events = await collect(agent, given)
    expect(refusals(events)).toMatchObject([{ code: 'call-running', message }])
    expect(requests(events)).toEqual([])
    expect(last(events)).toMatchObject({ type: 'RUN_ERROR', code: 'call-running', message })
  }
  expect(model.requests.length).toBe(1)
  tool.end('ended')
  await carried
  const events = await collect(agent, input([...history, user('hello')], { resume }))
  expect(results(events)).toMatchObject([{ content: 'ended' }])
  expect(last(events)).toMatchObject({ outcome: { type: 'success' } })
  expect(tool.runs.length).toBe(1)
})

test('a message after an answer that cannot be checked now is told so, in the place of the same question', async () => {
  const ledger = memoryLedger()
  let down = false
  const flaky = new Proxy(ledger, {
    get(target, key, receiver) {
      const value: unknown = Reflect.get(target, key, receiver)
      if (typeof value !== 'function') return value
      return down ? () => Promise.reject(new Error('down')) : value.bind(target)
    },
  })
  const tool = weather()
  const { agent, model } = testAgent([call(['c1', 'GetWeather', {}]), say('ok')], {
    tools: [tool.tool],
    approvals: { secret: SECRET, ledger: flaky },
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  down = true
  const told = await collect(agent, input([...history, user('hello')], { resume }))
  expect(requests(told)).toEqual([])
  expect(last(told)).toMatchObject({ type: 'RUN_ERROR', code: 'ledger-unavailable' })
  expect(model.requests.length).toBe(1)
  down = false
  const events = await collect(agent, input([...history, user('hello')], { resume }))
  expect(last(events)).toMatchObject({ outcome: { type: 'success' } })
  expect(tool.runs.length).toBe(1)
})

test('an approved call whose run is stopped between the claim and its start is cancelled, not run, and so every reader is told', async () => {
  const stop = new AbortController()
  const tool = weather()
  const { agent } = testAgent([call(['c1', 'GetWeather', {}]), say('ok')], {
    tools: [tool.tool],
    approvals: {
      secret: SECRET,
      ledger: memoryLedger(),
      onAudit: ({ event }) => {
        if (event === 'claimed') stop.abort()
      },
    },
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const events = await collect(agent, input(history, { resume }), { signal: stop.signal })
  const told = [
    {
      content: { type: 'execution-cancelled', reason: expect.stringMatching(/^It was not run: .* stopped/) },
      own: { outcome: 'cancelled' },
    },
  ]
  expect(results(events)).toMatchObject(told)
  expect(results(await collect(agent, input(history, { resume })))).toMatchObject(told)
  expect(results(await collect(agent, input([...fold(history, events), user('and now?')])))).toEqual([])
  expect(tool.runs).toEqual([])
})

test('a result that is nested too deeply is told as that, and that the tool has run', async () => {
  let deep: unknown = 1
  for (let level = 0; level < 100_000; level++) deep = [deep]
  const tool = weather({ execute: () => deep })
  const { events } = await answered([tool.tool], ['GetWeather'], [{ approved: true }])
  expect(results(events)).toMatchObject([
    {
      content: { reason: expect.stringMatching(/^The tool ran, .* nested too deeply/) },
      own: { outcome: 'error' },
    },
  ])
  expect(tool.runs.length).toBe(1)
})
