import { approvalView } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import type { ThreadRecord } from '@countersign/core'
import { passMacrotasks } from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a stranger found who took answers back: by setMessages(), withdrawApprovalResponse() and clearError().

const yes = (id: string) => ({ id, approved: true })
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
  expect(await chat.client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'waiting' })
  chat.client.setMessages(change)
  expect(chat.pending().map(([id]) => id)).toEqual(['a1', 'a2'])
  await chat.client.addToolApprovalResponse({ id: 'a2', approved: false })
  expect(resume()).toEqual([[]])
  await chat.client.addToolApprovalResponse({ id: 'a1', approved: false })
  expect(resume()[1]).toEqual([
    ['a2', { approved: false }],
    ['a1', { approved: false }],
  ])
})

test.each([
  ['the same messages', <T>(messages: T) => messages],
  ['a copy of them', copy],
])(
  'an answer on its way when setMessages() gave %s is closed, and nothing sends it again',
  async (_, change) => {
    const sent: unknown[] = []
    const chat = open({
      connection: {
        async *connect(input, { signal }) {
          sent.push(input.resume)
          if (sent.length > 1)
            await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          const { threadId, runId } = input
          yield [{ type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }]
          yield [...call('c1', 1), ask('c1', 'a1', 1), finish(input, ['a1', 'c1'])]
        },
      },
    })
    await chat.client.sendMessage('go')
    const answer = chat.client.addToolApprovalResponse(yes('a1'))
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
  const { connection, resume } = server(
    (input) => [...call('c1', 1), ask('c1', 'a1', 1), finish(input, ['a1', 'c1'])],
    () => ['cut'],
  )
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  await chat.client.addToolApprovalResponse(yes('a1'))
  expect(chat.calls()[0]?.approval?.delivery).toBe('unknown')
  chat.client.clearError()
  expect(chat.calls()[0]?.approval).toMatchObject({ delivery: 'settled', problem: 'approval-interrupted' })
  await chat.client.retry()
  expect(resume().slice(2).flat()).toEqual([])
})

test('clearError() gives up the response to an interrupt in the same way', async () => {
  const { connection, resume } = server(
    (input) => [finish(input, ['i1'])],
    () => ['cut'],
  )
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  await chat.client.respondToInterrupt({ id: 'i1', payload: 1 })
  chat.client.clearError()
  await chat.client.retry()
  expect(resume()).toEqual([[], [['i1', 1]]])
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
  await chat.client.addToolApprovalResponse(yes('a1'))
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
  await chat.client.addToolApprovalResponse(yes('a1'))
  isFull = true
  expect(await chat.client.withdrawApprovalResponse('a1')).toBe(false)
  expect(onError).toHaveBeenCalledWith(expect.objectContaining({ code: 'persistence-unavailable' }))
})

test('requests that may each mean one of two calls with one id cannot be answered, whichever is asked about first', async () => {
  const { connection } = server((input): Event[] => [
    ...call('c', 1),
    ...call('c', 2),
    { type: 'CUSTOM', name: 'approval-requested', value: { toolCallId: 'c', approval: { id: 'a2' } } },
    finish(input, ['a1', 'c'], ['a2', 'c']),
  ])
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  expect(chat.pending()).toHaveLength(2)
  for (const part of chat.client.getSnapshot().pendingApprovals) {
    expect(part.approval.problem).toBe('approval-changed')
    expect(approvalView(part)?.choices.every(({ disabled }) => disabled)).toBe(true)
  }
  expect((await chat.client.addToolApprovalResponse(yes('a2'))).status).toBe('closed')
})

test('arguments that TOOL_CALL_END replaces are the ones that are shown, and asked about', async () => {
  const { connection } = server((input): Event[] => [
    ...call('c1', 1).slice(0, 2),
    { type: 'TOOL_CALL_END', toolCallId: 'c1', metadata: { countersign: { arguments: '{"n":2}' } } },
    ask('c1', 'a1', 2),
    finish(input, ['a1', 'c1']),
  ])
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  expect(chat.pending()).toEqual([['a1', 'c1', { n: 2 }]])
  expect(chat.calls()[0]).toMatchObject({ arguments: '{"n":2}' })
  expect(chat.calls()[0]?.metadata).toBeUndefined()
})
