import { tool } from '@countersign/server'
import {
  type ApprovalRequestedEvent,
  drainOutputs,
  isApprovalRequested,
  isToolOutput,
  isToolProgress,
  matchPlanEvent,
  type PlanEvent,
  type PlannedCall,
  planFromMap,
  runPlan,
  type ToolOutputEvent,
  type ToolProgressEvent,
} from '@countersign/server/plan'
import { expect, expectTypeOf, test, vi } from 'vitest'
import * as z from 'zod'
import { counted } from './support.js'

const planned = (toolCallId: string, toolName: string, input: unknown = {}): PlannedCall => ({
  toolCallId,
  toolName,
  input,
  arguments: typeof input === 'string' ? input : JSON.stringify(input),
})
const allSafe = planFromMap(() => false, {})
const outcomes = async (events: AsyncIterable<PlanEvent>) =>
  Object.fromEntries((await drainOutputs(events)).map(({ toolCallId, outcome }) => [toolCallId, outcome]))

const counting = tool({
  name: 'count',
  description: 'Counts up to n',
  input: z.object({ n: z.number() }),
  async *execute({ n }) {
    for (let i = 1; i <= n; i++) yield i
  },
  finalize: (elements) => ({ sum: elements.reduce((sum, one) => sum + one, 0) }),
})

test('S2.37 three events; a match names them all, a guard narrows to one', () => {
  const asked: ApprovalRequestedEvent = {
    type: 'approval-requested',
    approvalId: 'approval_1',
    toolCallId: 'a',
    toolName: 'send',
    input: { to: 'ann' },
  }
  const progress: ToolProgressEvent = { type: 'progress', toolCallId: 'a', toolName: 'send', data: 1 }
  const output: ToolOutputEvent = {
    type: 'output',
    toolCallId: 'a',
    toolName: 'send',
    outcome: { kind: 'ok', value: 1 },
  }
  const events: PlanEvent[] = [asked, progress, output]
  const words = events.map((event) =>
    matchPlanEvent(event, {
      'approval-requested': ({ approvalId, input }) => `${approvalId} ${JSON.stringify(input)}`,
      progress: ({ data }) => `progress ${data}`,
      output: ({ outcome }) => outcome.kind,
    }),
  )
  expect(words).toEqual(['approval_1 {"to":"ann"}', 'progress 1', 'ok'])
  expect(events.map(isApprovalRequested)).toEqual([true, false, false])
  expect(events.map(isToolProgress)).toEqual([false, true, false])
  expect(events.map(isToolOutput)).toEqual([false, false, true])
  const [event = output] = events
  if (isToolOutput(event)) expectTypeOf(event).toEqualTypeOf<ToolOutputEvent>()
  // @ts-expect-error a match that leaves an event out does not compile
  const partial = () => matchPlanEvent(event, { progress: () => 1, output: () => 2 })
  expect(partial).toThrow()
})

test('S2.38 plain and streaming tools run the same way: progress for each element, then one output', async () => {
  const plain = counted('plain', {
    execute: (_, { progress }) => {
      progress('half')
      return 'whole'
    },
  })
  const plan = allSafe([planned('a', 'plain'), planned('b', 'count', { n: 3 })])
  const events: PlanEvent[] = []
  for await (const event of runPlan(plan, { tools: [plain.tool, counting] })) events.push(event)
  const of = (id: string) =>
    events
      .filter((event) => event.toolCallId === id)
      .map((event) => (isToolProgress(event) ? event.data : event.type))
  expect(of('a')).toEqual(['half', 'output'])
  expect(of('b')).toEqual([1, 2, 3, 'output'])
  expect(events.filter(isToolOutput).map(({ outcome }) => outcome)).toEqual(
    expect.arrayContaining([
      { kind: 'ok', value: 'whole' },
      { kind: 'ok', value: { sum: 6 } },
    ]),
  )
})

test('S2.39 a call to a tool that does not exist fails by itself, the others run', async () => {
  const plain = counted('plain')
  const plan = allSafe([planned('a', 'nothing'), planned('b', 'plain'), planned('c', '__proto__')])
  expect(await outcomes(runPlan(plan, { tools: [plain.tool] }))).toMatchObject({
    a: { kind: 'unknown_tool', reason: expect.stringContaining('nothing') },
    b: { kind: 'ok' },
    c: { kind: 'unknown_tool' },
  })
})

test('S2.40 whatever goes wrong with a call is an execution_error with a reason, and nothing else stops', async () => {
  const fails = (name: string, execute: () => unknown) =>
    tool({ name, description: name, input: z.object({ n: z.number().optional() }), execute })
  const tools = [
    fails('throws', () => {
      throw new Error('thrown')
    }),
    fails('rejects', () => Promise.reject(new Error('rejected'))),
    fails('text', () => Promise.reject('a string')),
    fails('stream', async function* () {
      yield 1
      throw new Error('mid-stream')
    }),
    fails('loops', () => {
      const loop: { self?: unknown } = {}
      loop.self = loop
      return loop
    }),
    counting,
    tool({ ...counting, name: 'unfinal', finalize: () => Promise.reject(new Error('finalized')) }),
  ]
  const calls = [
    planned('json', 'throws', '{"n":'),
    planned('twice', 'throws', '{"n":1,"n":2}'),
    planned('schema', 'throws', { n: 'one' }),
    ...['throws', 'rejects', 'text', 'stream', 'loops'].map((name) => planned(name, name)),
    planned('unfinal', 'unfinal', { n: 1 }),
    planned('fine', 'count', { n: 1 }),
  ]
  const ended = await outcomes(runPlan(allSafe(calls), { tools, warn: () => {} }))
  const { fine, ...broken } = ended
  expect(fine).toEqual({ kind: 'ok', value: { sum: 1 } })
  for (const outcome of Object.values(broken)) {
    expect(outcome).toMatchObject({ kind: 'execution_error', reason: expect.stringMatching(/./) })
  }
  expect(Object.keys(broken).length).toBe(9)
  expect(ended).toMatchObject({
    throws: { reason: expect.stringContaining('failed') },
    rejects: { reason: expect.stringContaining('failed') },
    stream: { reason: expect.stringContaining('failed') },
    unfinal: { reason: expect.stringContaining('failed') },
    schema: { reason: expect.stringContaining('n: ') },
  })
})

test('S2.42 events are passed on while the tools run, not after', async () => {
  let goOn = () => {}
  const waits = tool({
    name: 'waits',
    description: 'Waits',
    input: z.object({}),
    async *execute() {
      yield 'first'
      await new Promise<void>((resolve) => {
        goOn = resolve
      })
      yield 'last'
    },
  })
  const events = runPlan(allSafe([planned('a', 'waits'), planned('b', 'quick')]), {
    tools: [waits, counted('quick').tool],
  })
  const early = [await events.next(), await events.next()].map(({ value }) => value?.type).sort()
  expect(early).toEqual(['output', 'progress'])
  const third = events.next()
  goOn()
  expect((await third).value).toMatchObject({ type: 'progress', data: 'last' })
  expect((await events.next()).value).toMatchObject({
    type: 'output',
    outcome: { kind: 'ok', value: 'last' },
  })
  expect((await events.next()).done).toBe(true)
})

test('S2.44 a stream of events drains to its results', async () => {
  const outputs = await drainOutputs(
    runPlan(allSafe([planned('a', 'count', { n: 2 })]), { tools: [counting] }),
  )
  expect(outputs).toEqual([
    { type: 'output', toolCallId: 'a', toolName: 'count', outcome: { kind: 'ok', value: { sum: 3 } } },
  ])
})

test('S2.15 S2.16 plan and run together: approved calls side by side, rejected ones as outputs, nothing is asked', async () => {
  let begun = 0
  let open = () => {}
  const allBegun = new Promise<void>((resolve) => {
    open = resolve
  })
  const slow = counted('slow', {
    execute: async () => {
      if (++begun === 3) open()
      await allBegun
    },
  })
  const plan = planFromMap(({ toolName }) => toolName === 'count', {
    d: { decision: 'deny', reason: 'No.' },
  })([planned('a', 'slow'), planned('b', 'slow'), planned('c', 'slow'), planned('d', 'count', { n: 5 })])
  const events: PlanEvent[] = []
  for await (const event of runPlan(plan, { tools: [slow.tool, counting] })) events.push(event)
  expect(begun).toBe(3)
  expect(events.map(({ type }) => type)).toEqual(['output', 'output', 'output', 'output'])
  expect(events.filter(({ toolCallId }) => toolCallId === 'd')).toMatchObject([
    { outcome: { kind: 'denied', reason: 'No.' } },
  ])
})

test('S0.9 tools of a plan reach the services and the conversation that they are given', async () => {
  const reads = counted('reads', { execute: (_, { context, messages }) => [context.tenant, messages.length] })
  const options = { tools: [reads.tool], context: { tenant: 'acme' }, messages: [] }
  expect(await outcomes(runPlan(allSafe([planned('a', 'reads')]), options))).toMatchObject({
    a: { value: ['acme', 0] },
  })
})

test('whoever stops reading stops the tools', async () => {
  let stopped = false
  const endless = tool({
    name: 'endless',
    description: 'Never ends',
    input: z.object({}),
    async *execute(_, { signal }) {
      try {
        for (;;) yield signal.aborted
      } finally {
        stopped = true
      }
    },
  })
  for await (const event of runPlan(allSafe([planned('a', 'endless')]), { tools: [endless] })) {
    expect(event.type).toBe('progress')
    break
  }
  await vi.waitFor(() => expect(stopped).toBe(true))
})
