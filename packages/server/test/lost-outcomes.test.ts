import type { Message } from '@countersign/core'
import { type Ledger, memoryLedger } from '@countersign/server'
import { describe, expect, test } from 'vitest'
import { answer, ask, call, collect, counted, input, last, results, say, testAgent, user } from './support.js'

const context = { context: { subject: 'ann' } }

/** A memory ledger whose next claims fail, as often as `failures` says. */
function failingLedger(options: Parameters<typeof memoryLedger>[0] = {}) {
  const ledger = memoryLedger(options)
  const state = { failures: 0 }
  const claim: Ledger['claim'] = async (...given) => {
    if (state.failures-- > 0) throw new Error('a lost packet')
    return ledger.claim(...given)
  }
  return { state, ledger: Object.assign(Object.create(ledger), { claim }) as Ledger }
}

async function paid(ledger: Ledger, { expiresIn = 600, now = Date.now } = {}) {
  const pay = counted('pay', { needsApproval: true, expiresIn })
  const script = [call(['c1', 'pay', { n: 1 }]), say('paid'), say('ok')]
  const { agent, model } = testAgent(script, { tools: [pay.tool], now, approvals: { ledger } })
  const { history, first } = await ask(agent, {}, context)
  return { pay, agent, model, history, first }
}

test('a call that ran is not told as cancelled because the ledger failed once: the run ends, and the next one tells its result', async () => {
  const { ledger, state } = failingLedger()
  const { pay, agent, model, history, first } = await paid(ledger)
  // its reply is lost
  await collect(agent, input(history, { resume: [answer(first, { approved: true })] }), context)
  const asked = [...history, user('Did you pay?')]
  const before = model.requests.length
  state.failures = 1
  const failed = await collect(agent, input(asked), context)
  expect(last(failed)).toMatchObject({ type: 'RUN_ERROR', code: 'ledger-unavailable' })
  expect([results(failed), model.requests.length]).toEqual([[], before])
  const [told] = results(await collect(agent, input(asked), context))
  expect([told?.content, pay.runs.length]).toEqual([{ done: 'pay' }, 1])
})

test('a run that ends because the ledger failed says so in words for its user, without those of the ledger', async () => {
  const { ledger, state } = failingLedger()
  const { agent, history } = await paid(ledger)
  state.failures = 1
  expect(last(await collect(agent, input([...history, user('Stop.')]), context))).toMatchObject({
    code: 'ledger-unavailable',
    message:
      'The ledger failed, so it is not known what became of this call. Nothing else was done. Try again later.',
  })
})

test('a call that the user has moved on from does not run later because the ledger failed once', async () => {
  const { ledger, state } = failingLedger()
  const { pay, agent, history, first } = await paid(ledger)
  const refused = [...history, user('No, do not pay!')]
  state.failures = 1
  expect(last(await collect(agent, input(refused), context))).toMatchObject({ type: 'RUN_ERROR' })
  expect(JSON.stringify(results(await collect(agent, input(refused), context)))).toContain('user moved on')
  await collect(agent, input(history, { resume: [answer(first, { approved: true })] }), context)
  expect(pay.runs).toEqual([])
})

const lost = ['a new message', 'the same answer'].flatMap((what) => [
  { what, payload: { approved: true }, content: { done: 'pay' }, runs: 1 },
  {
    ...{ what, payload: { approved: false, reason: 'too much' }, runs: 0 },
    content: { type: 'execution-denied', reason: 'too much' },
  },
])

test.each(lost)(
  'the outcome of an answered call is told for a day, also if its approval expired after minutes: $what, $payload',
  async ({ what, payload, content, runs }) => {
    const clock = { now: Date.now() }
    const now = () => clock.now
    const ledger = memoryLedger({ now })
    const { pay, agent, history, first } = await paid(ledger, { now })
    const answered = input(history, { resume: [answer(first, payload)] })
    await collect(agent, answered, context)
    clock.now += 23 * 3_600_000
    const record = { ...(await recordOf(ledger, first.approval.id)), expiresAt: clock.now + 1e6 }
    // so many that the ledger drops what it need not keep
    for (let at = 0; at < 1100; at++)
      await ledger.issue({ ...record, threadId: 'other', approvalId: `a${at}`, toolCallId: `c${at}` })
    const again = what === 'a new message' ? input([...history, user('Did you pay?')]) : answered
    const [told] = results(await collect(agent, again, context))
    expect([told?.content, pay.runs.length]).toEqual([content, runs])
  },
)

test('a call whose record the ledger has lost is not told as cancelled', async () => {
  const first = memoryLedger()
  let current = first
  const ledger = new Proxy(first, {
    get: (_, name) => {
      const value = name === 'id' ? first.id : Reflect.get(current, name, current)
      return typeof value === 'function' ? value.bind(current) : value
    },
  })
  const { agent, history } = await paid(ledger)
  current = memoryLedger()
  const told = results(await collect(agent, input([...history, user('Did you pay?')]), context))
  expect(JSON.stringify(told)).toContain('may or may not have run')
})

/** A memory ledger in which the methods fail that `state.down` names. */
function ledgerThatGoesDown() {
  const working = memoryLedger()
  const state: { down: readonly string[] } = { down: [] }
  const fail = () => Promise.reject(new Error('down'))
  const ledger = new Proxy(working, {
    get: (_, name) => (state.down.includes(String(name)) ? fail : Reflect.get(working, name)),
  })
  return { ledger, state }
}

const reading = ['unsettled', 'settled']
const everything = [...reading, 'claim', 'lookup']

/** Clients of other makers send no metadata of ours back. */
const bare = (history: readonly Message[]) =>
  history.map((message) =>
    message.role === 'assistant'
      ? { ...message, toolCalls: message.toolCalls?.map(({ metadata: _, ...rest }) => rest) ?? [] }
      : message,
  )

describe.each([
  ['waits for an answer', false],
  ['has run, and its reply was lost', true],
])('a client keeps no token of a call that %s', (_, hasRun) => {
  test.each([
    ['a new message', reading],
    ['a new message', everything],
    ['nothing new', everything],
    ['an answer', everything],
    ['an answer', [...reading, 'claim']],
  ])(
    'after %s the run ends, and closes nothing and calls no model, while the ledger fails in %j',
    async (what, methods) => {
      const { ledger, state } = ledgerThatGoesDown()
      const { pay, agent, model, history, first } = await paid(ledger)
      const yes = { interruptId: first.approval.id, status: 'resolved', payload: { approved: true } } as const
      const resume = [yes]
      if (hasRun) await collect(agent, input(bare(history), { resume }), context)
      const [ran, asked] = [pay.runs.length, model.requests.length]
      state.down = methods
      const messages = [...bare(history), ...(what === 'a new message' ? [user('Did you pay?')] : [])]
      const failed = await collect(agent, input(messages, what === 'an answer' ? { resume } : {}), context)
      expect(last(failed)).toMatchObject({ type: 'RUN_ERROR', code: 'ledger-unavailable' })
      expect([results(failed), model.requests.length]).toEqual([[], asked])
      state.down = []
      await collect(agent, input(bare(history), { resume }), context)
      expect([ran, pay.runs.length]).toEqual([Number(hasRun), 1])
    },
  )
})

test('an answer that cannot be checked ends the run, also if the client has appended it to its history as a result', async () => {
  const { ledger, state } = ledgerThatGoesDown()
  const { agent, model, history, first } = await paid(ledger)
  state.down = everything
  const appended: Message = { id: 'r', role: 'tool', toolCallId: 'c1', content: '{"approved":true}' }
  const resume = [answer(first, { approved: true })]
  const failed = await collect(agent, input([...history, appended], { resume }), context)
  expect(last(failed)).toMatchObject({ type: 'RUN_ERROR', code: 'ledger-unavailable' })
  expect(model.requests).toHaveLength(1)
})

test.each([{ fails: ['unsettled'] }, { fails: everything }])(
  'nor does the next request give the model that answer as a result: %o',
  async ({ fails }) => {
    const { ledger, state } = ledgerThatGoesDown()
    const { agent, model, history } = await paid(ledger)
    state.down = fails
    const appended: Message = { id: 'r', role: 'tool', toolCallId: 'c1', content: '{"approved":true}' }
    const asked: Message = { id: 'u2', role: 'user', content: 'Did it work?' }
    const failed = await collect(agent, input([...history, appended, asked]), context)
    expect(last(failed)).toMatchObject({ type: 'RUN_ERROR', code: 'ledger-unavailable' })
    expect(model.requests).toHaveLength(1)
  },
)

async function recordOf(ledger: Ledger, approvalId: string) {
  const entry = await ledger.lookup({ owner: 'ann', threadId: 'thread', approvalId })
  if (!entry) throw new Error('The ledger has dropped the record.')
  return entry.record
}

test.each([
  ['goes on', {}, 'RUN_FINISHED'],
  ['ends, since a policy may ask', { policy: () => undefined }, 'RUN_ERROR'],
] as const)(
  'a conversation with an agent whose tools need no approval %s while its ledger fails',
  async (_, approvals, end) => {
    const down = () => Promise.reject(new Error('down'))
    const ledger: Ledger = { ...memoryLedger(), unsettled: down, settled: down }
    const free = counted('free')
    const { agent } = testAgent([say('ok')], { tools: [free.tool], approvals: { ledger, ...approvals } })
    const called = { id: 'c1', type: 'function', function: { name: 'free', arguments: '{"n":1}' } } as const
    const history: Message[] = [
      user('hi'),
      { id: 'a1', role: 'assistant', toolCalls: [called] },
      user('and?'),
    ]
    const events = await collect(agent, input(history), context)
    expect(last(events).type).toBe(end)
    expect(results(events).map(({ own }) => own)).toMatchObject(
      end === 'RUN_FINISHED' ? [{ outcome: 'error', code: 'interrupted' }] : [],
    )
    expect(free.runs).toEqual([])
  },
)
