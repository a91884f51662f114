import { memoryLedger } from '@countersign/server'
import { expect, test } from 'vitest'
import { weather } from './answered.js'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  refusals,
  requests,
  results,
  say,
  testAgent,
  user,
} from './support.js'

test('S1.61 a tool that no longer asks still runs; one that policy now blocks is denied with its reason', async () => {
  const ledger = memoryLedger()
  const asking = testAgent([call(['call_1', 'GetWeather', {}])], {
    tools: [weather().tool],
    approvals: { ledger },
  })
  const { history, first } = await ask(asking.agent)
  const resume = [answer(first, { approved: true })]
  const policy = () => ({ decision: 'block', reason: 'closed on Sundays' }) as const
  const blocked = testAgent([say('ok')], { tools: [weather().tool], approvals: { ledger, policy } })
  expect(results(await collect(blocked.agent, input(history, { resume })))).toMatchObject([
    { content: { type: 'execution-denied', reason: 'closed on Sundays' } },
  ])
  const other = testAgent([call(['call_1', 'GetWeather', {}])], {
    tools: [weather().tool],
    approvals: { ledger },
  })
  const again = await ask(other.agent)
  const free = testAgent([say('ok')], {
    tools: [weather({ needsApproval: false }).tool],
    approvals: { ledger },
  })
  const events = await collect(
    free.agent,
    input(again.history, { resume: [answer(again.first, { approved: true })] }),
  )
  expect(results(events)).toMatchObject([{ content: { temp: 72 } }])
})

test('a value the schema changed is shown and bound; another value at execution is stale', async () => {
  const ledger = memoryLedger()
  const z = await import('zod')
  const schema = (n: number) => z.looseObject({ n: z.number().default(n) })
  const make = (n: number) => counted('pay', { needsApproval: true, input: schema(n) })
  const before = testAgent([call(['call_1', 'pay', {}])], { tools: [make(5).tool], approvals: { ledger } })
  const { history, first } = await ask(before.agent)
  expect(first.input).toEqual({})
  expect(first.approval.display).toEqual({ n: 5 })
  const changed = make(500)
  const after = testAgent([say('ok')], { tools: [changed.tool], approvals: { ledger } })
  const events = await collect(after.agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(refusals(events)).toMatchObject([{ code: 'approval-stale' }])
  expect(results(events)).toMatchObject([{ own: { outcome: 'cancelled', code: 'approval-stale' } }])
  expect(changed.runs).toEqual([])
})

test('bind is read at asking and at running; what changed in between is stale, and a repeat does not read it again', async () => {
  let hash = 'one'
  const bound = () => counted('remove', { needsApproval: true, bind: () => hash })
  const changed = bound()
  const stale = testAgent([call(['call_1', 'remove', {}]), say('ok')], { tools: [changed.tool] })
  const first = await ask(stale.agent)
  hash = 'two'
  const events = await collect(
    stale.agent,
    input(first.history, { resume: [answer(first.first, { approved: true })] }),
  )
  expect(refusals(events)).toMatchObject([{ code: 'approval-stale' }])
  expect(changed.runs).toEqual([])

  const removing = bound()
  const good = testAgent([call(['call_1', 'remove', {}]), say('ok'), say('ok')], { tools: [removing.tool] })
  const second = await ask(good.agent)
  const request = () => input(second.history, { resume: [answer(second.first, { approved: true })] })
  expect(results(await collect(good.agent, request()))).toMatchObject([{ content: { done: 'remove' } }])
  hash = 'gone'
  const repeated = await collect(good.agent, request())
  expect(results(repeated)).toMatchObject([{ content: { done: 'remove' } }])
  expect(refusals(repeated)).toEqual([])
  expect(removing.runs.length).toBe(1)
})

test('a session yes makes a grant for its owner, thread, tool and scopeKey; nothing else is let through', async () => {
  const send = counted('send', {
    needsApproval: true,
    scopes: ['once', 'session'],
    scopeKey: (args) => String(args.to),
  })
  const to = (name: string) => call([`c_${name}_${Math.random()}`, 'send', { to: name }])
  const turns = [to('a'), to('a'), say('sent twice'), to('b'), to('a'), to('a')]
  const { agent } = testAgent(turns, { tools: [send.tool] })
  const context = { subject: 'ann' }
  const { history, first } = await ask(agent, {}, { context })
  expect(first.approval.options).toEqual(['deny', 'once', 'session'])
  const resume = [answer(first, { approved: true, scope: 'session' })]
  const events = await collect(agent, input(history, { resume }), { context })
  expect(requests(events)).toEqual([])
  expect(send.runs.length).toBe(2)
  expect(requests(await collect(agent, input([user('x')]), { context })).length).toBe(1)
  expect(requests(await collect(agent, input([user('x')], { threadId: 'other' }), { context })).length).toBe(
    1,
  )
  expect(requests(await collect(agent, input([user('x')]), { context: { subject: 'bob' } })).length).toBe(1)
})

test('without a subject session is not offered and counts as once', async () => {
  const send = counted('send', { needsApproval: true, scopes: ['once', 'session'] })
  const turns = [call(['c1', 'send', {}]), call(['c2', 'send', {}])]
  const { agent } = testAgent(turns, { tools: [send.tool] })
  const { history, first } = await ask(agent)
  expect(first.approval.options).toEqual(['deny', 'once'])
  const events = await collect(
    agent,
    input(history, { resume: [answer(first, { approved: true, scope: 'session' })] }),
  )
  expect(send.runs.length).toBe(1)
  expect(requests(events).length).toBe(1)
})

test('a scope that was not offered is refused and closes the call', async () => {
  const { agent } = testAgent([call(['c1', 'GetWeather', {}]), say('ok')], { tools: [weather().tool] })
  const context = { subject: 'ann' }
  const { history, first } = await ask(agent, {}, { context })
  const events = await collect(
    agent,
    input(history, { resume: [answer(first, { approved: true, scope: 'session' })] }),
    { context },
  )
  expect(refusals(events)).toMatchObject([{ code: 'approval-malformed' }])
  expect(results(events)).toMatchObject([{ own: { outcome: 'cancelled', code: 'approval-malformed' } }])
})

test('confirm can refuse an answer; the call stays open', async () => {
  let sure = false
  const tool = weather()
  const { agent } = testAgent([call(['c1', 'GetWeather', {}]), say('ok')], {
    tools: [tool.tool],
    approvals: { confirm: () => sure },
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  const events = await collect(agent, input(history, { resume }))
  expect(refusals(events)).toMatchObject([{ code: 'approval-not-yours' }])
  expect(last(events)).toMatchObject({ outcome: { type: 'interrupt' } })
  sure = true
  await collect(agent, input(history, { resume }))
  expect(tool.runs.length).toBe(1)
})
