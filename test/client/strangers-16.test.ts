import { ChatStore, type RunAgentInput, type ToolCallPart } from '@countersign/core'
import { expect, test, vi } from 'vitest'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a stranger found who broke runs, tried again, and asked twice.

/** The end of a run that raises these interrupts about the call c0. */
const raise = ({ runId }: { runId: string }, ...interrupts: object[]): Event => ({
  ...{ type: 'RUN_FINISHED', threadId: 't', runId },
  outcome: {
    type: 'interrupt',
    interrupts: interrupts.map((one) => ({ id: 'a1', reason: 'tool_call', toolCallId: 'c0', ...one })),
  },
})
const says = (n: number) => ({ metadata: { countersign: { toolName: 'act', input: { n } } } })
const result: Event = {
  ...{ type: 'TOOL_CALL_RESULT', messageId: 'r', toolCallId: 'c0', role: 'tool', content: 'ok' },
}
const yes = (id: string) => ({ id, approved: true })
const unseen = ({ client }: ReturnType<typeof open>) => client.getSnapshot().interrupts.map(({ id }) => id)
const problems = ({ calls }: ReturnType<typeof open>) =>
  calls().map(({ input, state, approval }) => [input, state, approval?.problem])

test.each([
  ['says no arguments, can only be denied', {}, [], ['a1']],
  ['says its arguments, is shown with those', says(2), [['a1', 'c0', { n: 2 }]], []],
  ['says the same arguments, is shown', says(1), [['a1', 'c0', { n: 1 }]], []],
])(
  'R after retry(), a request for a call of the broken run that %s',
  async (_, interrupt, shown, deniable) => {
    const { connection, resume } = server(
      () => [...call('c0', 1), 'cut'],
      (input) => [raise(input, interrupt)],
    )
    const chat = open({ connection })
    await chat.client.sendMessage('go')
    await chat.client.retry()
    expect(chat.pending()).toEqual(shown)
    expect(unseen(chat)).toEqual(deniable)
    await chat.client.addToolApprovalResponse(yes('a1'))
    expect(resume()).toEqual([[], [], ...(shown.length > 0 ? [[['a1', { approved: true }]]] : [])])
  },
)

test('R after retry(), a request is shown with the call of the broken run that the new run has in its snapshot', async () => {
  const toolCalls = [{ id: 'c0', type: 'function', function: { name: 'act', arguments: '{"n":1}' } } as const]
  const { connection } = server(
    () => [...call('c0', 1), 'cut'],
    (input) => [
      {
        type: 'MESSAGES_SNAPSHOT',
        messages: [
          { id: input.messages[0]?.id ?? '', role: 'user', content: 'go' },
          { id: 'm1', role: 'assistant', toolCalls },
        ],
      },
      raise(input, {}),
    ],
  )
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  await chat.client.retry()
  expect(chat.pending()).toEqual([['a1', 'c0', { n: 1 }]])
})

test.each([
  ['streams the call again', call('c0', 2, 'other')],
  ['says them in the request', []],
])(
  'R after retry(), a pending request that has other arguments is shown with those but not answerable, until a message has cancelled it: the run %s',
  async (_, events) => {
    const run = (input: Parameters<typeof finish>[0]) => [...events, raise(input, says(2))]
    const { connection, resume } = server(() => [...call('c0', 1), ask('c0', 'a1', 1), 'cut'], run, run)
    const chat = open({ connection })
    await chat.client.sendMessage('go')
    await chat.client.retry()
    expect(chat.pending()).toEqual([['a1', 'c0', { n: 2 }]])
    expect(problems(chat)).toEqual([
      [{ n: 1 }, 'cancelled', 'approval-changed'],
      [{ n: 2 }, 'approval-requested', 'approval-changed'],
    ])
    expect(await chat.client.addToolApprovalResponse(yes('a1'))).toMatchObject({ status: 'closed' })
    expect(chat.warnings).toEqual([expect.stringContaining('changed after it was shown')])
    await chat.client.sendMessage('again')
    expect(chat.pending()).toEqual([['a1', 'c0', { n: 2 }]])
    expect(await chat.client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'sent' })
    expect(resume()).toEqual([[], [], [['a1', 'cancelled']], [['a1', { approved: true }]]])
  },
)

test.each([
  ['with its arguments', says(2), [['a1', 'c0', { n: 2 }]], [], 'waiting'],
  ['without them', {}, [], ['a1'], 'closed'],
])(
  'R after retry(), a request under another id about a call that waits for approval is not lost: %s',
  async (_, interrupt, shown, deniable, status) => {
    const { connection } = server(
      () => [...call('c0', 1), ask('c0', 'a0', 1), 'cut'],
      (input) => [raise(input, interrupt)],
    )
    const chat = open({ connection })
    await chat.client.sendMessage('go')
    await chat.client.retry()
    expect(chat.pending()).toEqual([['a0', 'c0', { n: 1 }], ...shown])
    expect(unseen(chat)).toEqual(deniable)
    expect(await chat.client.addToolApprovalResponse(yes('a0'))).toMatchObject({ status })
  },
)

const schema = { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] }

test('R of two interrupts about one call, one is its approval request and the other an interrupt; both answers go out together', async () => {
  const { connection, resume } = server(
    (input) => [...call('c0', 1), raise(input, {}, { id: 'a2', message: 'Sure?', responseSchema: schema })],
    (input) => [finish(input)],
  )
  const chat = open({ connection, checkResponse: () => undefined })
  await chat.client.sendMessage('go')
  expect(chat.pending()).toEqual([['a1', 'c0', { n: 1 }]])
  expect(chat.client.getSnapshot().interrupts).toMatchObject([
    { id: 'a2', toolCallId: 'c0', message: 'Sure?' },
  ])
  expect(await chat.client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'waiting' })
  expect(await chat.client.respondToInterrupt({ id: 'a2', payload: { approved: false } })).toEqual({
    status: 'sent',
  })
  expect(resume()[1]).toEqual([
    ['a1', { approved: true }],
    ['a2', { approved: false }],
  ])
})

test('R a message cancels both of two interrupts about one call', async () => {
  const { connection, resume } = server((input) => [...call('c0', 1), raise(input, {}, { id: 'a2' })])
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  await chat.client.sendMessage('no')
  expect(resume()[1]).toEqual([
    ['a1', 'cancelled'],
    ['a2', 'cancelled'],
  ])
})

test('R of two interrupts that say different arguments of one call, the second is shown with its own, and the answer cancels the first', async () => {
  const { connection, resume } = server(
    (input) => [...call('c0', 1), raise(input, says(1), { id: 'a2', ...says(2) })],
    (input) => [finish(input)],
  )
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  expect(chat.pending()).toEqual([
    ['a1', 'c0', { n: 1 }],
    ['a2', 'c0', { n: 2 }],
  ])
  expect(await chat.client.addToolApprovalResponse(yes('a1'))).toMatchObject({ status: 'closed' })
  expect(await chat.client.addToolApprovalResponse(yes('a2'))).toEqual({ status: 'sent' })
  expect(resume()[1]).toEqual([
    ['a2', { approved: true }],
    ['a1', 'cancelled'],
  ])
})

test.each([
  ['with its arguments', says(1), [['a1', 'c0', { n: 1 }]], []],
  ['without them', {}, [], ['a1']],
])('R an interrupt about a call that has ended is not lost: %s', async (_, interrupt, shown, deniable) => {
  const { connection, resume } = server((input) => [...call('c0', 1), result, raise(input, interrupt)])
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  expect(chat.pending()).toEqual(shown)
  expect(unseen(chat)).toEqual(deniable)
  expect(chat.calls()[0]).toMatchObject({ state: 'complete', output: 'ok' })
  await chat.client.sendMessage('no')
  expect(resume()[1]).toEqual([['a1', 'cancelled']])
})

/** The user's message and a reply that calls c0. */
const snapshot = (input: { messages: readonly { id: string }[] }, id: string, n: number): Event => ({
  type: 'MESSAGES_SNAPSHOT',
  messages: [
    { id: input.messages[0]?.id ?? '', role: 'user', content: 'go' },
    {
      ...{ id, role: 'assistant' },
      toolCalls: [
        { id: 'c0', type: 'function', function: { name: 'act', arguments: JSON.stringify({ n }) } },
      ],
    },
  ],
})

test.each([
  ['in another message', 'other', {}],
  ['in its own message', 'm1', {}],
  ['in another message, and the request says them as well', 'other', says(2)],
])(
  'R a pending request whose call a snapshot has with other arguments can not be answered: %s',
  async (_, id, interrupt) => {
    const { connection, resume } = server((input) => [
      ...[...call('c0', 1), ask('c0', 'a1', 1), snapshot(input, id, 2)],
      raise(input, interrupt),
    ])
    const chat = open({ connection })
    await chat.client.sendMessage('go')
    const shown = chat.client.getSnapshot().pendingApprovals
    expect(shown).toMatchObject([{ approval: { id: 'a1', problem: 'approval-changed' } }])
    expect(chat.calls().map(({ input }) => input)).toContainEqual({ n: 2 })
    expect(await chat.client.addToolApprovalResponse(yes('a1'))).toMatchObject({ status: 'closed' })
    expect(chat.warnings).toContainEqual(expect.stringContaining('changed after it was shown'))
    await chat.client.sendMessage('no')
    expect(resume()[1]).toEqual([['a1', 'cancelled']])
  },
)

test('R a yes that waits for the end of its run is not sent if a snapshot has the call with other arguments, which are asked about anew', async () => {
  let answer: () => void = () => {}
  const answered = new Promise<void>((resolve) => (answer = resolve))
  const { connection, resume } = server(async function* (input) {
    yield* [...call('c0', 1), ask('c0', 'a1', 1)]
    await answered
    yield* [snapshot(input, 'other', 2), raise(input, {})]
  })
  const chat = open({ connection })
  const sent = chat.client.sendMessage('go')
  await vi.waitUntil(() => chat.pending().length === 1)
  void chat.client.addToolApprovalResponse(yes('a1'))
  answer()
  await sent
  expect(chat.pending()).toEqual([['a1', 'c0', { n: 2 }]])
  expect(resume()).toEqual([[]])
  expect(await chat.client.addToolApprovalResponse({ id: 'a1', approved: false })).toEqual({ status: 'sent' })
  expect(resume()[1]).toEqual([['a1', { approved: false }]])
})

test('R a request that the run with its answer repeats only by an event is open again when nothing comes of the answer', async () => {
  const asked: string[] = []
  const { connection, resume } = server(
    (input) => [...call('c0', 1), raise(input, {})],
    (input) => [ask('c0', 'a1', 1), finish(input)],
    (input) => [ask('c0', 'a1', 1), result, finish(input)],
  )
  const onApprovalRequest = ({ approvalId }: { approvalId: string }) => void asked.push(approvalId)
  const chat = open({ connection, onApprovalRequest })
  await chat.client.sendMessage('go')
  await chat.client.addToolApprovalResponse(yes('a1'))
  expect(chat.pending()).toEqual([['a1', 'c0', { n: 1 }]])
  expect(asked).toEqual(['a1', 'a1'])
  await chat.client.addToolApprovalResponse(yes('a1'))
  expect(resume()).toEqual([[], [['a1', { approved: true }]], [['a1', { approved: true }]]])
  expect(chat.calls()).toMatchObject([{ state: 'complete', approval: { delivery: 'settled' } }])
})

test('R a request that the run with its answer raises again is open again, though the run was rejoined after a reload', () => {
  const part: ToolCallPart = {
    type: 'tool-call',
    id: 'c0',
    name: 'act',
    arguments: '{"n":1}',
    input: { n: 1 },
    state: 'approval-responded',
    approval: {
      ...{ id: 'a1', needsApproval: true, options: ['deny', 'once'] },
      ...{ approved: true, delivery: 'unknown', sentIn: 'r2' },
    },
  }
  const asked: string[] = []
  const store = new ChatStore({ messages: [{ id: 'm1', role: 'assistant', parts: [part] }] })
  const run = { threadId: 't', runId: 'r2' }
  store.dispatch({ type: 'run-rejoined', runId: 'r2' })
  store.dispatch({ type: 'RUN_STARTED', ...run })
  store.dispatch(ask('c0', 'a1', 1))
  expect(store.getSnapshot().pendingApprovals).toEqual([])
  store.dispatch(raise(run, {}), ({ type }) => asked.push(type))
  store.dispatch({ type: 'run-closed', end: { type: 'success' } })
  expect(store.getSnapshot().pendingApprovals).toMatchObject([{ id: 'c0', approval: { id: 'a1' } }])
  expect(asked).toEqual(['approval-requested'])
})

test.each([
  ['under its id', () => 'a1'],
  ['under new ids', (n: number) => `a${n}`],
])(
  'R code that answers every request does not answer one without end that its server raises again and again %s',
  async (_, id) => {
    const errors: unknown[] = []
    const again = Array.from({ length: 50 }, (_, n) => (input: RunAgentInput) => [
      raise(input, { id: id(n + 2) }),
    ])
    const { connection, requests } = server((input) => [...call('c0', 1), raise(input, {})], ...again)
    const { client } = open({
      connection,
      maxContinuations: 5,
      onApprovalRequest: ({ approvalId }) => void client.addToolApprovalResponse(yes(approvalId)),
      onError: ({ code }) => void errors.push(code),
    })
    await client.sendMessage('go')
    await vi.waitUntil(() => errors.length > 0 || requests.length > 40)
    expect(errors).toEqual(['too-many-continuations'])
    expect(requests).toHaveLength(6)
    await client.sendMessage('again')
    expect(requests.length).toBeGreaterThan(6)
  },
)
