import { checkResponse } from '@countersign/client/response-schema'
import { threadList } from '@countersign/client/thread-list'
import { webSocket } from '@countersign/client/web-socket'
import { passMacrotasks } from '@countersign/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Event as AGUIEvent, ask, call, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// Smaller things that the stranger found: odd values and listeners that throw.

test.each([
  ['throws', () => expect.unreachable('a listener')],
  ['rejects', () => Promise.reject(new Error('a listener'))],
])('F a listener of the thread list that %s is reported, and stops nothing', async (_, listener) => {
  const reported = vi.fn()
  vi.stubGlobal('reportError', reported)
  onTestFinished(() => void vi.unstubAllGlobals())
  const thread = { threadId: 't', updatedAt: 1, createdAt: 1, isRunning: false }
  const list = threadList('http://server.test/chat', {
    fetch: async () => Response.json({ threads: [thread] }),
  })
  let told = 0
  onTestFinished(list.subscribe(listener))
  onTestFinished(list.subscribe(() => void told++))
  await list.load()
  expect(await list.rename('t', 'New')).toBe(true)
  await passMacrotasks(2)
  expect(list.getSnapshot()).toMatchObject({ threads: [thread], isLoading: false, error: undefined })
  expect(told).toBeGreaterThan(1)
  expect(reported).toHaveBeenCalledWith(expect.objectContaining({ message: expect.any(String) }))
})

/** A server that asks about one call until a time. */
const until = (expiresAt: string) =>
  server(
    ({ runId }): AGUIEvent[] => [
      ...call('c0', 1),
      {
        ...{ type: 'RUN_FINISHED', threadId: 't', runId },
        outcome: {
          type: 'interrupt',
          interrupts: [{ id: 'a1', reason: 'tool_call', toolCallId: 'c0', expiresAt }],
        },
      },
    ],
    (input) => [finish(input)],
  )

test.each(['300', 'in 5 minutes', '5 min', '1', ''])(
  'E a time to answer that is no date (%j) closes no request',
  async (expiresAt) => {
    const { client, pending } = open({ connection: until(expiresAt).connection })
    onTestFinished(client.subscribe(() => {}))
    await client.sendMessage('go')
    expect(pending()).toHaveLength(1)
    expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
  },
)

test.each(['2001-01-01', '2001-01-01T00:00:00Z', '2001-01-01T00:00:00+01:00'])(
  'E a request whose time was over at %s has expired',
  async (expiresAt) => {
    const { client } = open({ connection: until(expiresAt).connection })
    await client.sendMessage('go')
    expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'expired' })
  },
)

test('R a response to an interrupt needs a payload, which may be null', async () => {
  const { connection, resume } = server((input) => [finish(input, ['q'])])
  const { client } = open({ connection })
  await client.sendMessage('go')
  expect(await client.respondToInterrupt({ id: 'q', payload: undefined })).toMatchObject({
    status: 'refused',
    reason: expect.stringContaining('payload'),
  })
  expect(await client.respondToInterrupt({ id: 'q', payload: null })).toEqual({ status: 'sent' })
  expect(resume()[1]).toEqual([['q', 'resolved']])
})

test('W a server that sends AG-UI events over a socket without our frames is named as the error', async () => {
  class BareSocket extends EventTarget {
    readyState = 1
    constructor() {
      super()
      queueMicrotask(() => this.dispatchEvent(new Event('open')))
    }
    send(text: string) {
      const { threadId, runId } = JSON.parse(text).input
      const data = JSON.stringify({ type: 'RUN_STARTED', threadId, runId })
      this.dispatchEvent(new MessageEvent('message', { data }))
    }
    close() {}
  }
  const connection = webSocket('ws://server.test', { WebSocket: BareSocket as never })
  const { client } = open({ connection })
  expect(await client.sendMessage('go')).toMatchObject({
    status: 'failed',
    error: { code: 'malformed-event', message: expect.stringContaining('no frame of a chat') },
  })
})

test.each([
  ['no list', true],
  ['one object', { message: 'too much' }],
  ['a list of nothing', [null]],
  ['a path that is no list', [{ message: 'too much', path: 'n' }]],
  ['no message', [{ path: ['n'] }]],
])('K a schema of the page whose issues are malformed (%s) objects all the same', async (_, issues) => {
  const { connection, resume } = server((input) => [
    ...call('c0', 1),
    {
      type: 'CUSTOM',
      name: 'approval-requested',
      value: { toolCallId: 'c0', approval: { id: 'a1', options: ['deny', 'once'], allowEdits: true } },
    },
    finish(input, ['a1', 'c0']),
  ])
  const validate = () => ({ issues }) as never
  const input = { '~standard': { version: 1, vendor: 'test', validate } } as const
  const { client } = open({ connection, serverTools: [{ name: 'act', input }] })
  await client.sendMessage('go')
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true, input: { n: 2 } })).toMatchObject({
    status: 'refused',
    code: 'approval-edit-invalid',
    issues: [{}],
  })
  expect(resume()).toEqual([[]])
})

test.each([
  ['a', 1],
  ['a👍b', 3],
  ['\ud83d', 1],
  ['👍'.repeat(3), 3],
])('K the length of %j in a response schema is %i characters', async (text, length) => {
  const of = (responseSchema: object) =>
    checkResponse(text, { id: 'q', reason: 'x', responseSchema } as never)
  expect(of({ minLength: length, maxLength: length })).toBeUndefined()
  expect(of({ minLength: length + 1 })).toContain('at least')
  expect(of({ maxLength: length - 1 })).toContain('at most')
})

test('R an interrupt about a call that has ended after its approval is not lost', async () => {
  const result: AGUIEvent = {
    ...{ type: 'TOOL_CALL_RESULT', messageId: 'r', toolCallId: 'c0', role: 'tool', content: 'ok' },
  }
  const { connection, resume } = server(
    (input) => [...call('c0', 1), ask('c0', 'a1', 1), finish(input, ['a1', 'c0'])],
    (input) => [result, finish(input, ['a2', 'c0'])],
  )
  const chat = open({ connection })
  await chat.client.sendMessage('go')
  await chat.client.addToolApprovalResponse({ id: 'a1', approved: true })
  expect(chat.pending()).toEqual([])
  expect(chat.client.getSnapshot().interrupts).toMatchObject([{ id: 'a2', toolCallId: 'c0' }])
  await chat.client.sendMessage('no')
  expect(resume()[2]).toEqual([['a2', 'cancelled']])
})
