// What strangers found in the options of tools: what their functions may do to arguments, and what they may answer.
import {
  type AgentOptions,
  ApprovalRequiredError,
  answerQueue,
  type PlannedCall,
  planFromMap,
  planFromQueue,
} from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { answer, ask, call, collect, counted, input, refusals, results, say, testAgent } from './support.js'

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
