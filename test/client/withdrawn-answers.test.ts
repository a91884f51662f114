import { type Connection, fetchServerSentEvents } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import type { RunAgentInput, ThreadRecord } from '@countersign/core'
import { gated, passMacrotasks, text } from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import { ask, asks, call, type Event, finish, open, server, start, startOpen } from './foreign-server.js'
import { answersOf, failOnUnhandledRejections, openChat, wires } from './open-chat.js'
import { frames, serve } from './raw-server.js'
import { calls, openPage, startServer, stop, words } from './threads-server.js'

failOnUnhandledRejections()

// Answers and requests that are withdrawn: by setMessages(), withdrawApprovalResponse(), clearError() and regenerate().

const two = () => [...call('c1', 1), ask('c1', 'a1', 1), ...call('c2', 2), ask('c2', 'a2', 2)]

const asksTwo = () =>
  server(
    (input) => [...two(), finish(input, ['a1', 'c1'], ['a2', 'c2'])],
    (input) => [finish(input)],
  )

const copy = <T>(value: T): T => structuredClone(value)

test.each([
  ['the same messages', <T>(messages: T) => messages],
  ['a copy of them', copy],
])('setMessages() with %s takes back an answer that waits: its request is open again', async (_, change) => {
  const { connection, resume } = asksTwo()
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  expect(await chat.approve('a1')).toEqual({ status: 'waiting' })
  chat.client.setMessages(change)
  expect(chat.pending().map(([id]) => id)).toEqual(['a1', 'a2'])
  await chat.deny('a2')
  expect(resume()).toEqual([[]])
  await chat.deny('a1')
  expect(resume()[1]).toEqual(['a2 no', 'a1 no'])
})

test.each([
  ['the same messages', <T>(messages: T) => messages],
  ['a copy of them', copy],
])(
  'an answer on its way when setMessages() gave %s is closed, and nothing sends it again',
  async (_, change) => {
    const sent: unknown[] = []
    const { connection } = server(asks, asks)
    const connect: Connection['connect'] = async function* (input, options) {
      sent.push(input.resume)
      const { signal } = options
      if (sent.length > 1)
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      yield* connection.connect(input, options)
    }
    const chat = open({ connection: { connect } })
    await chat.client.sendMessage('go')
    const answer = chat.approve('a1')
    await passMacrotasks(2)
    expect(sent).toHaveLength(2)
    chat.client.setMessages(change)
    expect(await answer).toEqual({ status: 'closed', reason: 'cancelled' })
    expect(chat.calls()[0]?.approval).toMatchObject({ approved: true, problem: 'approval-interrupted' })
    void chat.client.retry()
    await passMacrotasks(2)
    expect(sent.slice(2).filter(Boolean)).toEqual([])
  },
)

test('clearError() gives up the answer of the failed request: retry() does not repeat it', async () => {
  const chat = await start(
    (input) => [...call('c1', 1), ask('c1', 'a1', 1), finish(input, ['a1', 'c1'])],
    () => ['cut'],
  )
  await chat.approve('a1')
  expect(chat.calls()[0]?.approval?.delivery).toBe('unknown')
  chat.client.clearError()
  expect(chat.calls()[0]?.approval).toMatchObject({ delivery: 'settled', problem: 'approval-interrupted' })
  await chat.client.retry()
  expect(chat.resume().slice(2).flat()).toEqual([])
})

test('clearError() gives up the response to an interrupt in the same way', async () => {
  const chat = await start(
    (input) => [finish(input, ['i1'])],
    () => ['cut'],
  )
  await chat.client.respondToInterrupt({ id: 'i1', payload: 1 })
  chat.client.clearError()
  await chat.client.retry()
  expect(chat.resume()).toEqual([[], [['i1', 1]]])
})

test('an answer is taken back only once the storage no longer has it', async () => {
  const { connection, resume } = asksTwo()
  let stored: ThreadRecord | undefined
  let saving: Promise<unknown> | undefined
  const persistence = () =>
    persistent({
      load: async () => copy(stored),
      async save(_, record) {
        await saving
        stored = copy(record)
      },
      remove: async () => {},
    })
  const chat = open({ connection, persistence: persistence() })
  await chat.client.sendMessage('go')
  await chat.approve('a1')
  await vi.waitFor(() => expect(JSON.stringify(stored)).toContain('"approved":true'))
  let end: (value?: unknown) => void = () => {}
  saving = new Promise((resolve) => {
    end = resolve
  })
  const withdrawn = chat.client.withdrawApprovalResponse('a1')
  let isOver = false
  void withdrawn.then(() => {
    isOver = true
  })
  await passMacrotasks(5)
  expect(isOver).toBe(false)
  end()
  expect(await withdrawn).toBe(true)
  const next = open({ connection, persistence: persistence() })
  await next.client.restore()
  expect(next.pending().map(([id]) => id)).toEqual(['a1', 'a2'])
  expect(resume()).toEqual([[]])
})

test('an answer that could not be taken back in the storage is not reported as taken back', async () => {
  const { connection } = asksTwo()
  let isFull = false
  const persistence = persistent({
    load: async () => undefined,
    async save() {
      if (isFull) throw new Error('full')
    },
    remove: async () => {},
  })
  const onError = vi.fn()
  const chat = open({ connection, persistence, onError })
  await chat.client.sendMessage('go')
  await chat.approve('a1')
  isFull = true
  expect(await chat.client.withdrawApprovalResponse('a1')).toBe(false)
  expect(onError).toHaveBeenCalledWith(expect.objectContaining({ code: 'persistence-unavailable' }))
})

test.each([
  ['that the server did not confirm', 'hangs', { status: 'closed', reason: 'cancelled' }],
  ['that the server has confirmed', 'confirmed', { status: 'sent' }],
])('an approval into the open run %s, and that a regeneration withdraws: %s', async (_, how, expected) => {
  const resumes: unknown[] = []
  const { connection } = server(() => [...call('c1', 1), ask('c1', 'a1', 1)])
  const base: Connection = {
    async *connect(input, options) {
      resumes.push(input.resume)
      yield* connection.connect(input, options)
      if (resumes.length === 1)
        await new Promise((resolve) => options.signal.addEventListener('abort', resolve))
    },
    async answer() {
      if (how === 'hangs') await new Promise(() => {})
    },
  }
  const { client, approve } = await startOpen(base)
  const result = approve('a1')
  await passMacrotasks(2)
  const again = client.regenerate()
  const late = approve('a1')
  expect(await again).toEqual({ status: 'sent' })
  expect([await result, await late]).toEqual([expected, { status: 'not-found' }])
  expect(resumes).toEqual([undefined, [{ interruptId: 'a1', status: 'cancelled' }]])
})

test('a cancellation stays one if its request is refused whole, and is sent with the next', async () => {
  const resume: unknown[] = []
  const { url } = await serve((response, run) => {
    resume.push(run.resume?.map(({ interruptId, status }) => `${interruptId} ${status}`))
    const n = resume.length
    if (n === 2) return void response.writeHead(422).end('no')
    const { threadId, runId } = run
    const asks = [...call(`c${n}`, n), finish(run, [`int-${n}`, `c${n}`])]
    const rest = n > 3 ? [finish(run)] : asks
    response.end(frames([{ type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }, ...rest]))
  })
  const { client, approve } = open({ connection: fetchServerSentEvents(url) })
  await client.sendMessage('go')
  expect(await client.regenerate()).toMatchObject({ status: 'failed' })
  expect(client.getSnapshot().interrupts).toEqual([])
  await client.retry()
  expect(await approve('int-3')).toEqual({ status: 'sent' })
  expect(resume).toEqual([undefined, ['int-1 cancelled'], ['int-1 cancelled'], ['int-3 resolved']])
})

test.each(wires)(
  'F33 %s: regenerate() with an open question tells the server that nobody will answer it',
  async (wire) => {
    const { client, person, server } = await openChat(wire, [[gated(1)], [text('Another way.')]])
    await person.sendMessage('go')
    await person.regenerate()
    expect(answersOf(server)).toEqual([[], ['a1 cancelled']])
    expect(server.requests[1]?.resume?.[0]?.metadata).toEqual({ countersign: { token: 'token-a1' } })
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', pendingApprovals: [] })
  },
)

const pending = ({ client }: ReturnType<typeof openPage>) => client.getSnapshot().pendingApprovals

test.each(['a new page', 'the same page'])(
  'after a regeneration that did not reach the server, an approval of the request that is shown again runs it, and nothing is cancelled (%s)',
  async (which) => {
    const replies = [calls('send', { to: 'ada' })]
    const server = startServer(() => replies.shift() ?? [words('Sent.'), stop])
    const first = openPage(server)
    await first.client.sendMessage('Send it')
    first.network.isUp = false
    expect(await first.client.regenerate()).toMatchObject({ status: 'failed' })
    if (which === 'a new page') first.leave()
    const second = which === 'a new page' ? openPage(server, { local: first.local }) : first
    second.network.isUp = true
    await vi.waitUntil(() => pending(second).length === 1)
    const before = second.requests.length
    const id = pending(second)[0]?.approval.id ?? ''
    expect(await second.client.addToolApprovalResponse({ id, approved: true })).toEqual({ status: 'sent' })
    const posts = second.requests.slice(before).filter(({ method }) => method === 'POST')
    expect(posts.map(({ body }) => body)).toMatchObject([
      { resume: [{ interruptId: id, status: 'resolved' }] },
    ])
    expect(server.executed).toEqual(['ada'])
  },
)

/** A server that asks about one call, whose arguments are this text. */
function asking(text: string, approval: object = {}) {
  return server((input: RunAgentInput): Event[] => [
    { type: 'TOOL_CALL_START', toolCallId: 'c0', toolCallName: 'act' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c0', delta: text },
    { type: 'TOOL_CALL_END', toolCallId: 'c0' },
    {
      type: 'CUSTOM',
      name: 'approval-requested',
      value: { toolCallId: 'c0', approval: { id: 'a1', options: ['deny', 'once'], ...approval } },
    },
    finish(input, ['a1', 'c0']),
  ])
}

test('cancel: false cancels nothing', async () => {
  const { connection, resume } = asking('{"to":"bob"}')
  const { client } = open({ connection })
  await client.sendMessage('go')
  const yes = { id: 'a1', approved: true, cancel: false }
  expect(await client.addToolApprovalResponse(yes)).toEqual({ status: 'sent' })
  expect(resume()[1]).toEqual(['a1 yes'])
})
