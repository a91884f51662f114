import type { Connection } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { expect, test, vi } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a stranger found who tried servers that raise the same interrupt again.

const result = (toolCallId: string): Event => ({
  ...{ type: 'TOOL_CALL_RESULT', messageId: `r-${toolCallId}`, toolCallId },
  ...{ role: 'tool', content: 'ok' },
})
const statesOf = (chat: ReturnType<typeof open>) =>
  chat.calls().map(({ state, approval }) => [state, approval?.approved, approval?.delivery])
const yes = (id: string) => ({ id, approved: true })

test.each([
  ['as it was', []],
  ['with its call, streamed again', call('c1', 1)],
  ['with an event before the end of the run', [ask('c1', 'a1', 1)]],
])(
  'R a request that the server raises again instead of taking the answer is open again: %s',
  async (_, events) => {
    const asked: string[] = []
    const { connection, resume } = server(
      (input) => [...call('c1', 1), finish(input, ['a1', 'c1'])],
      (input) => [...events, finish(input, ['a1', 'c1'])],
      (input) => [result('c1'), finish(input)],
    )
    const onApprovalRequest = ({ approvalId }: { approvalId: string }) => void asked.push(approvalId)
    const chat = open({ connection, onApprovalRequest })
    await chat.client.sendMessage('pay')
    expect(await chat.client.addToolApprovalResponse({ ...yes('a1'), reason: 'go' })).toMatchObject({
      status: 'sent',
    })
    expect(chat.pending()).toEqual([['a1', 'c1', { n: 1 }]])
    expect(statesOf(chat)).toEqual([['approval-requested', undefined, undefined]])
    expect(await chat.client.addToolApprovalResponse({ id: 'a1', approved: false })).toEqual({
      status: 'sent',
    })
    expect(resume()).toEqual([[], [['a1', { approved: true, reason: 'go' }]], [['a1', { approved: false }]]])
    expect(statesOf(chat)).toEqual([['denied', false, 'settled']])
    expect(asked).toEqual(['a1', 'a1'])
    await chat.client.sendMessage('thanks')
    expect(resume().at(-1)).toEqual([])
  },
)

test('R of two answers, the one that the server did not take is open again', async () => {
  const { connection, resume } = server(
    (input) => [...call('c1', 1), ...call('c2', 2, 'm1'), finish(input, ['a1', 'c1'], ['a2', 'c2'])],
    (input) => [result('c1'), finish(input, ['a2', 'c2'])],
    (input) => [result('c2'), finish(input)],
  )
  const chat = open({ connection })
  await chat.client.sendMessage('pay')
  const both = [
    chat.client.addToolApprovalResponse(yes('a1')),
    chat.client.addToolApprovalResponse(yes('a2')),
  ]
  await Promise.all(both)
  expect(chat.pending()).toEqual([['a2', 'c2', { n: 2 }]])
  await chat.client.addToolApprovalResponse(yes('a2'))
  expect(resume()).toEqual([
    [],
    [
      ['a1', { approved: true }],
      ['a2', { approved: true }],
    ],
    [['a2', { approved: true }]],
  ])
  expect(statesOf(chat)).toEqual([
    ['complete', true, 'settled'],
    ['complete', true, 'settled'],
  ])
})

test('R a request that a message cancelled and that the server raises again is open again', async () => {
  const asks = (input: Parameters<typeof finish>[0]) => [finish(input, ['a1', 'c1'])]
  const { connection, resume } = server(
    (input) => [...call('c1', 1), ...asks(input)],
    asks,
    asks,
    (input) => [result('c1'), finish(input)],
  )
  const chat = open({ connection })
  await chat.client.sendMessage('pay 1')
  for (const question of ['which account?', 'which bank?']) {
    await chat.client.sendMessage(question)
    expect(chat.pending()).toEqual([['a1', 'c1', { n: 1 }]])
  }
  expect(await chat.client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'sent' })
  expect(resume()).toEqual([[], [['a1', 'cancelled']], [['a1', 'cancelled']], [['a1', { approved: true }]]])
  expect(statesOf(chat)).toEqual([['complete', true, 'settled']])
})

test('R a request that is raised again with other arguments can not be answered', async () => {
  const other: Event = {
    ...{ type: 'RUN_FINISHED', threadId: 't', runId: 'r' },
    outcome: {
      type: 'interrupt',
      interrupts: [
        {
          ...{ id: 'a1', reason: 'tool_call', toolCallId: 'c1' },
          metadata: { countersign: { toolName: 'act', input: { n: 2 } } },
        },
      ],
    },
  }
  const { connection, requests } = server(
    (input) => [...call('c1', 1), finish(input, ['a1', 'c1'])],
    ({ runId }) => [{ ...other, runId } as Event],
  )
  const chat = open({ connection })
  await chat.client.sendMessage('pay')
  await chat.client.addToolApprovalResponse(yes('a1'))
  expect(chat.calls()).toMatchObject([{ input: { n: 1 }, approval: { problem: 'approval-changed' } }])
  expect(await chat.client.addToolApprovalResponse(yes('a1'))).toMatchObject({ status: 'closed' })
  expect(requests).toHaveLength(2)
  expect(chat.warnings.join()).toContain('changed after it was shown')
})

test('R an answer that goes into the open run stays when that run repeats its request', async () => {
  const answers: unknown[] = []
  const connection: Connection = {
    async *connect(input) {
      const { threadId, runId } = input
      yield { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
      yield* [...call('c1', 1), ask('c1', 'a1', 1)]
      await vi.waitUntil(() => answers.length === 1)
      yield* [ask('c1', 'a1', 1), result('c1'), finish(input)]
    },
    async answer({ resume }) {
      answers.push(...resume)
    },
  }
  const chat = open({ connection })
  const sent = chat.client.sendMessage('pay')
  await vi.waitUntil(() => chat.pending().length === 1)
  expect(await chat.client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'sent' })
  await sent
  expect(answers).toHaveLength(1)
  expect(statesOf(chat)).toEqual([['complete', true, 'settled']])
})

test('R an answer that is not sent yet stays when the end of its run names the request', async () => {
  let answer: () => void = () => {}
  const answered = new Promise<void>((resolve) => (answer = resolve))
  const { connection, resume } = server(
    async function* (input) {
      yield* [...call('c1', 1), ask('c1', 'a1', 1)]
      await answered
      yield finish(input, ['a1', 'c1'])
    },
    (input) => [result('c1'), finish(input)],
  )
  const chat = open({ connection })
  const sent = chat.client.sendMessage('pay')
  await vi.waitUntil(() => chat.pending().length === 1)
  const approval = chat.client.addToolApprovalResponse(yes('a1'))
  answer()
  await Promise.all([sent, approval])
  expect(resume()).toEqual([[], [['a1', { approved: true }]]])
  expect(statesOf(chat)).toEqual([['complete', true, 'settled']])
})

test('R a request that is raised again is open after a reload, and its answer goes out once', async () => {
  const { connection, resume } = server(
    (input) => [...call('c1', 1), finish(input, ['a1', 'c1'])],
    (input) => [finish(input, ['a1', 'c1'])],
    (input) => [result('c1'), finish(input)],
  )
  const storage = memoryPersistence()
  const options = { connection, persistence: persistent(storage) }
  const first = open(options)
  await first.client.sendMessage('pay')
  await first.client.addToolApprovalResponse(yes('a1'))
  await first.client.dispose()
  const second = open(options)
  await second.client.restore()
  expect(second.pending()).toEqual([['a1', 'c1', { n: 1 }]])
  await second.client.addToolApprovalResponse(yes('a1'))
  expect(resume()).toEqual([[], [['a1', { approved: true }]], [['a1', { approved: true }]]])
})

const raise = (interrupt: object, runId: string): Event => ({
  ...{ type: 'RUN_FINISHED', threadId: 't', runId },
  outcome: { type: 'interrupt', interrupts: [{ id: 'a1', reason: 'choose', ...interrupt }] },
})

const form = { type: 'object', properties: { date: { type: 'string' } }, required: ['date'] }
const approved = { type: 'boolean' }
const decided = (value: boolean) => ({ type: 'object', properties: { approved: { const: value } } })

test.each<object>([
  { type: 'string', enum: ['a', 'b'] },
  { type: 'boolean' },
  { type: 'array', items: { type: 'string' } },
  { oneOf: [form] },
  { oneOf: [decided(true), form] },
  { $ref: '#/$defs/F', $defs: { F: form } },
  { type: 'object', required: ['date'], additionalProperties: { type: 'string' } },
  { type: 'object', additionalProperties: false },
  { type: 'object', properties: { approved: { type: 'string', enum: ['yes', 'no'] } } },
  { type: 'object', properties: { approved: { enum: ['yes', 'no'] } } },
  { type: 'object', properties: { approved: { const: true } } },
  { type: 'object', properties: { approved }, required: ['approved', 'comment'] },
  { type: 'object', properties: { approved }, anyOf: [form] },
])(
  'R an interrupt about a call whose schema does not accept a bare yes or no is no approval: %j',
  async (responseSchema) => {
    const { connection } = server(({ runId }) => [
      ...call('c1', 1),
      raise({ toolCallId: 'c1', responseSchema }, runId),
    ])
    const { client, pending } = open({ connection })
    await client.sendMessage('when?')
    expect(pending()).toEqual([])
    expect(client.getSnapshot().interrupts).toMatchObject([{ id: 'a1', toolCallId: 'c1', responseSchema }])
  },
)

test.each<object>([
  {},
  { responseSchema: {} },
  { responseSchema: { oneOf: [decided(true), decided(false)] } },
  { responseSchema: { type: 'object' } },
  { responseSchema: { type: ['object', 'null'], properties: { approved, note: { enum: [1] } } } },
  { responseSchema: { properties: { approved }, required: ['approved'], additionalProperties: false } },
  {
    responseSchema: { properties: { approved: { type: ['boolean', 'null'] }, editedArgs: { $ref: '#/x' } } },
  },
])('R an interrupt about a call that accepts a bare yes or no is an approval: %j', async (schema) => {
  const { connection } = server(({ runId }) => [
    ...call('c1', 1),
    raise({ toolCallId: 'c1', ...schema }, runId),
  ])
  const { client, pending } = open({ connection })
  await client.sendMessage('when?')
  expect(pending()).toEqual([['a1', 'c1', { n: 1 }]])
  expect(client.getSnapshot().interrupts).toEqual([])
})

test.each([
  [
    'says its arguments is shown with those',
    { toolName: 'act', input: { n: 2 } },
    [['a1', 'c0', { n: 2 }]],
    [],
  ],
  ['does not say them can only be denied', {}, [], ['a1']],
])(
  'R a request for a call that was lost, whose id a broken run of an earlier turn used, and that %s',
  async (_, countersign, shown, unseen) => {
    const { connection } = server(
      () => [...call('c0', 1), 'cut'],
      ({ runId }) => [raise({ reason: 'tool_call', toolCallId: 'c0', metadata: { countersign } }, runId)],
    )
    const { client, pending } = open({ connection })
    await client.sendMessage('delete 1')
    await client.sendMessage('no, delete 2')
    expect(pending()).toEqual(shown)
    expect(client.getSnapshot().interrupts.map(({ id }) => id)).toEqual(unseen)
  },
)
