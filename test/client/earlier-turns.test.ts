import { type ChatClient, fetchServerSentEvents } from '@countersign/client'
import { createAgent, handleChat, memoryLedger, scriptedModel, tool } from '@countersign/server'
import { ask, call, cut, gated, resolve, scriptedConnection, text } from '@countersign/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { callOf, openClient } from './open-chat.js'

// Answers about calls of an earlier turn.

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
  return {
    ran,
    context,
    client: openClient({ connection: fetchServerSentEvents('http://server.test/chat', { fetch: handle }) }),
  }
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

const answersIn = (requests: readonly { readonly resume?: readonly { interruptId: string }[] }[]) =>
  requests.map(({ resume = [] }) => resume.map(({ interruptId }) => interruptId))

test('the answer to a request for a call of an earlier turn is sent at once', async () => {
  const server = scriptedConnection([
    [call('c1', 'send', {}), cut()],
    [text('Wait.'), ask('a1', 'c1')],
    [resolve(), text('Done.')],
  ])
  const client = openClient({ connection: server, threadId: 't' })
  await client.sendMessage('go')
  await client.sendMessage('are you there?')
  expect(client.getSnapshot().status).toBe('awaiting-approval')
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
  expect(answersIn(server.requests)).toEqual([[], [], ['a1']])
})

test('a first answer waits for the other requests of its turn', async () => {
  const server = scriptedConnection([
    [gated(1), gated(2)],
    [resolve(), text('Done.')],
  ])
  const client = openClient({ connection: server, threadId: 't' })
  await client.sendMessage('go')
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'waiting' })
  expect(callOf(client, 'c1').approval).toMatchObject({ id: 'a1', approved: true, delivery: 'waiting' })
})
