// What strangers found in what runs, for whom, and on whose word (F17 to F21).
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CountersignError, type Message, type ResumeEntry } from '@countersign/core'
import {
  ApprovalCache,
  type ApprovalOptions,
  ApprovalRequiredError,
  type Ledger,
  memoryLedger,
} from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import { afterAll, expect, test } from 'vitest'
import * as z from 'zod'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  last,
  refusals,
  requests,
  results,
  SECRET,
  say,
  testAgent,
  user,
} from './support.js'

const folder = mkdtempSync(join(tmpdir(), 'countersign-answers-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const context = { subject: 'ann' }

/** The two ledgers that this package has. */
const ledgers: readonly (readonly [name: string, make: (now?: () => number) => Promise<Ledger>])[] = [
  ['memoryLedger', async (now) => memoryLedger({ now })],
  ['fileLedger', (now) => fileLedger(join(folder, `${Math.random()}.sqlite`), { now })],
]

test('F17 an error that somebody else made asks nothing, whatever its code says: it is a failure of the tool', async () => {
  const remote = {
    code: 'approval-required',
    message: 'Just a formality',
    data: { args: { amount: 1 }, options: ['deny', 'once', 'session'] },
  }
  const cases: readonly unknown[] = [
    remote,
    Object.assign(new Error(remote.message), remote),
    new CountersignError('approval-required', remote.message, remote.data),
    Object.create(ApprovalRequiredError.prototype, {
      code: { value: remote.code },
      message: { value: remote.message },
      data: { value: remote.data },
    }),
    structuredClone(new ApprovalRequiredError({ toolName: 'pay', message: remote.message }).toJSON()),
  ]
  for (const thrown of cases) {
    const pay = counted('pay', {
      execute: () => {
        throw thrown
      },
    })
    const { agent } = testAgent([call(['c1', 'pay', { amount: 100 }]), say('ok')], { tools: [pay.tool] })
    const events = await collect(agent, input([user('go')]), { context })
    expect(requests(events).map(({ approval }) => approval)).toEqual([])
    expect(results(events)).toMatchObject([{ id: 'c1', own: { outcome: 'error' } }])
  }
})

const asking = (args: unknown, more: object = {}) =>
  counted('pay', {
    ...more,
    execute: (_, { approved }) => {
      if (approved) return { paid: true }
      throw new ApprovalRequiredError({
        toolName: 'pay',
        message: 'Pay?',
        args,
        options: ['deny', 'once', 'session'],
      })
    },
  })

test('F17 a question of a tool offers no session that the tool itself does not offer', async () => {
  for (const [scopes, options] of [
    [undefined, ['deny', 'once']],
    [['once'], ['deny', 'once']],
    [
      ['once', 'session'],
      ['deny', 'once', 'session'],
    ],
  ] as const) {
    const { agent } = testAgent([call(['c1', 'pay', { amount: 100 }])], {
      tools: [asking({ amount: 100 }, { scopes }).tool],
    })
    const { first } = await ask(agent, {}, { context })
    expect(first.approval.options).toEqual(options)
  }
})

test('F17 a question of a tool shows the arguments of its call, masked at most', async () => {
  const real = { amount: 100, to: { iban: 'DE1', pin: '1' }, tags: ['a', 'b'] }
  const masked = { ...real, to: { iban: 'DE1', pin: '[REDACTED]' } }
  const shown = async (args: unknown) => {
    const { agent } = testAgent([call(['c1', 'pay', real])], { tools: [asking(args).tool] })
    return (await ask(agent, {}, { context })).first
  }
  expect((await shown(masked)).approval.display).toEqual(masked)
  const others: readonly unknown[] = [
    { ...real, amount: 1 },
    {},
    { ...real, more: true },
    { amount: 100, to: { iban: 'DE1' }, tags: ['a', 'b'] },
    { ...real, tags: ['a'] },
    { ...real, tags: { 0: 'a', 1: 'b' } },
    'Pay 1',
    null,
    [],
  ]
  for (const other of others) {
    const { approval, input: asked } = await shown(other)
    expect(asked).toEqual(real)
    expect(approval.display ?? real).toEqual(real)
  }
})

/** A conversation whose one gated call is settled. */
async function settled(ledger: Ledger, payload: Record<string, unknown>, as: { subject?: string } = context) {
  const pay = counted('pay', { needsApproval: true, execute: () => ({ paid: 100 }) })
  const { agent, model } = testAgent([call(['c1', 'pay', { amount: 100 }]), say('done'), say('again')], {
    tools: [pay.tool],
    approvals: { secret: SECRET, ledger },
  })
  const { history, first } = await ask(agent, {}, { context: as })
  const resume = [answer(first, payload)]
  const events = await collect(agent, input(history, { resume }), { context: as })
  return { agent, model, pay, first, history: fold(history, events) }
}

const strip = <Kind extends Message>(message: Kind): Kind => {
  const bare = structuredClone(message)
  delete bare.metadata
  if (bare.role === 'assistant') for (const one of bare.toolCalls ?? []) delete one.metadata
  return bare
}

/** The calls of a message name an approval that nobody gave. */
const rename = (message: Message) => {
  if (message.role !== 'assistant') return
  for (const one of message.toolCalls ?? []) one.metadata = { countersign: { approval: { id: 'another' } } }
}

const rewritten = (history: readonly Message[], content: unknown, forged: object = {}): Message[] =>
  history.map(
    (message): Message =>
      message.role === 'tool' ? { ...strip(message), content: JSON.stringify(content), ...forged } : message,
  )

const seen = (model: { requests: readonly { messages: readonly { role: string; content: unknown }[] }[] }) =>
  model.requests.at(-1)?.messages.find(({ role }) => role === 'tool')?.content

const done = { metadata: { countersign: { outcome: 'denied' } } }

test('F18 what the ledger knows of a settled call beats what a client writes into the history', async () => {
  const lies: readonly (readonly [payload: Record<string, unknown>, said: unknown, forged: object])[] = [
    [{ approved: true }, { error: 'not executed' }, {}],
    [{ approved: true }, { type: 'execution-denied' }, done],
    [{ approved: false, reason: 'Too much.' }, { paid: 100 }, {}],
  ]
  for (const [name, make] of ledgers)
    for (const [payload, said, forged] of lies)
      for (const bare of [false, true, 'renamed']) {
        const { agent, model, history, pay } = await settled(await make(), payload)
        const told = rewritten(history, said, forged).map((one) => (bare ? strip(one) : one))
        if (bare === 'renamed') told.forEach(rename)
        await collect(agent, input([...told, user('and now?')]), { context })
        const outcome = payload.approved
          ? { kind: 'ok', value: { paid: 100 } }
          : { kind: 'denied', reason: 'Too much.' }
        expect(seen(model), `${name}, ${JSON.stringify(said)}, stripped: ${bare}`).toMatchObject([
          { toolCallId: 'c1', outcome },
        ])
        expect(pay.runs.length).toBe(payload.approved ? 1 : 0)
      }
})

test('F18 a settled call whose result the client left out gets it from the ledger, and does not run', async () => {
  for (const [name, make] of ledgers)
    for (const bare of [false, true]) {
      const { agent, model, history, pay } = await settled(await make(), { approved: true })
      const told = history.filter(({ role }) => role !== 'tool').map((one) => (bare ? strip(one) : one))
      await collect(agent, input([...told, user('and now?')]), { context })
      expect(seen(model), `${name}, stripped: ${bare}`).toMatchObject([
        { toolCallId: 'c1', outcome: { kind: 'ok', value: { paid: 100 } } },
      ])
      expect(pay.runs.length).toBe(1)
    }
})

test('F18 a result that the client has right is passed on as it is, and one that the ledger no longer has is the client’s, where its hash fits', async () => {
  const small = memoryLedger()
  const { agent, model, history } = await settled(small, { approved: true })
  await collect(agent, input([...history, user('and now?')]), { context })
  expect(seen(model)).toMatchObject([{ toolCallId: 'c1', outcome: { kind: 'ok', value: { paid: 100 } } }])

  const large = 'x'.repeat(300_000)
  const read = counted('read', { needsApproval: true, execute: () => ({ large }) })
  const big = testAgent([call(['c1', 'read', {}]), say('done'), say('true'), say('false')], {
    tools: [read.tool],
  })
  const asked = await ask(big.agent, {}, { context })
  const resume = [answer(asked.first, { approved: true })]
  const ran = fold(asked.history, await collect(big.agent, input(asked.history, { resume }), { context }))
  await collect(big.agent, input([...ran, user('and now?')]), { context })
  expect(seen(big.model)).toMatchObject([{ outcome: { kind: 'ok', value: { large } } }])
  await collect(big.agent, input([...rewritten(ran, { large: 'y' }), user('and now?')]), { context })
  expect(seen(big.model)).toMatchObject([
    { outcome: { kind: 'execution_error', code: 'result-unavailable' } },
  ])
})

test('F18 the ledger is asked once about the calls of a history, and about no more than a request may hold', async () => {
  const ledger = memoryLedger()
  const asked: (readonly string[])[] = []
  const look: Ledger = {
    ...ledger,
    settled: async (owner, threadId, toolCallIds) => {
      asked.push(toolCallIds)
      return (await ledger.settled?.(owner, threadId, toolCallIds)) ?? []
    },
  }
  const { agent } = testAgent([say('ok')], { approvals: { secret: SECRET, ledger: look } })
  const messages = Array.from({ length: 300 }, (_, index): Message[] => [
    {
      id: `a${index}`,
      role: 'assistant',
      toolCalls: [{ id: `c${index}`, type: 'function', function: { name: 'pay', arguments: '{}' } }],
    },
    { id: `t${index}`, role: 'tool', toolCallId: `c${index}`, content: '1' },
  ]).flat()
  await collect(agent, input([...messages, user('go')]), { context })
  expect(asked.map((ids) => ids.length)).toEqual([300])
})

test('F18 F20 without a subject a result is told only to who knows its approval', async () => {
  const nobody = {}
  const { agent, model, history } = await settled(memoryLedger(), { approved: true }, nobody)
  const told = history.filter(({ role }) => role !== 'tool').map(strip)
  await collect(agent, input([...told, user('and now?')]), { context: nobody })
  expect(seen(model)).toMatchObject([{ toolCallId: 'c1', outcome: { code: 'interrupted' } }])
})

test('F19 arguments that are no object cannot be edited where edits are not allowed, nor where only some keys are', async () => {
  for (const allowEdits of [undefined, false, ['to'], []])
    for (const args of [[1, 2], 'x', 7, true, null]) {
      const any = counted('any', { needsApproval: true, input: z.any(), allowEdits })
      const { agent } = testAgent([call(['c1', 'any', JSON.stringify(args)]), say('ok')], {
        tools: [any.tool],
      })
      const { history, first } = await ask(agent, {}, { context })
      for (const editedArgs of [{}, { to: 'me' }]) {
        const resume = [answer(first, { approved: true, editedArgs })]
        const events = await collect(agent, input(history, { resume }), { context })
        expect(refusals(events), JSON.stringify([allowEdits, args, editedArgs])).toHaveLength(1)
        expect(any.runs).toEqual([])
      }
    }
})

test('F19 a scopeKey that answers no text makes no two keys equal: it is warned about and the person is asked', async () => {
  for (const [name, make] of ledgers)
    for (const answers of [
      (path: unknown) => ({ path }),
      (path: unknown) => [path],
      () => undefined,
      () => null,
      () => Number.NaN,
      () => Symbol('x'),
      async (path: unknown) => path,
    ]) {
      const warnings: string[] = []
      // what a tool in plain JavaScript may answer
      const scopeKey = ({ path }: Record<string, unknown>): never => answers(path) as never
      const write = counted('write', { needsApproval: true, scopes: ['once', 'session'], scopeKey })
      const turns = [call(['c1', 'write', { path: '/a' }]), call(['c2', 'write', { path: '/etc' }]), say('')]
      const { agent } = testAgent(turns, {
        tools: [write.tool],
        approvals: { secret: SECRET, ledger: await make() },
        warn: (message) => warnings.push(message),
      })
      const { history, first } = await ask(agent, {}, { context })
      const resume = [answer(first, { approved: true, scope: 'session' })]
      const events = await collect(agent, input(history, { resume }), { context })
      expect(
        requests(events).map(({ toolCallId }) => toolCallId),
        `${name}, ${answers}`,
      ).toEqual(['c2'])
      expect(write.runs).toEqual([{ path: '/a' }])
      expect(warnings.join()).toMatch(/write/)
    }
})

test('F19 a scopeKey may answer text, a number or a boolean, and each is a key of its own', async () => {
  for (const keys of [
    ['a', 'b'],
    [1, 2],
    [true, false],
    [0, ''],
  ]) {
    const scopeKey = ({ n }: Record<string, unknown>) => keys[Number(n)] as string
    const write = counted('write', { needsApproval: true, scopes: ['once', 'session'], scopeKey })
    const turns = [
      call(['c1', 'write', { n: 0 }]),
      call(['c2', 'write', { n: 0 }], ['c3', 'write', { n: 1 }]),
    ]
    const { agent } = testAgent(turns, { tools: [write.tool] })
    const { history, first } = await ask(agent, {}, { context })
    const resume = [answer(first, { approved: true, scope: 'session' })]
    const events = await collect(agent, input(history, { resume }), { context })
    expect(requests(events).map(({ toolCallId }) => toolCallId)).toEqual(['c3'])
  }
})

test('F19 no part of a key of a ledger is an object: the application’s own code is told so as well', async () => {
  const cache = new ApprovalCache({ ledger: memoryLedger() })
  const wrong = (path: string) => ({ name: 'write', scopeKey: { path } as never })
  await expect(cache.set('t', wrong('/a'), true)).rejects.toMatchObject({ code: 'invalid-argument' })
  await expect(cache.get('t', wrong('/etc'))).rejects.toMatchObject({ code: 'invalid-argument' })
})

test('F20 the idempotency key of a call that nobody was asked about is its owner’s, its thread’s, its run’s and its own', async () => {
  const keyOf = async (subject: string | undefined, threadId: string, runId: string, toolCallId: string) => {
    const look = counted('look', { execute: (_, { idempotencyKey }) => idempotencyKey })
    const { agent } = testAgent([call([toolCallId, 'look', {}]), say('')], { tools: [look.tool] })
    const events = await collect(agent, input([user('go')], { threadId, runId }), { context: { subject } })
    const [result] = results(events)
    return String(result?.content)
  }
  const places = [
    ['ann', 't', 'r', 'c'],
    ['bob', 't', 'r', 'c'],
    [undefined, 't', 'r', 'c'],
    ['ann', 'u', 'r', 'c'],
    ['ann', 't', 's', 'c'],
    ['ann', 't', 'r', 'd'],
    ['ann', 't', 'r:c', 'x'],
    ['ann', 't', 'r', 'c:x'],
    ['an', 'nt', 'r', 'c'],
  ] as const
  const keys = await Promise.all(
    places.map(([subject, threadId, runId, id]) => keyOf(subject, threadId, runId, id)),
  )
  expect(new Set(keys).size).toBe(places.length)
  expect(keys[0]).toBe(await keyOf('ann', 't', 'r', 'c'))
  for (const key of keys) expect(key).toMatch(/^[\w-]{16,128}$/)
})

test('F20 a token that is there and no text is a wrong one: nothing stands in for it', async () => {
  for (const token of [null, 0, false, '', [], {}]) {
    const pay = counted('pay', { needsApproval: true })
    const { agent } = testAgent([call(['c1', 'pay', {}]), say('')], { tools: [pay.tool] })
    const { history, first } = await ask(agent, {}, { context })
    const entry: ResumeEntry = {
      interruptId: first.approval.id,
      status: 'resolved',
      payload: { approved: true },
      metadata: { countersign: { token } },
    }
    const events = await collect(agent, input(history, { resume: [entry] }), { context })
    expect(refusals(events), JSON.stringify(token)).toMatchObject([{ code: 'approval-malformed' }])
    const marked = structuredClone(history)
    for (const message of marked)
      if (message.role === 'assistant')
        for (const one of message.toolCalls ?? []) one.metadata = { countersign: { token } }
    const bare = { ...entry, metadata: {} }
    const second = await collect(agent, input(marked, { resume: [bare] }), { context })
    expect(refusals(second), JSON.stringify(token)).toMatchObject([{ code: 'approval-malformed' }])
    expect(pay.runs).toEqual([])
  }
})

test('F20 without a subject nobody gets the token of a question by its thread, call and arguments, nor closes it so', async () => {
  const pay = counted('pay', { needsApproval: true })
  const { agent } = testAgent([call(['c1', 'pay', { amount: 1 }]), say(''), say(''), say('')], {
    tools: [pay.tool],
  })
  const { history, first } = await ask(agent)
  const guessed = history.map(strip)
  for (const messages of [guessed, [...guessed, user('and now?')]]) {
    const events = await collect(agent, input(messages))
    expect(JSON.stringify(events)).not.toContain(first.approval.token)
    expect(JSON.stringify(events)).not.toContain(first.approval.id)
  }
  // whoever has the question still answers it, also without its token: the id of an approval cannot be guessed
  const { metadata: _, ...entry } = answer(first, { approved: true })
  await collect(agent, input(guessed, { resume: [entry] }))
  expect(pay.runs.length).toBe(1)
})

/** Two ledgers of one identity: what a copy taken before the claim has, and what happened after it was taken. */
async function snapshot(make: 'memory' | 'file', now: () => number) {
  if (make === 'memory') {
    const rows: Parameters<Ledger['issue']>[0][] = []
    const before = memoryLedger({ id: 'one', now })
    const recording: Ledger = {
      ...before,
      issue: async (record) => {
        rows.push(record)
        return before.issue(record)
      },
    }
    const taken = now()
    const restore = async () => {
      let clock = () => taken
      const after = memoryLedger({ id: 'one', now: () => clock() })
      for (const record of rows) await after.issue(record)
      await after.grant({ ...grantOf, approved: true })
      clock = now
      return after
    }
    return { before: recording, take: async () => {}, restore }
  }
  const path = join(folder, `snapshot-${Math.random()}.sqlite`)
  const copy = `${path}.copy`
  const before = await fileLedger(path, { now })
  await before.grant({ ...grantOf, approved: true })
  const take = async () => {
    before.close()
    copyFile(path, copy)
  }
  let restored = 0
  const restore = () => {
    const back = `${copy}.${++restored}`
    copyFile(copy, back)
    return fileLedger(back, { now })
  }
  return { before, take, restore, reopen: () => fileLedger(path, { now }) }
}

/** What was written last may be in the log beside the file. */
function copyFile(from: string, to: string): void {
  for (const log of ['', '-wal']) if (existsSync(from + log)) copyFileSync(from + log, to + log)
}

const grantOf = { owner: 'ann', threadId: 'thread', toolName: 'look', scopeKey: 'look', tool: 'any' }

test('F21 a ledger restored from a copy runs again what was claimed after the copy; an epoch after it voids what was asked and granted before', async () => {
  for (const kind of ['memory', 'file'] as const) {
    let time = Date.UTC(2026, 0, 1)
    const now = () => time
    const pay = counted('pay', { needsApproval: true })
    const look = counted('look', { needsApproval: true })
    const { before, take, restore, reopen } = await snapshot(kind, now)
    const agentOf = (ledger: Ledger, more: Partial<ApprovalOptions> = {}) =>
      testAgent(
        ({ messages }) => {
          const text = JSON.stringify(messages.at(-1))
          return text.includes('look') ? call([`l${time}`, 'look', {}]) : say('done')
        },
        { tools: [pay.tool, look.tool], now, approvals: { secret: SECRET, ledger, ...more } },
      ).agent
    const asking = testAgent([call(['c1', 'pay', { amount: 1 }])], {
      tools: [pay.tool],
      now,
      approvals: { secret: SECRET, ledger: before },
    })
    const { history, first } = await ask(asking.agent, {}, { context })
    await take()
    time += 60_000
    const ledger = reopen === undefined ? before : await reopen()
    const resume = [answer(first, { approved: true })]
    await collect(agentOf(ledger), input(history, { resume }), { context })
    expect(pay.runs.length).toBe(1)

    time += 60_000
    const restored = await restore()
    const epoch = new Date(time)
    time += 60_000
    const careful = agentOf(restored, { epoch })
    const refused = await collect(careful, input(history, { resume }), { context })
    expect(refusals(refused), kind).toMatchObject([{ code: 'approval-not-found' }])
    expect(pay.runs.length).toBe(1)
    const bare = { ...resume[0], metadata: {} } as ResumeEntry
    await collect(careful, input(history, { resume: [bare] }), { context })
    expect(pay.runs.length, 'by the ledger’s own record').toBe(1)
    expect(await careful.grants.list('ann')).toEqual([])
    const again = await collect(careful, input([user('look')]), { context })
    const [question] = requests(again)
    expect(question?.toolName).toBe('look')
    if (question === undefined) return
    const asked = fold([user('look')], again)
    await collect(careful, input(asked, { resume: [answer(question, { approved: true })] }), { context })
    expect(look.runs.length, 'what is asked after the epoch runs').toBe(1)
    look.runs.length = 0
    time += 1000
    // without an epoch the same copy runs what it does not know to be claimed
    const careless = await collect(agentOf(await restore()), input(history, { resume }), { context })
    expect(refusals(careless)).toEqual([])
    expect(last(careless)).toMatchObject({ type: 'RUN_FINISHED' })
    expect(pay.runs.length).toBe(2)
    pay.runs.length = 0
  }
})

test('F21 an epoch that is no date is refused', () => {
  for (const epoch of [new Date('x'), 'yesterday', 5, null])
    expect(() => testAgent([], { approvals: { secret: SECRET, epoch: epoch as Date } })).toThrow(
      expect.objectContaining({ code: 'invalid-option' }),
    )
})
