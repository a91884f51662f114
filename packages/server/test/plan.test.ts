import { readFileSync } from 'node:fs'
import { isCountersignError, type Message } from '@countersign/core'
import { withResults } from '@countersign/server'
import {
  appendTurn,
  drainOutputs,
  type PlannedCall,
  planApprovals,
  planFromMap,
  plannedCalls,
  readVerdictMap,
  runPlan,
  type VerdictEntry,
} from '@countersign/server/plan'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { counted, fold, user } from './support.js'

const planned = (toolCallId: string, toolName = 'send', input: unknown = {}): PlannedCall => ({
  toolCallId,
  toolName,
  input,
  arguments: JSON.stringify(input),
})
const isSend = ({ toolName }: PlannedCall) => toolName === 'send'
const ids = (list: readonly { readonly call: PlannedCall }[]) => list.map(({ call }) => call.toolCallId)

test('S2.3 S2.7 S2.14 a plan is plain data, made at once and without effects, in the order of the calls', () => {
  const calls = Object.freeze(['a', 'b', 'c', 'd'].map((id) => Object.freeze(planned(id))))
  const verdicts = Object.freeze({
    d: { decision: 'approve' },
    b: { decision: 'approve' },
    c: { decision: 'deny' },
    a: { decision: 'deny' },
  } as const)
  const plan = planFromMap(isSend, verdicts)(calls)
  expect([ids(plan.approved), ids(plan.rejected)]).toEqual([
    ['b', 'd'],
    ['a', 'c'],
  ])
  expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
})

test('S2.4 S2.5 what needs approval is for the caller to say, over the whole call, and is asked once for each', () => {
  const asked: string[] = []
  const calls = [planned('a', 'read', { path: '/etc/passwd' }), planned('b', 'read', { path: '/tmp/x' })]
  const needs = ({ toolCallId, input }: PlannedCall) => {
    asked.push(toolCallId)
    return JSON.stringify(input).includes('/etc/')
  }
  const plan = planFromMap(needs, {})(calls)
  expect([ids(plan.approved), ids(plan.rejected)]).toEqual([['b'], ['a']])
  expect(asked).toEqual(['a', 'b'])
})

test('D8 a predicate that throws means that the call needs approval', () => {
  const needs = () => {
    throw new Error('no idea')
  }
  expect(planFromMap(needs, {})([planned('a')]).rejected.length).toBe(1)
})

test('S2.8 an entry is under the id of the call or of the approval', () => {
  const call = { ...planned('c1'), approvalId: 'approval_1' }
  for (const key of ['c1', 'approval_1']) {
    expect(planFromMap(isSend, { [key]: { decision: 'approve' } })([call]).approved.length).toBe(1)
    expect(planFromMap(isSend, new Map([[key, { decision: 'deny' }]]))([call]).rejected.length).toBe(1)
  }
})

test('S2.8 an entry is an approval, or a denial with or without a reason, and nothing else', () => {
  const entries: VerdictEntry[] = [
    { decision: 'approve' },
    { decision: 'deny' },
    { decision: 'deny', reason: 'No.' },
  ]
  expect(entries.length).toBe(3)
  // @ts-expect-error nobody can approve with a reason by this door
  entries.push({ decision: 'approve', reason: 'yes' })
  // @ts-expect-error walking away is no entry: it is the absence of one
  entries.push({ decision: 'cancel' })
})

test('S2.9 a safe call runs, with or without an entry', () => {
  const calls = [planned('a', 'read'), planned('b', 'read')]
  expect(ids(planFromMap(isSend, { b: { decision: 'deny' } })(calls).approved)).toEqual(['a', 'b'])
})

test('S2.10 S2.11 S2.12 a gated call runs if approved, is denied with its reason if any, and without an entry is cancelled', () => {
  const calls = ['a', 'b', 'c', 'd'].map((id) => planned(id))
  const plan = planFromMap(isSend, {
    a: { decision: 'approve' },
    b: { decision: 'deny', reason: 'Too late.' },
    c: { decision: 'deny' },
  })(calls)
  expect(ids(plan.approved)).toEqual(['a'])
  expect(plan.rejected.map(({ failure }) => failure)).toEqual([
    { kind: 'denied', reason: 'Too late.' },
    { kind: 'denied' },
    { kind: 'cancelled' },
  ])
  expect(plan.rejected.map(({ failure }) => Object.keys(failure))).toEqual([
    ['kind', 'reason'],
    ['kind'],
    ['kind'],
  ])
})

test('S2.13 entries for calls that are not there are ignored', () => {
  const plan = planFromMap(isSend, { zzz: { decision: 'approve' }, a: { decision: 'approve' } })([
    planned('a'),
  ])
  expect([ids(plan.approved), plan.rejected]).toEqual([['a'], []])
})

test('D24 of two calls with one id, a verdict by that id is for the last', () => {
  const [first, second] = [planned('c1', 'send', { n: 1 }), planned('c1', 'send', { n: 2 })]
  const plan = planFromMap(isSend, { c1: { decision: 'approve' } })([first, second])
  expect(plan.approved.map(({ call }) => call)).toEqual([second])
  expect(plan.rejected.map(({ call }) => call)).toEqual([first])
})

test('U.11 ids that name members of every object neither match nor crash', () => {
  for (const id of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    expect(planFromMap(isSend, {})([planned(id)]).rejected.length).toBe(1)
    const given = readVerdictMap(JSON.parse(`{"verdicts":{"${id}":{"decision":"approve"}}}`))
    expect(planFromMap(isSend, given)([planned('other')]).rejected.length).toBe(1)
    expect(planFromMap(isSend, given)([planned(id)]).approved.length).toBe(1)
  }
})

test('S2.20 the verdicts of a request body: absent ones are none, malformed ones are refused with 400', () => {
  for (const body of [undefined, null, {}, { verdicts: null }, { verdicts: {} }, 'text', []])
    expect(readVerdictMap(body).size).toBe(0)
  const given = {
    a: { decision: 'approve', scope: 'session', more: 1 },
    b: { decision: 'deny', reason: 'No.' },
  }
  expect([...readVerdictMap({ verdicts: given })]).toEqual([
    ['a', { decision: 'approve', scope: 'session' }],
    ['b', { decision: 'deny', reason: 'No.' }],
  ])
  const malformed = [
    [],
    'approve',
    { a: 'approve' },
    { a: {} },
    { a: { decision: 'yes' } },
    { a: { decision: true } },
    { a: { decision: 'deny', reason: 1 } },
    { a: { decision: 'approve', scope: 'forever' } },
    Object.fromEntries(Array.from({ length: 257 }, (_, n) => [n, { decision: 'approve' }])),
  ]
  for (const verdicts of malformed) {
    let thrown: unknown
    try {
      readVerdictMap({ verdicts })
    } catch (error) {
      thrown = error
    }
    expect(isCountersignError(thrown) && [thrown.code, thrown.data.status]).toEqual(['invalid-request', 400])
  }
})

test("planApprovals is the one decision of the planners: the map's and the queue's", () => {
  const source = (file: string) => readFileSync(new URL(`../src/${file}`, import.meta.url), 'utf8')
  for (const file of ['plan/plan-from-map.ts', 'plan/plan-from-queue.ts'])
    expect(source(file)).toContain('planApprovals(')
  const calls = [
    { toolCallId: 'a' },
    { toolCallId: 'b', approvalId: 'approval_b' },
    { toolCallId: 'c', approvalId: 'approval_c' },
  ]
  const verdicts = [
    { approvalId: 'approval_b', decision: 'approve' as const },
    { approvalId: 'approval_b', decision: 'deny' as const },
  ]
  expect(planApprovals(calls, verdicts, { onMissingVerdict: 'pending' })).toEqual({
    approved: [{ call: calls[0] }, { call: calls[1], verdict: verdicts[0] }],
    rejected: [],
    pending: [calls[2]],
  })
})

test('S2.43 a turn and its results are added in one step, as by hand', () => {
  const history = [user('go')]
  const turn = {
    id: 'turn',
    role: 'assistant' as const,
    content: 'I will.',
    toolCalls: ['a', 'b'].map((id) => ({
      id,
      type: 'function' as const,
      function: { name: 'send', arguments: '{}' },
    })),
  }
  const outputs = [
    { type: 'output', toolCallId: 'b', toolName: 'send', outcome: { kind: 'denied', reason: 'No.' } },
    { type: 'output', toolCallId: 'a', toolName: 'send', outcome: { kind: 'ok', value: 1 } },
  ] as const
  const byHand: readonly Message[] = withResults(
    [...history, turn],
    [
      { id: 'result_turn_a', role: 'tool', toolCallId: 'a', content: '1' },
      {
        id: 'result_turn_b',
        role: 'tool',
        toolCallId: 'b',
        content: '{"type":"execution-denied","reason":"No."}',
        error: 'No.',
        metadata: { countersign: { outcome: 'denied' } },
      },
    ],
  )
  expect(appendTurn(history, turn, outputs)).toEqual(byHand)
  expect(byHand.map(({ id }) => id).slice(1)).toEqual(['turn', 'result_turn_a', 'result_turn_b'])
})

test('S2.2 whatever the verdicts of a map, every call has exactly one output and the history is whole', async () => {
  const verdict = fc.option(
    fc.oneof(
      fc.constant<VerdictEntry>({ decision: 'approve' }),
      fc.record({
        decision: fc.constant<'deny'>('deny'),
        reason: fc.option(fc.string(), { nil: undefined }),
      }),
    ),
    { nil: undefined },
  )
  const property = fc.asyncProperty(
    fc.array(fc.tuple(fc.constantFrom('send', 'read', 'boom', 'gone'), verdict), { maxLength: 8 }),
    async (mix) => {
      const boom = counted('boom', {
        execute: () => {
          throw new Error('boom')
        },
      })
      const tools = [counted('send'), counted('read'), boom]
      const calls = mix.map(([name], n) => planned(`c${n}`, name))
      const entries = mix.flatMap(([, entry], n) => (entry === undefined ? [] : [[`c${n}`, entry] as const]))
      const plan = planFromMap((call) => call.toolName !== 'read', new Map(entries))(calls)
      const outputs = await drainOutputs(
        runPlan(plan, { tools: tools.map(({ tool }) => tool), warn: () => {} }),
      )
      expect(outputs.map(({ toolCallId }) => toolCallId).sort()).toEqual(
        calls.map((call) => call.toolCallId).sort(),
      )
      const approved = mix.filter(([name, entry]) => name === 'read' || entry?.decision === 'approve')
      const ran = tools.reduce((sum, { runs }) => sum + runs.length, 0)
      expect(ran).toBe(approved.filter(([name]) => name !== 'gone').length)
    },
  )
  await fc.assert(property, { seed: 20_261, numRuns: 100 })
})

test('the calls of a turn: those the provider runs are its own, unreadable arguments are no input', () => {
  const turn = fold(
    [],
    [
      { type: 'TOOL_CALL_START', toolCallId: 'a', toolCallName: 'send', parentMessageId: 'm' },
      { type: 'TOOL_CALL_ARGS', toolCallId: 'a', delta: '{"to":"ann"}' },
      { type: 'TOOL_CALL_START', toolCallId: 'b', toolCallName: 'send', parentMessageId: 'm' },
      { type: 'TOOL_CALL_ARGS', toolCallId: 'b', delta: '{"to":' },
      {
        type: 'TOOL_CALL_START',
        toolCallId: 'c',
        toolCallName: 'mcp',
        parentMessageId: 'm',
        metadata: { countersign: { providerExecuted: true } },
      },
    ],
  )[0]
  expect(plannedCalls(turn)).toEqual([
    { toolCallId: 'a', toolName: 'send', arguments: '{"to":"ann"}', input: { to: 'ann' } },
    { toolCallId: 'b', toolName: 'send', arguments: '{"to":', input: undefined },
  ])
  expect(plannedCalls(user('hello'))).toEqual([])
})
