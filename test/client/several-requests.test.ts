import { ask as askFor, gated, resolve, scriptedConnection, text } from '@countersign/testing'
import { expect, test } from 'vitest'
import { ask, call, finish, no, raise, resultOf, says, start, startWith, yes } from './foreign-server.js'
import { callOf, failOnUnhandledRejections, openClient } from './open-chat.js'

failOnUnhandledRejections()

// Several requests or interrupts about one call.

test.each([
  ['with its arguments', says(2), [['a1', 'c1', { n: 2 }]], [], 'waiting'],
  ['without them', {}, [], ['a1'], 'closed'],
])(
  'after retry(), a request under another id about a call that waits for approval is not lost: %s',
  async (_, interrupt, shown, deniable, status) => {
    const chat = await start(
      () => [...call('c1', 1), ask('c1', 'a0', 1), 'cut'],
      (input) => [raise(input, interrupt)],
    )
    await chat.client.retry()
    expect(chat.pending()).toEqual([['a0', 'c1', { n: 1 }], ...shown])
    expect(chat.interrupts()).toEqual(deniable)
    expect(await chat.approve('a0')).toMatchObject({ status })
  },
)

const schema = { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] }

test('of two interrupts about one call, one is its approval request and the other an interrupt; both answers are sent together', async () => {
  const chat = await startWith(
    { checkResponse: () => undefined },
    (input) => [...call('c1', 1), raise(input, {}, { id: 'a2', message: 'Sure?', responseSchema: schema })],
    (input) => [finish(input)],
  )
  expect(chat.pending()).toEqual([['a1', 'c1', { n: 1 }]])
  expect(chat.client.getSnapshot().interrupts).toMatchObject([
    { id: 'a2', toolCallId: 'c1', message: 'Sure?' },
  ])
  expect(await chat.approve('a1')).toEqual({ status: 'waiting' })
  expect(await chat.client.respondToInterrupt({ id: 'a2', payload: { approved: false } })).toEqual({
    status: 'sent',
  })
  expect(chat.resume()[1]).toEqual(['a1 yes', 'a2 no'])
})

test('a message cancels both of two interrupts about one call', async () => {
  const chat = await start((input) => [...call('c1', 1), raise(input, {}, { id: 'a2' })])
  await chat.client.sendMessage('no')
  expect(chat.resume()[1]).toEqual(['a1 cancelled', 'a2 cancelled'])
})

test('of two interrupts that say different arguments of one call, the second is shown with its own, and the answer cancels the first', async () => {
  const chat = await start(
    (input) => [...call('c1', 1), raise(input, says(1), { id: 'a2', ...says(2) })],
    (input) => [finish(input)],
  )
  expect(chat.pending()).toEqual([
    ['a1', 'c1', { n: 1 }],
    ['a2', 'c1', { n: 2 }],
  ])
  expect(await chat.approve('a1')).toMatchObject({ status: 'closed' })
  expect(await chat.approve('a2')).toEqual({ status: 'sent' })
  expect(chat.resume()[1]).toEqual(['a2 yes', 'a1 cancelled'])
})

test.each([
  ['with its arguments', says(1), [['a1', 'c1', { n: 1 }]], []],
  ['without them', {}, [], ['a1']],
])('an interrupt about a call that has ended is not lost: %s', async (_, interrupt, shown, deniable) => {
  const chat = await start((input) => [...call('c1', 1), resultOf('c1'), raise(input, interrupt)])
  expect(chat.pending()).toEqual(shown)
  expect(chat.interrupts()).toEqual(deniable)
  expect(chat.calls()[0]).toMatchObject({ state: 'complete', output: 'ok' })
  await chat.client.sendMessage('no')
  expect(chat.resume()[1]).toEqual(['a1 cancelled'])
})

test('an interrupt about a call that has ended after its approval is not lost', async () => {
  const chat = await start(
    (input) => [...call('c1', 1), ask('c1', 'a1', 1), finish(input, ['a1', 'c1'])],
    (input) => [resultOf('c1'), finish(input, ['a2', 'c1'])],
  )
  await chat.approve('a1')
  expect(chat.pending()).toEqual([])
  expect(chat.client.getSnapshot().interrupts).toMatchObject([{ id: 'a2', toolCallId: 'c1' }])
  await chat.client.sendMessage('no')
  expect(chat.resume()[2]).toEqual(['a2 cancelled'])
})

test('a second request for a call whose first answer the server has is a request of its own', async () => {
  const server = scriptedConnection([
    gated(1),
    [text('One more signature.'), askFor('b1', 'c1', { message: 'May I?' })],
    [resolve(), text('Done.')],
  ])
  const client = openClient({ connection: server, threadId: 't' })
  await client.sendMessage('go')
  await client.addToolApprovalResponse(yes('a1'))
  const { pendingApprovals, status } = client.getSnapshot()
  expect([status, pendingApprovals.map(({ approval }) => approval)]).toMatchObject([
    'awaiting-approval',
    [{ id: 'b1', message: 'May I?' }],
  ])
  expect(callOf(client, 'c1').approval?.approved).toBeUndefined()
  // The first request is over, and an answer to it is none to the second.
  expect(await client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'already-answered' })
  expect(await client.addToolApprovalResponse(no('b1'))).toEqual({ status: 'sent' })
  expect(server.requests.at(-1)?.resume).toMatchObject([{ interruptId: 'b1', payload: { approved: false } }])
})
