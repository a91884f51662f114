import { createServer } from 'node:http'
import { approvalView, ChatClient, fetchServerSentEvents, withGrants } from '@countersign/client'
import { createAgent, memoryLedger, type ScriptedTurn, scriptedModel, tool } from '@countersign/server'
import { toNodeGrantsHandler, toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { call, calls, pendingId, says, states } from './engine.js'
import { listening } from './listening.js'

/** A server whose tool pays what the model proposes, and a page of ann's. `alter` changes what the page receives. */
async function payServer(alter = (text: string) => text) {
  const paid: number[] = []
  const pay = tool({
    name: 'pay',
    description: 'Pays an invoice.',
    input: z.object({ to: z.string(), amount: z.number() }),
    needsApproval: true,
    mandates: ({ to }) => [
      {
        ...{ id: 'to', label: `Pay ${to} up to 100 EUR`, where: [{ field: 'to', is: to }] },
        budget: { field: 'amount', total: 100, unit: 'EUR' },
      },
      { id: 'never', label: `Never pay ${to}`, where: [{ field: 'to', is: to }], decide: 'deny' },
    ],
    execute: ({ amount }) => {
      paid.push(amount)
      return 'paid'
    },
  })
  let count = 0
  const turn: Extract<ScriptedTurn, (...args: never[]) => unknown> = ({ messages }) => {
    const last = messages.at(-1)
    if (last?.role !== 'user') return says('Done.')
    const [part] = last.content
    return calls(call(`c${++count}`, 'pay', JSON.parse(part?.type === 'text' ? part.text : '')))
  }
  const agent = createAgent({
    model: scriptedModel(turn),
    tools: [pay],
    approvals: { ledger: memoryLedger() },
    warn: () => {},
  })
  const context = () => ({ subject: 'ann' })
  const [chats, grants] = [toNodeHandler(agent, { context }), toNodeGrantsHandler(agent, { context })]
  const server = createServer((request, response) =>
    request.url?.startsWith('/grants') ? grants(request, response) : chats(request, response),
  )
  const base = `http://${await listening(server)}`
  const altered: typeof fetch = async (url, init) => {
    const response = await fetch(url, init)
    return new Response(alter(await response.text()), response)
  }
  const chat = new ChatClient({
    connection: withGrants(fetchServerSentEvents(`${base}/`, { fetch: altered }), `${base}/grants`),
    threadId: 'thread',
  })
  onTestFinished(chat.dispose)
  const propose = (amount: number, to = 'acme') => chat.sendMessage(JSON.stringify({ to, amount }))
  return { chat, paid, propose }
}

test('W5 W6 W13 a user chooses a mandate in the page, sees what is used, and revokes it', async () => {
  const { chat, paid, propose } = await payServer()
  await propose(60)
  const [part] = chat.getSnapshot().pendingApprovals
  expect(part?.approval.mandates).toEqual([
    { id: 'to', label: 'Pay acme up to 100 EUR', budget: { total: 100, unit: 'EUR' } },
    { id: 'never', label: 'Never pay acme', decide: 'deny' },
  ])
  const view = part && approvalView(part)
  expect(view?.mandates.map(({ label, disabled, response }) => [label.text, disabled, response])).toEqual([
    ['Pay acme up to 100 EUR', false, { id: part?.approval.id, approved: true, mandate: 'to' }],
    ['Never pay acme', false, { id: part?.approval.id, approved: false, mandate: 'never' }],
  ])
  const chosen = view?.mandates[0]?.response
  if (chosen === undefined) throw new Error('a mandate is offered')
  await chat.addToolApprovalResponse(chosen)
  await propose(30)
  expect(states(chat)).toEqual(['pay:complete', 'pay:complete'])
  await propose(30)
  expect(states(chat)).toEqual(['pay:complete', 'pay:complete', 'pay:approval-requested'])
  expect(paid).toEqual([60, 30])
  const [grant] = await chat.grants()
  expect(grant?.mandate).toMatchObject({
    ...{ label: 'Pay acme up to 100 EUR', used: 2, grantedBy: 'ann' },
    budget: { total: 100, spent: 90, unit: 'EUR' },
  })
  expect(await chat.revokeGrant(grant?.id)).toBe(1)
  await chat.addToolApprovalResponse({ id: pendingId(chat), approved: true })
  await propose(1)
  expect(states(chat).at(-1)).toBe('pay:approval-requested')
})

test('W12 a user denies, and is not asked again', async () => {
  const { chat, paid, propose } = await payServer()
  await propose(5)
  await chat.addToolApprovalResponse({ id: pendingId(chat), approved: false, mandate: 'never' })
  await propose(5)
  expect(states(chat)).toEqual(['pay:denied', 'pay:denied'])
  expect((await chat.grants())[0]?.mandate).toMatchObject({ label: 'Never pay acme', decide: 'deny' })
  expect(paid).toEqual([])
})

test('W4 the client refuses a mandate that was not offered for this answer, and the request stays open', async () => {
  const { chat, paid, propose } = await payServer()
  await propose(5)
  const id = pendingId(chat)
  for (const answer of [
    { id, approved: true, mandate: 'other' },
    { id, approved: true, mandate: 'never' },
    { id, approved: false, mandate: 'to' },
    { id, approved: true, mandate: 'to', scope: 'once' as const },
  ])
    expect(await chat.addToolApprovalResponse(answer)).toMatchObject({
      status: 'refused',
      code: 'approval-malformed',
    })
  expect(states(chat)).toEqual(['pay:approval-requested'])
  expect(paid).toEqual([])
})

test('W4 a mandate whose label or limits were altered on the way is not stored, and nothing runs', async () => {
  const alterations: readonly ((text: string) => string)[] = [
    (text) => text.replaceAll('up to 100 EUR', 'up to 5 EUR'),
    (text) => text.replaceAll('"total":100', '"total":5'),
    (text) => text.replaceAll('"budget":', '"uses":1,"budget":'),
    (text) => text.replaceAll('Never pay acme', 'Not now'),
  ]
  for (const [index, alter] of alterations.entries()) {
    const { chat, paid, propose } = await payServer(alter)
    await propose(5)
    const isDenial = index === 3
    const mandate = isDenial ? 'never' : 'to'
    const id = pendingId(chat)
    await chat.addToolApprovalResponse({ id, approved: !isDenial, mandate })
    expect(paid).toEqual([])
    expect(await chat.grants()).toEqual([])
    // The request stays open for another answer.
    await chat.addToolApprovalResponse({ id, approved: true })
    expect(paid).toEqual([5])
  }
})

test('W8 a mandate that does not cover the call itself is refused with the reason, and the call can be approved alone', async () => {
  const { chat, paid, propose } = await payServer()
  await propose(500)
  const id = pendingId(chat)
  const answered = await chat.addToolApprovalResponse({ id, approved: true, mandate: 'to' })
  expect([answered, paid]).toMatchObject([{ status: 'refused', code: 'approval-mandate-refused' }, []])
  await chat.addToolApprovalResponse({ id, approved: true })
  expect(paid).toEqual([500])
})

test('W15 before choosing a mandate, the page can see which past requests it would have let through', async () => {
  const { chat, propose } = await payServer()
  const answer = async (approved: boolean) => chat.addToolApprovalResponse({ id: pendingId(chat), approved })
  for (const [amount, to, approved] of [
    [60, 'acme', true],
    [20, 'globex', true],
    [30, 'acme', false],
    [30, 'acme', true],
    [10, 'acme', true],
  ] as const) {
    await propose(amount, to)
    await answer(approved)
  }
  await propose(1)
  const ids = chat
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? part.id : [])))
  // 60 + 30 + 10 fill the budget of 100; the second 30 would have been asked about.
  const replay = await chat.replayMandate(pendingId(chat), 'to')
  expect(replay?.asked).toBe(5)
  expect(replay?.matched).toMatchObject([
    { toolCallId: ids[0], decision: 'approve' },
    { toolCallId: ids[2], decision: 'deny' },
    { toolCallId: ids[4], decision: 'approve' },
  ])
  expect((await chat.replayMandate(pendingId(chat), 'never'))?.matched.length).toBe(4)
  await expect(chat.replayMandate(pendingId(chat), 'other')).rejects.toMatchObject({ code: 'http-status' })
  expect(await chat.grants()).toEqual([])
})
