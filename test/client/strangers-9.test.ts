import type { RunAgentInput } from '@countersign/core'
import { expect, test, vi } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a second round of strangers found: the model's provider repeats call ids, and every approval request has an id of its own.

const result = (toolCallId: string, content: string, outcome?: string): Event => ({
  type: 'TOOL_CALL_RESULT',
  messageId: `r-${content}`,
  toolCallId,
  role: 'tool',
  content,
  ...(outcome !== undefined && { metadata: { countersign: { outcome } } }),
})

const asked = (n: number): Event[] => [...call('call_0', n), ask('call_0', `int-${n}`, n)]

test.each([undefined, true, false])(
  'K a result belongs to the call whose answer the run carries, not to a later call with that id (answered meanwhile: %s)',
  async (approved) => {
    const { connection, resume } = server(
      (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
      () => ['cut'],
      (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
      (input) => [result('call_0', 'done 1'), finish(input)],
    )
    const { client, pending, calls } = open({ connection })
    await client.sendMessage('go')
    await client.addToolApprovalResponse({ id: 'int-1', approved: true })
    await client.sendMessage('something else')
    const retried = client.retry()
    const answer =
      approved === undefined ? undefined : client.addToolApprovalResponse({ id: 'int-2', approved })
    await retried
    expect(calls()[0]).toMatchObject({
      state: 'complete',
      output: 'done 1',
      approval: { delivery: 'settled' },
    })
    expect(calls()[1]?.output).toBe(undefined)
    if (approved === undefined) expect(pending()).toEqual([['int-2', 'call_0', { n: 2 }]])
    else expect(await answer).toEqual({ status: 'sent' })
    expect(resume().slice(4)).toEqual(approved === undefined ? [] : [[['int-2', { approved }]]])
  },
)

test('K if one request carries answers for several calls with one id, their results come in the order of the answers', async () => {
  const { connection, resume } = server(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
    () => ['cut'],
    (input) => [result('call_0', 'done 1'), result('call_0', '{"reason":"no"}', 'denied'), finish(input)],
  )
  const { client, calls } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-1', approved: true })
  await client.sendMessage('something else')
  await client.addToolApprovalResponse({ id: 'int-2', approved: false })
  await client.retry()
  expect(resume()[4]?.map(([id]) => id)).toEqual(['int-1', 'int-2'])
  expect(calls()).toMatchObject([{ state: 'complete', output: 'done 1' }, { state: 'denied' }])
})

test('K a result is not that of an answer which is only in the history, if the run was sent another answer or ran another call', async () => {
  const { connection, resume } = server(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [
      ...call('call_0', 5),
      result('call_0', 'done 5'),
      ...asked(2),
      finish(input, ['int-2', 'call_0']),
    ],
    (input) => [result('call_0', 'done 2'), finish(input)],
    (input) => [result('call_0', 'done 1'), finish(input)],
  )
  const { client, calls } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-1', approved: true })
  await client.sendMessage('something else')
  await client.addToolApprovalResponse({ id: 'int-2', approved: true })
  await client.retry()
  expect(resume().map((entries) => entries.map(([id]) => id))).toEqual([
    [],
    ['int-1'],
    [],
    ['int-2'],
    ['int-1'],
  ])
  expect(calls().map(({ input, output }) => [input, output])).toEqual([
    [{ n: 1 }, 'done 1'],
    [{ n: 5 }, 'done 5'],
    [{ n: 2 }, 'done 2'],
  ])
})

test('K a second result with the id of an answered call does not end an open request', async () => {
  const { connection } = server(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    () => ['cut'],
    (input) => [...asked(2), finish(input, ['int-2', 'call_0'])],
    (input) => [result('call_0', 'done 1'), result('call_0', 'done again'), finish(input)],
  )
  const { client, pending, warnings } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-1', approved: true })
  await client.sendMessage('something else')
  await client.retry()
  expect(pending()).toEqual([['int-2', 'call_0', { n: 2 }]])
  expect(warnings).not.toEqual([])
})

test.each([true, false])(
  'K an answer (%s) that was not sent before the server ran its call is `closed`, and the call shows its output',
  async (approved) => {
    let proceed = () => {}
    const until = new Promise<void>((resolve) => {
      proceed = resolve
    })
    const { connection, resume } = server(async function* (input) {
      yield* [...call('c1', 1), ask('c1', 'a1', 1)]
      await until
      yield* [result('c1', 'it ran'), finish(input)]
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

/** Our messages as a server may store them: replies have other ids. */
const stored = (input: RunAgentInput) =>
  structuredClone(input.messages).map((message) =>
    message.role === 'assistant' ? { ...message, id: `x-${message.id}` } : message,
  )

/** The same, without what only Countersign peers read. */
const plain = (input: RunAgentInput) =>
  stored(input).map((message) => {
    if (message.role !== 'assistant' || message.toolCalls === undefined) return message
    const toolCalls = message.toolCalls.map(({ id, type, function: called }) => ({
      id,
      type,
      function: called,
    }))
    return { ...message, toolCalls }
  })

test.each([
  ['one complete call', 1, false, stored],
  ['a call without a request', 1, true, stored],
  ['two complete calls, and one without a request', 2, true, stored],
  ['two complete calls, and one without a request, as another server writes them', 2, true, plain],
])(
  'K an older snapshot under other message ids (%s) swaps no calls: the answer goes out for the call that is shown',
  async (_, done, isBroken, write) => {
    const { connection, resume } = server(
      ...Array.from({ length: done }, (_, n) => [
        (input: RunAgentInput) => [...asked(n), finish(input, [`int-${n}`, 'call_0'])],
        (input: RunAgentInput) => [result('call_0', `done ${n}`), finish(input)],
      ]).flat(),
      ...(isBroken ? [() => [...call('call_0', 4), 'cut' as const]] : []),
      (input) => [
        ...asked(7),
        { type: 'MESSAGES_SNAPSHOT', messages: write(input) },
        finish(input, ['int-7', 'call_0']),
      ],
    )
    const { client, pending, calls } = open({ connection })
    for (let n = 0; n < done; n++) {
      await client.sendMessage('go')
      await client.addToolApprovalResponse({ id: `int-${n}`, approved: true })
    }
    await client.sendMessage('next')
    if (isBroken) await client.retry()
    expect(pending()).toEqual([['int-7', 'call_0', { n: 7 }]])
    expect(await client.addToolApprovalResponse({ id: 'int-7', approved: true })).toEqual({ status: 'sent' })
    expect(resume().at(-1)).toEqual([['int-7', { approved: true }]])
    const ended = calls().filter(({ state }) => state === 'complete')
    expect(ended.map(({ input, output }) => [input, output])).toEqual(
      Array.from({ length: done }, (_, n) => [{ n }, `done ${n}`]),
    )
  },
)

const snapshot = (id: string, text: string, content?: string): Event => ({
  type: 'MESSAGES_SNAPSHOT',
  messages: [
    {
      id,
      role: 'assistant',
      toolCalls: [{ id: 'c1', type: 'function', function: { name: 'act', arguments: text } }],
    },
    ...(content === undefined ? [] : [{ id: 'r1', role: 'tool' as const, toolCallId: 'c1', content }]),
  ],
})

test.each([undefined, 'done'])(
  'K if a snapshot has a call with other arguments in the place of an open request, that request can not be answered (result: %s)',
  async (content) => {
    const { connection, requests } = server((input) => [
      ...call('c1', 1, 'm1'),
      ask('c1', 'int-1', 1),
      snapshot('m1', '{"n":2}', content),
      finish(input, ['int-1', 'c1']),
    ])
    const { client, calls, warnings } = open({ connection })
    await client.sendMessage('go')
    const shown = calls().find(({ approval }) => approval?.id === 'int-1')
    expect(shown).toMatchObject({
      input: { n: 1 },
      state: 'approval-requested',
      approval: { problem: 'approval-changed' },
    })
    expect(calls().filter(({ approval }) => approval)).toHaveLength(1)
    expect(warnings.join()).toContain('changed after it was shown')
    expect(await client.addToolApprovalResponse({ id: 'int-1', approved: true })).toEqual({
      status: 'closed',
      reason: 'approval-changed',
    })
    expect(requests).toHaveLength(1)
  },
)

test.each([
  ['m1', '{ "n": 1 }'],
  ['m1', '{"n":'],
  ['m1', ''],
  ['x1', '{ "n": 1 }'],
])(
  'K a call stays the same if a snapshot has its arguments in another form, or not all of them yet (%s, %s)',
  async (id, text) => {
    const { connection, resume } = server((input) => [
      ...call('c1', 1, 'm1'),
      ask('c1', 'int-1', 1),
      snapshot(id, text),
      finish(input, ['int-1', 'c1']),
    ])
    const { client, calls, pending } = open({ connection })
    await client.sendMessage('go')
    expect(calls()).toHaveLength(1)
    expect(pending()).toEqual([['int-1', 'c1', { n: 1 }]])
    await client.addToolApprovalResponse({ id: 'int-1', approved: true })
    expect(resume().at(-1)).toEqual([['int-1', { approved: true }]])
  },
)

test('K a call that runs as the user edited it is the same call in a snapshot with the edited arguments', async () => {
  const { connection } = server(
    (input) => [
      ...call('c1', 1, 'm1'),
      {
        type: 'CUSTOM',
        name: 'approval-requested',
        value: { toolCallId: 'c1', approval: { id: 'int-1', options: ['deny', 'once'], allowEdits: true } },
      },
      finish(input, ['int-1', 'c1']),
    ],
    (input) => [snapshot('m1', '{"n":3}', '"done"'), finish(input)],
  )
  const { client, calls } = open({ connection })
  await client.sendMessage('go')
  const answer = client.addToolApprovalResponse({ id: 'int-1', approved: true, input: { n: 3 } })
  expect(await answer).toEqual({ status: 'sent' })
  expect(calls()).toMatchObject([{ state: 'complete', output: 'done', approval: { delivery: 'settled' } }])
})

test('K arguments that still stream go on after a snapshot with earlier calls of that id', async () => {
  const { connection } = server(
    (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
    (input) => [result('call_0', 'done 1'), finish(input)],
    (input) => {
      const [start, , end] = call('call_0', 7) as [Event, Event, Event]
      const more = (delta: string): Event => ({ type: 'TOOL_CALL_ARGS', toolCallId: 'call_0', delta })
      return [
        ...[
          start,
          more('{"n"'),
          { type: 'MESSAGES_SNAPSHOT', messages: stored(input) } as const,
          more(':7}'),
          end,
        ],
        finish(input, ['int-7', 'call_0']),
      ]
    },
  )
  const { client, pending } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-1', approved: true })
  await client.sendMessage('next')
  expect(pending()).toEqual([['int-7', 'call_0', { n: 7 }]])
})

test('K a request that can no longer be answered holds up no other answer of its turn', async () => {
  const { connection, resume } = server(
    () => [
      ...[...call('call_0', 1, 'm1'), ask('call_0', 'int-1', 1)],
      ...[...call('call_1', 2, 'm1'), ask('call_1', 'int-2', 2)],
      ...[...call('call_0', 3, 'm1'), 'cut' as const],
    ],
    (input) => [...call('call_5', 5), ask('call_5', 'int-5', 5), finish(input, ['int-5', 'call_5'])],
  )
  const { client } = open({ connection })
  await client.sendMessage('go')
  await client.retry()
  expect(await client.addToolApprovalResponse({ id: 'int-1', approved: true })).toMatchObject({
    status: 'closed',
    reason: 'approval-changed',
  })
  const answers = ['int-2', 'int-5'].map((id) => client.addToolApprovalResponse({ id, approved: true }))
  expect(await Promise.all(answers)).toEqual([{ status: 'waiting' }, { status: 'sent' }])
  expect(resume()[2]).toEqual([
    ['int-2', { approved: true }],
    ['int-5', { approved: true }],
  ])
})

test.each([
  ['the stream breaks', 'cut' as const],
  ['the run fails', { type: 'RUN_ERROR', message: 'boom' } as const],
])(
  'K a reply that carried an answer and broke in its text is asked for again after a reload as without one (%s)',
  async (_, end) => {
    const half: Event[] = [
      { type: 'TEXT_MESSAGE_START', messageId: 'm9', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm9', delta: 'I am about to del' },
    ]
    const sent = async (isReloaded: boolean) => {
      const { connection, requests } = server(
        (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
        () => [...half, end],
      )
      const stored = memoryPersistence()
      const page = () => open({ connection, persistence: stored }).client
      let client = page()
      client.attach()
      await client.sendMessage('go')
      await client.addToolApprovalResponse({ id: 'int-1', approved: true })
      if (isReloaded) {
        await vi.waitUntil(() => stored.texts.size > 0)
        client.dispose()
        client = page()
        client.attach()
        await client.restore()
        expect(client.getSnapshot().error).toBeDefined()
      }
      await client.retry()
      return requests[2]?.messages.map(({ role, content }) => [role, content])
    }
    expect(await sent(true)).toEqual(await sent(false))
  },
)

test('K a call whose run ended before its result says so, in the same page and in the next one, until the result comes', async () => {
  const persistence = memoryPersistence()
  const runs = [
    (): (Event | 'cut')[] => [...call('call_0', 1), 'cut'],
    (input: RunAgentInput) => [result('call_0', 'done'), finish(input)],
  ]
  const { connection } = server(...runs)
  const first = open({ connection, persistence })
  await first.client.sendMessage('go')
  const interrupted = { state: 'input-complete', error: { code: 'interrupted' } }
  expect(first.calls()).toMatchObject([interrupted])
  await first.client.dispose()
  const second = open({ connection, persistence })
  second.client.attach()
  await vi.waitUntil(() => second.calls().length === 1)
  expect(second.calls()).toMatchObject([interrupted])
  await second.client.sendMessage('and?')
  expect(second.calls()[0]).toMatchObject({ state: 'complete', output: 'done' })
  expect(second.calls()[0]).not.toHaveProperty('error')
})
