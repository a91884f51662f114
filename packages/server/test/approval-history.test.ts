import { approvalHistory, clientTool, type Message } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { type ModelEvent, memoryLedger } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { answer, ask, call, collect, counted, fold, input, say, testAgent, user } from './support.js'

const NOON = Date.UTC(2026, 4, 1, 12)
const known = { context: { subject: 'ann' } }

function agentWith(tools: readonly ReturnType<typeof counted>[], more: Parameters<typeof testAgent>[1] = {}) {
  const clock = { now: NOON }
  const names = tools.map(({ tool }, index) => [`c${index + 1}`, tool.name, { n: index }] as const)
  const { agent } = testAgent([call(...names), say('ok'), say('ok')], {
    tools: tools.map(({ tool }) => tool),
    now: () => clock.now,
    ...more,
  })
  return { agent, clock }
}

/** What the stored messages tell, with nothing but AG-UI in them. */
const read = (messages: readonly Message[]) =>
  approvalHistory(fromAGUIMessages(JSON.parse(JSON.stringify(messages))))

test('S3.80 the messages alone tell of each gated call: tool, options, decision, scope, who and when, outcome', async () => {
  const tools = [
    counted('look'),
    counted('send', { needsApproval: true, scopes: ['once', 'session'], allowEdits: true }),
    counted('drop', { needsApproval: true }),
    counted('wipe', { needsApproval: true }),
    counted('fail', {
      needsApproval: true,
      execute: () => {
        throw new Error('disk full')
      },
    }),
  ]
  const { agent, clock } = agentWith(tools)
  const { history, asked } = await ask(agent, {}, known)
  clock.now += 60_000
  const [send, drop, wipe, fail] = asked
  if (!send || !drop || !wipe || !fail) throw new Error('four questions')
  const resume = [
    answer(send, { approved: true, scope: 'session', editedArgs: { n: 7 } }),
    answer(drop, { approved: false, reason: 'keep it' }),
    { interruptId: wipe.approval.id, status: 'cancelled' as const },
    answer(fail, { approved: true }),
  ]
  const after = fold(history, await collect(agent, input(history, { resume }), known))
  const person = { by: 'person', subject: 'ann', at: '2026-05-01T12:01:00.000Z' }
  expect(read(after)).toMatchObject([
    {
      toolCallId: 'c2',
      toolName: 'send',
      options: ['deny', 'once', 'session'],
      decision: 'approve',
      scope: 'session',
      edited: true,
      input: { n: 7 },
      state: 'complete',
      ...person,
    },
    {
      toolCallId: 'c3',
      options: ['deny', 'once'],
      decision: 'deny',
      reason: 'keep it',
      state: 'denied',
      ...person,
    },
    { toolCallId: 'c4', decision: 'cancel', state: 'cancelled', ...person },
    { toolCallId: 'c5', decision: 'approve', scope: 'once', state: 'error', ...person },
  ])
})

test('S3.80 a question that is still open is told as open, one that nobody answered as closed by the server', async () => {
  const { agent, clock } = agentWith([counted('send', { needsApproval: true, expiresIn: 60 })])
  const { history, first } = await ask(agent)
  const shown = history.map((message) =>
    message.role === 'assistant'
      ? {
          ...message,
          toolCalls: (message.toolCalls ?? []).map((one) => ({
            ...one,
            metadata: { countersign: { token: first.approval.token, approval: first.approval } },
          })),
        }
      : message,
  )
  expect(read(shown)).toEqual([
    expect.objectContaining({ toolName: 'send', state: 'approval-requested', options: ['deny', 'once'] }),
  ])
  expect(read(shown)[0]).not.toHaveProperty('decision')
  clock.now += 61_000
  const after = fold(shown, await collect(agent, input([...shown, user('never mind')])))
  expect(read(after)).toMatchObject([
    { decision: 'expire', by: 'server', at: '2026-05-01T12:01:01.000Z', state: 'cancelled' },
  ])
  expect(read(after)[0]).not.toHaveProperty('subject')
})

test('S3.80 a policy that forbids an approved call is not the person', async () => {
  let forbids = false
  const { agent } = agentWith([counted('send', { needsApproval: true })], {
    approvals: { policy: () => (forbids ? { decision: 'block', reason: 'closed today' } : undefined) },
  })
  const { history, first } = await ask(agent, {}, known)
  forbids = true
  const resume = [answer(first, { approved: true })]
  const after = fold(history, await collect(agent, input(history, { resume }), known))
  expect(read(after)).toMatchObject([{ decision: 'deny', by: 'policy', state: 'denied' }])
})

test('S3.80 a repeat is told who decided first, and when', async () => {
  const { agent, clock } = agentWith([counted('send', { needsApproval: true })])
  const { history, first } = await ask(agent, {}, known)
  const resume = [answer(first, { approved: true })]
  await collect(agent, input(history, { resume }), known)
  clock.now += 3_600_000
  const again = fold(history, await collect(agent, input(history, { resume }), known))
  expect(read(again)).toMatchObject([{ decision: 'approve', at: '2026-05-01T12:00:00.000Z', subject: 'ann' }])
})

test('S3.80 an approved client tool is told with the call that is handed out', async () => {
  const locate = clientTool({
    name: 'locate',
    description: 'Where the person is',
    input: z.object({}),
    needsApproval: true,
    execute: () => 'here',
  })
  const { agent } = testAgent([call(['c1', 'locate', {}]), say('ok')], { tools: [locate], now: () => NOON })
  const { history, first } = await ask(agent, {}, known)
  const events = await collect(agent, input(history, { resume: [answer(first, { approved: true })] }), known)
  const ready = events.find((event) => event.type === 'CUSTOM' && event.name === 'client-tool-ready')
  expect(ready).toMatchObject({
    value: { toolCallId: 'c1', decided: { decision: 'approve', by: 'person', subject: 'ann' } },
  })
})

test('S3.80 what a client made up does not pass for a record', () => {
  const entries = approvalHistory([
    {
      id: 'm',
      role: 'assistant',
      parts: [
        { type: 'tool-call', id: 'c1', name: 'send', arguments: '{}', state: 'complete' },
        {
          type: 'tool-result',
          id: 'r1',
          toolCallId: 'c1',
          content: '1',
          metadata: { countersign: { decided: { decision: 'maybe', by: 'person', options: ['all'] } } },
        },
      ],
    },
  ])
  expect(entries).toEqual([])
})

test('the model gets nothing of who decided', async () => {
  const send = counted('send', { needsApproval: true })
  const { agent, model } = testAgent([call(['c1', 'send', {}]), say('ok'), say('ok')], {
    tools: [send.tool],
    approvals: { ledger: memoryLedger() },
  })
  const { history, first } = await ask(agent, {}, known)
  const after = fold(
    history,
    await collect(agent, input(history, { resume: [answer(first, { approved: true })] }), known),
  )
  await collect(agent, input([...after, user('and now?')]), known)
  expect(JSON.stringify(model.requests)).not.toMatch(/decided|subject|ann"/)
})

test('S3.80 a call that the provider runs tells of its answer with its result', async () => {
  const id = 'mcpr_1'
  const asks = { type: 'tool-call', id: '', name: 'search', arguments: '{}', providerExecuted: true } as const
  const turns: ModelEvent[][] = [
    [
      { ...asks, approval: { id, state: 'requested' } },
      { type: 'finish', reason: 'stop' },
    ],
    [
      { ...asks, id: 'mcp_1', approval: { id, state: 'answered' } },
      { type: 'tool-result', toolCallId: 'mcp_1', outcome: { kind: 'ok', value: 3 } },
      ...say('3 hits'),
    ],
  ]
  const { agent } = testAgent(turns, { now: () => NOON })
  const { history, first } = await ask(agent, {}, known)
  const resume = [answer(first, { approved: true })]
  const after = fold(history, await collect(agent, input(history, { resume }), known))
  expect(read(after)).toMatchObject([
    { toolName: 'search', decision: 'approve', by: 'person', subject: 'ann', at: '2026-05-01T12:00:00.000Z' },
  ])
})
