import type { RunAgentInput } from '@countersign/core'
import {
  callArgs,
  callStart,
  custom,
  cut,
  event,
  resolve,
  scriptedConnection,
  started,
  text,
} from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import {
  ask,
  call,
  calling,
  type Event,
  finish,
  gate,
  open,
  raise,
  resultOf,
  says,
  server,
  snapshot,
  start,
  startOpen,
  yes,
} from './foreign-server.js'
import { callOf, failOnUnhandledRejections, openClient } from './open-chat.js'

failOnUnhandledRejections()

// What a snapshot of the messages changes in the calls that are shown, and in their requests.

/** A snapshot with a call in the message `id`, and with its result if there is `content`. */
const callSnapshot = (id: string, text: string, content?: string) =>
  snapshot(
    calling(id, 'c1', text),
    ...(content === undefined ? [] : [{ id: 'r1', role: 'tool' as const, toolCallId: 'c1', content }]),
  )

/** The user's message, and a reply that makes the call c1. */
const retold = ({ messages }: RunAgentInput, id: string, n: number) =>
  snapshot({ id: messages[0]?.id ?? '', role: 'user', content: 'go' }, calling(id, 'c1', `{"n":${n}}`))

const asked = (n: number): Event[] => [...call('call_0', n), ask('call_0', `int-${n}`, n)]

/** Our messages as a server may store them: replies have other ids. */
const stored = (input: RunAgentInput) =>
  structuredClone(input.messages).map((message) =>
    message.role === 'assistant' ? { ...message, id: `x-${message.id}` } : message,
  )

/** The same, without what only Countersign peers read. */
const plain = (input: RunAgentInput) =>
  stored(input).map((message) => {
    if (message.role !== 'assistant' || message.toolCalls === undefined) return message
    return { ...message, toolCalls: message.toolCalls.map(({ metadata: _, ...call }) => call) }
  })

test.each([
  ['one complete call', 1, false, stored],
  ['a call without a request', 1, true, stored],
  ['two complete calls, and one without a request', 2, true, stored],
  ['two complete calls, and one without a request, as another server writes them', 2, true, plain],
])(
  'an older snapshot under other message ids (%s) swaps no calls: the answer is sent for the call that is shown',
  async (_, done, isBroken, write) => {
    const { connection, resume } = server(
      ...Array.from({ length: done }, (_, n) => [
        (input: RunAgentInput) => [...asked(n), finish(input, [`int-${n}`, 'call_0'])],
        (input: RunAgentInput) => [resultOf('call_0', `done ${n}`), finish(input)],
      ]).flat(),
      ...(isBroken ? [() => [...call('call_0', 4), 'cut' as const]] : []),
      (input) => [...asked(7), snapshot(...write(input)), finish(input, ['int-7', 'call_0'])],
    )
    const { client, pending, calls, approve } = open({ connection })
    for (let n = 0; n < done; n++) {
      await client.sendMessage('go')
      await approve(`int-${n}`)
    }
    await client.sendMessage('next')
    if (isBroken) await client.retry()
    expect(pending()).toEqual([['int-7', 'call_0', { n: 7 }]])
    expect(await approve('int-7')).toEqual({ status: 'sent' })
    expect(resume().at(-1)).toEqual(['int-7 yes'])
    const ended = calls().filter(({ state }) => state === 'complete')
    expect(ended.map(({ input, output }) => [input, output])).toEqual(
      Array.from({ length: done }, (_, n) => [{ n }, `done ${n}`]),
    )
  },
)

test.each([undefined, 'done'])(
  'if a snapshot has a call with other arguments in the place of an open request, that request can not be answered (result: %s)',
  async (content) => {
    const { calls, warnings, requests, approve } = await start((input) => [
      ...call('c1', 1, 'm1'),
      ask('c1', 'int-1', 1),
      callSnapshot('m1', '{"n":2}', content),
      finish(input, ['int-1', 'c1']),
    ])
    const shown = calls().find(({ approval }) => approval?.id === 'int-1')
    expect(shown).toMatchObject({
      input: { n: 1 },
      state: 'approval-requested',
      approval: { problem: 'approval-changed' },
    })
    expect(calls().filter(({ approval }) => approval)).toHaveLength(1)
    expect(warnings.join()).toContain('changed after it was shown')
    expect(await approve('int-1')).toEqual({ status: 'closed', reason: 'approval-changed' })
    expect(requests).toHaveLength(1)
  },
)

test.each([
  ['m1', '{ "n": 1 }'],
  ['m1', '{"n":'],
  ['m1', ''],
  ['x1', '{ "n": 1 }'],
])(
  'a call stays the same if a snapshot has its arguments in another form, or not all of them yet (%s, %s)',
  async (id, text) => {
    const { calls, pending, resume, approve } = await start((input) => [
      ...call('c1', 1, 'm1'),
      ask('c1', 'int-1', 1),
      callSnapshot(id, text),
      finish(input, ['int-1', 'c1']),
    ])
    expect(calls()).toHaveLength(1)
    expect(pending()).toEqual([['int-1', 'c1', { n: 1 }]])
    await approve('int-1')
    expect(resume().at(-1)).toEqual(['int-1 yes'])
  },
)

test('a call that runs as the user edited it is the same call in a snapshot with the edited arguments', async () => {
  const { client, calls } = await start(
    (input) => [
      ...call('c1', 1, 'm1'),
      ask('c1', 'int-1', 1, { allowEdits: true }),
      finish(input, ['int-1', 'c1']),
    ],
    (input) => [callSnapshot('m1', '{"n":3}', '"done"'), finish(input)],
  )
  const answer = client.addToolApprovalResponse({ id: 'int-1', approved: true, input: { n: 3 } })
  expect(await answer).toEqual({ status: 'sent' })
  expect(calls()).toMatchObject([{ state: 'complete', output: 'done', approval: { delivery: 'settled' } }])
})

test('arguments that still stream go on after a snapshot with earlier calls of that id', async () => {
  const { client, pending, approve } = await start(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    (input) => [resultOf('call_0', 'done 1'), finish(input)],
    (input) => {
      const [start, , end] = call('call_0', 7) as [Event, Event, Event]
      const more = (delta: string): Event => ({ type: 'TOOL_CALL_ARGS', toolCallId: 'call_0', delta })
      return [
        ...[start, more('{"n"'), snapshot(...stored(input)), more(':7}'), end],
        finish(input, ['int-7', 'call_0']),
      ]
    },
  )
  await approve('int-1')
  await client.sendMessage('next')
  expect(pending()).toEqual([['int-7', 'call_0', { n: 7 }]])
})

test.each([true, false])(
  'a call of the open run stays while a snapshot has only an earlier call with its id (request by event: %s)',
  async (byEvent) => {
    const { client, pending } = await start(
      () => [...call('c1', 1), 'cut'],
      (input) => [
        ...[...call('c1', 2), ...(byEvent ? [ask('c1', 'int-2', 2)] : [])],
        snapshot(...structuredClone(input.messages)),
        finish(input, ['int-2', 'c1']),
      ],
    )
    await client.retry()
    expect(pending()).toEqual([['int-2', 'c1', { n: 2 }]])
  },
)

test('a result whose call an older snapshot has removed leaves no hole, and what comes later is stored', async () => {
  const persistence = memoryPersistence()
  const { open: proceed, opened } = gate()
  let isOpen = false
  const { connection } = server(
    (input) => [
      { type: 'TEXT_MESSAGE_START', messageId: 't1', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 't1', delta: 'Hello.' },
      { type: 'TEXT_MESSAGE_END', messageId: 't1' },
      finish(input),
    ],
    (input) => [...call('c1', 1, 'm1'), ...call('c0', 0, 'm1'), finish(input, ['a1', 'c1'], ['a0', 'c0'])],
    async function* (input) {
      yield snapshot(...input.messages.slice(0, 1))
      isOpen = true
      await opened
      yield resultOf('c1', 'paid')
      yield* [...call('c2', 2, 'm2'), ...call('c3', 3, 'm2'), finish(input, ['a2', 'c2'], ['a3', 'c3'])]
    },
  )
  const { client, pending, approve } = open({ connection, persistence, notify: 'sync' })
  client.subscribe(() => client.getSnapshot())
  await client.sendMessage('hello')
  await client.sendMessage('pay')
  await approve('a1')
  const sent = client.sendMessage('and?')
  await vi.waitUntil(() => isOpen)
  client.getSnapshot()
  proceed()
  await sent
  expect([...client.getSnapshot().messages].every((message) => message !== undefined)).toBe(true)
  expect(await approve('a2')).toEqual({ status: 'waiting' })
  await client.dispose()
  const second = open({ connection, persistence })
  await second.client.restore()
  expect(pending()).toEqual([['a3', 'c3', { n: 3 }]])
  expect(second.pending()).toEqual(pending())
  expect(second.calls().find(({ id }) => id === 'c2')).toMatchObject({ state: 'approval-responded' })
})

test('after retry(), a request is shown with the call of the broken run that the new run has in its snapshot', async () => {
  const chat = await start(
    () => [...call('c1', 1), 'cut'],
    (input) => [retold(input, 'm1', 1), raise(input, {})],
  )
  await chat.client.retry()
  expect(chat.pending()).toEqual([['a1', 'c1', { n: 1 }]])
})

test.each([
  ['in another message', 'other', {}],
  ['in its own message', 'm1', {}],
  ['in another message, and the request says them as well', 'other', says(2)],
])(
  'a pending request whose call a snapshot has with other arguments can not be answered: %s',
  async (_, id, interrupt) => {
    const chat = await start((input) => [
      ...[...call('c1', 1), ask('c1', 'a1', 1), retold(input, id, 2)],
      raise(input, interrupt),
    ])
    const shown = chat.client.getSnapshot().pendingApprovals
    expect(shown).toMatchObject([{ approval: { id: 'a1', problem: 'approval-changed' } }])
    expect(chat.calls().map(({ input }) => input)).toContainEqual({ n: 2 })
    expect(await chat.approve('a1')).toMatchObject({ status: 'closed' })
    expect(chat.warnings).toContainEqual(expect.stringContaining('changed after it was shown'))
    await chat.client.sendMessage('no')
    expect(chat.resume()[1]).toEqual(['a1 cancelled'])
  },
)

test('an approval that waits for the end of its run is not sent if a snapshot has the call with other arguments, which are asked about anew', async () => {
  const { open: proceed, opened } = gate()
  const { connection, resume } = server(async function* (input) {
    yield* [...call('c1', 1), ask('c1', 'a1', 1)]
    await opened
    yield* [retold(input, 'other', 2), raise(input, {})]
  })
  const { sent, ...chat } = await startOpen(connection)
  void chat.approve('a1')
  proceed()
  await sent
  expect(chat.pending()).toEqual([['a1', 'c1', { n: 2 }]])
  expect(resume()).toEqual([[]])
  expect(await chat.deny('a1')).toEqual({ status: 'sent' })
  expect(resume()[1]).toEqual(['a1 no'])
})

test('a call that broke off inside its arguments can be approved once a snapshot brings the rest', async () => {
  const messages = [
    { id: 'x1', role: 'user', content: 'go' },
    calling('m1', 'c1', '{"to":"ada"}'),
    { id: 'x3', role: 'user', content: 'are you there?' },
  ]
  const approval = { id: 'a1', needsApproval: true, options: ['deny', 'once'] }
  const requested = custom('approval-requested', { toolCallId: 'c1', approval })
  const server = scriptedConnection([
    [started(), callStart('c1', 'act'), callArgs('c1', '{"to":'), cut()],
    [started(), event({ type: 'MESSAGES_SNAPSHOT', messages }), requested],
    [resolve(), text('Done.')],
  ])
  let ids = 0
  const client = openClient({ connection: server, threadId: 't', generateId: () => `x${++ids}` })
  await client.sendMessage('go')
  expect(client.getMessageIds()).toEqual(['x1', 'm1'])
  expect(callOf(client, 'c1').state).toBe('cancelled')
  await client.sendMessage('are you there?')
  expect(client.getSnapshot().pendingApprovals).toMatchObject([{ input: { to: 'ada' } }])
  expect(await client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'sent' })
})
