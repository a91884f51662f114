import { approvalView } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import { expect, test, vi } from 'vitest'
import {
  ask,
  askBare,
  call,
  calling,
  type Event,
  finish,
  gate,
  open,
  raise,
  resultOf,
  server,
  snapshot,
  start,
  startWith,
} from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// One id for several requests: an answer counts only for the request that was shown when it was given.

test('an answer is not sent once its id belongs to the request of another call', async () => {
  const { client, pending, calls, resume, approve, deny } = await start(
    (input) => [...call('c1', 1), finish(input, ['int-0', 'c1'])],
    () => ['cut'],
    (input) => [...call('c2', 2), finish(input, ['int-0', 'c2'])],
    () => ['cut'],
  )
  await approve('int-0')
  await client.sendMessage('something else')
  expect(pending()).toEqual([['int-0', 'c2', { n: 2 }]])
  expect(calls()[0]?.approval).toMatchObject({ delivery: 'settled', problem: 'approval-interrupted' })
  await deny('int-0')
  await client.retry()
  expect(resume()).toEqual([[], ['int-0 yes'], [], ['int-0 no'], ['int-0 no']])
})

test('an answer is not sent once its id belongs to an interrupt that is no approval request', async () => {
  const { client, resume, approve } = await start(
    (input) => [...call('c1', 1), finish(input, ['int-0', 'c1'])],
    () => ['cut'],
    (input) => [finish(input, ['int-0'])],
  )
  await approve('int-0')
  await client.sendMessage('something else')
  expect(client.getSnapshot().interrupts).toMatchObject([{ id: 'int-0', reason: 'input_required' }])
  await client.retry()
  expect(resume().slice(2)).toEqual([[]])
})

test('a cancellation is not sent once its id belongs to a new request', async () => {
  const { client, pending, resume, approve } = await start(
    (input) => [...call('c1', 1), finish(input, ['int-0', 'c1'])],
    () => [...call('c2', 2), ask('c2', 'int-0', 2), 'cut'],
  )
  await client.regenerate()
  expect(pending()).toEqual([['int-0', 'c2', { n: 2 }]])
  await client.retry()
  await approve('int-0')
  expect(resume()).toEqual([[], ['int-0 cancelled'], [], ['int-0 yes']])
})

test.each(['c2', 'c1'])(
  'a request with an id that was answered in the same turn is shown, also where the call (%s) repeats an id',
  async (second) => {
    const { pending, resume, approve } = await start(
      (input) => [...call('c1', 1), finish(input, ['int-0', 'c1'])],
      (input) => [...call(second, 2), finish(input, ['int-0', second])],
    )
    expect(await approve('int-0')).toEqual({ status: 'sent' })
    expect(pending()).toEqual([['int-0', second, { n: 2 }]])
    await approve('int-0')
    expect(resume()).toEqual([[], ['int-0 yes'], ['int-0 yes']])
  },
)

test.each(['c2', 'c1'])(
  'a pending request is never replaced: if a later run uses its id for another call (%s), it is cancelled, the new one is shown but not answerable, and the turn goes on',
  async (second) => {
    const { client, pending, calls, warnings, resume, approve } = await start(
      () => [...call('c1', 1), ask('c1', 'int-0', 1), 'cut'],
      (input) => [
        ...[...call(second, 2), ask(second, 'int-0', 2), ...call('c3', 3), ask('c3', 'int-1', 3)],
        finish(input, ['int-0', second], ['int-1', 'c3']),
      ],
    )
    await client.retry()
    expect(pending()).toEqual([
      ['int-0', second, { n: 2 }],
      ['int-1', 'c3', { n: 3 }],
    ])
    expect(calls().slice(0, 2)).toMatchObject([
      { state: 'cancelled', approval: { problem: 'approval-changed' } },
      { state: 'approval-requested', approval: { problem: 'approval-changed' } },
    ])
    expect(warnings).not.toEqual([])
    expect(await approve('int-0')).toMatchObject({ status: 'closed' })
    await approve('int-1')
    expect(resume().at(-1)).toEqual(['int-1 yes', 'int-0 cancelled'])
  },
)

/** A run that ends with a question, which is no approval request. */
const question =
  (message: string) =>
  (run: RunAgentInput): Event[] => [
    raise(run, { id: 'int-0', reason: 'input_required', toolCallId: undefined, message }),
  ]

test.each(['during', 'after'])(
  'no approval is sent for a request id that means a call of the open run, also behind a snapshot with an older open call (answered %s the run)',
  async (when) => {
    let isOpen = false
    const { open: proceed, opened } = gate()
    const { client, pending, resume, approve } = await start(
      () => [...call('c0', 1), ask('c0', 'int-0', 1), 'cut'],
      async function* (input) {
        const before = [calling('m0', 'c0', '{"n":0}'), calling('m1', 'c0', '{"n":1}')]
        yield snapshot(...input.messages.slice(0, 1), ...before)
        isOpen = true
        await opened
        yield* [...call('c0', 2), finish(input, ['int-0', 'c0'])]
      },
    )
    const retried = client.retry()
    await vi.waitUntil(() => isOpen)
    const early = when === 'during' ? approve('int-0') : undefined
    proceed()
    await retried
    if (early) await early
    else if (pending().some(([id, , input]) => id === 'int-0' && JSON.stringify(input) !== '{"n":2}'))
      await approve('int-0')
    await client.sendMessage('and?')
    expect(JSON.stringify(resume())).not.toContain('yes')
  },
)

test('an interrupt whose id the server uses again for another question is shown anew, and the response to the earlier one is not sent', async () => {
  const { connection, resume } = server(
    // Its run ends twice, which is an error: `retry()` opens another.
    (given) => [...question('Delete staging?')(given), ...question('Delete staging?')(given)],
    async function* (given) {
      void client
        .respondToInterrupt({ id: 'int-0', payload: { yes: true } })
        .then((one) => void results.push(one))
      yield* question('Delete production?')(given)
    },
    (given) => [finish(given)],
  )
  const results: unknown[] = []
  const { client, warnings } = open({ connection })
  const shown = () => client.getSnapshot().interrupts.map(({ message }) => message)
  await client.sendMessage('tidy')
  expect(shown()).toEqual(['Delete staging?'])
  await client.retry()
  await vi.waitUntil(() => results.length > 0)
  expect([shown(), resume(), results]).toEqual([
    ['Delete production?'],
    [[], []],
    [{ status: 'closed', reason: 'cancelled' }],
  ])
  expect(warnings.join()).toContain('int-0')
  expect(await client.respondToInterrupt({ id: 'int-0', payload: { no: true } })).toEqual({ status: 'sent' })
  expect(resume()[2]).toEqual([['int-0', { no: true }]])
})

test('a request that may mean another call stays unanswerable after its run broke, whatever later runs say of that call id', async () => {
  const told = snapshot({ id: 'u', role: 'user', content: 'pay' }, calling('m0', 'c0', '{"n":0}'))
  const asked = (toolCallId: string, id: string) => askBare(toolCallId, { id, options: ['deny', 'once'] })
  const { client, resume, approve, deny } = await start(
    () => ['cut'],
    () => [
      told,
      ...[...call('c0', 2, 'm2'), ...call('c2', 3, 'm2')],
      ...[asked('c0', 'int-A'), asked('c2', 'int-B'), 'cut' as const],
    ],
    (input) => [
      resultOf('c2'),
      ...[...call('c0', 4, 'm3'), asked('c0', 'int-C'), finish(input, ['int-C', 'c0'])],
    ],
  )
  const problem = () =>
    client.getSnapshot().pendingApprovals.find(({ approval }) => approval.id === 'int-A')?.approval.problem
  await client.retry()
  expect(problem()).toBe('approval-changed')
  await deny('int-B')
  expect(problem()).toBe('approval-changed')
  await deny('int-C')
  expect(await approve('int-A')).toMatchObject({ status: 'closed' })
  await client.retry()
  expect(resume().flat()).not.toContainEqual('int-A yes')
})

test.each(['queue', 'reject'] as const)(
  'a message does not wait for a request that cannot be answered (onPendingMessage: %s)',
  async (onPendingMessage) => {
    const { client, requests } = await startWith({ onPendingMessage }, (input) => [
      ...[...call('c0', 1), ask('c0', 'int-A', 1), ask('c0', 'int-A', 2)],
      finish(input, ['int-A', 'c0']),
    ])
    expect(client.getSnapshot().pendingApprovals[0]?.approval.problem).toBe('approval-changed')
    expect(await client.sendMessage('and?')).toEqual({ status: 'sent' })
    expect(requests).toHaveLength(2)
  },
)

test('requests that may each mean one of two calls with one id cannot be answered, whichever is asked about first', async () => {
  const chat = await start((input): Event[] => [
    ...call('c', 1),
    ...call('c', 2),
    askBare('c', { id: 'a2' }),
    finish(input, ['a1', 'c'], ['a2', 'c']),
  ])
  expect(chat.pending()).toHaveLength(2)
  for (const part of chat.client.getSnapshot().pendingApprovals) {
    expect(part.approval.problem).toBe('approval-changed')
    expect(approvalView(part)?.choices.every(({ disabled }) => disabled)).toBe(true)
  }
  expect((await chat.approve('a2')).status).toBe('closed')
})

test('a request that can no longer be answered holds up no other answer of its turn', async () => {
  const { client, resume, approve } = await start(
    () => [
      ...[...call('call_0', 1, 'm1'), ask('call_0', 'int-1', 1)],
      ...[...call('call_1', 2, 'm1'), ask('call_1', 'int-2', 2)],
      ...[...call('call_0', 3, 'm1'), 'cut' as const],
    ],
    (input) => [...call('call_5', 5), ask('call_5', 'int-5', 5), finish(input, ['int-5', 'call_5'])],
  )
  await client.retry()
  expect(await approve('int-1')).toMatchObject({ status: 'closed', reason: 'approval-changed' })
  const answers = ['int-2', 'int-5'].map(approve)
  expect(await Promise.all(answers)).toEqual([{ status: 'waiting' }, { status: 'sent' }])
  expect(resume()[2]).toEqual(['int-2 yes', 'int-5 yes'])
})
