import { ChatClient, type Connection, fetchServerSentEvents } from '@countersign/client'
import { createAgent, handleChat, memoryLedger, scriptedModel, tool } from '@countersign/server'
import {
  ask,
  call,
  callArgs,
  callStart,
  custom,
  cut,
  event,
  gated,
  resolve,
  scriptedConnection,
  started,
  text,
} from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { callOf } from './open-chat.js'

// What a stranger found in the seventeenth session: requests about calls of an earlier turn, and second requests for one call.

function open(connection: Connection, generateId?: () => string) {
  const client = new ChatClient({ connection, threadId: 't', onError: () => {}, generateId })
  onTestFinished(() => client.dispose())
  return client
}

const answersIn = (requests: readonly { readonly resume?: readonly { interruptId: string }[] }[]) =>
  requests.map(({ resume = [] }) => resume.map(({ interruptId }) => interruptId))

/** A server whose first reply asks for two calls, and whose later ones are texts. */
function twoCalls(confirm?: (context: { otp?: boolean }) => boolean) {
  const ran: unknown[] = []
  const context: { subject: string; otp?: boolean } = { subject: 'ada' }
  const send = tool({
    name: 'send',
    description: 'Sends.',
    input: z.object({ to: z.string(), n: z.number().optional() }),
    needsApproval: true,
    allowEdits: ['n'],
    execute: (input) => {
      ran.push(input)
      return 'sent'
    },
  })
  const calls = ['c1', 'c2'].map((id) => ({
    type: 'tool-call' as const,
    id,
    name: 'send',
    arguments: JSON.stringify({ to: id }),
  }))
  let asked = 0
  const model = scriptedModel(() =>
    asked++ === 0
      ? [...calls, { type: 'finish', reason: 'tool_calls' }]
      : [
          { type: 'text-delta', delta: 'Well.' },
          { type: 'finish', reason: 'stop' },
        ],
  )
  const agent = createAgent({
    model,
    tools: [send],
    approvals: {
      ledger: memoryLedger(),
      secret: 'a secret of more than thirty-two characters',
      ...(confirm && { confirm: ({ decision }) => decision !== 'approve' || confirm(context) }),
    },
    warn: () => {},
  })
  const handle: typeof fetch = (input, init) => handleChat(agent, new Request(input, init), { context })
  return { ran, context, client: open(fetchServerSentEvents('http://server.test/chat', { fetch: handle })) }
}

const idOf = (client: ChatClient, callId: string) => callOf(client, callId).approval?.id ?? ''

test('an edit that was refused after the user had gone on can be corrected, and the correction is sent at once', async () => {
  const { ran, client } = twoCalls()
  await client.sendMessage('go')
  const first = client.addToolApprovalResponse({
    id: idOf(client, 'c1'),
    approved: true,
    input: { to: 'c1', n: 'seven' },
  })
  await client.sendMessage('and hurry')
  await first
  expect(callOf(client, 'c1')).toMatchObject({
    state: 'approval-requested',
    error: { code: 'approval-edit-invalid' },
  })
  const corrected = { id: idOf(client, 'c1'), approved: true, input: { to: 'c1', n: 7 } }
  expect(await client.addToolApprovalResponse(corrected)).toEqual({ status: 'sent' })
  expect(ran).toEqual([{ to: 'c1', n: 7 }])
  expect(callOf(client, 'c1').state).toBe('complete')
})

test('an answer that `confirm` refused after the user had gone on leaves its request open', async () => {
  const { ran, client, context } = twoCalls(({ otp }) => otp === true)
  await client.sendMessage('go')
  const first = client.addToolApprovalResponse({ id: idOf(client, 'c1'), approved: true })
  await client.sendMessage('and hurry')
  await first
  expect(callOf(client, 'c1')).toMatchObject({
    state: 'approval-requested',
    error: { code: 'approval-not-yours' },
  })
  context.otp = true
  const again = { id: idOf(client, 'c1'), approved: true }
  expect(await client.addToolApprovalResponse(again)).toEqual({ status: 'sent' })
  expect(ran).toEqual([{ to: 'c1' }])
})

test('the answer to a request for a call of an earlier turn is sent at once', async () => {
  const server = scriptedConnection([
    [call('c1', 'send', {}), cut()],
    [text('Wait.'), ask('a1', 'c1')],
    [resolve(), text('Done.')],
  ])
  const client = open(server)
  await client.sendMessage('go')
  await client.sendMessage('are you there?')
  expect(client.getSnapshot().status).toBe('awaiting-approval')
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
  expect(answersIn(server.requests)).toEqual([[], [], ['a1']])
})

test('a second request for a call whose first answer the server has is a request of its own', async () => {
  const server = scriptedConnection([
    gated(1),
    [text('One more signature.'), ask('b1', 'c1', { message: 'May I?' })],
    [resolve(), text('Done.')],
  ])
  const client = open(server)
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'a1', approved: true })
  const { pendingApprovals, status } = client.getSnapshot()
  expect([status, pendingApprovals.map(({ approval }) => approval)]).toMatchObject([
    'awaiting-approval',
    [{ id: 'b1', message: 'May I?' }],
  ])
  expect(callOf(client, 'c1').approval?.approved).toBeUndefined()
  // The first request is over, and an answer to it is none to the second.
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({
    status: 'already-answered',
  })
  expect(await client.addToolApprovalResponse({ id: 'b1', approved: false })).toEqual({ status: 'sent' })
  expect(server.requests.at(-1)?.resume).toMatchObject([{ interruptId: 'b1', payload: { approved: false } }])
})

test('a first answer waits for the other requests of its turn', async () => {
  const server = scriptedConnection([
    [gated(1), gated(2)],
    [resolve(), text('Done.')],
  ])
  const client = open(server)
  await client.sendMessage('go')
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'waiting' })
  expect(callOf(client, 'c1').approval).toMatchObject({ id: 'a1', approved: true, delivery: 'waiting' })
})

test('a call that broke off inside its arguments can be approved once a snapshot brings the rest', async () => {
  const messages = [
    { id: 'x1', role: 'user', content: 'go' },
    {
      id: 'm1',
      role: 'assistant',
      content: '',
      toolCalls: [{ id: 'c1', type: 'function', function: { name: 'send', arguments: '{"to":"ada"}' } }],
    },
    { id: 'x3', role: 'user', content: 'are you there?' },
  ]
  const approval = { id: 'a1', needsApproval: true, options: ['deny', 'once'] }
  const requested = custom('approval-requested', { toolCallId: 'c1', approval })
  const server = scriptedConnection([
    [started(), callStart('c1', 'send'), callArgs('c1', '{"to":'), cut()],
    [started(), event({ type: 'MESSAGES_SNAPSHOT', messages }), requested],
    [resolve(), text('Done.')],
  ])
  let ids = 0
  const client = open(server, () => `x${++ids}`)
  await client.sendMessage('go')
  expect(client.getMessageIds()).toEqual(['x1', 'm1'])
  expect(callOf(client, 'c1').state).toBe('cancelled')
  await client.sendMessage('are you there?')
  expect(client.getSnapshot().pendingApprovals).toMatchObject([{ input: { to: 'ada' } }])
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
})

test('a message that a stop left in the queue goes out with retry()', async () => {
  const server = scriptedConnection(
    [[started(), event({ type: 'CUSTOM', name: 'x', value: 1 })], [text('Hi.')]],
    {
      otherwise: 'by hand',
    },
  )
  const client = open(server)
  const first = client.sendMessage('one')
  const { status } = await client.sendMessage('two')
  client.stop()
  await first
  await client.retry()
  expect(status).toBe('queued')
  expect(client.getSnapshot().queue).toEqual([])
})
