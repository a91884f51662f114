import { mandateLimits } from '@countersign/client/ui'
import type { OfferedMandate } from '@countersign/core'
import { grantsResponse, type Ledger, memoryLedger } from '@countersign/server'
import { expect, test } from 'vitest'
import {
  answer,
  call,
  collect,
  counted,
  input,
  refusals,
  requests,
  results,
  say,
  testAgent,
  user,
} from '../support.js'
import { bill, offers, openChat } from './chat.js'

const never = { approved: false, mandate: 'never' }
const context = { subject: 'ann' }
/** Only large bills need approval, so a lost denial lets small ones run. */
const large = { needsApproval: ({ amount }: { amount: number }) => amount > 10 } as never

test('W12 a standing denial that could not be stored settles nothing: the user is told, and the same answer stores it', async () => {
  const memory = memoryLedger()
  let isDown = true
  const ledger = {
    ...memory,
    id: memory.id,
    grant: (request: Parameters<typeof memory.grant>[0]) =>
      isDown ? Promise.reject(new Error('lost')) : memory.grant(request),
  }
  const warnings: string[] = []
  const chat = openChat({ ledger, tool: large, warn: (message) => void warnings.push(message) })
  const asked = await chat.propose([bill(500, 'mallory')])
  const first = await chat.reply(asked, never)
  expect(refusals(first.events)).toMatchObject([
    { code: 'ledger-unavailable', message: expect.stringContaining('standing denial could not be stored') },
  ])
  expect(warnings).toContainEqual(expect.stringContaining('standing denial'))
  isDown = false
  const second = await chat.reply(asked, never)
  expect([refusals(second.events), second.results]).toMatchObject([[], [{ own: { outcome: 'denied' } }]])
  await chat.propose([bill(1, 'mallory')])
  expect(chat.runs).toEqual([])
  expect(chat.audited.filter(({ event }) => event === 'granted')).toHaveLength(1)
})

test('W12 without room for a standing denial the user is told to revoke some, and can deny the call alone', async () => {
  const ledger = memoryLedger()
  const chat = openChat({ ledger, tool: large, warn: () => {} })
  for (let n = 0; n < 64; n++)
    await ledger.grant({
      ...{ owner: 'ann', threadId: 'thread', toolName: 'pay', scopeKey: `${n}`, approved: false },
      terms: { label: 'Never', where: [{ field: 'to', is: `${n}` }], tool: 'v1', approvalId: `a${n}` },
    })
  const asked = await chat.propose([bill(500, 'mallory')])
  const { events } = await chat.reply(asked, never)
  expect(refusals(events)).toMatchObject([
    {
      code: 'approval-mandate-refused',
      message: expect.stringContaining('no room for another standing denial'),
    },
  ])
  const alone = await chat.reply(asked, { approved: false })
  expect(alone.results).toMatchObject([{ own: { outcome: 'denied' } }])
})

test('W12 another answer that came first leaves no standing denial', async () => {
  const memory = memoryLedger()
  let isFirst = true
  const ledger = {
    ...memory,
    id: memory.id,
    grant: async (request: Parameters<typeof memory.grant>[0]) => {
      const granted = await memory.grant(request)
      if (isFirst) {
        isFirst = false
        const resume = asked.asked.map((one) => answer(one, { approved: true }))
        await collect(chat.agent, input(history, { runId: 'other', resume }), { context })
      }
      return granted
    },
  }
  const chat = openChat({ ledger, tool: large })
  const asked = await chat.propose([bill(500)])
  const history = chat.history()
  const { events } = await chat.reply(asked, never)
  expect(refusals(events)).toMatchObject([{ code: 'approval-conflict' }])
  expect(await chat.list()).toEqual([])
})

test('W12 a standing denial of a request that was replaced is refused, and the user is shown the request that replaced it', async () => {
  let effect = 'one'
  const preview = () => ({ kind: 'text', text: effect }) as const
  const chat = openChat({ tool: { ...Object(large), preview } })
  const asked = await chat.propose([bill(500, 'mallory')])
  effect = 'two'
  const resume = asked.asked.map((one) => answer(one, { approved: true }))
  const [second] = requests(await collect(chat.agent, input(chat.history(), { resume }), { context }))
  const late = await chat.reply(asked, never)
  expect(refusals(late.events)).toMatchObject([{ code: 'approval-conflict' }])
  expect(late.asked).toEqual([second])
  expect([await chat.list(), chat.runs]).toEqual([[], []])
  await chat.reply(late, never)
  expect(await chat.list()).toMatchObject([{ approved: false }])
  expect(chat.runs).toEqual([])
})

test.each([
  ['another answer comes first', { approved: true }],
  ['its request expires', undefined],
])(
  'W12 a standing denial that was chosen before stays when the same one is chosen again and %s',
  async (_, other) => {
    let now = 1e12
    let meanwhile: (() => Promise<unknown>) | undefined
    const confirm = async () => {
      const work = meanwhile
      meanwhile = undefined
      await work?.()
      return true
    }
    const chat = openChat({ now: () => now, tool: large, approvals: { confirm } })
    const { asked } = await chat.propose([bill(500, 'mallory'), bill(600, 'mallory')])
    const history = chat.history()
    const send = (which: number, payload: object, runId: string) => {
      const resume = asked.slice(which, which + 1).map((one) => answer(one, { approved: false, ...payload }))
      return collect(chat.agent, input(history, { runId, resume }), { context })
    }
    await send(0, never, 'first')
    meanwhile = async () => {
      if (other === undefined) now += 86_400_000
      else await send(1, other, 'other')
    }
    expect(refusals(await send(1, never, 'late'))).toHaveLength(1)
    expect(await chat.list()).toMatchObject([{ approved: false }])
    await chat.propose([bill(1, 'mallory')])
    expect(chat.runs).toEqual([])
  },
)

test.each(['claim', 'grant'] as const)(
  'W12 after a denial that did not count, because the ledger failed (%s), the one that is chosen then is the only one',
  async (failing) => {
    const memory = memoryLedger()
    let isDown = true
    const failOnce = () => {
      if (!isDown) return
      isDown = false
      throw new Error('lost')
    }
    const ledger: typeof memory = {
      ...memory,
      id: memory.id,
      async claim(...given) {
        if (failing === 'claim' && given[1].decision === 'deny') failOnce()
        return memory.claim(...given)
      },
      async grant(request) {
        const granted = await memory.grant(request)
        if (failing === 'grant') failOnce()
        return granted
      },
    }
    const one = { label: 'Never 500', where: [{ field: 'amount', is: 500 }], decide: 'deny' } as const
    const mandates = () => [{ ...one, id: 'big' }, ...offers]
    const chat = openChat({ ledger, warn: () => {}, tool: { ...Object(large), mandates } })
    const asked = await chat.propose([bill(500, 'mallory')])
    expect(refusals((await chat.reply(asked, { ...never, mandate: 'big' })).events)).toHaveLength(1)
    expect(refusals((await chat.reply(asked, never)).events)).toEqual([])
    expect((await chat.list()).map(({ terms }) => terms?.label)).toEqual(['Never pay Mallory'])
    await chat.propose([bill(1, 'mallory')])
    expect(chat.runs).toEqual([])
  },
)

test('W12 a revocation of something else does not void a standing denial', async () => {
  let isFirst = true
  const chat = openChat({
    tool: large,
    approvals: {
      onAudit: async ({ event }) => {
        if (event === 'claimed' && isFirst) {
          isFirst = false
          await chat.agent.grants.revoke('ann', { id: 'other' })
        }
      },
    },
  })
  await chat.reply(await chat.propose([bill(500, 'mallory')]), never)
  await chat.propose([bill(1, 'mallory')])
  expect(chat.runs).toEqual([])
})

test('W12 an answer that is repeated does not store a revoked standing denial again', async () => {
  const chat = openChat({ tool: large })
  const asked = await chat.propose([bill(500, 'mallory')])
  const history = chat.history()
  await chat.reply(asked, never)
  expect(await chat.agent.grants.revoke('ann')).toBe(1)
  const resume = asked.asked.map((one) => answer(one, never))
  expect(refusals(await collect(chat.agent, input(history, { resume }), { context }))).toEqual([])
  expect(await chat.list()).toEqual([])
})

test('W12 a standing denial has no end unless it says so, and the page shows either', async () => {
  let now = 1e12
  const chat = openChat({ now: () => now, tool: large })
  const asked = await chat.propose([bill(500, 'mallory')])
  const limits = (id: string) => {
    const mandates = asked.asked[0]?.approval.mandates as readonly OfferedMandate[] | undefined
    const one = mandates?.find((offer) => offer.id === id)
    return one && mandateLimits(one, new Date(now))
  }
  expect(limits('never')).toBe('until you revoke it')
  expect(limits('small')).toBe('')
  await chat.reply(asked, never)
  now += 1000 * 86_400_000
  await chat.propose([bill(1, 'mallory')])
  expect(chat.runs).toEqual([])
  const request = new Request('http://localhost/grants?threadId=thread')
  const { grants } = await (await grantsResponse(chat.agent, request, { context })).json()
  expect(grants).toMatchObject([{ mandate: { decide: 'deny' } }])
  expect(grants[0].expiresAt).toBeUndefined()
})

test('W12 W19 a standing denial stays in force for a new version and schema of its tool, and after a new epoch', async () => {
  const ledger = memoryLedger()
  const before = openChat({ ledger, tool: large })
  await before.reply(await before.propose([bill(500, 'mallory')]), never)
  for (const changed of [
    { tool: { ...Object(large), version: '2' } },
    { tool: large, approvals: { epoch: new Date(Date.now() + 3_600_000) } },
  ]) {
    const after = openChat({ ledger, ...changed })
    expect(await after.list()).toHaveLength(1)
    await after.propose([bill(1, 'mallory')])
    expect(after.runs).toEqual([])
  }
})

test('W12 a standing denial stored while the preview at the start is computed stops the call', async () => {
  let atStart: (() => Promise<unknown>) | undefined
  const [, , denial] = offers
  const chat = openChat({
    tool: {
      mandates: () => (denial ? [{ ...denial, where: [] }] : []),
      preview: async () => {
        await atStart?.()
        return { kind: 'text', text: 'p' }
      },
    },
  })
  const [first, second] = (await chat.propose([bill(1), bill(2)])).asked
  if (first === undefined || second === undefined) throw new Error('two are asked')
  const history = chat.history()
  atStart = () => {
    atStart = undefined
    const resume = [answer(second, never)]
    return collect(chat.agent, input(history, { runId: 'other', resume }), { context })
  }
  const { results } = await chat.reply({ asked: [first] }, { approved: true })
  expect(results.map(({ own }) => Object(own).outcome)).toContain('denied')
  expect(chat.runs).toEqual([])
})

test('W12 a standing denial stored while the reply of the ledger is on its way stops the call', async () => {
  const memory = memoryLedger()
  let meanwhile: (() => Promise<unknown>) | undefined
  const ledger: typeof memory = {
    ...memory,
    id: memory.id,
    findMandate: async (call, purpose) => {
      const found = await memory.findMandate?.(call, purpose)
      const once = meanwhile
      meanwhile = undefined
      await once?.()
      return found
    },
  }
  const [, , denial] = offers
  const chat = openChat({ ledger, tool: { mandates: () => (denial ? [{ ...denial, where: [] }] : []) } })
  const [first, second] = (await chat.propose([bill(1), bill(2)])).asked
  if (first === undefined || second === undefined) throw new Error('two are asked')
  const history = chat.history()
  meanwhile = () => {
    const resume = [answer(second, never)]
    return collect(chat.agent, input(history, { runId: 'other', resume }), { context })
  }
  await chat.reply({ asked: [first] }, { approved: true })
  expect(chat.runs).toEqual([])
})

test.each([false, true])(
  'a call whose lease ends while standing denials are read does not start, if it is idempotent: %s',
  async (idempotent) => {
    let time = 1e12
    const memory = memoryLedger({ now: () => time })
    const reading: (() => void)[] = []
    let isSlow = false
    const ledger: Ledger = {
      ...memory,
      id: memory.id,
      findMandate: async (...asked) => {
        const found = await memory.findMandate?.(...asked)
        if (isSlow) await new Promise<void>((resolve) => reading.push(resolve))
        return found
      },
    }
    const chat = openChat({ ledger, now: () => time, tool: { idempotent } })
    const { asked } = await chat.propose([bill()])
    const history = chat.history()
    const approve = () =>
      collect(chat.agent, input(history, { resume: asked.map((one) => answer(one, { approved: true })) }), {
        context,
      })
    isSlow = true
    const first = approve()
    await expect.poll(() => reading).toHaveLength(1)
    isSlow = false
    time += 60_000
    const second = await approve()
    const interrupted = { own: { outcome: 'error', code: 'interrupted' } }
    expect(results(second)).toMatchObject([idempotent ? { content: { done: 'pay' } } : interrupted])
    for (const go of reading) go()
    expect(results(await first)).toMatchObject([interrupted])
    expect(chat.runs).toHaveLength(idempotent ? 1 : 0)
  },
)

test('W12 W13 the audit trail says which standing denial has refused a call', async () => {
  const chat = openChat({ tool: large })
  await chat.reply(await chat.propose([bill(500, 'mallory')]), never)
  const before = chat.audited.length
  const { results: refused } = await chat.propose([bill(1, 'mallory')])
  const [denial] = await chat.list()
  const told = { toolCallId: refused.at(-1)?.id, toolName: 'pay', via: 'grant' }
  expect(chat.audited.slice(before)).toMatchObject([
    {
      ...{ event: 'claimed', ...told, decision: 'deny', mandate: { id: denial?.id } },
      ...{ argumentsHash: expect.any(String), shownHash: expect.any(String) },
    },
    { event: 'completed', ...told, outcome: 'denied' },
  ])
})

test('W12 a scopeKey that fails does not stop an approved call of a tool with mandates', async () => {
  const scopeKey = () => Number.NaN
  const chat = openChat({ warn: () => {}, tool: { scopes: ['once', 'session'], scopeKey } as never })
  await chat.reply(await chat.propose([bill(1)]), { approved: true })
  expect(chat.runs).toEqual([bill(1)])
})

test('W12 a standing denial also refuses calls of a tool of the same name that only prepareStep has', async () => {
  const ledger = memoryLedger()
  await ledger.grant({
    ...{ owner: 'ann', threadId: 'thread', toolName: 'pay', scopeKey: 'never', approved: false },
    terms: { label: 'Never', where: [{ field: 'to', is: 'mallory' }], tool: 'v1', approvalId: 'a1' },
  })
  const mandates = () => offers
  const ofStep = counted('pay', { needsApproval: false, mandates } as never)
  const { agent } = testAgent(
    [call(['c1', 'pay', bill(1, 'mallory')], ['c2', 'pay', bill(2)]), say('done')],
    {
      tools: [counted('pay', { mandates } as never).tool],
      prepareStep: async () => ({ tools: [ofStep.tool] }),
      approvals: { ledger },
    },
  )
  await collect(agent, input([user('go')], { threadId: 'thread' }), { context })
  expect(ofStep.runs).toEqual([bill(2)])
})
