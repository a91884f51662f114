import { getEventListeners } from 'node:events'
import type { ResumeEntry } from '@countersign/core'
import { type AnswerQueue, answerQueue } from '@countersign/server'
import {
  type DecidedCall,
  drainOutputs,
  type PlanEvent,
  type PlannedCall,
  planFromQueue,
  runPlan,
} from '@countersign/server/plan'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { counted } from './support.js'

const planned = (toolCallId: string, toolName = 'send', input: unknown = {}): PlannedCall => ({
  toolCallId,
  toolName,
  input,
  arguments: JSON.stringify(input),
})
const isSend = ({ toolName }: PlannedCall) => toolName === 'send'
const yes = (interruptId: string): ResumeEntry => ({
  interruptId,
  status: 'resolved',
  payload: { approved: true },
})
const no = (interruptId: string, reason?: string): ResumeEntry => ({
  interruptId,
  status: 'resolved',
  payload: { approved: false, reason },
})
const told = (decision: DecidedCall) => [decision.kind, decision.call.toolCallId]

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = []
  for await (const value of values) read.push(value)
  return read
}

async function next<T>(values: AsyncIterator<T>): Promise<T> {
  const result = await values.next()
  if (result.done) throw new Error('ended early')
  return result.value
}

/** Lets everything that is ready happen. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 0))

test('S2.21 S2.23 safe calls at once, and one request for each other call, in order, with all that a person needs', async () => {
  const calls = [
    planned('a', 'read'),
    planned('b', 'send', { to: 'ann' }),
    planned('c', 'send', { to: 'bob' }),
  ]
  const plan = planFromQueue(isSend, answerQueue())(calls)
  expect(plan.approved).toEqual([{ call: calls[0] }])
  const requests = await all(plan.approvalRequests)
  expect(requests).toEqual([
    {
      type: 'approval-requested',
      approvalId: expect.stringMatching(/^approval_/),
      toolCallId: 'b',
      toolName: 'send',
      input: { to: 'ann' },
    },
    {
      type: 'approval-requested',
      approvalId: expect.stringMatching(/^approval_/),
      toolCallId: 'c',
      toolName: 'send',
      input: { to: 'bob' },
    },
  ])
  expect(requests[0]?.approvalId).not.toBe(requests[1]?.approvalId)
})

test('S2.5 the predicate of a live plan is asked once for each call, also while it is carried out', async () => {
  const asked: string[] = []
  const queue = answerQueue()
  const plan = planFromQueue((call: PlannedCall) => {
    asked.push(call.toolCallId)
    return isSend(call)
  }, queue)([planned('a', 'read'), planned('b')])
  void queue.put(yes('b'))
  await drainOutputs(runPlan(plan, { tools: [counted('read').tool, counted('send').tool] }))
  expect(asked).toEqual(['a', 'b'])
})

test('S2.22 safe calls run before any answer has come', async () => {
  const read = counted('read')
  const plan = planFromQueue(isSend, answerQueue())([planned('b'), planned('a', 'read')])
  const events = runPlan(plan, { tools: [read.tool, counted('send').tool] })
  const first = [await next(events), await next(events)]
  expect(first.map(({ type }) => type).sort()).toEqual(['approval-requested', 'output'])
  expect(read.runs.length).toBe(1)
  await events.return?.()
})

test('S2.24 S2.25 each call waits for its own answer only: yes runs it, no denies it with the reason', async () => {
  const queue = answerQueue()
  const send = counted('send')
  const plan = planFromQueue(isSend, queue)([planned('a'), planned('b'), planned('c')])
  const events = runPlan(plan, { tools: [send.tool] })
  for (let n = 0; n < 3; n++) expect((await next(events)).type).toBe('approval-requested')
  void queue.put(yes('b'))
  expect(await next(events)).toMatchObject({ type: 'output', toolCallId: 'b', outcome: { kind: 'ok' } })
  expect(send.runs.length).toBe(1)
  void queue.put(no('c', 'Not now.'))
  expect(await next(events)).toMatchObject({
    toolCallId: 'c',
    outcome: { kind: 'denied', reason: 'Not now.' },
  })
  void queue.put(yes('a'))
  expect(await next(events)).toMatchObject({ toolCallId: 'a', outcome: { kind: 'ok' } })
  expect((await events.next()).done).toBe(true)
  expect(send.runs.length).toBe(2)
})

test('D2 an answer names the approval or the call', async () => {
  const queue = answerQueue()
  const plan = planFromQueue(isSend, queue)([planned('a'), planned('b')])
  void queue.put(yes(plan.pending[0]?.approvalId ?? ''))
  void queue.put(yes('b'))
  expect((await all(plan.decisions)).map(told)).toEqual([
    ['approved', 'a'],
    ['approved', 'b'],
  ])
})

test('S2.26 an answer that came before its request was read counts', async () => {
  const queue = answerQueue()
  const plan = planFromQueue(isSend, queue)([planned('a')])
  void queue.put(yes('a'))
  await settled()
  expect((await all(plan.approvalRequests)).length).toBe(1)
  expect((await all(plan.decisions)).map(told)).toEqual([['approved', 'a']])
})

test('S2.29 answers for unknown or finished calls are ignored and hold up nothing', async () => {
  const queue = answerQueue()
  const send = counted('send')
  const first = planFromQueue(isSend, queue)([planned('a')])
  void queue.put(yes('nobody'))
  void queue.put(yes('a'))
  await drainOutputs(runPlan(first, { tools: [send.tool] }))
  void queue.put(yes('a'))
  const second = planFromQueue(isSend, queue)([planned('b')])
  void queue.put(yes('b'))
  const outputs = await drainOutputs(runPlan(second, { tools: [send.tool] }))
  expect(outputs.map(({ toolCallId }) => toolCallId)).toEqual(['b'])
  expect(send.runs.length).toBe(2)
})

test('S2.30 an answer that comes a turn early, for a call of the next, is not lost', async () => {
  const queue = answerQueue()
  const first = planFromQueue(isSend, queue)([planned('a')])
  const decisions = all(first.decisions)
  void queue.put(yes('later'))
  void queue.put(no('a'))
  expect((await decisions).map(told)).toEqual([['rejected', 'a']])
  const second = planFromQueue(isSend, queue)([planned('later')])
  expect((await all(second.decisions)).map(told)).toEqual([['approved', 'later']])
})

test('S2.31 D9 of two answers for one call the first counts', async () => {
  const queue = answerQueue()
  const plan = planFromQueue(isSend, queue)([planned('a'), planned('b')])
  const { decisions } = plan
  const first = next(decisions)
  void queue.put(no('a'))
  const second = queue.put(yes('a'))
  expect(told(await first)).toEqual(['rejected', 'a'])
  expect(await second).toMatchObject({ status: 'refused', code: 'approval-conflict' })
  void queue.put(yes('b'))
  expect((await all(decisions)).map(told)).toEqual([['approved', 'b']])
})

test('an answer that cannot be read is none: the call goes on waiting', async () => {
  const queue = answerQueue()
  const plan = planFromQueue(isSend, queue)([planned('a')])
  const decided = all(plan.decisions)
  for (const payload of [
    undefined,
    {},
    { approved: 'yes' },
    { approved: 1 },
    { approved: true, scope: 'ever' },
  ])
    void queue.put({ interruptId: 'a', status: 'resolved', payload })
  await settled()
  void queue.put(yes('a'))
  expect((await decided).map(told)).toEqual([['approved', 'a']])
})

test('a person who walks away cancels the call', async () => {
  const queue = answerQueue()
  const plan = planFromQueue(isSend, queue)([planned('a')])
  void queue.put({ interruptId: 'a', status: 'cancelled' })
  expect(await all(plan.decisions)).toMatchObject([{ kind: 'rejected', failure: { kind: 'cancelled' } }])
})

test('once the answer of a queue was refused, none is taken until somebody waits for one again', async () => {
  const answers = answerQueue()
  const taken: unknown[] = []
  const take = () => answers.take('a', (entry) => taken.push(entry))
  take()
  expect(await answers.put(yes('a'))).toEqual({ status: 'taken' })
  expect(await answers.put(yes('a'))).toEqual({ status: 'taken' })
  answers.refuse?.('a')
  for (const entry of [yes('a'), no('a')])
    expect(await answers.put(entry)).toMatchObject({ status: 'refused', code: 'approval-conflict' })
  take()
  expect(await answers.put(yes('a'))).toEqual({ status: 'taken' })
  expect(taken).toEqual([yes('a'), yes('a')])
})

test('S2.32 a closed queue or an abort cancels what still waits, also before anybody reads', async () => {
  for (const when of ['before', 'while'] as const) {
    for (const how of ['close', 'abort', 'abort the plan'] as const) {
      const queue = answerQueue()
      const stop = new AbortController()
      const planned2 = planFromQueue(isSend, queue, {
        reason: 'nobody answered',
        ...(how === 'abort' && { signal: stop.signal }),
      })([planned('a'), planned('b'), planned('c', 'read')])
      const end = () => (how === 'close' ? queue.close() : stop.abort())
      if (when === 'before') end()
      const outputs = drainOutputs(
        runPlan(planned2, {
          tools: [counted('send').tool, counted('read').tool],
          ...(how === 'abort the plan' && { signal: stop.signal }),
        }),
      )
      await settled()
      end()
      const byId = new Map((await outputs).map(({ toolCallId, outcome }) => [toolCallId, outcome.kind]))
      const read = how === 'abort the plan' && when === 'before' ? 'cancelled' : 'ok'
      expect([...byId].sort()).toEqual([
        ['a', 'cancelled'],
        ['b', 'cancelled'],
        ['c', read],
      ])
    }
  }
})

/** A queue that counts who listens. */
function watched(): { readonly queue: AnswerQueue; readonly listening: () => number } {
  const queue = answerQueue()
  let listening = 0
  const take: AnswerQueue['take'] = (id, taken) => {
    listening++
    let left = false
    const leave = queue.take(id, (entry) => {
      if (!left) listening--
      left = true
      taken(entry)
    })
    return () => {
      if (!left) listening--
      left = true
      leave()
    }
  }
  return { queue: { ...queue, take }, listening: () => listening }
}

test('S2.33 whoever stops reading leaves nothing behind: 1,000 runs on one queue and one signal', async () => {
  const { queue, listening } = watched()
  const stop = new AbortController()
  const plan = planFromQueue(isSend, queue, { signal: stop.signal })
  for (let n = 0; n < 1000; n++) {
    const { approvalRequests, decisions } = plan([planned(`a${n}`), planned(`b${n}`)])
    if (n % 4 === 0) {
      // leaves while it waits
      const waiting = decisions.next()
      await decisions.return?.()
      expect((await waiting).done).toBe(true)
    } else if (n % 4 === 1) {
      // leaves after the first decision
      void queue.put(yes(`a${n}`))
      for await (const decision of decisions) {
        expect(told(decision)).toEqual(['approved', `a${n}`])
        break
      }
    } else if (n % 4 === 2) {
      for await (const _ of approvalRequests) break
    } else {
      const events = runPlan(plan([planned(`c${n}`)]), { tools: [counted('send').tool] })
      for await (const event of events) if (event.type === 'approval-requested') break
    }
  }
  await settled()
  expect(listening()).toBe(0)
  expect(getEventListeners(stop.signal, 'abort').length).toBe(0)
})

test('S2.34 two runs at once, each with the queue of its own thread, do not take answers from one another', async () => {
  const queues = { one: answerQueue(), two: answerQueue() }
  const call = planned('same', 'send')
  const one = all(planFromQueue(isSend, queues.one)([call]).decisions)
  const two = all(planFromQueue(isSend, queues.two)([call]).decisions)
  await settled()
  void queues.two.put(no('same'))
  expect((await two).map(told)).toEqual([['rejected', 'same']])
  void queues.one.put(yes('same'))
  expect((await one).map(told)).toEqual([['approved', 'same']])
})

test('S2.34 two runs on one queue: each gets the answers to its own approvals', async () => {
  const queue = answerQueue()
  const runs = ['x', 'y'].map((id) => planFromQueue(isSend, queue)([planned(id)]))
  const decided = runs.map(({ decisions }) => all(decisions))
  void queue.put(no(runs[1]?.pending[0]?.approvalId ?? ''))
  void queue.put(yes(runs[0]?.pending[0]?.approvalId ?? ''))
  expect((await Promise.all(decided)).map((list) => list.map(told))).toEqual([
    [['approved', 'x']],
    [['rejected', 'y']],
  ])
})

test('S2.2 whatever the answers and their order, every call of a live plan has exactly one output', async () => {
  type Step = readonly ['put', number, boolean] | readonly ['close'] | readonly ['stop']
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(fc.constant('put' as const), fc.nat(6), fc.boolean()) },
    { weight: 1, arbitrary: fc.constant(['close'] as const) },
    { weight: 1, arbitrary: fc.constant(['stop'] as const) },
  )
  const property = fc.asyncProperty(
    fc.array(fc.constantFrom('send', 'read', 'gone'), { maxLength: 6 }),
    fc.array(step, { maxLength: 10 }),
    async (names, steps) => {
      const queue = answerQueue()
      const stop = new AbortController()
      const calls = names.map((name, n) => planned(`c${n}`, name))
      const needs = ({ toolName }: PlannedCall) => toolName !== 'read'
      const [send, read] = [counted('send'), counted('read')]
      const plan = planFromQueue(needs, queue, { signal: stop.signal })(calls)
      const events = all<PlanEvent>(runPlan(plan, { tools: [send.tool, read.tool] }))
      const approved = new Set<string>()
      for (const [kind, n, approve] of steps) {
        if (kind === 'put') void queue.put(approve ? yes(`c${n}`) : no(`c${n}`))
        if (kind === 'put' && approve) approved.add(`c${n}`)
        if (kind === 'close') queue.close()
        if (kind === 'stop') stop.abort()
        await settled()
      }
      queue.close()
      const outputs = (await events).filter(({ type }) => type === 'output')
      expect(outputs.map(({ toolCallId }) => toolCallId).sort()).toEqual(
        calls.map((call) => call.toolCallId).sort(),
      )
      expect(read.runs.length).toBe(names.filter((name) => name === 'read').length)
      const mayRun = calls.filter((call) => call.toolName === 'send' && approved.has(call.toolCallId))
      expect(send.runs.length).toBeLessThanOrEqual(mayRun.length)
    },
  )
  await fc.assert(property, { seed: 20_262, numRuns: 100 })
})
