import { setImmediate } from 'node:timers/promises'
import {
  grantsResponse,
  type Ledger,
  type MandateOffer,
  memoryLedger,
  statelessLedger,
} from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { answer, collect, input, refusals, results } from '../support.js'
import { bill, offers, openChat } from './chat.js'

const choose = (mandate: string) => ({ approved: true, mandate })

test('W4 what a tool offers is sent with the request: label and limits, without the constraints', async () => {
  const { asked } = await openChat().propose([bill()])
  expect(asked[0]?.approval.mandates).toEqual([
    {
      id: 'acme',
      label: 'Pay Acme up to 200 EUR in total, three times',
      uses: 3,
      expiresIn: 3600,
      budget: { total: 200, unit: 'EUR' },
    },
    { id: 'small', label: 'Pay up to 10' },
    { id: 'never', label: 'Never pay Mallory', decide: 'deny' },
  ])
})

test('W4 only an offered mandate can be chosen, for its own decision, and not beside a scope', async () => {
  for (const payload of [
    choose('other'),
    choose('never'),
    { approved: false, mandate: 'acme' },
    { approved: true, mandate: 'acme', scope: 'session' },
    { approved: true, mandate: { id: 'acme', label: 'x', where: [] } },
    { approved: true, mandate: '__proto__' },
  ]) {
    const chat = openChat()
    const { events } = await chat.reply(await chat.propose([bill()]), payload)
    expect(refusals(events), JSON.stringify(payload)).toMatchObject([{ code: 'approval-malformed' }])
    expect(chat.runs).toEqual([])
    expect(await chat.list()).toEqual([])
  }
})

test('W5 W13 a mandate chosen with an approval: the call runs, and it is stored with who, when, for what, and what is used', async () => {
  const now = () => 1_000_000
  const chat = openChat({ now })
  const asked = await chat.propose([bill()])
  await chat.reply(asked, choose('acme'))
  expect(chat.runs).toEqual([bill()])
  const [offer] = offers
  expect(await chat.list()).toMatchObject([
    {
      ...{ owner: 'ann', threadId: 'thread', toolName: 'pay', approved: true, usesLeft: 2 },
      ...{ grantedAt: 1_000_000, expiresAt: 1_000_000 + 3_600_000 },
      terms: {
        ...{ label: offer?.label, where: offer?.where, budget: offer?.budget },
        ...{ approvalId: asked.asked[0]?.approval.id, used: 1, spent: 50, lastUsedAt: 1_000_000 },
      },
    },
  ])
  const [grant] = await chat.list()
  const granted = chat.audited.find(({ event }) => event === 'granted')
  // The label may contain arguments: only its keyed hash is written.
  expect(granted).toMatchObject({ mandate: { id: grant?.id }, shownHash: expect.any(String) })
  expect(JSON.stringify(chat.audited)).not.toContain(offer?.label)
})

test('W6 a later call that matches runs unasked and says which mandate let it through; another is asked about', async () => {
  const chat = openChat()
  await chat.reply(await chat.propose([bill()]), choose('acme'))
  const { asked, decided } = await chat.propose([bill(20)])
  expect(asked).toEqual([])
  const [grant] = await chat.list()
  const mandate = { id: grant?.id, label: offers[0]?.label }
  expect(decided).toMatchObject([{ decision: 'approve', by: 'person', subject: 'ann', mandate }])
  expect(chat.audited.filter(({ via }) => via === 'grant').map(({ event }) => event)).toEqual([
    'claimed',
    'started',
    'completed',
  ])
  expect(chat.audited.find(({ via }) => via === 'grant')).toMatchObject({
    event: 'claimed',
    mandate: { id: grant?.id },
  })
  expect((await chat.propose([bill(20, 'globex')])).asked.length).toBe(1)
  expect(chat.runs).toEqual([bill(), bill(20)])
})

test('W6 a mandate is for its user, its conversation and its tool', async () => {
  const chat = openChat()
  await chat.reply(await chat.propose([bill()]), choose('small'))
  expect((await chat.propose([bill(5)])).asked).toEqual([])
  expect((await chat.propose([bill(5)], { threadId: 'other' })).asked.length).toBe(1)
  expect((await chat.propose([bill(5)], { context: { subject: 'bob' } })).asked.length).toBe(1)
})

test('W7 a use counts if the tool fails, and is given back if the call did not start', async () => {
  const failing = openChat({
    tool: {
      execute: async ({ amount }) => {
        if (amount === 20) throw new Error('declined')
        return 'paid'
      },
    },
  })
  await failing.reply(await failing.propose([bill()]), choose('acme'))
  await failing.propose([bill(20)])
  expect(await failing.list()).toMatchObject([{ usesLeft: 1, terms: { used: 2, spent: 70 } }])

  const memory = memoryLedger()
  const chat = openChat({
    ledger: {
      ...memory,
      id: memory.id,
      // A revocation of something else arrives while the use is on its way.
      findMandate: async (call, purpose) => {
        const found = await memory.findMandate?.(call, purpose)
        if (purpose === 'use') await chat.agent.grants.revoke('ann', { id: 'other' })
        return found
      },
    },
  })
  await chat.reply(await chat.propose([bill()]), choose('acme'))
  expect((await chat.propose([bill(20)])).asked.length).toBe(1)
  expect(await chat.list()).toMatchObject([{ usesLeft: 2, terms: { used: 1, spent: 50 } }])
})

test('W7 if the reply of the ledger is lost, the use is given back, and approval is requested', async () => {
  const memory = memoryLedger()
  let isLost = false
  const chat = openChat({
    ledger: {
      ...memory,
      id: memory.id,
      findMandate: async (call, purpose) => {
        const found = await memory.findMandate?.(call, purpose)
        if (purpose === 'use' && isLost) throw new Error('connection reset')
        return found
      },
    },
  })
  await chat.reply(await chat.propose([bill()]), choose('acme'))
  isLost = true
  expect((await chat.propose([bill(20)])).asked.length).toBe(1)
  expect(chat.runs).toEqual([bill()])
  expect(await chat.list()).toMatchObject([{ usesLeft: 2, terms: { used: 1, spent: 50 } }])
})

test('W9 a use of a call that may be tried again is not given back: what starts never exceeds the budget', async () => {
  const memory = memoryLedger()
  let isDown = false
  const ledger: Ledger = {
    ...memory,
    id: memory.id,
    renew: async (...asked) => {
      if (isDown) throw new Error('connection reset')
      return memory.renew(...asked)
    },
  }
  const chat = openChat({ ledger, tool: { idempotent: true } })
  const { asked } = await chat.propose([bill(150)])
  const history = chat.history()
  const send = async () => {
    const resume = asked.map((one) => answer(one, choose('acme')))
    return results(await collect(chat.agent, input(history, { resume }), { context: { subject: 'ann' } }))
  }
  isDown = true
  expect(await send()).toMatchObject([{ own: { code: 'interrupted' } }])
  expect(chat.runs).toEqual([])
  isDown = false
  expect(await send()).toMatchObject([{ content: { done: 'pay' } }])
  expect(await chat.list()).toMatchObject([{ usesLeft: 2, terms: { used: 1, spent: 150 } }])
  expect((await chat.propose([bill(51)])).asked.length).toBe(1)
  expect(chat.runs).toEqual([bill(150)])
})

test.each([
  ['can not be reached', [50], 'ledger-unavailable'],
  ['did not reply before the process of the call died', [50, 100], undefined],
  ['has taken the revocation of something else', [50, 100], undefined],
] as const)(
  'W9 what starts with a mandate that is chosen for several calls is counted, or does not start, if the ledger %s',
  async (how, ran, code) => {
    for (const second of [100, 160]) {
      let time = 1e12
      let isHit = false
      const memory = memoryLedger({ now: () => time })
      const ledger: Ledger = {
        ...memory,
        id: memory.id,
        grant: async (request) => {
          if (!isHit) return memory.grant(request)
          if (how.startsWith('can')) throw new Error('connection reset')
          if (how.startsWith('did')) return new Promise(() => {})
          await chat.agent.grants.revoke('ann', { id: 'other' })
          return memory.grant(request)
        },
      }
      const chat = openChat({ ledger, now: () => time, tool: { idempotent: how.startsWith('did') } })
      const { asked } = await chat.propose([bill(50), bill(second)])
      const history = chat.history()
      const send = async (which: number) => {
        const resume = asked.slice(which, which + 1).map((one) => answer(one, choose('acme')))
        return results(await collect(chat.agent, input(history, { resume }), { context: { subject: 'ann' } }))
      }
      await send(0)
      isHit = true
      const first = send(1)
      if (how.startsWith('did')) {
        await expect.poll(() => chat.audited.filter(({ event }) => event === 'started').length).toBe(2)
        await setImmediate()
        isHit = false
        time += 60_000
        await send(1)
      } else if (code !== undefined) expect((await first)[0]).toMatchObject({ own: { code } })
      else await first
      const counted = second === 160 ? [50] : ran
      expect(chat.runs).toEqual(counted.map((amount) => bill(amount)))
      expect(await chat.list()).toMatchObject([
        { terms: { spent: counted.reduce((sum, one) => sum + one, 0) } },
      ])
    }
  },
)

test.each([
  ['before its mandate was stored', 0],
  ['once its mandate had expired', 7200],
])(
  'W9 a call that is tried again because its process died %s gives it only as long as it would have been in force',
  async (_, later) => {
    let time = 1e12
    let isDead = false
    const memory = memoryLedger({ now: () => time })
    const ledger: Ledger = {
      ...memory,
      id: memory.id,
      renew: (...asked) => (isDead ? new Promise(() => {}) : memory.renew(...asked)),
      grant: (request) => (isDead && later === 0 ? new Promise(() => {}) : memory.grant(request)),
    }
    const chat = openChat({ ledger, now: () => time, tool: { idempotent: true } })
    const { asked } = await chat.propose([bill(150), bill(100)])
    const history = chat.history()
    const send = (which: number, runId: string) => {
      const resume = asked.slice(which, which + 1).map((one) => answer(one, choose('acme')))
      return collect(chat.agent, input(history, { runId, resume }), { context: { subject: 'ann' } })
    }
    isDead = true
    void send(0, 'first')
    await expect.poll(() => chat.audited.filter(({ event }) => event === 'started').length).toBe(1)
    await setImmediate()
    isDead = false
    time += 60_000 + later * 1000
    await send(0, 'again')
    expect(chat.runs).toEqual([bill(150)])
    const given = { expiresAt: 1e12 + 3_600_000, terms: { used: 1, spent: 150 } }
    expect(await chat.list()).toMatchObject(later === 0 ? [given] : [])
    expect(chat.audited.filter(({ event }) => event === 'granted')).toHaveLength(1)
    if (later > 0) return
    // It is one mandate with that of the other request.
    expect(results(await send(1, 'other'))[0]).toMatchObject({ own: { code: 'approval-stale' } })
    expect(chat.runs).toEqual([bill(150)])
  },
)

test.each(['something else was revoked', 'its process died'])(
  'a mandate that is used up and chosen anew counts its call, or the call does not start, although %s',
  async (how) => {
    let time = 1e12
    let isHit = false
    const memory = memoryLedger({ now: () => time })
    const ledger: Ledger = {
      ...memory,
      id: memory.id,
      grant: async (request) => {
        if (isHit && how.startsWith('its')) return new Promise(() => {})
        if (isHit) await chat.agent.grants.revoke('ann', { id: 'other' })
        return memory.grant(request)
      },
    }
    const chat = openChat({ ledger, now: () => time, tool: { idempotent: true } })
    await chat.reply(await chat.propose([bill(190)]), choose('acme'))
    time += 1000
    const { asked } = await chat.propose([bill(150)])
    const history = chat.history()
    const send = (runId: string) => {
      const resume = asked.map((one) => answer(one, choose('acme')))
      return collect(chat.agent, input(history, { runId, resume }), { context: { subject: 'ann' } })
    }
    isHit = true
    const first = send('first')
    if (how.startsWith('its')) {
      await expect.poll(() => chat.audited.filter(({ event }) => event === 'started').length).toBe(2)
      await setImmediate()
      isHit = false
      time += 60_000
      await send('again')
    } else await first
    expect(chat.runs).toEqual(how.startsWith('its') ? [bill(190), bill(150)] : [bill(190)])
    expect(await chat.list()).toMatchObject([{ terms: { spent: how.startsWith('its') ? 150 : 190 } }])
  },
)

test('the audit trail names the mandate that was stored, also if it was chosen for several calls', async () => {
  const chat = openChat()
  await chat.reply(await chat.propose([bill(50), bill(50), bill(5, 'globex')]), choose('acme'))
  const [{ id } = {}] = await chat.list()
  const named = chat.audited.flatMap((one) => (one.event === 'granted' ? [Object(one).mandate] : []))
  expect(named).toEqual([{ id }, { id }, { id }])
})

test('W9 a mandate that is chosen for two open requests is one, also if the ledger has another clock', async () => {
  for (const ahead of [-5_000, 5_000]) {
    let time = 1e12
    const chat = openChat({ ledger: memoryLedger({ now: () => time - ahead }), now: () => time })
    const asked = await chat.propose([bill(150), bill(150)])
    time += 2_000
    await chat.reply(asked, choose('acme'))
    expect(chat.runs).toEqual([bill(150)])
    expect(await chat.list()).toMatchObject([{ terms: { spent: 150 } }])
    // Asked after it was given, it starts anew.
    time += 2_000
    await chat.reply(await chat.propose([bill(190)]), choose('acme'))
    expect(await chat.list()).toMatchObject([{ terms: { spent: 190 } }])
  }
})

test('W8 W10 a budget counts exactly, takes only amounts in its unit, and asks about a call above the rest', async () => {
  const mandates = (): MandateOffer[] => [
    {
      ...{ id: 'some', label: 'Some', where: [] },
      budget: { field: 'amount', total: 0.8, unit: 'EUR', unitField: 'currency' },
    },
  ]
  const chat = openChat({ tool: { mandates } })
  await chat.reply(await chat.propose([bill(0.1)]), choose('some'))
  for (const amount of [-1, -0.1, 1e-7, 2 ** 53 - 1, 0.71]) {
    const { asked } = await chat.propose([bill(amount)])
    expect(asked.length, String(amount)).toBe(1)
  }
  for (const currency of ['USD', 'eur', 'ЕUR', ' EUR', ''])
    expect((await chat.propose([bill(0.1, 'acme', currency)])).asked.length, currency).toBe(1)
  // As binary fractions 0.1 + 0.7 would leave a rest.
  expect((await chat.propose([bill(0.7)])).asked).toEqual([])
  expect(await chat.list()).toMatchObject([{ terms: { spent: 0.8 } }])
  expect((await chat.propose([bill(1e-6)])).asked.length).toBe(1)
  expect((await chat.propose([bill(0)])).asked).toEqual([])
})

test('W8 an amount that is no number never passes a budget', async () => {
  const chat = openChat({
    tool: {
      input: z.looseObject({}) as never,
      mandates: () => [
        {
          id: 'some',
          label: 'Some',
          where: [],
          budget: { field: ['pay', 'amount'], total: 100, unit: 'EUR' },
        },
      ],
    },
  })
  await chat.reply(await chat.propose([{ pay: { amount: 1 } }]), choose('some'))
  expect(await chat.list()).toMatchObject([{ terms: { spent: 1 } }])
  for (const amount of ['5', null, [5], { value: 5 }, true])
    expect((await chat.propose([{ pay: { amount } }])).asked.length, JSON.stringify(amount)).toBe(1)
  expect((await chat.propose([{ amount: 5 }])).asked.length).toBe(1)
  expect((await chat.propose([{ pay: { amount: 99 } }])).asked).toEqual([])
})

test('W8 a mandate whose budget does not cover the call it is chosen with is refused, and the call can be approved alone', async () => {
  for (const beyond of [bill(500), bill(50, 'acme', 'USD'), bill(-1)]) {
    const chat = openChat()
    const asked = await chat.propose([beyond])
    const { events } = await chat.reply(asked, choose('acme'))
    expect(refusals(events)).toMatchObject([{ message: expect.stringContaining('does not cover the call') }])
    expect([chat.runs, await chat.list()]).toEqual([[], []])
    await chat.reply(asked, { approved: true })
    expect(chat.runs).toEqual([beyond])
  }
})

test('W11 a mandate that is revoked while its last use is taken does not come back', async () => {
  const memory = memoryLedger()
  let isTaken = false
  let id = ''
  const chat = openChat({
    tool: { mandates: () => [{ id: 'two', label: 'Twice', where: [{ field: 'to', is: 'acme' }], uses: 2 }] },
    ledger: {
      ...memory,
      id: memory.id,
      findMandate: async (call, purpose) => {
        const found = await memory.findMandate?.(call, purpose)
        if (purpose === 'use' && !isTaken) {
          isTaken = true
          expect(await chat.agent.grants.revoke('ann', { id })).toBe(1)
        }
        return found
      },
    },
  })
  await chat.reply(await chat.propose([bill()]), choose('two'))
  id = (await chat.list())[0]?.id ?? ''
  expect((await chat.propose([bill(20)])).asked.length).toBe(1)
  expect(await chat.list()).toEqual([])
  expect((await chat.propose([bill(999)])).asked.length).toBe(1)
  expect(chat.runs).toEqual([bill()])
})

test('what grants.list returns is a copy: to change it widens nothing', async () => {
  const chat = openChat()
  await chat.reply(await chat.propose([bill(1)]), choose('acme'))
  for (const { terms } of await chat.list()) Object(terms).where.length = 0
  expect((await chat.propose([bill(1, 'globex')])).asked.length).toBe(1)
})

test('W8 several calls of one reply share a budget', async () => {
  const chat = openChat()
  await chat.reply(await chat.propose([bill(100)]), choose('acme'))
  const { asked } = await chat.propose([bill(60), bill(60)])
  expect(asked.length).toBe(1)
  expect(await chat.list()).toMatchObject([{ terms: { spent: 160 } }])
})

test('W10 an expired, used up or revoked mandate lets nothing through', async () => {
  let time = 0
  const chat = openChat({ now: () => time })
  await chat.reply(await chat.propose([bill(1)]), choose('acme'))
  await chat.propose([bill(1)])
  await chat.propose([bill(1)])
  expect(chat.runs.length).toBe(3)
  expect((await chat.propose([bill(1)])).asked.length).toBe(1)
  expect(await chat.list()).toEqual([])

  const expiring = openChat({ now: () => time })
  await expiring.reply(await expiring.propose([bill(1)]), choose('acme'))
  time += 3_600_000
  expect((await expiring.propose([bill(1)])).asked.length).toBe(1)

  const revoked = openChat()
  await revoked.reply(await revoked.propose([bill(1)]), choose('acme'))
  const [grant] = await revoked.list()
  expect(await revoked.agent.grants.revoke('bob', { id: grant?.id ?? '' })).toBe(0)
  expect((await revoked.propose([bill(1)])).asked).toEqual([])
  expect(await revoked.agent.grants.revoke('ann', { id: grant?.id ?? '' })).toBe(1)
  expect((await revoked.propose([bill(1)])).asked.length).toBe(1)
})

test('W11 a revocation wins over a call that the gate has let through, wherever it waits', async () => {
  let decisions = 0
  const chat = openChat({
    approvals: {
      policy: async () => {
        decisions++
        // The second decision about the second call comes right before its start.
        if (decisions === 5) await chat.agent.grants.revoke('ann')
        return undefined
      },
    },
  })
  await chat.reply(await chat.propose([bill(1)]), choose('acme'))
  expect(decisions).toBe(3)
  expect((await chat.propose([bill(2)])).asked.length).toBe(1)
  expect(chat.runs).toEqual([bill(1)])
})

test('W11 a revocation between the answer and the grant wins: no mandate is stored', async () => {
  const chat = openChat({
    approvals: {
      policy: async () => {
        if (chat.audited.some(({ event }) => event === 'claimed')) await chat.agent.grants.revoke('ann')
        return undefined
      },
    },
  })
  await chat.reply(await chat.propose([bill(1)]), choose('small'))
  expect(chat.runs).toEqual([bill(1)])
  expect(await chat.list()).toEqual([])
})

test.each([
  ['everything was revoked', {}, 1000],
  ['something else was revoked', { id: 'other' }, 1000],
  ['the ledger had no room for its revision', undefined, 5],
] as const)(
  'W9 a mandate with limits that is not stored, because %s after the claim, lets none of its calls start',
  async (_, which, maxRecordsPerOwner) => {
    let claims = 0
    const memory = memoryLedger({ maxRecordsPerOwner })
    const ledger: Ledger = {
      ...memory,
      id: memory.id,
      claim: async (...asked) => {
        const claimed = await memory.claim(...asked)
        claims += 1
        if (claims === 5 && which !== undefined) await chat.agent.grants.revoke('ann', which)
        return claimed
      },
    }
    const chat = openChat({ ledger })
    const asked = await chat.propose(Array.from({ length: 5 }, () => bill(100)))
    const { results: said } = await chat.reply(asked, choose('acme'))
    expect(claims).toBe(5)
    expect(chat.runs).toEqual([])
    expect(said.map(({ own }) => own?.code)).toEqual(Array(5).fill('ledger-unavailable'))
    expect(await chat.list()).toEqual([])
  },
)

test('W12 a standing denial refuses with its reason, is listed, beats every approval, and is revocable', async () => {
  const chat = openChat({ tool: { scopes: ['once', 'session'] } })
  const denied = await chat.reply(await chat.propose([bill(1, 'mallory')]), {
    ...{ approved: false, mandate: 'never', reason: 'she cheats' },
  })
  expect(denied.results).toMatchObject([{ own: { outcome: 'denied' } }])
  // Approvals of small calls, and of all.
  await chat.reply(await chat.propose([bill(1)]), choose('small'))
  await chat.reply(await chat.propose([bill(100)]), { approved: true, scope: 'session' })
  const before = chat.runs.length
  const refused = await chat.propose([bill(1, 'mallory')])
  expect(refused.asked).toEqual([])
  expect(refused.results).toMatchObject([{ content: { type: 'execution-denied', reason: 'she cheats' } }])
  expect(refused.decided).toMatchObject([{ decision: 'deny', mandate: { label: 'Never pay Mallory' } }])
  expect(chat.runs.length).toBe(before)
  const denial = (await chat.list()).find(({ approved }) => !approved)
  expect(denial).toMatchObject({ terms: { label: 'Never pay Mallory', reason: 'she cheats', used: 0 } })
  await chat.agent.grants.revoke('ann', { id: denial?.id ?? '' })
  expect((await chat.propose([bill(1, 'mallory')])).asked).toEqual([])
  expect(chat.runs.length).toBe(before + 1)
})

test('W12 a standing denial beats the policy, and an approval given before it', async () => {
  const ledger = memoryLedger()
  const chat = openChat({ ledger })
  const asked = await chat.propose([bill(1, 'mallory'), bill(2, 'mallory')])
  const [first, second] = asked.asked
  if (first === undefined || second === undefined) throw new Error('two are asked')
  await chat.reply({ asked: [first] }, { approved: false, mandate: 'never' })
  const { results } = await chat.reply({ asked: [second] }, { approved: true })
  expect(results).toMatchObject([{ content: { reason: 'Never pay Mallory' }, own: { outcome: 'denied' } }])
  expect(chat.runs).toEqual([])
  const allowing = openChat({ ledger, approvals: { policy: () => 'allow' } })
  expect((await allowing.propose([bill(1, 'mallory')])).results).toMatchObject([
    { content: { reason: 'Never pay Mallory' } },
  ])
  expect((await allowing.propose([bill(1)])).results.length).toBe(1)
  expect(allowing.runs).toEqual([bill(1)])
})

test('W12 if the ledger can not say whether a denial applies, nothing runs', async () => {
  const memory = memoryLedger()
  const findMandate = () => Promise.reject(new Error('down'))
  const ledger = { ...memory, id: memory.id, findMandate, issue: () => Promise.reject(new Error('down')) }
  const chat = openChat({ ledger, tool: { needsApproval: false } })
  const { asked, results } = await chat.propose([bill(1)])
  expect([asked, chat.runs]).toEqual([[], []])
  expect(results).toMatchObject([{ own: { code: 'ledger-unavailable' } }])
})

test('W13 the route lists label, limits, use, who and when, without constraints; it revokes only the own', async () => {
  const chat = openChat({ now: () => 60_000 })
  await chat.reply(await chat.propose([bill()]), choose('acme'))
  const get = async (subject: string, method = 'GET', id = '') => {
    const request = new Request(`http://localhost/grants?threadId=thread${id}`, { method })
    return (await grantsResponse(chat.agent, request, { context: { subject } })).json()
  }
  const [grant] = await chat.list()
  expect(await get('ann')).toEqual({
    grants: [
      {
        ...{ id: grant?.id, threadId: 'thread', toolName: 'pay', usesLeft: 2 },
        ...{ grantedAt: '1970-01-01T00:01:00.000Z', expiresAt: '1970-01-01T01:01:00.000Z' },
        mandate: {
          ...{ label: offers[0]?.label, used: 1, grantedBy: 'ann', lastUsedAt: '1970-01-01T00:01:00.000Z' },
          budget: { total: 200, spent: 50, unit: 'EUR' },
        },
      },
    ],
  })
  expect(await get('bob')).toEqual({ grants: [] })
  expect(await get('bob', 'DELETE', `&id=${grant?.id}`)).toEqual({ revoked: 0 })
  expect(await get('ann', 'DELETE', `&id=${grant?.id}`)).toEqual({ revoked: 1 })
})

test('W14 session grants with a scopeKey work as before, and are listed beside mandates', async () => {
  const chat = openChat({
    tool: { scopes: ['once', 'session'], scopeKey: (input) => String(Object(input).to) },
  })
  await chat.reply(await chat.propose([bill(50, 'globex')]), { approved: true, scope: 'session' })
  await chat.reply(await chat.propose([bill(50)]), choose('acme'))
  expect((await chat.list()).map(({ scopeKey, terms }) => terms?.label ?? scopeKey)).toEqual([
    'globex',
    offers[0]?.label,
  ])
  expect((await chat.propose([bill(500, 'globex'), bill(20)])).asked).toEqual([])
  expect((await chat.propose([bill(500)])).asked.length).toBe(1)
  expect(await chat.agent.grants.revoke('ann')).toBe(2)
  expect(await chat.list()).toEqual([])
})

test('W18 edited arguments are matched as edited', async () => {
  const chat = openChat({ tool: { allowEdits: true } })
  await chat.reply(await chat.propose([bill(500)]), { ...choose('acme'), editedArgs: bill(30) })
  expect(chat.runs).toEqual([bill(30)])
  expect(await chat.list()).toMatchObject([{ terms: { used: 1, spent: 30 } }])
  // Edited to what is not covered: the call was approved by itself, and does not count.
  await chat.agent.grants.revoke('ann')
  await chat.reply(await chat.propose([bill(500)]), { ...choose('acme'), editedArgs: bill(30, 'globex') })
  expect(await chat.list()).toMatchObject([{ usesLeft: 3, terms: { used: 0, spent: 0 } }])
  // A denial stops what is edited into its reach.
  const [one, two] = (await chat.propose([bill(500, 'mallory'), bill(500, 'globex')])).asked
  if (one === undefined || two === undefined) throw new Error('two are asked')
  await chat.reply({ asked: [one] }, { approved: false, mandate: 'never' })
  const { results } = await chat.reply({ asked: [two] }, { approved: true, editedArgs: bill(1, 'mallory') })
  expect(results).toMatchObject([{ own: { outcome: 'denied' } }])
})

test('W19 a mandate does not apply to a tool with another schema or version, or with a bind or preview that it did not have', async () => {
  const ledger = memoryLedger()
  const chat = openChat({ ledger, tool: { version: '1' } })
  const open = await chat.propose([bill(1)])
  await chat.reply(open, choose('small'))
  const same = openChat({ ledger, tool: { version: '1' } })
  expect((await same.propose([bill(1)])).asked).toEqual([])
  for (const tool of [
    {},
    { version: '2' },
    { version: '1', bind: () => 'account' },
    { version: '1', preview: () => ({ kind: 'text', text: 'pays' }) as const },
    {
      version: '1',
      input: z.looseObject({
        to: z.string(),
        amount: z.number(),
        currency: z.string(),
        at: z.string().optional(),
      }) as never,
    },
  ]) {
    const changed = openChat({ ledger, tool })
    expect((await changed.propose([bill(1)])).asked.length, Object.keys(tool).join()).toBe(1)
  }
})

test('a mandate stays as it was chosen when the tool offers others, or none', async () => {
  const ledger = memoryLedger()
  const chat = openChat({ ledger })
  await chat.reply(await chat.propose([bill(50)]), choose('acme'))
  const smaller = offers.map((one) => (one.budget ? { ...one, budget: { ...one.budget, total: 60 } } : one))
  for (const mandates of [() => smaller, () => []]) {
    const later = openChat({ ledger, tool: { mandates } })
    expect((await later.propose([bill(50)])).asked).toEqual([])
  }
})

test('W19 to revoke all of a conversation ends its suspended mandates too, counts them, and records them in the audit trail', async () => {
  const ledger = memoryLedger()
  const before = openChat({ ledger, tool: { version: '1' } })
  await before.reply(await before.propose([bill(50)]), choose('acme'))
  const after = openChat({ ledger, tool: { version: '2' } })
  await after.reply(await after.propose([bill(50)]), choose('acme'))
  const listed = await after.list()
  expect(listed).toHaveLength(1)
  expect(await after.agent.grants.revoke('ann', { threadId: listed[0]?.threadId ?? '' })).toBe(2)
  expect(after.audited.filter(({ event }) => event === 'revoked')).toHaveLength(2)
  expect(await before.list()).toEqual([])
})

test('W19 a mandate that was offered for another version of the tool is not given: the call can be approved alone', async () => {
  const ledger = memoryLedger()
  const before = openChat({ ledger, tool: { version: '1' } })
  const { asked } = await before.propose([bill(50), bill(50)])
  const after = openChat({ ledger, tool: { version: '2' } })
  const send = (payload: Record<string, unknown>) => {
    const resume = asked.map((one) => answer(one, payload))
    return collect(after.agent, input(before.history(), { resume }), { context: { subject: 'ann' } })
  }
  const refused = await send(choose('acme'))
  const codes = refusals(refused).map(({ code }) => code)
  expect(codes).toEqual(['approval-mandate-refused', 'approval-mandate-refused'])
  expect([after.runs, await after.list()]).toEqual([[], []])
  await send({ approved: true })
  expect(after.runs).toEqual([bill(50), bill(50)])
  expect((await after.propose([bill(1)])).asked.length).toBe(1)
})

test('W7 W19 an interrupted call that was approved with a mandate does not start uncounted after its tool has changed', async () => {
  let now = Date.now()
  const inner = memoryLedger({ now: () => now })
  // The process dies before the mandate is given.
  const grant = () => new Promise<never>(() => {})
  const ledger = { ...inner, id: inner.id, grant }
  const dying = openChat({ ledger, now: () => now, tool: { idempotent: true, version: '1' } })
  const { asked } = await dying.propose([bill(50)])
  const resume = asked.map((one) => answer(one, choose('acme')))
  const given = () => input(dying.history(), { resume })
  const context = { subject: 'ann' }
  const stop = new AbortController()
  const first = collect(dying.agent, given(), { context, signal: stop.signal })
  await expect.poll(() => dying.audited.some(({ event }) => event === 'started')).toBe(true)
  now += 120_000
  const later = openChat({ ledger: inner, now: () => now, tool: { idempotent: true, version: '2' } })
  await collect(later.agent, given(), { context })
  expect(later.runs).toEqual([])
  stop.abort()
  void first
})

test('what a tool offers by mistake is not offered, with a warning that says where', async () => {
  const good = offers[1]
  const mistakes: readonly [unknown, string][] = [
    ['all', 'mandates must be a list'],
    [[good, good], 'mandates must be a list in which no id occurs twice'],
    [
      Array.from({ length: 17 }, (_, id) => ({ ...good, id: String(id) })),
      'mandates must be a list of at most 16',
    ],
    [[good, null], 'mandates[1] must be an object'],
    [[{ ...good, amount: 5 }], 'mandates[0].amount must be left out'],
    [[{ ...good, id: '' }], 'mandates[0].id must be text'],
    [[{ ...good, label: 'x'.repeat(201) }], 'mandates[0].label must be text'],
    [[{ ...good, where: undefined }], 'mandates[0].where must be a list'],
    [
      [{ ...good, where: [{ field: 'to', is: 'x'.repeat(16_384) }] }],
      'mandates[0].where must be at most 16384 characters as JSON',
    ],
    [[{ ...good, uses: 0 }], 'mandates[0].uses must be a positive integer'],
    [[{ ...good, expiresIn: 'never' }], 'mandates[0].expiresIn must be a positive number'],
    [[{ ...good, expiresIn: Number.MAX_SAFE_INTEGER }], 'mandates[0].expiresIn must be a positive number'],
    [[{ ...good, expiresIn: Number.MAX_VALUE }], 'at most 3153600000 (100 years)'],
    [[{ ...good, decide: 'allow' }], 'mandates[0].decide must be "deny"'],
    [[{ ...good, decide: 'deny', uses: 1 }], 'mandates[0] must be without uses and budget'],
    [[{ ...good, budget: 200 }], 'mandates[0].budget must be an object'],
    [[{ ...good, budget: { field: 'a', total: 0, unit: 'x' } }], 'mandates[0].budget.total must be'],
    [[{ ...good, budget: { field: 'a', total: 1 } }], 'mandates[0].budget.unit must be text'],
    [
      [{ ...good, budget: { field: 'a', total: 1, unit: 'x', most: 1 } }],
      'mandates[0].budget.most must be left out',
    ],
  ]
  for (const [value, message] of mistakes) {
    const warnings: string[] = []
    const warn = (said: string, error?: unknown) => void warnings.push(`${said} ${error}`)
    const chat = openChat({ tool: { mandates: () => value as MandateOffer[] }, warn })
    const { asked } = await chat.propose([bill(1)])
    expect([asked.length, asked[0]?.approval.mandates]).toEqual([1, undefined])
    expect(warnings.join(), message).toContain(message)
  }
})

test('without a user, and with a ledger that keeps none, no mandate is offered', async () => {
  const nobody = await openChat({ context: {} }).propose([bill(1)])
  const stateless = openChat({ ledger: statelessLedger({ acceptReplay: true }) })
  const asked = await stateless.propose([bill(1)])
  expect([nobody, asked].map((one) => one.asked[0]?.approval.mandates)).toEqual([undefined, undefined])
  expect(refusals((await stateless.reply(asked, choose('small'))).events)).toMatchObject([
    { code: 'approval-malformed' },
  ])
})

test('choosing the same mandate again starts it anew, and another one comes beside it', async () => {
  let time = 1e12
  const chat = openChat({ now: () => ++time })
  await chat.reply(await chat.propose([bill(150)]), choose('acme'))
  await chat.reply(await chat.propose([bill(100)]), choose('acme'))
  await chat.reply(await chat.propose([bill(100, 'globex')]), choose('small'))
  expect((await chat.list()).map(({ terms }) => [terms?.label, terms?.used, terms?.spent])).toEqual([
    [offers[0]?.label, 1, 100],
    ['Pay up to 10', 0, 0],
  ])
})

test('repeating the answer neither stores the mandate again nor counts again; another choice is a conflict', async () => {
  const chat = openChat()
  const asked = await chat.propose([bill(50)])
  const before = chat.history()
  await chat.reply(asked, choose('acme'))
  const again = async (payload: Record<string, unknown>) =>
    collect(chat.agent, input(before, { resume: asked.asked.map((one) => answer(one, payload)) }), {
      context: { subject: 'ann' },
    })
  expect(refusals(await again(choose('acme')))).toEqual([])
  for (const payload of [choose('small'), { approved: true }])
    expect(refusals(await again(payload))).toMatchObject([{ code: 'approval-conflict' }])
  expect(chat.runs).toEqual([bill(50)])
  expect(await chat.list()).toMatchObject([{ terms: { used: 1 } }])
})

test('W15 a replay tells nothing of what other users asked, and takes no request of theirs', async () => {
  const ledger = memoryLedger()
  const chat = openChat({ ledger })
  const done = await chat.reply(await chat.propose([bill(1)]), { approved: true })
  const toolCallIds = done.results.map(({ id }) => id)
  const { asked } = await chat.propose([bill(2)])
  const approvalId = asked[0]?.approval.id ?? ''
  const question = { threadId: 'thread', approvalId, mandate: 'small', toolCallIds }
  expect(await chat.agent.grants.replay('ann', question)).toMatchObject({
    asked: 1,
    matched: [{ decision: 'approve' }],
  })
  // A call counts once, however often it is named: models number theirs anew.
  const twice = { ...question, toolCallIds: [...toolCallIds, ...toolCallIds] }
  expect(await chat.agent.grants.replay('ann', twice)).toMatchObject({ asked: 1, matched: [{}] })
  for (const [subject, more] of [
    ['bob', {}],
    ['ann', { threadId: 'other' }],
    ['ann', { approvalId: 'other' }],
    ['ann', { mandate: '__proto__' }],
  ] as const)
    await expect(chat.agent.grants.replay(subject, { ...question, ...more })).rejects.toMatchObject({
      code: 'approval-not-found',
    })
  // Bob names ann's calls with a request of his own.
  const bob = openChat({ ledger, context: { subject: 'bob' } })
  const [own] = (await bob.propose([bill(3)])).asked
  const his = { ...question, approvalId: own?.approval.id ?? '' }
  expect(await bob.agent.grants.replay('bob', his)).toEqual({ asked: 0, matched: [] })
})

test('W7 a scopeKey that fails makes no session approval, and stops neither an approval of one call nor a standing denial', async () => {
  const warned: string[] = []
  const warn = (message: string) => warned.push(message)
  const scopeKey = () => undefined as never
  const chat = openChat({ warn, tool: { scopes: ['once', 'session'], scopeKey } })
  await chat.reply(await chat.propose([bill(1)]), { approved: true })
  expect(chat.runs).toEqual([bill(1)])
  expect(warned).toContain('No session approval applies to pay, because its scopeKey failed.')
  await chat.reply(await chat.propose([bill(2, 'mallory')]), { approved: false, mandate: 'never' })
  expect((await chat.propose([bill(3, 'mallory')])).asked).toEqual([])
  expect(chat.runs).toEqual([bill(1)])
})

test.each([
  ['expired', { expiresIn: 60 }],
  ['used up', { uses: 2 }],
])('W10 an old answer that is repeated does not bring back a mandate that has %s', async (_, limits) => {
  let now = 1e12
  let isBroken = true
  const mandates = () => [{ id: 'm', label: 'Pay', where: [], ...limits }]
  const execute = ({ amount }: { amount: number }) => {
    if (amount !== 60 || !isBroken) return 'paid'
    isBroken = false
    throw new Error('lost')
  }
  const tool = { mandates, execute, idempotent: true, failureMode: 'throw' } as never
  const chat = openChat({ now: () => now, tool, warn: () => {} })
  const { asked } = await chat.propose([bill(60), bill(10)])
  const history = chat.history()
  const send = (which: number, runId: string) => {
    const resume = asked.slice(which, which + 1).map((one) => answer(one, choose('m')))
    return collect(chat.agent, input(history, { runId, resume }), { context: { subject: 'ann' } })
  }
  await send(0, 'first')
  // The same mandate is chosen anew, so that the first answer has no mandate left in the ledger.
  await send(1, 'second')
  await chat.propose([bill(3)])
  now += 3_600_000
  expect((await chat.propose([bill(4)])).asked).toHaveLength(1)
  await send(0, 'again')
  expect(chat.runs).toContainEqual(bill(60))
  expect(await chat.list()).toEqual([])
  expect((await chat.propose([bill(5)])).asked).toHaveLength(1)
})

test.each([
  ['a budget', { budget: { field: 'amount', total: 100, unit: 'EUR' } }, [80, 80], [80, 20]],
  ['uses', { uses: 2 }, [1, 1, 1, 1], [1, 1]],
] as const)(
  'W9 what starts never exceeds %s that is chosen for several calls at once',
  async (_, limit, amounts, ran) => {
    const mandates = () => [{ id: 'm', label: 'Pay', where: [], ...limit }]
    let time = 1e12
    const chat = openChat({ now: () => ++time, tool: { mandates } })
    const asked = await chat.propose(amounts.map((amount) => bill(amount)))
    const { results } = await chat.reply(asked, choose('m'))
    expect(results.filter(({ own }) => Object(own).code === 'approval-stale').length).toBeGreaterThan(0)
    const more = await chat.propose([bill(20)])
    expect(chat.runs.map((one) => Object(one).amount)).toEqual(ran)
    expect(more.asked).toHaveLength('uses' in limit ? 1 : 0)
    // Asked anew, the user can choose it anew.
    const anew = 'uses' in limit ? more : await chat.propose([bill(30)])
    await chat.reply(anew, choose('m'))
    expect(chat.runs).toHaveLength(ran.length + 1)
  },
)
