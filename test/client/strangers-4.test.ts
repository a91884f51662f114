import { ChatClient, type Connection, stream, toolDefinition } from '@countersign/client'
import { type AgentOptions, createAgent, scriptedModel } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'

// What a stranger found in the twelfth session: pages that denied a call that had run, and a page tool that ran on two pages.

const pay = toolDefinition({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ amount: z.number() }),
  needsApproval: true,
})

const model = () =>
  scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'user'
      ? [
          { type: 'tool-call', id: 'c1', name: 'pay', arguments: '{"amount":5}' },
          { type: 'finish', reason: 'tool_calls' },
        ]
      : [
          { type: 'text-delta', delta: 'ok' },
          { type: 'finish', reason: 'stop' },
        ],
  )

function serve(options: Partial<AgentOptions>) {
  const agent = createAgent({ model: model(), tools: [], ...options })
  /** How many requests from now on lose their reply once the server has carried them out. */
  let lost = 0
  const connection: Connection = stream(async function* (input, { signal }) {
    const events = []
    for await (const event of agent.run(input, { signal, context: { subject: 'u' } })) events.push(event)
    if (lost-- > 0) throw new Error('the reply was lost')
    yield* events
  })
  return {
    connection,
    loseReplies(count: number) {
      lost = count
    },
  }
}

const callIn = (client: ChatClient) =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts)
    .find((part) => part.type === 'tool-call')

const pendingId = (client: ChatClient) => client.getSnapshot().pendingApprovals[0]?.approval.id ?? ''

test('an answer that came in time and whose reply was lost has its outcome, also once the time to answer is over', async () => {
  let now = Date.parse('2026-11-23T12:00:00Z')
  let ran = 0
  const { connection, loseReplies } = serve({
    now: () => now,
    approvals: { expiresIn: 60 },
    tools: [pay.server(() => `paid ${++ran}`)],
  })
  const client = new ChatClient({ connection, now: () => now })
  await client.sendMessage('go')
  loseReplies(1)
  expect(await client.addToolApprovalResponse({ id: pendingId(client), approved: true })).toMatchObject({
    status: 'failed',
  })
  now += 120_000
  await client.retry()
  expect(ran).toBe(1)
  expect(callIn(client)).toMatchObject({ state: 'complete', output: 'paid 1' })
  expect(callIn(client)?.approval?.problem).toBe(undefined)
})

test('a person who goes on with something else sees that the call has run, by a yes that was given on another page', async () => {
  let ran = 0
  const { connection } = serve({ tools: [pay.server(() => `paid ${++ran}`)] })
  const one = new ChatClient({ connection })
  await one.sendMessage('go')
  const other = new ChatClient({
    connection,
    threadId: one.threadId,
    initialMessages: structuredClone(one.getSnapshot().messages),
  })
  await one.addToolApprovalResponse({ id: pendingId(one), approved: true })
  await other.sendMessage('never mind')
  expect(ran).toBe(1)
  expect(callIn(other)).toMatchObject({ state: 'complete', output: 'paid 1' })
})

test('a page tool runs on the page whose yes was first, and on no other that says yes as well', async () => {
  const ran: string[] = []
  const { connection, loseReplies } = serve({ tools: [pay.client(() => 'on the page')] })
  const open = (name: string, more = {}) =>
    new ChatClient({ connection, tools: [pay.client(() => ran.push(name) && 'paid')], ...more })
  const one = open('one')
  await one.sendMessage('go')
  const copy = structuredClone(one.getSnapshot().messages)
  const other = open('other', { threadId: one.threadId, initialMessages: copy })
  const id = pendingId(one)
  loseReplies(1)
  expect(await one.addToolApprovalResponse({ id, approved: true })).toMatchObject({ status: 'failed' })
  expect(await other.addToolApprovalResponse({ id, approved: true })).toMatchObject({
    status: 'refused',
    code: 'approval-conflict',
  })
  expect(ran).toEqual([])
  await one.retry()
  await expect.poll(() => ran).toEqual(['one'])
  await expect.poll(() => callIn(one)?.state).toBe('complete')
  expect(callIn(other)).toMatchObject({ state: 'error', approval: { problem: 'approval-conflict' } })
})

test('a copy of an answer that is under way counts as an answer of its own: its page does not run the tool as well', async () => {
  const ran: string[] = []
  const { connection, loseReplies } = serve({ tools: [pay.client(() => 'on the page')] })
  const open = (name: string, more = {}) =>
    new ChatClient({ connection, tools: [pay.client(() => ran.push(name) && 'paid')], ...more })
  const one = open('one')
  await one.sendMessage('go')
  loseReplies(1)
  await one.addToolApprovalResponse({ id: pendingId(one), approved: true })
  const copy = structuredClone(one.getSnapshot().messages)
  const other = open('other', { threadId: one.threadId, initialMessages: copy })
  await other.retry()
  await one.retry()
  await expect.poll(() => callIn(one)?.state).toBe('complete')
  expect(ran).toEqual(['one'])
  expect(callIn(other)).toMatchObject({ state: 'error', error: { code: 'interrupted' } })
})

test('a call whose run broke before it was asked about runs once it is asked about and approved', async () => {
  const ran: string[] = []
  const agent = createAgent({ model: model(), tools: [pay.client(() => 'on the page')] })
  let cut = true
  const connection = stream(async function* (input, { signal }) {
    for await (const event of agent.run(input, { signal, context: { subject: 'u' } })) {
      yield event
      if (cut && event.type === 'TOOL_CALL_END') {
        cut = false
        throw new Error('the connection was cut')
      }
    }
  })
  const client = new ChatClient({ connection, tools: [pay.client(() => ran.push('it') && 'paid')] })
  await client.sendMessage('go')
  await client.retry()
  expect(await client.addToolApprovalResponse({ id: pendingId(client), approved: true })).toEqual({
    status: 'sent',
  })
  await expect.poll(() => client.getSnapshot().status).toBe('ready')
  expect(ran).toEqual(['it'])
})

test('whoever goes on with something else while another page runs the call is told that it may or may not have run', async () => {
  const { connection } = serve({ tools: [pay.client(() => 'on the page')] })
  const open = (more = {}) => new ChatClient({ connection, tools: [pay.client(() => 'paid')], ...more })
  const one = open()
  await one.sendMessage('go')
  const copy = structuredClone(one.getSnapshot().messages)
  const [moving, denying] = [copy, structuredClone(copy)].map((initialMessages) =>
    open({ threadId: one.threadId, initialMessages }),
  )
  await one.addToolApprovalResponse({ id: pendingId(one), approved: true })
  await moving?.sendMessage('never mind')
  await denying?.addToolApprovalResponse({ id: pendingId(denying), approved: false })
  for (const client of [moving, denying])
    expect(client && callIn(client)).toMatchObject({ state: 'error', error: { code: 'interrupted' } })
  expect(denying && callIn(denying)?.approval).toMatchObject({ problem: 'approval-conflict' })
})

test('a page tool that nobody was asked about runs after its run broke, once the server leaves it to the page again', async () => {
  let ran = 0
  const free = toolDefinition({ name: 'pay', description: 'Pays.', input: z.object({ amount: z.number() }) })
  const agent = createAgent({ model: model(), tools: [free.client(() => 'on the page')] })
  let cut = true
  const connection = stream(async function* (input, { signal }) {
    for await (const event of agent.run(input, { signal, context: { subject: 'u' } })) {
      if (cut && event.type === 'RUN_FINISHED') {
        cut = false
        throw new Error('the connection was cut')
      }
      yield event
    }
  })
  const client = new ChatClient({ connection, tools: [free.client(() => `paid ${++ran}`)] })
  await client.sendMessage('go')
  await client.retry()
  await expect.poll(() => callIn(client)?.state).toBe('complete')
  expect(ran).toBe(1)
})

test('an answer that was given while a live run was broken off goes into it once it is taken up again', async () => {
  const answered: string[] = []
  let wake = () => {}
  const woken = () =>
    new Promise<void>((resolve) => {
      wake = resolve
    })
  const run: { threadId: string; runId: string } = { threadId: '', runId: '' }
  const call = (id: string) => [
    { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'pay' },
    { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: id },
    { type: 'CUSTOM', name: 'approval-requested', value: { toolCallId: id, approval: { id: `a-${id}` } } },
  ]
  const connection: Connection = {
    async *connect({ threadId, runId }) {
      Object.assign(run, { threadId, runId })
      yield [{ type: 'RUN_STARTED', ...run }, ...call('c1'), ...call('c2')]
      throw new Error('the connection was cut')
    },
    async *rejoin() {
      for (const id of ['c1', 'c2']) {
        while (!answered.includes(`a-${id}`)) await woken()
        yield { type: 'TOOL_CALL_RESULT', messageId: `r-${id}`, toolCallId: id, content: 'paid' }
      }
      yield { type: 'RUN_FINISHED', ...run }
    },
    async answer({ resume }) {
      answered.push(...resume.map(({ interruptId }) => interruptId))
      wake()
    },
  }
  const client = new ChatClient({ connection })
  await client.sendMessage('go')
  expect(await client.addToolApprovalResponse({ id: 'a-c1', approved: true })).toEqual({ status: 'waiting' })
  const again = client.retry()
  await expect.poll(() => callIn(client)?.state).toBe('complete')
  expect(await client.addToolApprovalResponse({ id: 'a-c2', approved: true })).toEqual({ status: 'sent' })
  await again
  expect(answered).toEqual(['a-c1', 'a-c2'])
  expect(client.getSnapshot().status).toBe('ready')
})
