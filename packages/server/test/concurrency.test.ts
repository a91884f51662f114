import { drainOutputs, type PlannedCall, planFromMap, runPlan } from '@countersign/server/plan'
import { expect, test } from 'vitest'
import { answered } from './answered.js'
import { ask, call, collect, counted, input, results, say, testAgent, user } from './support.js'

/** A tool whose runs wait for one another until `together` of them are there, and that knows how many there were at most. */
function crowded(together: number, needsApproval = false) {
  let running = 0
  let open = () => {}
  const crowd = new Promise<void>((resolve) => {
    open = resolve
  })
  const seen = { most: 0 }
  const { tool } = counted('crowd', {
    needsApproval,
    execute: async ({ n }) => {
      seen.most = Math.max(seen.most, ++running)
      if (running === together) open()
      await crowd
      await new Promise((resolve) => setTimeout(resolve, 1))
      running--
      return n
    },
  })
  return { tool, seen }
}

const limits = [
  [1, 1],
  [2, 2],
  ['unbounded', 4],
  [undefined, 4],
] as const
const four = ['a', 'b', 'c', 'd']

test('S1.12 S2.41 concurrency applies to fresh calls; by default it is unbounded', async () => {
  for (const [concurrency, most] of limits) {
    const { tool, seen } = crowded(most)
    const turn = call(...four.map((id) => [id, 'crowd', {}] as const))
    const { agent } = testAgent([turn, say('ok')], { tools: [tool], concurrency })
    const events = await collect(agent, input([user('go')]))
    expect(results(events).length).toBe(4)
    expect(seen.most).toBe(most)
  }
})

test('S1.12 concurrency applies to calls that were approved', async () => {
  for (const [concurrency, most] of limits) {
    const { tool, seen } = crowded(most, true)
    const { events } = await answered([tool], Array(4).fill('crowd'), Array(4).fill({ approved: true }), {
      concurrency,
    })
    expect(results(events).length).toBe(4)
    expect(seen.most).toBe(most)
  }
})

test('S2.41 concurrency applies to a plan that an application carries out', async () => {
  for (const [concurrency, most] of limits) {
    const { tool, seen } = crowded(most)
    const calls = four.map(
      (id): PlannedCall => ({ toolCallId: id, toolName: 'crowd', arguments: '{}', input: {} }),
    )
    const plan = planFromMap(() => false, {})(calls)
    expect((await drainOutputs(runPlan(plan, { tools: [tool], concurrency }))).length).toBe(4)
    expect(seen.most).toBe(most)
  }
})

test('a concurrency of nothing is refused: no call would ever run', () => {
  const plan = { approved: [], rejected: [] }
  expect(() => runPlan(plan, { tools: [], concurrency: 0 })).toThrow(/concurrency must be a positive number/)
})

test('S1.13 results of approved calls come in the order of the calls, whichever ended first', async () => {
  let begun = 0
  const backwards: (() => void)[] = []
  const { tool } = counted('crowd', {
    needsApproval: true,
    execute: async () => {
      const ended = new Promise<void>((resolve) => backwards.unshift(resolve))
      // the last to begin ends first
      if (++begun === 4) for (const [n, end] of backwards.entries()) setTimeout(end, n)
      await ended
    },
  })
  const turn = call(...four.map((_, n) => [`c${n}`, 'crowd', {}] as const))
  const { agent } = testAgent([turn, say('ok')], { tools: [tool] })
  const { history, asked } = await ask(agent)
  const resume = asked.map((one) => ({
    interruptId: one.approval.id,
    status: 'resolved' as const,
    payload: { approved: true },
  }))
  const events = await collect(agent, input(history, { resume: resume.reverse() }))
  expect(results(events).map(({ id }) => id)).toEqual(['c0', 'c1', 'c2', 'c3'])
})

test('S2.22 S0.32 D14 a gated call holds up none of its safe siblings', async () => {
  const { tool, seen } = crowded(2)
  const gated = counted('gated', { needsApproval: true })
  const turn = call(['a', 'crowd', {}], ['g', 'gated', {}], ['b', 'crowd', {}])
  const { agent, model } = testAgent([turn, say('ok')], { tools: [tool, gated.tool] })
  const { events } = await ask(agent)
  expect(
    results(events)
      .map(({ id }) => id)
      .sort(),
  ).toEqual(['a', 'b'])
  expect(seen.most).toBe(2)
  expect(gated.runs).toEqual([])
  expect(model.requests.length).toBe(1)
})
