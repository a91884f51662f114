import { clientTool, type Message } from '@countersign/core'
import { type AgentOptions, memoryLedger, memoryThreads, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { yes } from './previews/world.js'
import {
  type Asked,
  answer,
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  refusals,
  requests,
  results,
  say,
  testAgent,
  user,
} from './support.js'

const context = { subject: 'ann' }
const INTERRUPTED = { outcome: 'error', code: 'interrupted' }

type ToolOptions = Partial<Parameters<typeof tool<'pay', z.ZodType<Record<string, unknown>>, unknown>>[0]>
type Policy = NonNullable<AgentOptions['approvals']>['policy']

/** An account, and an idempotent tool that takes money from it. Its first reply is lost. */
function account(more: (world: World) => ToolOptions = () => ({})) {
  const world: World = {
    balance: 100,
    charges: new Map(),
    time: Date.now(),
    policy: () => undefined,
    tries: 0,
  }
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.looseObject({}),
    needsApproval: true,
    idempotent: true,
    failureMode: 'throw',
    expiresIn: 60,
    execute: (_, { idempotencyKey }) => {
      world.tries++
      if (!world.charges.has(idempotencyKey)) world.balance -= 10
      world.charges.set(idempotencyKey, 10)
      if (world.tries === 1) throw new Error('The reply was lost.')
      return 'paid'
    },
    ...more(world),
  })
  const now = () => world.time
  const turns: Parameters<typeof testAgent>[0] = ({ messages }) =>
    messages.at(-1)?.role === 'user' ? call([`call_${messages.length}`, 'pay', {}]) : say('done')
  const approvals = { ledger: memoryLedger({ now }), policy: (() => world.policy()) as Policy, wait: 100 }
  const { agent } = testAgent(turns, { tools: [pay], now, approvals })
  const send = (history: readonly Message[], asked: Asked) =>
    collect(agent, input(history, { resume: [yes(asked)] }), { context })
  return { world, agent, send }
}

interface World {
  balance: number
  readonly charges: Map<string, number>
  time: number
  policy: () => unknown
  tries: number
  hook?: () => unknown
}

async function lostReply(made: ReturnType<typeof account>) {
  const { history, first } = await ask(made.agent, {}, { context })
  await made.send(history, first).catch(() => {})
  expect(made.world.tries).toBe(1)
  return { history, first }
}

test('a call that may have run is tried again under its own key', async () => {
  const made = account()
  const { history, first } = await lostReply(made)
  expect(results(await made.send(history, first))).toMatchObject([{ content: 'paid' }])
  expect(made.world).toMatchObject({ tries: 2, balance: 90 })
  expect([...made.world.charges.keys()]).toEqual([first.approval.id])
})

test('a call that may have run, and whose preview has changed, is never asked about again: it is interrupted', async () => {
  const made = account((world) => ({
    preview: () => ({ kind: 'text', text: `paid ${world.charges.size} times` }),
  }))
  const { history, first } = await lostReply(made)
  const events = await made.send(history, first)
  expect(requests(events)).toEqual([])
  expect(results(events)).toMatchObject([
    { own: INTERRUPTED, content: { reason: expect.stringContaining('may or may not have run. It was not') } },
  ])
  // Not even by a request that has lost the result.
  expect(requests(await collect(made.agent, input(history), { context }))).toEqual([])
  expect(made.world).toMatchObject({ tries: 1, balance: 90 })
})

test('the same holds if its process died', async () => {
  let isUp = false
  const made = account((world) => ({
    preview: () => ({ kind: 'text', text: `paid ${world.charges.size} times` }),
    expiresIn: 3600,
    execute: async (_, { idempotencyKey }) => {
      world.charges.set(idempotencyKey, 10)
      if (!isUp) await new Promise(() => {})
    },
  }))
  const { history, first } = await ask(made.agent, {}, { context })
  const run = made.agent.run(input(history, { resume: [yes(first)] }), { context })[Symbol.asyncIterator]()
  await run.next()
  void run.next()
  await expect.poll(() => made.world.charges.size).toBe(1)
  made.world.time += 10 * 60_000
  isUp = true
  const events = await made.send(history, first)
  expect(requests(events)).toEqual([])
  expect(results(events)).toMatchObject([{ own: INTERRUPTED }])
  expect([...made.world.charges.keys()]).toEqual([first.approval.id])
})

/** What keeps a call from being tried again, and what the user is told of it. */
const reasons: Record<
  string,
  {
    tool?: (world: World) => ToolOptions
    before: (made: ReturnType<typeof account>, stop: AbortController) => unknown
    told: string
  }
> = {
  'its approval has expired': {
    before: ({ world }) => {
      world.time += 61_000
    },
    told: 'expired',
  },
  'the policy forbids it': {
    before: ({ world }) => {
      world.policy = () => ({ decision: 'block', reason: 'The account is frozen.' })
    },
    told: 'The account is frozen.',
  },
  'the policy forbids it right before the start': {
    before: ({ world }) => {
      let asked = 0
      world.policy = () => (++asked > 1 ? { decision: 'block', reason: 'The account is frozen.' } : undefined)
    },
    told: 'The account is frozen.',
  },
  'what it was bound to has changed': {
    tool: (world) => ({ bind: () => world.balance }),
    before: () => {},
    told: 'has changed',
  },
  'what it was bound to changes right before the start': {
    tool: (world) => ({ bind: () => world.hook?.() ?? null }),
    before: ({ world }) => {
      let read = 0
      world.hook = () => (++read > 1 ? 'other' : null)
    },
    told: 'has changed',
  },
  'whether it may start can not be decided': {
    tool: (world) => ({
      redact: (given) => {
        world.hook?.()
        return given
      },
      preview: () => ({ kind: 'text', text: 'same' }),
    }),
    before: ({ world }) => {
      world.hook = () => {
        throw new Error('no')
      }
    },
    told: 'could not be checked',
  },
  'the run is stopped': {
    tool: (world) => ({
      preview: async () => {
        await world.hook?.()
        return { kind: 'text', text: 'same' }
      },
    }),
    before: ({ world }, stop) => {
      world.hook = () => {
        stop.abort()
        return new Promise(() => {})
      }
    },
    told: 'The run was stopped',
  },
  'a standing denial refuses it': {
    tool: () => ({ mandates: () => [{ id: 'never', label: 'Never pay', where: [], decide: 'deny' }] }),
    before: async ({ agent }) => {
      const asked = [user('pay again')]
      const events = await collect(agent, input(asked), { context })
      const [request] = requests(events)
      if (request === undefined) throw new Error('Nothing was asked.')
      const denied = answer(request, { approved: false, mandate: 'never' })
      await collect(agent, input(fold(asked, events), { resume: [denied] }), { context })
    },
    told: 'Never pay',
  },
}

test.each(Object.entries(reasons))(
  'a call that may have run stays interrupted if %s: nothing says that it has not run',
  async (_, { tool: more, before, told }) => {
    const made = account(more)
    const { history, first } = await lostReply(made)
    const stop = new AbortController()
    await before(made, stop)
    const given = input(history, { resume: [yes(first)] })
    const events = await collect(made.agent, given, { context, signal: stop.signal })
    expect(refusals(events)).toEqual([])
    expect(results(events)).toMatchObject([{ own: INTERRUPTED }])
    const [{ content } = { content: undefined }] = results(events)
    expect(content).toMatchObject({ reason: expect.stringContaining('may or may not have run') })
    expect(content).toMatchObject({ reason: expect.stringContaining(told) })
    // For a request that has lost the result as well.
    const later = await collect(made.agent, input(history), { context })
    expect(results(later)).toMatchObject([{ own: INTERRUPTED }])
    expect(made.world.tries).toBe(1)
  },
)

/** What the model's second call needs no approval for: the first was approved for more than itself. */
const allowances = {
  'a mandate': { mandate: 'all' },
  'a session approval': { scope: 'session' },
}

test.each(Object.entries(allowances))(
  'a client tool that %s let through may have run if its result is lost, also after the next message',
  async (_, choice) => {
    const open = clientTool({
      name: 'open',
      description: 'Opens a page.',
      input: z.looseObject({}),
      needsApproval: true,
      scopes: ['once', 'session'],
      mandates: () => [{ id: 'all', label: 'All pages', where: [] }],
      execute: () => ({}),
    })
    const turns = [call(['call_1', 'open', {}]), call(['call_2', 'open', {}]), say('done'), say('done')]
    const { agent } = testAgent(turns, { tools: [open] })
    const { history, first } = await ask(agent, {}, { context })
    const allowed = answer(first, { approved: true, ...choice })
    await collect(agent, input(history, { resume: [allowed] }), { context })
    const asked = [user('open another')]
    const events = await collect(agent, input(asked), { context })
    expect(requests(events)).toEqual([])
    // The page has the call, runs it, and is reloaded before it can say so.
    const reloaded = fold(asked, events)
    const lost = { own: INTERRUPTED, content: { reason: expect.stringContaining('may or may not have run') } }
    expect(results(await collect(agent, input(reloaded), { context }))).toMatchObject([lost])
    const next = [...reloaded, user('and now?')]
    expect(results(await collect(agent, input(next), { context }))).toMatchObject([lost])
  },
)

const stricter: Record<string, (world: { strict: boolean }) => { policy?: Policy; tool?: ToolOptions }> = {
  'its policy': (world) => ({ policy: () => (world.strict ? 'ask' : 'allow') }),
  'its own rule': (world) => ({ tool: { needsApproval: () => world.strict } }),
}

test.each(Object.entries(stricter))(
  'a call whose result is lost may have run, although %s would ask about it by now',
  async (_, rule) => {
    const world = { strict: false }
    const { policy, tool: more } = rule(world)
    const made = counted('write', more)
    const turns = [call(['call_1', 'write', {}]), say('done'), say('done')]
    const { agent } = testAgent(turns, { tools: [made.tool], approvals: { policy } })
    const asked = [user('go')]
    const events = await collect(agent, input(asked), { context })
    const isKept = (type: string) => type !== 'TOOL_CALL_RESULT' && !type.startsWith('TEXT')
    const history = fold(
      asked,
      events.filter(({ type }) => isKept(type)),
    )
    world.strict = true
    expect(results(await collect(agent, input(history), { context }))).toMatchObject([{ own: INTERRUPTED }])
    expect(made.runs).toHaveLength(1)
  },
)

test.each([
  ['a conversation that the server keeps has the result that it stored', true],
  ['the history of a client has none', false],
])('if the ledger could not record what a call has returned, %s', async (_, isKept) => {
  let time = 1e12
  const memory = memoryLedger({ now: () => time })
  let isDown = true
  const ledger = {
    ...memory,
    id: memory.id,
    complete: (...outcome: Parameters<typeof memory.complete>) =>
      isDown ? Promise.reject(new Error('down')) : memory.complete(...outcome),
  }
  const made = counted('pay', { needsApproval: true, execute: () => 'paid' })
  const { agent, model } = testAgent([call(['call_1', 'pay', {}]), say('done'), say('again')], {
    tools: [made.tool],
    ...(isKept && { threads: memoryThreads() }),
    ...{ now: () => time, approvals: { ledger } },
  })
  const { history, first } = await ask(agent, {}, { context })
  const paid = await collect(agent, input(history, { resume: [yes(first)] }), { context })
  expect(results(paid)).toMatchObject([{ content: 'paid' }])
  isDown = false
  time += 60_000
  const next = [...fold(history, paid), user('and?')]
  const events = await collect(agent, input(next), { context })
  expect(results(events)).toMatchObject(isKept ? [] : [{ own: INTERRUPTED }])
  const told = JSON.stringify(model.requests.at(-1)?.messages)
  expect([told.includes('paid'), told.includes('interrupted')]).toEqual([isKept, !isKept])
  expect(made.runs).toHaveLength(1)
})

const unanswered = (args: string): Message[] => [
  user('go'),
  {
    id: 'a1',
    role: 'assistant',
    toolCalls: [{ id: 'call_1', type: 'function', function: { name: 'write', arguments: args } }],
  },
]

test.each([
  ['always needs approval now', { tools: [counted('write', { needsApproval: true }).tool] }],
  ['has another schema now', { tools: [counted('write', { input: z.object({ text: z.string() }) }).tool] }],
  ['is gone', { tools: [counted('other').tool] }],
  ['is only there in some steps', { prepareStep: () => ({ tools: [counted('write').tool] }) }],
] as const)(
  'a call without a result that was not asked about may have run, even if its tool %s',
  async (_, options) => {
    const { agent } = testAgent([say('done'), say('done')], options)
    for (const next of [[], [user('next')]]) {
      const events = await collect(agent, input([...unanswered('{}'), ...next]), { context })
      expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
    }
  },
)

test('a call whose arguments are no JSON has not run', async () => {
  const { agent } = testAgent([say('done')], { tools: [counted('write').tool] })
  const events = await collect(agent, input(unanswered('{"text":')), { context })
  expect(results(events)).toMatchObject([{ own: { outcome: 'cancelled' } }])
})
