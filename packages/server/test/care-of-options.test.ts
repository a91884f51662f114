// Options of tools: what their functions may do to arguments, and what they may answer.
import { clientTool } from '@countersign/core'
import {
  type AgentOptions,
  ApprovalRequiredError,
  answerQueue,
  createAgent,
  handleChat,
  memoryThreads,
  scriptedModel,
} from '@countersign/server'
import {
  executeApprovedToolCalls,
  type PlannedCall,
  planFromMap,
  planFromQueue,
} from '@countersign/server/plan'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
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
  SECRET,
  say,
  testAgent,
  user,
} from './support.js'

const planned = (toolCallId: string, given: unknown = {}): PlannedCall => ({
  toolCallId,
  toolName: 'send',
  input: given,
  arguments: JSON.stringify(given),
})

test('a predicate of a plan that answers anything but false means that the call needs approval', async () => {
  for (const said of [undefined, null, 0, '', Number.NaN, 'no', {}, true]) {
    const needs = (() => said) as unknown as () => boolean
    expect(planFromMap(needs, {})([planned('a')]).rejected.length, String(said)).toBe(1)
    expect(planFromQueue(needs, answerQueue())([planned('a')]).pending.length, String(said)).toBe(1)
  }
  expect(planFromMap(() => false, {})([planned('a')]).approved.length).toBe(1)
})

test('a predicate of a plan that changes what it is given changes neither what is shown nor what runs', async () => {
  const given = { to: ['b', 'a'] }
  const needs = ({ input: own }: PlannedCall) => (own as typeof given).to.sort().length > 0
  const plan = planFromQueue(needs, answerQueue())([planned('a', given)])
  for await (const request of plan.approvalRequests) expect(request.input).toEqual({ to: ['b', 'a'] })
})

/** Arguments of which every part can be changed in place, also by what the schema has made of them. */
const parts = z.looseObject({
  to: z.array(z.string()),
  by: z.looseObject({ name: z.string() }),
  at: z.coerce.date().optional(),
})

type Parts = z.infer<typeof parts> & { more?: boolean }

function spoil(value: unknown): void {
  const own = value as Parts
  own.to.sort()
  own.to.push('more')
  own.by.name = 'somebody else'
  own.more = true
  if (own.at instanceof Date) own.at.setTime(0)
}

interface Spoiling {
  readonly tool?: Parameters<typeof counted>[1]
  readonly approvals?: AgentOptions['approvals']
}

const spoiling: Readonly<Record<string, Spoiling>> = {
  needsApproval: {
    tool: {
      needsApproval: (own) => {
        spoil(own)
        return true
      },
    },
  },
  bind: {
    tool: {
      bind: (own) => {
        spoil(own)
        return own.to
      },
    },
  },
  redact: { tool: { redact: spoil } },
  message: {
    tool: {
      message: (own) => {
        spoil(own)
        return 'Really?'
      },
    },
  },
  scopeKey: {
    tool: {
      scopeKey: (own) => {
        spoil(own)
        return 'one'
      },
    },
  },
  policy: { approvals: { policy: ({ input: own }) => spoil(own) as undefined } },
  'approvals.redact': { approvals: { redact: spoil } },
  confirm: {
    approvals: {
      confirm: ({ arguments: own }) => {
        spoil(own)
        return true
      },
    },
  },
}

test.each(Object.entries(spoiling))(
  '%s that changes its arguments in place changes neither the question nor what runs',
  async (_, { tool, approvals }) => {
    const plain = { to: ['b', 'a'], by: { name: 'ann' } }
    for (const given of [plain, { ...plain, at: '2026-01-31T12:00:00.000Z' }]) {
      const send = counted('send', {
        needsApproval: true,
        scopes: ['once', 'session'],
        input: parts,
        parameters: { type: 'object' },
        ...tool,
      })
      const { agent } = testAgent([call(['c1', 'send', given]), say('ok')], { tools: [send.tool], approvals })
      const context = { subject: 'ann' }
      const { history, first } = await ask(agent, {}, { context })
      expect(first.input).toEqual(given)
      expect(first.approval.display ?? null).toBeNull()
      const resume = [answer(first, { approved: true, scope: 'session' })]
      const events = await collect(agent, input(history, { resume }), { context })
      expect(refusals(events)).toEqual([])
      expect(results(events)).toMatchObject([{ content: { done: 'send' } }])
      expect(send.runs).toEqual([parts.parse(given)])
    }
  },
)

test('a tool that changes its input and then finds that it needs a yes asks about the call as it was', async () => {
  const given = { to: ['b', 'a'], by: { name: 'ann' } }
  const inputs: unknown[] = []
  const send = counted('send', {
    input: parts,
    parameters: { type: 'object' },
    bind: (own) => own.to,
    execute: (own, { approved }) => {
      inputs.push(structuredClone(own))
      spoil(own)
      if (!approved) throw new ApprovalRequiredError({ toolName: 'send' })
      return 'sent'
    },
  })
  const { agent } = testAgent([call(['c1', 'send', given]), say('ok')], { tools: [send.tool] })
  const { history, first } = await ask(agent)
  expect(first.input).toEqual(given)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  expect(refusals(events)).toEqual([])
  expect(results(events)).toMatchObject([{ content: 'sent' }])
  expect(inputs).toEqual([given, given])
})

test('what a schema has made of arguments reaches the tool as it was made: lists, dates, maps, instances, cycles', async () => {
  class Account {
    readonly id = 1
  }
  const account = new Account()
  const made = z.looseObject({}).transform(() => {
    const ring: Record<string, unknown> = {
      account,
      at: new Date(5),
      map: new Map([['k', [1]]]),
      set: new Set(['s']),
    }
    ring.ring = ring
    return ring
  })
  const inputs: Record<string, unknown>[] = []
  const send = counted('send', {
    input: made,
    parameters: { type: 'object' },
    execute: (own) => inputs.push(own),
  })
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], { tools: [send.tool] })
  await collect(agent, input([{ id: 'u', role: 'user', content: 'go' }]))
  const [own] = inputs
  expect(own).toMatchObject({ at: new Date(5), map: new Map([['k', [1]]]), set: new Set(['s']) })
  expect(own?.account).toBe(account)
  expect(own?.ring).toBe(own)
})

test('confirm that changes its arguments in place changes nothing of what a client is told to run', async () => {
  const given = { to: ['b', 'a'], by: { name: 'ann' } }
  const send = clientTool({
    name: 'send',
    description: 'Sends',
    input: z.looseObject({}),
    needsApproval: true,
    execute: () => 'sent',
  })
  const { agent } = testAgent([call(['c1', 'send', given])], {
    tools: [send],
    approvals: spoiling.confirm?.approvals,
  })
  const { history, first } = await ask(agent)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
  const ready = events.find((event) => event.type === 'CUSTOM' && event.name === 'client-tool-ready')
  expect(ready).toMatchObject({ value: { input: given } })
})

const yes = () => true
const wrong: Readonly<Record<string, readonly unknown[]>> = {
  needsApproval: [null, 'no', 0, {}],
  approval: [
    null,
    true,
    {},
    { required: 'no' },
    { required: true, message: 1 },
    { required: true, options: ['yes'] },
  ],
  allowEdits: [null, 'path', 1, {}, yes, [1], ['path', null], new Set(['path'])],
  scopes: [null, 'session', {}, ['forever'], ['deny', 'once'], [null], new Set(['once'])],
  scopeKey: [null, 'path', 1, true],
  bind: [null, 'path', {}, Promise.resolve(1)],
  redact: [null, true, ['path'], {}],
  message: [null, 1, 1n, {}, ['a'], Promise.resolve('a')],
  expiresIn: [null, Number.NaN, Number.POSITIVE_INFINITY, 0, -1, '60', 'forever', 1n, yes, new Date()],
  failureMode: [null, 'ignore', true],
  idempotent: [null, 'yes', 1, yes],
}

test.each(Object.entries(wrong))(
  'createAgent refuses a tool whose %s is of a wrong kind, naming tool, option and what it may be',
  (option, values) => {
    const model = scriptedModel([])
    for (const value of values) {
      const send = { ...counted('send').tool, [option]: value }
      expect(() => createAgent({ model, tools: [send], warn: () => {} }), String(value)).toThrow(
        expect.objectContaining({
          code: 'invalid-tool',
          message: expect.stringMatching(
            `^${option} of the tool send must be .+, or be left out; it is .+\\.$`,
          ),
          data: { tool: 'send', option },
        }),
      )
    }
  },
)

test('createAgent refuses a server tool that has nothing to execute, before anybody approves a call of it', () => {
  const { execute, ...described } = counted('send').tool
  for (const given of [{}, { execute: undefined }]) {
    const send = { ...described, ...given } as unknown as typeof described & { execute: typeof execute }
    expect(() => createAgent({ model: scriptedModel([]), tools: [send] })).toThrow(
      expect.objectContaining({
        code: 'invalid-tool',
        message:
          'The tool send runs on the server and has no execute: give it that function, or build it with clientTool() if it runs in the page.',
        data: { tool: 'send', option: 'execute' },
      }),
    )
  }
})

test('an option that does not exist is answered with the one that was probably meant, and with none where no name is near', () => {
  const saidOf = (option: string) => {
    const send = { ...counted('send').tool, [option]: true }
    try {
      createAgent({ model: scriptedModel([]), tools: [send] })
    } catch (error) {
      return /Did you mean \w+\?/.exec(String(error))?.[0]
    }
  }
  expect(saidOf('needApproval')).toBe('Did you mean needsApproval?')
  expect(saidOf('needsaproval')).toBe('Did you mean needsApproval?')
  expect(saidOf('allowedits')).toBe('Did you mean allowEdits?')
  expect(saidOf('confirmation')).toBeUndefined()
  const options = { model: scriptedModel([]), tool: [] }
  expect(() => createAgent(options)).toThrow('there is no option tool. Did you mean tools?')
})

test('a short name that shares only half of its letters with an option is not taken for it', () => {
  const options = { nope: 1 }
  expect(() => createAgent({ model: scriptedModel([]), tools: [], ...options })).toThrow(
    'there is no option nope. There are',
  )
  expect(() => memoryThreads({ maxMessages: 10, ...options })).toThrow('there is no option nope. There are')
})

test('createAgent takes a tool with every option as it may be', () => {
  const right: Readonly<Record<string, readonly unknown[]>> = {
    needsApproval: [undefined, true, false, yes],
    approval: [
      undefined,
      { required: true },
      { required: false, message: 'a', options: ['deny', 'once', 'session'] },
    ],
    allowEdits: [undefined, true, false, [], ['path']],
    scopes: [undefined, [], ['once'], ['once', 'session']],
    message: [undefined, '', 'a', yes],
    expiresIn: [undefined, 'never', 0.5, 60],
  }
  for (const [option, values] of Object.entries(right))
    for (const value of values) {
      const send = { ...counted('send').tool, [option]: value }
      createAgent({ model: scriptedModel([]), tools: [send], warn: () => {} })
    }
})

test('a message that is no text is left out: the person is asked without it, and the log names the tool and what came', async () => {
  const answers: readonly (readonly [answer: () => unknown, words: string])[] = [
    [async () => 'Really?', 'a promise'],
    [() => Promise.reject(new Error('no words')), 'a promise'],
    [() => 1, 'a number'],
    [() => 1n, 'a bigint'],
    [() => ({ text: 'Really?' }), 'an object'],
    [() => ['Really?'], 'an array'],
    [() => null, 'null'],
    [() => yes, 'a function'],
  ]
  for (const [make, words] of answers) {
    const warn = vi.fn()
    const send = counted('send', { needsApproval: true, message: make as () => string })
    const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], { tools: [send.tool], warn })
    const { history, first } = await ask(agent)
    expect(first.approval, words).not.toHaveProperty('message')
    expect(warn.mock.calls).toEqual([
      [`message of send must return text, not ${words}; approval is requested without it.`],
    ])
    const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }))
    expect(results(events)).toMatchObject([{ content: { done: 'send' } }])
  }
})

test('a mask that answers a promise asks nothing, rather than showing what it was to hide', async () => {
  for (const redact of [async () => ({}), () => Promise.reject(new Error('no mask'))]) {
    for (const given of [{ tool: { redact } }, { approvals: { redact } }]) {
      const warn = vi.fn()
      const send = counted('send', { needsApproval: true, ...('tool' in given && given.tool) })
      const { agent } = testAgent([call(['c1', 'send', { key: 'k' }]), say('ok')], {
        tools: [send.tool],
        approvals: given.approvals,
        warn,
      })
      const events = await collect(agent, input([user('go')]))
      expect(requests(events)).toEqual([])
      expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'tool-failed' } }])
      expect(send.runs).toEqual([])
      expect(warn).toHaveBeenCalledWith(
        'No approval could be requested for send.',
        new Error('redact of send must answer at once, not a promise.'),
      )
    }
  }
})

test('a scopeKey whose promise rejects makes no grant, and does not end the process', async () => {
  const scopeKey = (() => Promise.reject(new Error('no key'))) as unknown as () => string
  const send = counted('send', { needsApproval: true, scopes: ['once', 'session'], scopeKey })
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], { tools: [send.tool] })
  const context = { subject: 'ann' }
  const { history, first } = await ask(agent, {}, { context })
  const resume = [answer(first, { approved: true, scope: 'session' })]
  expect(results(await collect(agent, input(history, { resume }), { context }))).toHaveLength(1)
  expect(await agent.grants.list('ann')).toEqual([])
})

test('edited arguments that are null, as clients in typed languages write none, are no edit', async () => {
  const send = counted('send', { needsApproval: true, allowEdits: true })
  const { agent } = testAgent([call(['c1', 'send', { to: 'ann' }]), say('ok')], { tools: [send.tool] })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true, editedArgs: null, reason: null, scope: null })]
  expect(results(await collect(agent, input(history, { resume })))).toHaveLength(1)
  expect(send.runs).toEqual([{ to: 'ann' }])
})

test('of a duplicate key in edited arguments the last value counts: confirm sees it, and the call runs with it', async () => {
  const send = counted('send', { needsApproval: true, allowEdits: true })
  const confirm = vi.fn((_answer: { readonly arguments: unknown }) => true)
  const { agent } = testAgent([call(['c1', 'send', { to: 'ann' }]), say('ok')], {
    tools: [send.tool],
    approvals: { secret: SECRET, confirm },
  })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true, editedArgs: { to: 'eve' } })]
  const body = JSON.stringify(input(history, { resume })).replace('"to":"eve"', '"to":"eve","to":"bob"')
  const headers = { 'content-type': 'application/json' }
  await (await handleChat(agent, new Request('http://localhost/', { method: 'POST', headers, body }))).text()
  expect(confirm.mock.lastCall?.[0]).toMatchObject({ arguments: { to: 'bob' } })
  expect(send.runs).toEqual([{ to: 'bob' }])
})

/** Values that throw as soon as somebody looks what they are. */
const untouchable: Readonly<Record<string, () => object>> = {
  'a revoked proxy': () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    return proxy
  },
  'a proxy of an error that throws at every look': () => {
    const refuse = () => {
      throw new Error('do not look')
    }
    return new Proxy(new Error('inside'), { get: refuse, has: refuse, getOwnPropertyDescriptor: refuse })
  },
}

test.each(Object.entries(untouchable))(
  '%s that a tool throws is a failure of the tool like any other',
  async (_, make) => {
    const execute = () => {
      throw make()
    }
    for (const needsApproval of [false, true]) {
      const failing = async (more: Parameters<typeof counted>[1]) => {
        const send = counted('send', { needsApproval, execute, ...more })
        const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], { tools: [send.tool] })
        if (!needsApproval) return { agent, request: input([user('go')]) }
        const { history, first } = await ask(agent)
        return { agent, request: input(history, { resume: [answer(first, { approved: true })] }) }
      }
      const told = await failing({})
      const events = await collect(told.agent, told.request)
      expect(results(events)).toMatchObject([{ own: { outcome: 'error' } }])
      expect(last(events)).toMatchObject({ type: 'RUN_FINISHED' })

      const ending = await failing({ failureMode: 'throw' })
      expect(last(await collect(ending.agent, ending.request))).toMatchObject({
        type: 'RUN_ERROR',
        code: 'tool-failed',
      })
      if (!needsApproval) continue
      const alone = await failing({ failureMode: 'throw' })
      await expect(executeApprovedToolCalls(alone.agent, alone.request)).rejects.toMatchObject({
        code: 'tool-failed',
      })
    }
  },
)

test.each(Object.entries(untouchable))(
  '%s that a schema throws is a call that does not fit, and one that a model throws a failed model',
  async (_, make) => {
    const refuse = () => {
      throw make()
    }
    const send = counted('send', { input: z.looseObject({}).refine(refuse), parameters: { type: 'object' } })
    const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], { tools: [send.tool] })
    const events = await collect(agent, input([user('go')]))
    expect(results(events)).toMatchObject([{ own: { outcome: 'error' } }])
    expect(last(events)).toMatchObject({ type: 'RUN_FINISHED' })
    const broken = createAgent({ model: { id: 'broken', stream: refuse }, warn: () => {}, onError: () => {} })
    expect(last(await collect(broken, input([user('go')])))).toMatchObject({
      type: 'RUN_ERROR',
      code: 'model-failed',
    })
  },
)

test.each([undefined, null, {}, { id: 'a' }, { stream: () => [] }, { id: 1, stream: () => [] }])(
  'a model without an id or a stream method is refused where the agent is made (%j)',
  (model) => {
    // @ts-expect-error it is no model
    expect(() => createAgent({ model, warn: () => {} })).toThrow(/an `id` \(text\) and a stream\(\) method/)
  },
)
