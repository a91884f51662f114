import type { AGUIEvent } from '@countersign/core'
import { tool } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

const streaming = (
  stream: (signal: AbortSignal) => AsyncIterable<unknown, void>,
  more: { timeout?: number; needsApproval?: boolean; finalize?: (all: readonly unknown[]) => unknown } = {},
) =>
  tool({
    name: 'stream',
    description: 'Streams',
    input: z.object({}),
    execute: (_, { signal }) => stream(signal),
    ...more,
  })

async function* of(...elements: readonly unknown[]): AsyncGenerator<unknown, void> {
  yield* elements
}

const progress = (events: readonly AGUIEvent[]) =>
  events.flatMap((event) =>
    event.type === 'CUSTOM' && event.name === 'tool-progress' ? [event.value.data] : [],
  )

async function runWith(streamed: ReturnType<typeof streaming>, options = {}) {
  const { agent, model } = testAgent([call(['c1', 'stream', {}]), say('ok')], { tools: [streamed] })
  return { model, events: await collect(agent, input([user('go')]), options) }
}

test('S1.11 S2.38 each element of a streaming tool is progress, and the last is the result', async () => {
  const { events, model } = await runWith(streaming(() => of({ found: 1 }, { found: 2 })))
  expect(progress(events)).toEqual([{ found: 1 }, { found: 2 }])
  expect(results(events)).toEqual([{ id: 'c1', content: { found: 2 } }])
  expect(types(events).lastIndexOf('CUSTOM tool-progress')).toBeLessThan(
    types(events).indexOf('TOOL_CALL_RESULT'),
  )
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([{ outcome: { value: { found: 2 } } }])
})

test('S2.38 finalize builds the result from all that was streamed', async () => {
  const { events } = await runWith(streaming(() => of('a', 'b'), { finalize: (all) => all.join('-') }))
  expect(progress(events)).toEqual(['a', 'b'])
  expect(results(events)).toMatchObject([{ content: 'a-b' }])
})

test('S1.11 a stream that ends without a result is an execution_error', async () => {
  for (const streamed of [
    streaming(() => of()),
    streaming(() => of(undefined)),
    streaming(() => of('a'), { finalize: () => undefined }),
  ]) {
    const { events, model } = await runWith(streamed)
    expect(results(events)).toMatchObject([
      {
        content: { type: 'execution-error', reason: expect.stringContaining('stream') },
        own: { outcome: 'error' },
      },
    ])
    expect(model.requests.length).toBe(2)
  }
})

test('S1.11 S2.40 a stream that breaks off is an execution_error, whatever it said before', async () => {
  const { events } = await runWith(
    streaming(async function* () {
      yield 'half'
      throw new Error('the line went dead')
    }),
  )
  expect(progress(events)).toEqual(['half'])
  expect(results(events)).toMatchObject([
    { content: { reason: expect.stringContaining('failed') }, own: { outcome: 'error' } },
  ])
})

test('S1.11 an approved call streams before the model is called, and only its last value is the result', async () => {
  const { agent, model } = testAgent([call(['c1', 'stream', {}]), say('ok')], {
    tools: [streaming(() => of(1, 2, 3), { needsApproval: true })],
  })
  const { history, first, events: asking } = await ask(agent)
  expect(progress(asking)).toEqual([])
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(progress(events)).toEqual([1, 2, 3])
  expect(results(events)).toMatchObject([{ content: 3 }])
  expect(types(events).indexOf('TOOL_CALL_RESULT')).toBeLessThan(types(events).indexOf('TEXT_MESSAGE_START'))
  expect(model.requests.length).toBe(2)
})

test('S2.16 a denied streaming tool says nothing', async () => {
  const { agent } = testAgent([call(['c1', 'stream', {}]), say('ok')], {
    tools: [streaming(() => of(1, 2, 3), { needsApproval: true })],
  })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: false })] }))
  expect(progress(events)).toEqual([])
  expect(results(events)).toMatchObject([{ own: { outcome: 'denied' } }])
})

test('S2.42 progress arrives while the tool runs; then one continuation with all results', async () => {
  let goOn = () => {}
  const slow = streaming(async function* () {
    yield 'begun'
    await new Promise<void>((resolve) => {
      goOn = resolve
    })
    yield 'ended'
  })
  const { agent, model } = testAgent([call(['c1', 'stream', {}], ['c2', 'quick', {}]), say('ok')], {
    tools: [slow, counted('quick').tool],
  })
  const seen: AGUIEvent[] = []
  for await (const event of agent.run(input([user('go')]))) {
    seen.push(event)
    if (progress(seen).length === 1 && results(seen).length === 1) {
      expect(model.requests.length).toBe(1)
      goOn()
    }
  }
  expect(progress(seen)).toEqual(['begun', 'ended'])
  expect(model.requests.length).toBe(2)
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { toolCallId: 'c1' },
    { toolCallId: 'c2' },
  ])
})

test('a tool that takes longer than its timeout is aborted and left: it may or may not have had an effect', async () => {
  let closed = () => {}
  const left = new Promise<void>((resolve) => {
    closed = resolve
  })
  const slow = streaming(
    async function* (signal) {
      try {
        for (let n = 0; ; n++) {
          yield n
          await new Promise((resolve) => setTimeout(resolve, 5))
          if (signal.aborted) yield 'too late'
        }
      } finally {
        closed()
      }
    },
    { timeout: 20 },
  )
  const { events } = await runWith(slow)
  expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
  expect(last(events)).toMatchObject({ type: 'RUN_FINISHED' })
  await left
  expect(progress(events)).not.toContain('too late')
})

test('what a tool reports after its end is not heard: nothing follows the end of the run', async () => {
  let report = (_: unknown) => {}
  const late = counted('late', {
    execute: (_, context) => {
      report = context.progress
      return 'done'
    },
  })
  const { agent } = testAgent([call(['c1', 'late', {}]), say('ok')], { tools: [late.tool] })
  const events: AGUIEvent[] = []
  for await (const event of agent.run(input([user('go')]))) {
    if (event.type === 'TEXT_MESSAGE_START' || event.type === 'RUN_FINISHED') report('still here')
    events.push(event)
  }
  expect(progress(events)).toEqual([])
  expect(last(events).type).toBe('RUN_FINISHED')
})

test("an abort by the caller ends a stream; the run is cancelled and the call's result says so", async () => {
  const stop = new AbortController()
  let ended = false
  const endless = streaming(async function* (signal) {
    try {
      for (let n = 0; ; n++) {
        yield n
        if (n === 2) stop.abort()
        await new Promise((resolve) => setTimeout(resolve, 1))
        if (signal.aborted) return
      }
    } finally {
      ended = true
    }
  })
  const { events, model } = await runWith(endless, { signal: stop.signal })
  expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
  expect(last(events)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
  expect(model.requests.length).toBe(1)
  await vi.waitFor(() => expect(ended).toBe(true))
})

test('S0.9 a tool and its predicate reach the services of the run', async () => {
  const seen: unknown[] = []
  const service = { policy: 'strict' }
  const uses = counted('uses', {
    needsApproval: (_, { context }) => {
      seen.push(context.service)
      return false
    },
    execute: (_, { context }) => {
      seen.push(context.service)
      return 'ok'
    },
  })
  const { agent } = testAgent([call(['c1', 'uses', {}]), say('ok')], { tools: [uses.tool] })
  await collect(agent, input([user('go')]), { context: { subject: 'ann', service } })
  expect(seen).toEqual([service, service])
  expect(seen[0]).toBe(service)
})
