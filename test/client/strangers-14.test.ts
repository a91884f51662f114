import type { Connection } from '@countersign/client'
import { stream } from '@countersign/client'
import { CountersignError } from '@countersign/core'
import { tool } from '@countersign/server'
import { compat, tanstack } from '@countersign/tanstack'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { call, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'
import { calls, openPage, startServerWith, stop, words } from './threads-server.js'

failOnUnhandledRejections()

// What another stranger found.

const pending = ({ client }: Pick<ReturnType<typeof openPage>, 'client'>) =>
  client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)

test('P after a reload, a stored yes does not hide that the server asks anew about the call, and never goes out for it', async () => {
  const ran: string[] = []
  let balance = 0
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    preview: async () => ({ kind: 'text', text: `balance ${balance}` }),
    execute: ({ to }) => {
      ran.push(`${to} at ${balance}`)
      return 'paid'
    },
  })
  const server = startServerWith(
    { tools: [pay] },
    () => calls('pay', { to: 'ann' }),
    () => [words('End.'), stop],
  )
  const local = memoryPersistence()
  const first = openPage(server, { local, attempts: 1 })
  await first.client.sendMessage('Pay ann')
  const [old = ''] = pending(first)
  first.network.isUp = false
  const answered = await first.client.addToolApprovalResponse({ id: old, approved: true })
  expect(answered).toMatchObject({ status: 'failed' })
  await vi.waitUntil(async () => (await local.load('t'))?.messages.length)
  first.leave()

  const other = openPage(server)
  await vi.waitUntil(() => pending(other).length > 0)
  balance = 1
  await other.client.addToolApprovalResponse({ id: old, approved: true })
  const [anew = ''] = pending(other)
  expect(anew).not.toBe(old)

  const warnings: string[] = []
  const reloaded = openPage(server, { local }, { onWarning: (warning) => warnings.push(warning) })
  await vi.waitUntil(() => reloaded.client.getSnapshot().messages.length > 0)
  const fresh = openPage(server)
  await vi.waitUntil(() => pending(fresh).length > 0)
  expect(pending(fresh)).toEqual([anew])
  expect(pending(reloaded)).toEqual([anew])
  expect(warnings).toEqual([expect.stringContaining(old)])
  expect(await reloaded.client.addToolApprovalResponse({ id: old, approved: true })).toMatchObject({
    status: expect.stringMatching(/^(closed|not-found)$/),
  })
  await reloaded.client.retry()
  expect(pending(reloaded)).toEqual([anew])
  expect(ran).toEqual([])
  expect(reloaded.requests.filter(({ method }) => method === 'POST')).toEqual([])
  expect(await reloaded.client.addToolApprovalResponse({ id: anew, approved: true })).toEqual({
    status: 'sent',
  })
  expect(ran).toEqual(['ann at 1'])
})

/** A server that takes answers only with the header that it wants now. */
function guarded() {
  const { connection, resume } = server(
    (input) => [...call('c1', 1), finish(input, ['a1', 'c1'])],
    (input) => [finish(input)],
  )
  const headers: (string | undefined)[] = []
  const checked: Connection = {
    connect(input, options) {
      const otp = options.headers['x-otp']
      headers.push(otp)
      if (input.resume && otp !== 'new') throw new CountersignError('http-status', '401', { status: 401 })
      return connection.connect(input, options)
    },
  }
  return { connection: checked, headers, resume }
}

test('E the headers of a later message replace the outdated ones of an answer, also for its retry', async () => {
  const { connection, headers, resume } = guarded()
  const { client } = open({ connection })
  await client.sendMessage('x')
  const old = { headers: { 'x-otp': 'old' } }
  const answered = await client.addToolApprovalResponse({ id: 'a1', approved: true, options: old })
  expect(answered).toMatchObject({ status: 'failed' })
  await client.retry()
  expect(await client.sendMessage('go', { headers: { 'x-otp': 'newer' } })).toMatchObject({
    status: 'failed',
  })
  await client.retry()
  expect(headers).toEqual([undefined, 'old', 'old', 'newer', 'newer'])
  expect(await client.sendMessage(undefined, { headers: { 'x-otp': 'new' } })).toEqual({ status: 'sent' })
  expect(resume()).toEqual([[], [['a1', { approved: true }]]])
})

test('E an answer that is given after a message failed brings its own headers', async () => {
  const { connection, headers } = guarded()
  const { client } = open({ connection })
  await client.sendMessage('x', { headers: { 'x-otp': 'old' } })
  await client.addToolApprovalResponse({ id: 'a1', approved: true, options: { headers: { 'x-otp': 'new' } } })
  expect(headers).toEqual(['old', 'new'])
})

/** Two requests, of which the first expires, and a clock. */
async function twoRequests(options: Partial<Parameters<typeof open>[0]> = {}) {
  const clock = { now: 1000 }
  const { connection, resume } = server(
    (input) => [
      ...call('c1', 1, 'm'),
      ...call('c2', 2, 'm'),
      {
        type: 'RUN_FINISHED',
        threadId: input.threadId,
        runId: input.runId,
        outcome: {
          type: 'interrupt',
          interrupts: [
            { id: 'a1', reason: 'tool_call', toolCallId: 'c1', expiresAt: new Date(2000).toISOString() },
            { id: 'a2', reason: 'tool_call', toolCallId: 'c2' },
          ],
        },
      },
    ],
    (input) => [finish(input)],
  )
  const { client } = open({ connection, now: () => clock.now, ...options })
  await client.sendMessage('x')
  const answer = () => client.addToolApprovalResponse({ id: 'a2', approved: true })
  return { client, clock, resume, answer }
}

const both = [
  ['a2', { approved: true }],
  ['a1', 'cancelled'],
]

test.each([
  ['retry()', (client) => client.retry()],
  ['sendMessage()', (client) => client.sendMessage()],
  ['a message', (client) => client.sendMessage('go')],
] as [string, (client: ReturnType<typeof open>['client']) => Promise<unknown>][])(
  'F where no page watches the clock, %s sends the answers that waited for an expired request',
  async (_, act) => {
    const { client, clock, resume, answer } = await twoRequests({ onPendingMessage: 'reject' })
    expect(await answer()).toEqual({ status: 'waiting' })
    clock.now = 2000
    await act(client)
    expect(resume()).toEqual([[], both])
  },
)

test('F where no page watches the clock, an answer does not wait for an expired request', async () => {
  const { clock, resume, answer } = await twoRequests()
  clock.now = 2000
  expect(await answer()).toEqual({ status: 'sent' })
  expect(resume().at(-1)?.toSorted()).toEqual(both.toSorted())
})

test('F an expired request closes nothing else while another one is open', async () => {
  const { client, clock, resume } = await twoRequests()
  clock.now = 2000
  await client.retry()
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'expired' })
  expect(client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)).toEqual(['a2'])
  expect(resume()).toEqual([[]])
})

test.each([
  ['compat', compat()],
  ['tanstack', tanstack()],
])('Z over %s, a run whose stream stays open is over all the same', async (_, translation) => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const connection = stream(async function* (input, { signal }) {
    yield { type: 'RUN_STARTED', threadId: input.threadId, runId: input.runId }
    yield* call('c1', 1)
    yield finish(input, ['a1', 'c1'])
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  })
  const { client, pending } = open({ connection, compat: translation })
  const sent = client.sendMessage('x')
  await vi.advanceTimersByTimeAsync(3000)
  expect(client.getSnapshot().isLoading).toBe(false)
  expect(await sent).toEqual({ status: 'sent' })
  expect(pending()).toEqual([['a1', 'c1', { n: 1 }]])
})

test('Z over tanstack, a tool of the server may take longer than any proxy', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const connection = stream(async function* (input) {
    const { threadId, runId } = input
    yield { type: 'RUN_STARTED', threadId, runId }
    yield* call('c1', 1)
    yield { type: 'RUN_FINISHED', threadId, runId, finishReason: 'tool_calls' }
    await new Promise((resolve) => setTimeout(resolve, 60_000))
    yield { type: 'TOOL_CALL_RESULT', messageId: 'r', toolCallId: 'c1', role: 'tool', content: 'ok' }
    yield finish(input)
  })
  const { client, calls } = open({ connection, compat: tanstack() })
  const sent = client.sendMessage('x')
  await vi.advanceTimersByTimeAsync(70_000)
  expect(await sent).toEqual({ status: 'sent' })
  expect(calls()).toMatchObject([{ state: 'complete' }])
})

test('G a second run that comes long after the first one in its stream is not lost in silence', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const later = new Promise((resolve) => setTimeout(resolve, 1300))
  const { connection } = server(async function* (input) {
    yield finish(input)
    await later
    yield { type: 'RUN_STARTED', threadId: input.threadId, runId: 'second' }
    yield finish({ ...input, runId: 'second' })
  })
  const { client, warnings } = open({ connection })
  const sent = client.sendMessage('x')
  await vi.advanceTimersByTimeAsync(3000)
  expect(await sent).toEqual({ status: 'sent' })
  expect(warnings).toEqual([expect.stringContaining('endless-response')])
})
