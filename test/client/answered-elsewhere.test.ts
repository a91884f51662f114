import { ChatClient, stream } from '@countersign/client'
import type { AGUIEvent } from '@countersign/core'
import { event, gated, refuse, result, scriptedConnection, text } from '@countersign/testing'
import { expect, test } from 'vitest'
import { ask, call, finish, no, open, resultOf, server } from './foreign-server.js'
import {
  callOf,
  failOnUnhandledRejections,
  openChat,
  openClient,
  pendingId,
  saidBy,
  stateOf,
  wires,
} from './open-chat.js'
import { pay, payServer } from './pay-server.js'

failOnUnhandledRejections()

// Answers that were not the first: another page, or the server, has decided about the call before.

test('a user who goes on with something else sees that the call has run, by an approval that was given on another page', async () => {
  let ran = 0
  const { connection } = payServer({ tools: [pay.server(() => `paid ${++ran}`)] })
  const one = new ChatClient({ connection })
  await one.sendMessage('go')
  const other = new ChatClient({
    connection,
    threadId: one.threadId,
    initialMessages: structuredClone(one.getSnapshot().messages),
  })
  await one.addToolApprovalResponse({ id: pendingId(one), approved: true })
  await other.sendMessage('never mind')
  expect(ran).toBe(1)
  expect(callOf(other, 'c1')).toMatchObject({ state: 'complete', output: 'paid 1' })
})

test('a client tool runs on the page whose approval was first, and on no other that approves as well', async () => {
  const ran: string[] = []
  const { connection, loseReplies } = payServer({ tools: [pay.client(() => 'on the page')] })
  const open = (name: string, more = {}) =>
    new ChatClient({ connection, tools: [pay.client(() => ran.push(name) && 'paid')], ...more })
  const one = open('one')
  await one.sendMessage('go')
  const copy = structuredClone(one.getSnapshot().messages)
  const other = open('other', { threadId: one.threadId, initialMessages: copy })
  const id = pendingId(one)
  loseReplies(1)
  expect(await one.addToolApprovalResponse({ id, approved: true })).toMatchObject({ status: 'failed' })
  expect(await other.addToolApprovalResponse({ id, approved: true })).toMatchObject({
    status: 'refused',
    code: 'approval-conflict',
  })
  expect(ran).toEqual([])
  await one.retry()
  await expect.poll(() => ran).toEqual(['one'])
  await expect.poll(() => callOf(one, 'c1').state).toBe('complete')
  expect(callOf(other, 'c1')).toMatchObject({ state: 'error', approval: { problem: 'approval-conflict' } })
})

test('a copy of an answer that is under way counts as an answer of its own: its page does not run the tool as well', async () => {
  const ran: string[] = []
  const { connection, loseReplies } = payServer({ tools: [pay.client(() => 'on the page')] })
  const open = (name: string, more = {}) =>
    new ChatClient({ connection, tools: [pay.client(() => ran.push(name) && 'paid')], ...more })
  const one = open('one')
  await one.sendMessage('go')
  loseReplies(1)
  await one.addToolApprovalResponse({ id: pendingId(one), approved: true })
  const copy = structuredClone(one.getSnapshot().messages)
  const other = open('other', { threadId: one.threadId, initialMessages: copy })
  await other.retry()
  await one.retry()
  await expect.poll(() => callOf(one, 'c1').state).toBe('complete')
  expect(ran).toEqual(['one'])
  expect(callOf(other, 'c1')).toMatchObject({ state: 'error', error: { code: 'interrupted' } })
})

test('whoever goes on with something else while another page runs the call is told that it may or may not have run', async () => {
  const { connection } = payServer({ tools: [pay.client(() => 'on the page')] })
  const open = (more = {}) => new ChatClient({ connection, tools: [pay.client(() => 'paid')], ...more })
  const one = open()
  await one.sendMessage('go')
  const copy = structuredClone(one.getSnapshot().messages)
  const [moving, denying] = [copy, structuredClone(copy)].map((initialMessages) =>
    open({ threadId: one.threadId, initialMessages }),
  )
  await one.addToolApprovalResponse({ id: pendingId(one), approved: true })
  await moving?.sendMessage('never mind')
  await denying?.addToolApprovalResponse({ id: pendingId(denying), approved: false })
  for (const client of [moving, denying])
    expect(client && callOf(client, 'c1')).toMatchObject({ state: 'error', error: { code: 'interrupted' } })
  expect(denying && callOf(denying, 'c1').approval).toMatchObject({ problem: 'approval-conflict' })
})

const ran = { content: 'ran' }

const denied = { content: 'no', outcome: 'denied' }

const expired = { content: 'late', outcome: 'cancelled', code: 'approval-expired' }

test.each([
  [
    'a denial, where an approval was first',
    false,
    'approve',
    ran,
    'complete',
    { status: 'refused', code: 'approval-conflict' },
  ],
  [
    'an approval, where a denial was first',
    true,
    'deny',
    denied,
    'denied',
    { status: 'refused', code: 'approval-conflict' },
  ],
  ['an approval that came too late', true, 'expire', expired, 'cancelled', { status: 'expired' }],
  ['a denial that came too late', false, 'expire', expired, 'cancelled', { status: 'expired' }],
  ['an approval that was the one', true, 'approve', ran, 'complete', { status: 'sent' }],
  ['a denial that was the one', false, 'deny', denied, 'denied', { status: 'sent' }],
] as const)(
  '%s: the call shows what the server did, and its giver is told so',
  async (_, approved, decision, { content, ...flags }, state, told) => {
    const metadata = { countersign: { decided: { decision, by: 'person', at: 1 }, ...flags } }
    const result = event({ type: 'TOOL_CALL_RESULT', messageId: 'r1', toolCallId: 'c1', content, metadata })
    const connection = scriptedConnection([gated(1), [result, text('done')]])
    const client = openClient({ connection })
    await client.sendMessage('go')
    expect(await client.addToolApprovalResponse({ id: 'a1', approved })).toMatchObject(told)
    const problem =
      told.status === 'sent' ? undefined : told.status === 'expired' ? 'approval-expired' : told.code
    expect(callOf(client, 'c1')).toMatchObject({ state })
    expect(callOf(client, 'c1').approval?.problem).toBe(problem)
  },
)

test.each(wires)('F52 %s: who answers second sees what became of the call', async (wire) => {
  const { client, person } = await openChat(wire, [
    [gated(1)],
    [refuse('a1', 'approval-conflict', 'Too late.'), result('c1', 'sent'), text('Sent.')],
  ])
  await person.sendMessage('go')
  expect(await person.addToolApprovalResponse(no('a1'))).toMatchObject({
    status: 'refused',
    code: 'approval-conflict',
  })
  expect(stateOf(client, 'c1')).toBe('complete')
  expect(saidBy(client)).toBe('Sent.')
})

test.each([true, false])(
  'an answer (%s) that was not sent before the server cancelled its call is `closed`',
  async (approved) => {
    let proceed = () => {}
    const until = new Promise<void>((resolve) => {
      proceed = resolve
    })
    const connection = stream(async function* (input) {
      const { threadId, runId } = input
      const started: AGUIEvent = { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
      yield [started, ...call('c1', 1), ask('c1', 'a1', 1)]
      await until
      yield resultOf('c1', '{}', 'cancelled')
      yield finish(input)
    })
    const { client, pending } = open({ connection })
    const sent = client.sendMessage('go')
    await expect.poll(pending).toHaveLength(1)
    const answer = client.addToolApprovalResponse({ id: 'a1', approved })
    proceed()
    await sent
    expect(await answer).toEqual({ status: 'closed', reason: 'cancelled' })
  },
)

test.each([true, false])(
  'an answer (%s) that was not sent before the server ran its call is `closed`, and the call shows its output',
  async (approved) => {
    let proceed = () => {}
    const until = new Promise<void>((resolve) => {
      proceed = resolve
    })
    const { connection, resume } = server(async function* (input) {
      yield* [...call('c1', 1), ask('c1', 'a1', 1)]
      await until
      yield* [resultOf('c1', 'it ran'), finish(input)]
    })
    const { client, pending, calls } = open({ connection })
    const sent = client.sendMessage('go')
    await expect.poll(pending).toHaveLength(1)
    const answer = client.addToolApprovalResponse({ id: 'a1', approved })
    proceed()
    await sent
    expect(await answer).toEqual({ status: 'closed', reason: 'complete' })
    expect(calls()).toMatchObject([
      { state: 'complete', output: 'it ran', approval: { approved, problem: 'approval-conflict' } },
    ])
    expect(resume()).toEqual([[]])
  },
)
