import type { AuditEntry, Policy, Rule } from '@countersign/server'
import { rules } from '@countersign/server'
import { expect, test } from 'vitest'
import { call, collect, counted, input, requests, results, say, testAgent, user } from '../support.js'

const context = { subject: 'ann' }

/** What becomes of calls of `pay`, each with its arguments. */
async function play(
  calls: readonly unknown[],
  approvals: { policy?: Policy; shadow?: Policy; previewTimeout?: number },
  needsApproval = false,
) {
  const { tool, runs } = counted('pay', { needsApproval })
  const audited: AuditEntry[] = []
  const { agent } = testAgent(
    [call(...calls.map((args, at) => [`c${at}`, 'pay', args] as const)), say('done')],
    { tools: [tool], approvals: { ...approvals, onAudit: (entry) => void audited.push(entry) } },
  )
  const events = await collect(agent, input([user('go')]), { context })
  return { runs, asked: requests(events).length, results: results(events), audited }
}

const limits: readonly Rule[] = [
  { tool: 'pay', decide: 'allow', because: 'all is fine' },
  { tool: ['pay', 'refund'], where: [{ field: 'amount', atLeast: 100 }], decide: 'ask', because: 'much' },
  { where: [{ field: 'to', is: 'mallory' }], decide: 'block', because: 'not to mallory' },
  { where: [{ field: 'to', in: ['mallory', 'eve'] }], decide: 'block', because: 'not to eve' },
]

test('W16 block overrules ask, and ask overrules allow, in any order', async () => {
  for (const list of [limits, limits.toReversed()]) {
    const policy = rules(list)
    expect(await play([{ amount: 5, to: 'bob' }], { policy }, true)).toMatchObject({
      runs: [{ amount: 5 }],
      asked: 0,
    })
    expect(await play([{ amount: 100, to: 'bob' }], { policy })).toMatchObject({ runs: [], asked: 1 })
    expect(await play([{ amount: 100, to: 'eve' }], { policy })).toMatchObject({
      runs: [],
      asked: 0,
      results: [{ content: { type: 'execution-denied', reason: 'not to eve' } }],
    })
  }
})

test('W16 of several rules that block, the first gives the reason', async () => {
  const { results } = await play([{ to: 'mallory' }], { policy: rules(limits) })
  expect(results).toMatchObject([{ content: { reason: 'not to mallory' } }])
})

test('W16 if no rule matches, the tool decides', async () => {
  const policy = rules([{ tool: 'other', decide: 'block' }])
  expect(await play([{}], { policy })).toMatchObject({ runs: [{}], asked: 0 })
  expect(await play([{}], { policy }, true)).toMatchObject({ runs: [], asked: 1 })
})

test('W16 an invalid rule fails where it is written, with its place', () => {
  const good: Rule = { decide: 'allow' }
  const refused: readonly [unknown, string][] = [
    ['all', 'rules must be a list'],
    [[good, null], 'rules[1] must be an object'],
    [[{ tools: 'pay', decide: 'allow' }], 'rules[0].tools must be left out'],
    [[{ tool: '', decide: 'allow' }], 'rules[0].tool must be'],
    [[{ tool: [], decide: 'allow' }], 'rules[0].tool must be'],
    [[{ tool: ['a', 1], decide: 'allow' }], 'rules[0].tool must be'],
    [[{ decide: 'deny' }], 'rules[0].decide must be "allow", "ask" or "block"'],
    [[{}], 'rules[0].decide must be'],
    [[{ decide: 'ask', because: 5 }], 'rules[0].because must be text'],
    [[{ decide: 'ask', where: {} }], 'rules[0].where must be a list'],
    [
      [
        good,
        {
          decide: 'ask',
          where: [
            { field: 'a', is: 1 },
            { field: 'a', like: 1 },
          ],
        },
      ],
      'rules[1].where[1] must be',
    ],
    [[{ decide: 'ask', where: [{ field: 'a', under: '../a' }] }], 'rules[0].where[0].under must be'],
  ]
  for (const [list, message] of refused)
    expect(() => rules(list as readonly Rule[]), JSON.stringify(list)).toThrow(message)
})

test('W16 a rule that is changed later changes nothing', async () => {
  const where = [{ field: 'to', in: ['bob'] }]
  const policy = rules([{ where, decide: 'block' }])
  where[0]?.in.push('ann')
  where.length = 0
  expect(await play([{ to: 'ann' }], { policy })).toMatchObject({ runs: [{ to: 'ann' }] })
})

test('W17 shadow rules decide nothing and record every difference, and nothing else', async () => {
  const calls = [{ amount: 5 }, { amount: 100 }, { to: 'eve' }]
  const shadowed = await play(calls, { shadow: rules(limits) })
  expect(shadowed.runs).toEqual(calls)
  expect(shadowed.asked).toBe(0)
  expect(shadowed.audited.map(({ event, toolCallId, policy }) => ({ event, toolCallId, policy }))).toEqual([
    { event: 'shadow', toolCallId: 'c1', policy: { decided: 'allow', shadow: 'ask', reason: 'much' } },
    {
      event: 'shadow',
      toolCallId: 'c2',
      policy: { decided: 'allow', shadow: 'block', reason: 'not to eve' },
    },
  ])
  const asks = await play(calls.slice(0, 1), { shadow: rules(limits) }, true)
  expect(asks.asked).toBe(1)
  expect(asks.audited.map(({ event }) => event)).toEqual(['shadow', 'issued'])
  expect(asks.audited[0]?.policy).toEqual({ decided: 'ask', shadow: 'allow' })
})

test('W17 with a shadow policy, the own rule of a tool is evaluated once', async () => {
  for (const needed of [true, false]) {
    let evaluated = 0
    const { tool } = counted('pay', {
      needsApproval: () => {
        evaluated++
        return needed
      },
    })
    const { agent } = testAgent([call(['c1', 'pay', {}]), say('done')], {
      tools: [tool],
      approvals: { shadow: rules([]) },
    })
    const events = await collect(agent, input([user('go')]), { context })
    expect([evaluated, requests(events).length]).toEqual([1, needed ? 1 : 0])
  }
})

test('W17 a shadow policy that fails stops nothing', async () => {
  const shadow = () => {
    throw new Error('broken')
  }
  expect(await play([{}], { shadow })).toMatchObject({ runs: [{}], audited: [{ policy: { shadow: 'ask' } }] })
})

test('W17 a shadow policy that does not answer holds up no call for longer than a preview', async () => {
  const shadow = () => new Promise<never>(() => {})
  const played = await play([{}], { shadow, previewTimeout: 5 })
  expect(played).toMatchObject({ runs: [{}], audited: [] })
})
