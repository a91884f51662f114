import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Message } from '@countersign/core'
import {
  type AuditEntry,
  answerQueue,
  type Model,
  type ModelEvent,
  memoryLedger,
  type Observe,
  type RunEvent,
} from '@countersign/server'
import { expect, test } from 'vitest'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  requests,
  results,
  say,
  testAgent,
  user,
} from './support.js'

const context = { subject: 'ann' }

/** What an event says, without times and hashes. */
const brief = ({ at: _, ownerHash: __, threadId: ___, ...event }: RunEvent) =>
  Object.fromEntries(
    Object.entries(event).filter(
      ([name, value]) => value !== undefined && name !== 'duration' && name !== 'firstEventAfter',
    ),
  )

const usage = (inputTokens: number) => ({ provider: 'test', model: 'm', inputTokens })

/** In its first step it calls `read`, `fail` and `send`, of which `send` needs approval; in its second it replies. */
function setUp(observe: Observe | undefined, more: { onAudit?: (entry: AuditEntry) => void } = {}) {
  const model: Model = {
    id: 'test/m',
    async *stream({ messages }) {
      const isFirst = messages.at(-1)?.role === 'user'
      yield { type: 'usage', usage: { inputTokens: isFirst ? 1 : 2 } }
      yield* isFirst
        ? call(['c1', 'read', { path: 'secret-argument' }], ['c2', 'fail', {}], ['c3', 'send', { to: 'bob' }])
        : say('secret-text')
    },
  }
  const sent = counted('send', { needsApproval: true })
  const tools = [
    counted('read').tool,
    counted('fail', { execute: () => Promise.reject(new Error('secret-error')) }).tool,
    sent.tool,
  ]
  const { agent } = testAgent([], { model, tools, observe, concurrency: 1, approvals: more })
  return { agent, sent: sent.runs }
}

/** The run with a live channel, answered as soon as it asks. */
async function runLive(agent: ReturnType<typeof setUp>['agent'], runId: string) {
  const answers = answerQueue({ keepEarly: 1000 })
  const events = []
  for await (const event of agent.run(input([user('secret-question')], { runId }), { context, answers })) {
    events.push(event)
    for (const asked of requests([event])) answers.put(answer(asked, { approved: true }), context)
  }
  return events
}

test('T33 a run with two steps, three calls, one approval and one failure reports exactly the documented events', async () => {
  const seen: RunEvent[] = []
  const audited: AuditEntry[] = []
  const { agent } = setUp((event) => void seen.push(event), { onAudit: (entry) => void audited.push(entry) })
  const events = await runLive(agent, 'r1')
  const [approval] = requests(events)
  const run = { runId: 'r1' }
  const one = { ...run, step: 1 }
  const send = { toolCallId: 'c3', toolName: 'send' }
  const approvalId = approval?.approval.id
  expect(seen.map(brief)).toEqual([
    { type: 'run-started', ...run, step: 0 },
    { type: 'model-started', ...one, model: 'test/m' },
    { type: 'call-started', ...one, toolCallId: 'c1', toolName: 'read', approved: false },
    { type: 'call-finished', ...one, toolCallId: 'c1', toolName: 'read', outcome: 'result' },
    { type: 'call-started', ...one, toolCallId: 'c2', toolName: 'fail', approved: false },
    {
      type: 'call-finished',
      ...one,
      toolCallId: 'c2',
      toolName: 'fail',
      outcome: 'error',
      code: 'tool-failed',
    },
    { type: 'approval-requested', ...one, ...send, approvalId },
    {
      ...{ type: 'model-finished', ...one, model: 'test/m', outcome: 'finished' },
      ...{ finishReason: 'tool_calls', usage: [usage(1)] },
    },
    { type: 'approval-settled', ...one, ...send, approvalId, decision: 'approve', via: 'live' },
    { type: 'call-started', ...one, ...send, approved: true },
    { type: 'call-finished', ...one, ...send, outcome: 'result' },
    { type: 'model-started', ...run, step: 2, model: 'test/m' },
    {
      ...{ type: 'model-finished', ...run, step: 2, model: 'test/m', outcome: 'finished' },
      ...{ finishReason: 'stop', usage: [usage(2)] },
    },
    {
      ...{ type: 'run-finished', ...run, step: 2, outcome: 'success', finishReason: 'stop' },
      usage: [usage(1), usage(2)],
    },
  ])
  expect(new Set(seen.map(({ threadId }) => threadId))).toEqual(new Set(['thread']))
  // The same hash as in the audit trail, so that one can be found from the other.
  expect(new Set(seen.map(({ ownerHash }) => ownerHash))).toEqual(new Set([audited[0]?.ownerHash]))
  expect(JSON.stringify(seen)).not.toMatch(/secret-|bob|ann/)
})

test('T33 an answer of a later request is carried out in step 0; a refused answer, a refused call and a failed run have their events', async () => {
  const seen: RunEvent[] = []
  const { agent } = testAgent(
    ({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'user') return call(['c1', 'send', {}], ['c2', 'nothing', {}])
      throw new Error('overloaded')
    },
    { tools: [counted('send', { needsApproval: true }).tool], observe: (event) => void seen.push(event) },
  )
  const { history, first } = await ask(agent, { runId: 'r1' }, { context })
  const { toolCallId, approval } = first
  expect(seen.map(brief)).toContainEqual({
    ...{ type: 'call-refused', runId: 'r1', step: 1 },
    ...{ toolCallId: 'c2', toolName: 'nothing', code: 'unknown_tool' },
  })
  expect(brief(seen.at(-1) as RunEvent)).toMatchObject({ type: 'run-finished', outcome: 'interrupt' })
  seen.length = 0
  const forged = [answer(first, { approved: true }, 'cs1.forged')]
  await collect(agent, input(history, { runId: 'r2', resume: forged }), { context })
  expect(seen.map(brief)).toContainEqual({
    ...{ type: 'approval-refused', runId: 'r2', step: 0, toolCallId, toolName: 'send' },
    ...{ approvalId: approval.id, code: 'approval-malformed' },
  })
  seen.length = 0
  const asked = await ask(agent, { runId: 'r3', threadId: 'other' }, { context })
  seen.length = 0
  const resume = [answer(asked.first, { approved: true })]
  await collect(agent, input(asked.history, { runId: 'r4', threadId: 'other', resume }), { context })
  expect(seen.map(({ type, step }) => `${step} ${type}`)).toEqual([
    '0 run-started',
    '0 approval-settled',
    '0 call-started',
    '0 call-finished',
    '1 model-started',
    '1 model-finished',
    '1 run-finished',
  ])
  expect(seen.slice(-2)).toMatchObject([
    { outcome: 'error', code: 'model-failed' },
    { outcome: 'error', code: 'model-failed' },
  ])
})

async function readAll(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

test('T33 docs/deploy.md lists every event, and no other', () => {
  // A new event fails the type check here until it is listed.
  const types: Record<RunEvent['type'], true> = {
    'run-started': true,
    'model-started': true,
    'model-finished': true,
    'call-started': true,
    'call-finished': true,
    'call-refused': true,
    'approval-requested': true,
    'approval-settled': true,
    'approval-refused': true,
    'run-finished': true,
  }
  const page = readFileSync(new URL('../../../docs/deploy.md', import.meta.url), 'utf8')
  const listed = [...page.matchAll(/^\| `((?:run|model|call|approval)-\w+)` \|/gm)].map(([, type]) => type)
  expect(listed).toEqual(Object.keys(types))
})

/** Observers that do everything wrong. */
const observers: Record<string, Observe> = {
  throws: () => {
    throw new Error('observer')
  },
  rejects: () => Promise.reject(new Error('observer')),
  'never ends': () => new Promise(() => {}),
  'throws around the work': Object.assign(() => {}, {
    within: () => {
      throw new Error('observer')
    },
  }),
  'does the work twice, late': Object.assign(() => {}, {
    within: async <T>(_: unknown, work: () => Promise<T>) => {
      await sleep(1)
      await work()
      return work()
    },
  }),
  'rejects around the work': Object.assign(() => {}, {
    within: async <T>(_: unknown, work: () => Promise<T>): Promise<T> => {
      await work()
      throw new Error('observer')
    },
  }),
}

test.each(Object.entries(observers))('T33 an observer that %s changes nothing', async (_, observe) => {
  const types = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type)
  const without = setUp(undefined)
  const expected = await runLive(without.agent, 'r1')
  const { agent, sent } = setUp(observe)
  const events = await runLive(agent, 'r1')
  expect(types(events)).toEqual(types(expected))
  const told = (of: typeof events) => results(of).map(({ id, content }) => [id, JSON.stringify(content)])
  expect(told(events)).toEqual(told(expected))
  expect(sent).toEqual([{ to: 'bob' }])
})

test('T33 arguments, results and texts are reported only to an observer that asks for them', async () => {
  const seen: RunEvent[] = []
  const observe = Object.assign((event: RunEvent) => void seen.push(event), { content: true })
  await runLive(setUp(observe).agent, 'r1')
  const contents = seen.flatMap((event) => ('content' in event && event.content ? [event.content] : []))
  const text = JSON.stringify(contents)
  for (const word of ['secret-question', 'secret-argument', 'secret-text', 'bob', 'done'])
    expect(text).toContain(word)
})

test('T33 what a tool and a model do is within what the observer puts around it', async () => {
  const around: string[] = []
  const within = async <T>({ type }: RunEvent, work: () => Promise<T>) => {
    around.push(`${type} begins`)
    const result = await work()
    around.push(`${type} ends`)
    return result
  }
  const turns: ModelEvent[][] = [call(['c1', 'look', {}]), say('Done.')]
  const look = counted('look', { execute: () => void around.push('the tool runs') }).tool
  const { agent } = testAgent(turns, { tools: [look], observe: Object.assign(() => {}, { within }) })
  const history: Message[] = [user('go')]
  fold(history, await collect(agent, input(history)))
  expect(around.filter((line) => !line.startsWith('model'))).toEqual([
    'call-started begins',
    'the tool runs',
    'call-started ends',
  ])
  expect(around.filter((line) => line.startsWith('model'))).toHaveLength(4)
})

test('T33 the start of a run is observed once, also if the same run is started twice', async () => {
  const seen: string[] = []
  const ledger = memoryLedger()
  const { agent } = testAgent([say('one'), say('two')], {
    observe: ({ type }) => void seen.push(type),
    approvals: { ledger },
  })
  const given = input([user('go')], { runId: 'same' })
  const runs = [agent.run(given), agent.run(given)]
  await Promise.all(runs.map(readAll))
  expect(seen.filter((type) => type.startsWith('run'))).toEqual(['run-started', 'run-finished'])
})
