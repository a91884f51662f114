import { setTimeout as sleep } from 'node:timers/promises'
import type { AGUIEvent } from '@countersign/core'
import { answerQueue, type Model, type ModelEvent, memoryLedger, memoryThreads } from '@countersign/server'
import { afterEach, expect, test, vi } from 'vitest'
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
  user,
} from './support.js'

afterEach(() => void vi.useRealTimers())

const context = { subject: 'ann' }
const never = () => new Promise<never>(() => {})

/** A model that says something, reports what it used, and then nothing more: it does not even react to its signal. */
const silent: Model = {
  id: 'test/silent',
  async *stream() {
    yield { type: 'text-delta', delta: 'One moment' }
    yield { type: 'usage', usage: { inputTokens: 7 } }
    await never()
  },
}
const usage = [{ provider: 'test', model: 'silent', inputTokens: 7 }]

/** A model that calls `tool` and then replies, and reports what it used. */
function calling(tool: string, ...rest: readonly ModelEvent[]): Model {
  return {
    id: 'test/m',
    async *stream({ messages }) {
      yield { type: 'usage', usage: { inputTokens: 5 } }
      yield* messages.at(-1)?.role === 'user' ? [...call(['c1', tool, {}]), ...rest] : say('Done.')
    },
  }
}

test('T36 a silent model ends the run with `model-timeout`, with its text and usage, and the thread is free', async () => {
  const threads = memoryThreads()
  const { agent } = testAgent([], { model: silent, threads, timeouts: { model: 20 } })
  const events = await collect(agent, input([user('go')]), { context })
  expect(last(events)).toMatchObject({
    ...{ type: 'RUN_ERROR', code: 'model-timeout', usage },
    metadata: { countersign: { retryable: true } },
  })
  const thread = await threads.load({ owner: 'ann', threadId: 'thread' })
  expect(thread?.run).toBeUndefined()
  expect(thread?.usage.map((one) => one.usage)).toEqual([usage])
  expect(thread?.messages.map(({ message }) => message).join()).toContain('One moment')
})

test('T36 the time in which the server works on an event of the model is not its silence', async () => {
  vi.useFakeTimers()
  let decide = () => {}
  const asked = new Promise<void>((resolve) => {
    decide = resolve
  })
  let isAsking = () => {}
  const asking = new Promise<void>((resolve) => {
    isAsking = resolve
  })
  const policy = async () => {
    isAsking()
    await asked
    return undefined
  }
  const { agent } = testAgent([], {
    ...{ model: calling('look'), tools: [counted('look').tool] },
    ...{ timeouts: { model: 1000 }, approvals: { policy } },
  })
  const events = collect(agent, input([user('go')]))
  await asking
  await vi.advanceTimersByTimeAsync(10_000)
  decide()
  expect(last(await events)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  expect(vi.getTimerCount()).toBe(0)
})

test('T36 a run that takes too long ends with `run-timeout`: its model is left even if it does not react, its usage is kept', async () => {
  const { agent } = testAgent([], { model: silent, timeouts: { run: 20 } })
  const events = await collect(agent, input([user('go')]))
  expect(last(events)).toMatchObject({ type: 'RUN_ERROR', code: 'run-timeout', usage })
})

/** A minute passes, once everything that can happen without it has happened. */
async function passMinute(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  await vi.advanceTimersByTimeAsync(60_000)
}

/** A tool that ignores its signal. `started` resolves when it runs. */
function endless(name: string, more: object = {}) {
  let start = () => {}
  const started = new Promise<void>((resolve) => {
    start = resolve
  })
  const execute = () => {
    start()
    return never()
  }
  return { ...counted(name, { ...more, execute }), started }
}

test('T36 a tool that is running when the run takes too long is interrupted, and the ledger says so', async () => {
  const ledger = memoryLedger()
  const send = endless('send', { needsApproval: true })
  const { agent } = testAgent([], {
    ...{ model: calling('send'), tools: [send.tool], approvals: { ledger, wait: 1000 } },
    timeouts: { run: 60_000 },
  })
  const { history, first } = await ask(agent, {}, { context })
  vi.useFakeTimers()
  const resume = [answer(first, { approved: true })]
  const events = collect(agent, input(history, { resume }), { context })
  await send.started
  await vi.advanceTimersByTimeAsync(61_001)
  expect(last(await events)).toMatchObject({ type: 'RUN_ERROR', code: 'run-timeout' })
  const { id: approvalId } = first.approval
  const entry = await ledger.lookup({ owner: 'ann', threadId: 'thread', approvalId })
  expect(entry?.state).toMatchObject({ phase: 'interrupted' })
})

test('T36 a tool that takes longer than its own timeout is interrupted, and the run goes on with that; its usage is kept', async () => {
  const tools = [endless('send', { timeout: 10 }).tool]
  const { agent } = testAgent([], { tools, model: calling('send') })
  const events = await collect(agent, input([user('go')]))
  expect(results(events)).toMatchObject([{ id: 'c1', own: { code: 'interrupted' } }])
  const used = { provider: 'test', model: 'm', inputTokens: 5 }
  expect(last(events)).toMatchObject({ outcome: { type: 'success' }, usage: [used, used] })
})

test('T36 a run that is only waiting for its user when its time ends, ends with the open requests, which can be answered later', async () => {
  const ledger = memoryLedger()
  const send = counted('send', { needsApproval: true })
  const { agent } = testAgent([], {
    ...{ tools: [send.tool], model: calling('send'), approvals: { ledger } },
    timeouts: { run: 60_000 },
  })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
  const history = [user('go')]
  const events: AGUIEvent[] = []
  for await (const event of agent.run(input(history), { context, answers: answerQueue() })) {
    events.push(event)
    if (requests([event]).length > 0) void passMinute()
  }
  expect(last(events)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'interrupt' } })
  const resume = requests(events).map((asked) => answer(asked, { approved: true }))
  await collect(agent, input(fold(history, events), { resume }), { context })
  expect(send.runs).toHaveLength(1)
})

test('T36 a model that has said its last word, but does not end, ends no run with an error', async () => {
  const model: Model = {
    id: 'test/m',
    async *stream() {
      yield* say('Done.')
      await never()
    },
  }
  const { agent } = testAgent([], { model, timeouts: { model: 10 } })
  expect(last(await collect(agent, input([user('go')])))).toMatchObject({ outcome: { type: 'success' } })
})

test.each([
  ['prepareStep', { prepareStep: never }],
  [
    'the check of an output schema',
    {
      output: { '~standard': { version: 1 as const, vendor: 'test', validate: never } },
      outputSchema: { type: 'object' },
    },
  ],
])('T36 %s that does not settle does not hold up the end of a run', async (_, options) => {
  const threads = memoryThreads()
  const { agent } = testAgent([say('{}')], { ...options, threads, timeouts: { run: 20 } } as never)
  const events = await collect(agent, input([user('go')]), { context })
  expect(last(events)).toMatchObject({ type: 'RUN_ERROR', code: 'run-timeout' })
  expect((await threads.load({ owner: 'ann', threadId: 'thread' }))?.run).toBeUndefined()
})

test('a stop is not held up by a model that does not react to it', async () => {
  const stop = new AbortController()
  const { agent } = testAgent([], { model: silent })
  const events = collect(agent, input([user('go')]), { signal: stop.signal })
  await sleep(10)
  stop.abort()
  expect(last(await events)).toMatchObject({ outcome: { type: 'cancelled' } })
})

test.each([
  ['timeouts.model', { model: 0 }],
  ['timeouts.run', { run: Number.NaN }],
])('%s must be a positive number', (option, timeouts) => {
  expect(() => testAgent([], { timeouts })).toThrow(
    expect.objectContaining({ code: 'invalid-option', data: expect.objectContaining({ option }) }),
  )
})
