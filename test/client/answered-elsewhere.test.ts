import { event, gated, refuse, result, scriptedConnection, text } from '@countersign/testing'
import { expect, test } from 'vitest'
import { ask, call, finish, gate, no, resultOf, server, startOpen, yes } from './foreign-server.js'
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

/** Pages on a server whose tool `pay` runs in them, or on the server if `execute` is given. What ran is in `ran`. */
async function payPages(execute?: () => string) {
  const tool = execute ? pay.server(execute) : pay.client(() => 'on the page')
  const { connection, loseReplies } = payServer({ tools: [tool] })
  const ran: string[] = []
  const open = (name: string, more = {}) =>
    openClient({ connection, tools: [pay.client(() => ran.push(name) && 'paid')], ...more })
  const one = open('one')
  await one.sendMessage('go')
  /** A page that shows what the first one shows now. */
  const copyOf = (name: string) =>
    open(name, { threadId: one.threadId, initialMessages: structuredClone(one.getSnapshot().messages) })
  return { one, copyOf, ran, id: pendingId(one), loseReplies }
}

test('a user who goes on with something else sees that the call has run, by an approval that was given on another page', async () => {
  let count = 0
  const { one, copyOf, id } = await payPages(() => `paid ${++count}`)
  const other = copyOf('other')
  await one.addToolApprovalResponse(yes(id))
  await other.sendMessage('never mind')
  expect(count).toBe(1)
  expect(callOf(other, 'c1')).toMatchObject({ state: 'complete', output: 'paid 1' })
})

test('a client tool runs on the page whose approval was first, and on no other that approves as well', async () => {
  const { one, copyOf, ran, id, loseReplies } = await payPages()
  const other = copyOf('other')
  loseReplies(1)
  expect(await one.addToolApprovalResponse(yes(id))).toMatchObject({ status: 'failed' })
  const refused = { status: 'refused', code: 'approval-conflict' }
  expect(await other.addToolApprovalResponse(yes(id))).toMatchObject(refused)
  expect(ran).toEqual([])
  await one.retry()
  await expect.poll(() => ran).toEqual(['one'])
  await expect.poll(() => callOf(one, 'c1').state).toBe('complete')
  expect(callOf(other, 'c1')).toMatchObject({ state: 'error', approval: { problem: 'approval-conflict' } })
})

test('a copy of an answer that is under way counts as an answer of its own: its page does not run the tool as well', async () => {
  const { one, copyOf, ran, id, loseReplies } = await payPages()
  loseReplies(1)
  await one.addToolApprovalResponse(yes(id))
  const other = copyOf('other')
  await other.retry()
  await one.retry()
  await expect.poll(() => callOf(one, 'c1').state).toBe('complete')
  expect(ran).toEqual(['one'])
  expect(callOf(other, 'c1')).toMatchObject({ state: 'error', error: { code: 'interrupted' } })
})

test('whoever goes on with something else while another page runs the call is told that it may or may not have run', async () => {
  const { one, copyOf, id } = await payPages()
  const [moving, denying] = [copyOf('moving'), copyOf('denying')]
  await one.addToolApprovalResponse(yes(id))
  await moving.sendMessage('never mind')
  await denying.addToolApprovalResponse(no(id))
  for (const client of [moving, denying])
    expect(callOf(client, 'c1')).toMatchObject({ state: 'error', error: { code: 'interrupted' } })
  expect(callOf(denying, 'c1').approval).toMatchObject({ problem: 'approval-conflict' })
})

const conflict = { status: 'refused', code: 'approval-conflict' } as const
const ran = { content: 'ran' }
const denied = { content: 'no', outcome: 'denied' }
const expired = { content: 'late', outcome: 'cancelled', code: 'approval-expired' }

test.each([
  ['a denial, where an approval was first', false, 'approve', ran, 'complete', conflict],
  ['an approval, where a denial was first', true, 'deny', denied, 'denied', conflict],
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
  expect(await person.addToolApprovalResponse(no('a1'))).toMatchObject(conflict)
  expect(stateOf(client, 'c1')).toBe('complete')
  expect(saidBy(client)).toBe('Sent.')
})

/** An answer to an open run that has gone on with this result meanwhile. */
async function answerBehind(approved: boolean, ...result: Parameters<typeof resultOf>) {
  const { open: proceed, opened } = gate()
  const { connection, resume } = server(async function* (input) {
    yield* [...call('c1', 1), ask('c1', 'a1', 1)]
    await opened
    yield* [resultOf(...result), finish(input)]
  })
  const { client, calls, sent } = await startOpen(connection)
  const answer = client.addToolApprovalResponse({ id: 'a1', approved })
  proceed()
  await sent
  return { answer: await answer, calls, resume }
}

test.each([true, false])(
  'an answer (%s) that was not sent before the server cancelled its call is `closed`',
  async (approved) => {
    const { answer } = await answerBehind(approved, 'c1', '{}', 'cancelled')
    expect(answer).toEqual({ status: 'closed', reason: 'cancelled' })
  },
)

test.each([true, false])(
  'an answer (%s) that was not sent before the server ran its call is `closed`, and the call shows its output',
  async (approved) => {
    const { answer, calls, resume } = await answerBehind(approved, 'c1', 'it ran')
    expect(answer).toEqual({ status: 'closed', reason: 'complete' })
    expect(calls()).toMatchObject([
      { state: 'complete', output: 'it ran', approval: { approved, problem: 'approval-conflict' } },
    ])
    expect(resume()).toEqual([[]])
  },
)
