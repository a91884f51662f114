import type { Connection } from '@countersign/client'
import { reconnecting } from '@countersign/client/reconnect'
import { CountersignError } from '@countersign/core'
import { expect, test, vi } from 'vitest'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'
import { calls, openPage, startServer, stop, words } from './threads-server.js'

failOnUnhandledRejections()

// What a fifth stranger found.

const pending = ({ client }: ReturnType<typeof openPage>) => client.getSnapshot().pendingApprovals

test.each(['a new page', 'the same page'])(
  'K after a regeneration that did not reach the server, a yes to the request that is shown again runs it, and nothing is cancelled (%s)',
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

test('K a request that may mean another call stays unanswerable after its run broke, whatever later runs say of that call id', async () => {
  const assistant: Event = {
    type: 'MESSAGES_SNAPSHOT',
    messages: [
      { id: 'u', role: 'user', content: 'pay' },
      {
        ...{ id: 'm0', role: 'assistant', content: '' },
        toolCalls: [{ id: 'c0', type: 'function', function: { name: 'act', arguments: '{"n":0}' } }],
      },
    ],
  }
  const asked = (toolCallId: string, id: string): Event => ({
    ...{ type: 'CUSTOM', name: 'approval-requested' },
    value: { toolCallId, approval: { id, options: ['deny', 'once'] } },
  })
  const { connection, resume } = server(
    () => ['cut'],
    () => [
      assistant,
      ...[...call('c0', 2, 'm2'), ...call('c2', 3, 'm2')],
      ...[asked('c0', 'int-A'), asked('c2', 'int-B'), 'cut' as const],
    ],
    (input) => [
      result('c2'),
      ...[...call('c0', 4, 'm3'), asked('c0', 'int-C'), finish(input, ['int-C', 'c0'])],
    ],
  )
  const { client } = open({ connection })
  const problem = () =>
    client.getSnapshot().pendingApprovals.find(({ approval }) => approval.id === 'int-A')?.approval.problem
  await client.sendMessage('pay')
  await client.retry()
  expect(problem()).toBe('approval-changed')
  await client.addToolApprovalResponse({ id: 'int-B', approved: false })
  expect(problem()).toBe('approval-changed')
  await client.addToolApprovalResponse({ id: 'int-C', approved: false })
  expect(await client.addToolApprovalResponse({ id: 'int-A', approved: true })).toMatchObject({
    status: 'closed',
  })
  await client.retry()
  expect(resume().flat()).not.toContainEqual(['int-A', { approved: true }])
})

const result = (toolCallId: string): Event => ({
  ...{ type: 'TOOL_CALL_RESULT', messageId: `r-${toolCallId}` },
  ...{ toolCallId, role: 'tool', content: 'ok' },
})

test.each(['queue', 'reject'] as const)(
  'K a message does not wait for a request that cannot be answered (onPendingMessage: %s)',
  async (onPendingMessage) => {
    const { connection, requests } = server((input) => [
      ...call('c0', 1),
      ask('c0', 'int-A', 1),
      ask('c0', 'int-A', 2),
      finish(input, ['int-A', 'c0']),
    ])
    const page = open({ connection, onPendingMessage })
    await page.client.sendMessage('pay')
    expect(page.client.getSnapshot().pendingApprovals[0]?.approval.problem).toBe('approval-changed')
    expect(await page.client.sendMessage('and?')).toEqual({ status: 'sent' })
    expect(requests).toHaveLength(2)
  },
)

test('K an answer given between two attempts to reconnect goes out once the run is there again', async () => {
  const answers: unknown[] = []
  let attempts = 0
  let isThere = true
  const more: (() => void)[] = []
  const runEnded = () => new CountersignError('run-error', 'The run is not open.', { code: 'run-ended' })
  const base: Connection = {
    async *connect({ threadId, runId }) {
      yield { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
      yield* [...call('c0', 1), ask('c0', 'int-A', 1)]
      await new Promise<void>((resolve) => void more.push(resolve))
      isThere = false
      throw new CountersignError('connection-failed', 'cut')
    },
    async *rejoin({ threadId, runId }) {
      if (++attempts < 3) throw new CountersignError('connection-failed', 'not yet')
      isThere = true
      yield { type: 'CUSTOM', name: 'x', value: 1 }
      await vi.waitUntil(() => answers.length > 0)
      yield { type: 'TOOL_CALL_RESULT', messageId: 'r', toolCallId: 'c0', role: 'tool', content: 'paid' }
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } }
    },
    async answer({ resume }) {
      if (!isThere) throw runEnded()
      answers.push(resume.map(({ interruptId }) => interruptId))
    },
  }
  const { client, calls: shown } = open({ connection: reconnecting(base, { delay: 50 }) })
  const sent = client.sendMessage('pay')
  await vi.waitUntil(() => client.getSnapshot().pendingApprovals.length === 1)
  more[0]?.()
  await vi.waitUntil(() => client.getSnapshot().status === 'reconnecting')
  const result = client.addToolApprovalResponse({ id: 'int-A', approved: true })
  expect(await sent).toEqual({ status: 'sent' })
  expect(await result).toEqual({ status: 'sent' })
  expect([answers, shown()[0]?.state]).toEqual([[['int-A']], 'complete'])
})
