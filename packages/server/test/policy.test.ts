import { clientTool, type ToolAnnotations } from '@countersign/core'
import {
  type ApprovalOptions,
  ApprovalRequiredError,
  ApprovalRequiredException,
  createAgent,
  memoryLedger,
  type Policy,
  sanitizeArgs,
  scriptedModel,
  tool,
} from '@countersign/server'
import { expect, test } from 'vitest'
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
  requests,
  results,
  SECRET,
  say,
  testAgent,
  types,
  user,
} from './support.js'

async function outcome(
  approvals: Partial<ApprovalOptions>,
  more: { annotations?: ToolAnnotations; needsApproval?: boolean } = {},
) {
  const act = counted('act', more)
  const { agent } = testAgent([call(['c1', 'act', {}]), say('ok')], { tools: [act.tool], approvals })
  const events = await collect(agent, input([user('go')]))
  if (requests(events).length > 0) return 'asked'
  return act.runs.length > 0 ? 'ran' : results(events)[0]?.content.type
}

test('a permission level is a policy: read blocks what does more, ask asks about it, auto asks about nothing', async () => {
  const reads = { annotations: { readOnlyHint: true } }
  expect(await outcome({ permission: 'read' })).toBe('execution-denied')
  expect(await outcome({ permission: 'read' }, reads)).toBe('ran')
  expect(await outcome({ permission: 'read' }, { ...reads, needsApproval: true })).toBe('asked')
  expect(await outcome({ permission: 'ask' })).toBe('asked')
  expect(await outcome({ permission: 'ask' }, reads)).toBe('ran')
  expect(await outcome({ permission: 'auto' }, { needsApproval: true })).toBe('ran')
})

test('beside a level a policy has the last word, except that read is never widened', async () => {
  const says =
    (decision: 'allow' | 'ask' | 'block'): Policy =>
    () =>
      decision
  expect(await outcome({ permission: 'auto', policy: says('ask') })).toBe('asked')
  expect(await outcome({ permission: 'auto', policy: says('block') })).toBe('execution-denied')
  expect(await outcome({ permission: 'ask', policy: says('allow') })).toBe('ran')
  expect(await outcome({ permission: 'ask', policy: () => undefined })).toBe('asked')
  expect(await outcome({ permission: 'read', policy: says('allow') })).toBe('execution-denied')
  const failing: Policy = () => {
    throw new Error('no rules')
  }
  expect(await outcome({ permission: 'auto', policy: failing })).toBe('asked')
})

test('an unknown level is an error of construction that names the option', () => {
  const permission = 'write' as 'auto'
  expect(() =>
    createAgent({ model: scriptedModel([]), approvals: { secret: SECRET, permission }, warn: () => {} }),
  ).toThrow(/approvals\.permission/)
})

test('a policy sees what the tool says of itself; nonsense from it asks', async () => {
  const seen: unknown[] = []
  const policy: Policy = (subject) => {
    seen.push(subject)
    return Object('maybe')
  }
  expect(await outcome({ policy }, { annotations: { destructiveHint: true } })).toBe('asked')
  expect(seen).toEqual([
    {
      toolName: 'act',
      toolCallId: 'c1',
      input: {},
      location: 'server',
      annotations: { destructiveHint: true },
    },
  ])
})

test('S3.3 S3.50 a tool may say its terms as one value; options of its own beat it', async () => {
  const approval = { required: true, message: 'Sure?', options: ['deny', 'once', 'session'] } as const
  const first = async (more: Parameters<typeof counted>[1]) => {
    const act = counted('act', more)
    const { agent } = testAgent([call(['c1', 'act', {}])], { tools: [act.tool] })
    expect(act.tool.location).toBe('server')
    return requests(await collect(agent, input([user('go')]), { context: { subject: 'ann' } }))[0]?.approval
  }
  expect(await first({ approval })).toMatchObject({ options: ['deny', 'once', 'session'], message: 'Sure?' })
  expect(await first({ approval: { required: true } })).toMatchObject({ options: ['deny', 'once'] })
  expect(await first({ approval, message: 'Mine', scopes: ['once'] })).toMatchObject({
    options: ['deny', 'once'],
    message: 'Mine',
  })
  expect(await first({ approval, needsApproval: false })).toBeUndefined()
  expect(await first({ approval: { required: false } })).toBeUndefined()
})

test('S0.15 a tool that the client brings is gated like any other, its input unknown', async () => {
  const policy: Policy = ({ location, input: given }) =>
    location === 'client' && JSON.stringify(given).includes('all') ? 'ask' : 'allow'
  const { agent } = testAgent([call(['c1', 'pick', { of: 'all' }], ['c2', 'pick', { of: 'one' }])], {
    approvals: { policy },
  })
  const tools = [{ name: 'pick', description: 'Picks' }]
  const events = await collect(agent, input([user('go')], { tools }))
  expect(requests(events).map(({ toolCallId }) => toolCallId)).toEqual(['c1'])
})

test('S0.13 a call whose arguments do not fit is not asked about and not run; the result names the tool', async () => {
  const pay = tool({
    name: 'pay',
    description: 'Pays',
    input: z.object({ amount: z.number() }),
    needsApproval: true,
    execute: () => 'paid',
  })
  const { agent } = testAgent([call(['c1', 'pay', { amount: 'much' }]), say('ok')], { tools: [pay] })
  const events = await collect(agent, input([user('go')]))
  expect(requests(events)).toEqual([])
  expect(results(events)).toMatchObject([
    {
      content: { type: 'execution-error', reason: expect.stringContaining('pay') },
      own: { outcome: 'error' },
    },
  ])
})

test('S3.4 ApprovalRequiredError carries what the person is shown, and survives being serialised', () => {
  const error = new ApprovalRequiredError({
    toolName: 'pay',
    message: 'Pay 100?',
    args: { amount: 100, cardToken: 'x' },
    options: ['deny', 'once', 'session'],
  })
  expect(error).toBeInstanceOf(Error)
  expect(error).toMatchObject({
    code: 'approval-required',
    message: 'Pay 100?',
    toolName: 'pay',
    args: { amount: 100, cardToken: '[REDACTED]' },
    options: ['deny', 'once', 'session'],
  })
  const copy = structuredClone(error.toJSON())
  expect(JSON.parse(JSON.stringify(error))).toEqual(copy)
  expect(copy).toMatchObject({ code: 'approval-required', message: 'Pay 100?', data: { toolName: 'pay' } })
  expect(ApprovalRequiredException).toBe(ApprovalRequiredError)
  expect(new ApprovalRequiredError({ toolName: 'pay' })).toMatchObject({ options: ['deny', 'once'] })
})

const limit = () =>
  counted('pay', {
    scopes: ['once', 'session'],
    execute: (args, { approved }) => {
      const { amount } = args
      if (Number(amount) <= 10 || approved) return { paid: amount }
      throw new ApprovalRequiredError({
        toolName: 'pay',
        message: `Pay ${amount}?`,
        args,
        options: ['deny', 'once', 'session'],
      })
    },
  })

test('S3.5 S3.67 a tool that throws it is asked about like any other and runs after the yes', async () => {
  const pay = limit()
  const asks = { amount: 100, pin: '1', token: 't' }
  const turns = [call(['c1', 'pay', { amount: 5 }], ['c2', 'pay', asks]), say('done')]
  const { agent } = testAgent(turns, { tools: [pay.tool] })
  const context = { subject: 'ann' }
  const { events, history, first, asked } = await ask(agent, {}, { context })
  expect(asked.length).toBe(1)
  expect(first).toMatchObject({ toolCallId: 'c2', input: asks })
  expect(first.approval).toMatchObject({
    message: 'Pay 100?',
    display: { amount: 100, pin: '1', token: '[REDACTED]' },
    options: ['deny', 'once', 'session'],
  })
  expect(results(events)).toMatchObject([{ id: 'c1', content: { paid: 5 } }])
  expect(last(events)).toMatchObject({ outcome: { type: 'interrupt' } })
  const again = await collect(agent, input(history), { context })
  expect(requests(again)[0]?.approval).toEqual(first.approval)
  const resume = [answer(first, { approved: true })]
  const done = await collect(agent, input(history, { resume }), { context })
  expect(results(done)).toMatchObject([{ id: 'c2', content: { paid: 100 } }])
  expect(pay.runs.length).toBe(3)
})

test('S3.5 a grant for the session lets it run again at once, and throwing in spite of a yes is an ordinary failure', async () => {
  const pay = limit()
  const stubborn = counted('stubborn', {
    execute: () => {
      throw new ApprovalRequiredError({ toolName: 'stubborn' })
    },
  })
  const turns = [
    call(['c1', 'pay', { amount: 20 }]),
    call(['c2', 'pay', { amount: 30 }]),
    call(['c3', 'stubborn', {}]),
    say('failed'),
  ]
  const { agent } = testAgent(turns, { tools: [pay.tool, stubborn.tool] })
  const context = { subject: 'ann' }
  const { history, first } = await ask(agent, {}, { context })
  const resume = [answer(first, { approved: true, scope: 'session' })]
  const events = await collect(agent, input(history, { resume }), { context })
  expect(results(events).map(({ content }) => content)).toEqual([{ paid: 20 }, { paid: 30 }])
  const [second] = requests(events)
  expect(second?.toolName).toBe('stubborn')
  if (second === undefined) return
  const after = fold(history, events)
  const done = await collect(agent, input(after, { resume: [answer(second, { approved: true })] }), {
    context,
  })
  expect(requests(done)).toEqual([])
  expect(results(done)).toMatchObject([{ content: { type: 'execution-error' } }])
})

test('S3.5 a policy that allows tells the tool, and a ledger that cannot ask refuses', async () => {
  const allowed = testAgent([call(['c1', 'pay', { amount: 100 }]), say('ok')], {
    tools: [limit().tool],
    approvals: { permission: 'auto' },
  })
  const events = await collect(allowed.agent, input([user('go')]))
  expect(results(events)).toMatchObject([{ content: { paid: 100 } }])
  const ledger = { ...memoryLedger(), id: 'full', issue: async () => ({ status: 'full' }) as const }
  const full = testAgent([call(['c1', 'pay', { amount: 100 }]), say('ok')], {
    tools: [limit().tool],
    approvals: { ledger },
  })
  expect(results(await collect(full.agent, input([user('go')])))).toMatchObject([
    { content: { type: 'execution-error' }, own: { code: 'ledger-unavailable' } },
  ])
})

test('S3.67 ordinary errors of a tool are ordinary failures', async () => {
  for (const thrown of [new Error('disk full'), { code: 'approval-required' }, 'text', undefined]) {
    const act = counted('act', {
      execute: () => {
        throw thrown
      },
    })
    const { agent } = testAgent([call(['c1', 'act', {}]), say('ok')], { tools: [act.tool] })
    const events = await collect(agent, input([user('go')]))
    expect(requests(events)).toEqual([])
    expect(results(events)).toMatchObject([{ content: { type: 'execution-error' } }])
  }
})

test('S3.48 S3.49 what is shown and audited is masked; input and what runs are exact', async () => {
  const ledger = memoryLedger()
  const deploy = counted('deploy', { needsApproval: true, redact: (given) => sanitizeArgs(given) })
  const args = { host: 'a', apiKey: 'k-123', env: { password: 'p-456' } }
  const { agent } = testAgent([call(['c1', 'deploy', args]), say('ok')], {
    tools: [deploy.tool],
    approvals: { ledger },
  })
  const { history, first } = await ask(agent)
  expect(first.input).toEqual(args)
  expect(first.approval.display).toEqual({ host: 'a', apiKey: '[REDACTED]', env: { password: '[REDACTED]' } })
  await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(deploy.runs).toEqual([args])
  const trail = []
  for await (const entry of ledger.auditTrail()) trail.push(entry)
  expect(trail.find(({ event }) => event === 'issued')?.view).toEqual(first.approval.display)
  expect(JSON.stringify(trail)).not.toMatch(/k-123|p-456/)
})

test('S3.49 an agent can mask for all of its tools; what it leaves alone is not shown twice; a mask that fails asks nothing', async () => {
  const shown = async (args: object, redact: (given: unknown) => unknown) => {
    const act = counted('act', { needsApproval: true })
    const { agent } = testAgent([call(['c1', 'act', args]), say('ok')], {
      tools: [act.tool],
      approvals: { redact },
    })
    const events = await collect(agent, input([user('go')]))
    const [asked] = requests(events)
    return asked === undefined ? types(events) : asked.approval.display
  }
  expect(await shown({ token: 't' }, (given) => sanitizeArgs(given))).toEqual({ token: '[REDACTED]' })
  expect(await shown({ path: '/a' }, (given) => sanitizeArgs(given))).toBeUndefined()
  const failing = () => {
    throw new Error('no mask')
  }
  expect(await shown({ path: '/a' }, failing)).not.toContain('CUSTOM approval-requested')
})

test("S3.64 S3.65 S3.66 several gated calls ask once each, their siblings' results are kept, and so are the calls", async () => {
  const send = counted('send', { needsApproval: true })
  const look = counted('look')
  const pay = limit()
  const turn = call(
    ['c1', 'send', { to: 'a' }],
    ['c2', 'look', {}],
    ['c3', 'send', { to: 'b' }],
    ['c4', 'pay', { amount: 50 }],
  )
  const { agent } = testAgent([turn], { tools: [send.tool, look.tool, pay.tool] })
  const { events, history, asked } = await ask(agent)
  expect(asked.map(({ toolCallId }) => toolCallId).sort()).toEqual(['c1', 'c3', 'c4'])
  expect(new Set(asked.map(({ approval }) => approval.id)).size).toBe(3)
  expect(results(events)).toMatchObject([{ id: 'c2', content: { done: 'look' } }])
  const calls = history.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
  expect(calls.map(({ id, function: { name, arguments: text } }) => [id, name, text])).toEqual([
    ['c1', 'send', '{"to":"a"}'],
    ['c2', 'look', '{}'],
    ['c3', 'send', '{"to":"b"}'],
    ['c4', 'pay', '{"amount":50}'],
  ])
})

test('S3.68 a run without a client leaves a question that can be answered later, from what was stored', async () => {
  const ledger = memoryLedger()
  const send = counted('send', { needsApproval: true })
  const background = testAgent([call(['c1', 'send', { to: 'a' }])], {
    tools: [send.tool],
    approvals: { ledger },
  })
  const question = [user('go')]
  const { events, interrupts } = await background.agent.generate(input(question))
  const stored = JSON.parse(JSON.stringify(fold(question, events)))
  expect(interrupts).toMatchObject([{ toolCallId: 'c1' }])
  expect((await ledger.unsettled(null, 'thread')).map(({ record }) => record.toolCallId)).toEqual(['c1'])
  const later = testAgent([say('sent')], { tools: [send.tool], approvals: { ledger } })
  const shown = await collect(later.agent, input(stored))
  const [asked] = requests(shown)
  expect(asked?.approval.id).toBe(interrupts[0]?.id)
  if (asked === undefined) return
  await collect(later.agent, input(stored, { resume: [answer(asked, { approved: true })] }))
  expect(send.runs).toEqual([{ to: 'a' }])
})

test('S3.54 the thread is that of the run: two runs of one agent at once do not mix', async () => {
  const send = counted('send', { needsApproval: true, scopes: ['once', 'session'] })
  const { agent } = testAgent(
    ({ messages }) => {
      const results = messages.filter(({ role }) => role === 'tool').length
      return results > 0 ? say('done') : call([`c${Math.random()}`, 'send', {}])
    },
    { tools: [send.tool] },
  )
  const context = { subject: 'ann' }
  const [one, two] = await Promise.all([
    ask(agent, { threadId: 'one' }, { context }),
    ask(agent, { threadId: 'two' }, { context }),
  ])
  const yes = [answer(one.first, { approved: true, scope: 'session' })]
  await Promise.all([
    collect(agent, input(one.history, { threadId: 'one', resume: yes }), { context }),
    collect(agent, input(two.history, { threadId: 'two' }), { context }),
  ])
  expect((await agent.grants.list('ann', 'one')).length).toBe(1)
  expect(await agent.grants.list('ann', 'two')).toEqual([])
})

test('S3.110 a tool may not be named client.*, wherever it is placed', async () => {
  const named = { name: 'client.open', description: 'x', input: z.object({}), execute: () => 1 }
  expect(() => tool(named)).toThrow(/client\./)
  expect(() => clientTool(named)).toThrow(/client\./)
  const made = { ...tool({ ...named, name: 'open' }), name: 'client.open' }
  expect(() =>
    createAgent({ model: scriptedModel([]), tools: [made], approvals: { secret: SECRET }, warn: () => {} }),
  ).toThrow(/client\./)
  const warned: string[] = []
  const { agent, model } = testAgent([say('ok')], { warn: (message) => warned.push(message) })
  await collect(agent, input([user('go')], { tools: [{ name: 'client.open', description: 'x' }] }))
  expect(model.requests[0]?.tools).toEqual([])
  expect(warned.join()).toContain('client.open')
})
