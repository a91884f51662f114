// Client tools that a standing decision of the user's lets through: they start when they are handed out, after the rest of their step.
import { clientTool, type Message } from '@countersign/core'
import { type Ledger, memoryLedger, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import {
  answer,
  call,
  collect,
  fold,
  input,
  last,
  requests,
  results,
  say,
  testAgent,
  user,
} from '../support.js'

const context = { subject: 'ann' }

/** The user has chosen a mandate for `wire`. In the next turn the model calls it beside a server tool, which does `meanwhile`. */
async function twoCalls(meanwhile: (world: World) => unknown, answerWith: object = { mandate: 'm' }) {
  const world: World = {
    isBlocked: false,
    ledger: memoryLedger(),
    revoke: () => agent.grants.revoke('ann'),
    stop: () => stop.abort(),
  }
  const stop = new AbortController()
  const definition = clientTool({
    name: 'wire',
    description: 'Pays from the page.',
    input: z.object({ n: z.number() }),
    needsApproval: true,
    scopes: ['once', 'session'],
    execute: () => 'ok',
  })
  const wire = { ...definition, mandates: () => [{ id: 'm', label: 'Wire', where: [], uses: 5 }] }
  const slow = tool({
    name: 'slow',
    description: 'Takes its time.',
    input: z.object({}),
    execute: async () => {
      await meanwhile(world)
      return 'done'
    },
  })
  const { agent } = testAgent(
    [call(['c1', 'wire', { n: 1 }]), call(['c2', 'wire', { n: 2 }], ['s2', 'slow', {}]), say('done')],
    {
      tools: [wire, slow],
      approvals: { ledger: world.ledger, policy: () => (world.isBlocked ? 'block' : undefined) },
    },
  )
  const first = [user('one')]
  const proposed = await collect(agent, input(first), { context })
  const resume = requests(proposed).map((one) => answer(one, { approved: true, ...answerWith }))
  const history = fold(first, proposed)
  await collect(agent, input(history, { resume }), { context })
  const result: Message = { id: 't1', role: 'tool', toolCallId: 'c1', content: '"ok"' }
  const next = input([...history, result, user('two')])
  const events = await collect(agent, next, { context, signal: stop.signal })
  return { events, left: async () => (await agent.grants.list('ann')).map(({ usesLeft }) => usesLeft) }
}

interface World {
  isBlocked: boolean
  readonly ledger: ReturnType<typeof memoryLedger>
  readonly revoke: () => Promise<number>
  readonly stop: () => void
}

test('W11 a client tool is handed out after the other calls of its step, and uses its mandate then', async () => {
  const { events, left } = await twoCalls(() => {})
  expect(requests(events)).toEqual([])
  expect(results(events)).toMatchObject([{ id: 's2' }])
  expect(last(events)).toMatchObject({ type: 'RUN_FINISHED', metadata: { finishReason: 'tool_calls' } })
  // The call that it was chosen for counts as well.
  expect(await left()).toEqual([3])
})

test.each([
  ['a mandate', { mandate: 'm' }],
  ['a session approval', { scope: 'session' }],
])(
  'W11 %s that is revoked before its step has ended hands out no client tool: the user is asked',
  async (_, given) => {
    const { events } = await twoCalls(({ revoke }) => revoke(), given)
    expect(requests(events)).toMatchObject([{ toolCallId: 'c2' }])
    expect(last(events)).toMatchObject({ outcome: { type: 'interrupt' } })
  },
)

test('W11 a policy that blocks, or a denial that is stored, before its step has ended keeps a client tool from being handed out', async () => {
  for (const meanwhile of [
    (world: World) => {
      world.isBlocked = true
    },
    ({ ledger }: World) =>
      ledger.grant({
        ...{ owner: 'ann', threadId: 'thread', toolName: 'wire', scopeKey: 'never', approved: false },
        terms: { label: 'Never', where: [], tool: 'v1', approvalId: 'a9' },
      }),
  ]) {
    const { events } = await twoCalls(meanwhile)
    expect(results(events)).toContainEqual(
      expect.objectContaining({ id: 'c2', own: expect.objectContaining({ outcome: 'denied' }) }),
    )
  }
})

test('W7 a client tool that is not handed out, because its run was stopped, uses nothing of its mandate', async () => {
  const { left } = await twoCalls(({ stop }) => stop())
  expect(await left()).toEqual([4])
})

test.each([
  ['needs no approval', false, undefined],
  ['is allowed by a policy', true, () => 'allow' as const],
])(
  'W12 a client tool that %s, and whose refusal by a standing denial was lost on the way, is not left to the page',
  async (_, needsApproval, policy) => {
    const definition = clientTool({
      ...{ name: 'wire', description: 'Pays from the page.', input: z.object({}), needsApproval },
      execute: () => 'ok',
    })
    const wire = {
      ...definition,
      mandates: () => [{ id: 'n', label: 'Never', where: [], decide: 'deny' as const }],
    }
    const memory = memoryLedger()
    let isDown = false
    const ledger: Ledger = {
      ...memory,
      id: memory.id,
      findMandate: async (...asked) =>
        isDown ? Promise.reject(new Error('down')) : memory.findMandate?.(...asked),
    }
    const { agent } = testAgent([call(['c1', 'wire', {}]), say('done'), say('done'), say('done')], {
      tools: [wire],
      approvals: { ledger, policy },
    })
    const deny = () =>
      ledger.grant({
        ...{ owner: 'ann', threadId: 'thread', toolName: 'wire', scopeKey: 'never', approved: false },
        terms: { label: 'Never', where: [], tool: 'v1', approvalId: 'a9' },
      })
    await deny()
    const asked = [user('go')]
    const events = await collect(agent, input(asked), { context })
    expect(results(events)).toMatchObject([{ own: { outcome: 'denied' } }])
    const isKept = (type: string) => type !== 'TOOL_CALL_RESULT' && !type.startsWith('TEXT')
    const cut = fold(
      asked,
      events.filter(({ type }) => isKept(type)),
    )
    const interrupted = [{ id: 'c1', own: { outcome: 'error', code: 'interrupted' } }]
    expect(results(await collect(agent, input(cut), { context }))).toMatchObject(interrupted)
    await agent.grants.revoke('ann')
    const left = await collect(agent, input(cut), { context })
    expect(last(left)).toMatchObject({ outcome: { pendingToolCallIds: ['c1'] } })
    await deny()
    isDown = true
    expect(results(await collect(agent, input(cut), { context }))).toMatchObject(interrupted)
  },
)

test('W9 a client tool that is handed out although its run was stopped is counted by the mandate that was chosen for it', async () => {
  const stop = new AbortController()
  const memory = memoryLedger()
  let isStopping = false
  const ledger: Ledger = {
    ...memory,
    id: memory.id,
    claim: async (...asked) => {
      const claim = await memory.claim(...asked)
      if (isStopping) stop.abort()
      return claim
    },
  }
  const definition = clientTool({
    name: 'wire',
    description: 'Pays from the page.',
    input: z.object({ n: z.number() }),
    needsApproval: true,
    execute: () => 'ok',
  })
  const mandates = () => [{ id: 'm', label: 'Wire', where: [], uses: 5 }]
  const { agent } = testAgent([call(['c1', 'wire', { n: 1 }]), say('done')], {
    tools: [{ ...definition, mandates }],
    approvals: { ledger },
  })
  const first = [user('one')]
  const proposed = await collect(agent, input(first), { context })
  const resume = requests(proposed).map((one) => answer(one, { approved: true, mandate: 'm' }))
  isStopping = true
  const events = await collect(agent, input(fold(first, proposed), { resume }), {
    context,
    signal: stop.signal,
  })
  expect(events.filter((event) => event.type === 'CUSTOM')).toMatchObject([{ name: 'client-tool-ready' }])
  expect(await agent.grants.list('ann')).toMatchObject([{ usesLeft: 4, terms: { used: 1 } }])
})
