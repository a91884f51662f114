import type { Connection } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { ChatStore, type RunAgentInput, type ToolCallPart } from '@countersign/core'
import { tool } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import {
  ask,
  asks,
  call,
  ends,
  finish,
  gate,
  open,
  raise,
  resultOf,
  says,
  server,
  start,
  startOpen,
  startWith,
  yes,
} from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'
import { calls, openPage, startServerWith, stop, words } from './threads-server.js'

failOnUnhandledRejections()

// Requests that the server raises again: after their answer, after a message, or with other arguments.

const statesOf = (chat: ReturnType<typeof open>) =>
  chat.calls().map(({ state, approval }) => [state, approval?.approved, approval?.delivery])

test.each([
  ['as it was', []],
  ['with its call, streamed again', call('c1', 1)],
  ['with an event before the end of the run', [ask('c1', 'a1', 1)]],
])(
  'a request that the server raises again instead of taking the answer is open again: %s',
  async (_, events) => {
    const asked: string[] = []
    const onApprovalRequest = ({ approvalId }: { approvalId: string }) => void asked.push(approvalId)
    const chat = await startWith(
      { onApprovalRequest },
      asks,
      (input) => [...events, finish(input, ['a1', 'c1'])],
      ends,
    )
    expect(await chat.client.addToolApprovalResponse({ ...yes('a1'), reason: 'go' })).toMatchObject({
      status: 'sent',
    })
    expect(chat.pending()).toEqual([['a1', 'c1', { n: 1 }]])
    expect(statesOf(chat)).toEqual([['approval-requested', undefined, undefined]])
    expect(await chat.deny('a1')).toEqual({ status: 'sent' })
    expect(chat.resume()).toEqual([[], [['a1', { approved: true, reason: 'go' }]], ['a1 no']])
    expect(statesOf(chat)).toEqual([['denied', false, 'settled']])
    expect(asked).toEqual(['a1', 'a1'])
    await chat.client.sendMessage('thanks')
    expect(chat.resume().at(-1)).toEqual([])
  },
)

test('of two answers, the one that the server did not take is open again', async () => {
  const chat = await start(
    (input) => [...call('c1', 1), ...call('c2', 2, 'm1'), finish(input, ['a1', 'c1'], ['a2', 'c2'])],
    (input) => [resultOf('c1'), finish(input, ['a2', 'c2'])],
    (input) => [resultOf('c2'), finish(input)],
  )
  await Promise.all([chat.approve('a1'), chat.approve('a2')])
  expect(chat.pending()).toEqual([['a2', 'c2', { n: 2 }]])
  await chat.approve('a2')
  expect(chat.resume()).toEqual([[], ['a1 yes', 'a2 yes'], ['a2 yes']])
  expect(statesOf(chat)).toEqual([
    ['complete', true, 'settled'],
    ['complete', true, 'settled'],
  ])
})

test('a request that a message cancelled and that the server raises again is open again', async () => {
  const asksAgain = (input: RunAgentInput) => [finish(input, ['a1', 'c1'])]
  const chat = await start(asks, asksAgain, asksAgain, ends)
  for (const question of ['which account?', 'which bank?']) {
    await chat.client.sendMessage(question)
    expect(chat.pending()).toEqual([['a1', 'c1', { n: 1 }]])
  }
  expect(await chat.approve('a1')).toEqual({ status: 'sent' })
  expect(chat.resume()).toEqual([[], ['a1 cancelled'], ['a1 cancelled'], ['a1 yes']])
  expect(statesOf(chat)).toEqual([['complete', true, 'settled']])
})

test('a request that is raised again with other arguments can not be answered', async () => {
  const chat = await start(asks, (input) => [raise(input, says(2))])
  await chat.approve('a1')
  expect(chat.calls()).toMatchObject([{ input: { n: 1 }, approval: { problem: 'approval-changed' } }])
  expect(await chat.approve('a1')).toMatchObject({ status: 'closed' })
  expect(chat.requests).toHaveLength(2)
  expect(chat.warnings.join()).toContain('changed after it was shown')
})

test('an answer that goes into the open run stays when that run repeats its request', async () => {
  const answers: unknown[] = []
  const { connection } = server(async function* (input) {
    yield* [...call('c1', 1), ask('c1', 'a1', 1)]
    await vi.waitUntil(() => answers.length === 1)
    yield* [ask('c1', 'a1', 1), resultOf('c1'), finish(input)]
  })
  const answer: Connection['answer'] = async ({ resume }) => void answers.push(...resume)
  const { sent, ...chat } = await startOpen({ ...connection, answer })
  expect(await chat.approve('a1')).toEqual({ status: 'sent' })
  await sent
  expect(answers).toHaveLength(1)
  expect(statesOf(chat)).toEqual([['complete', true, 'settled']])
})

test('an answer that is not sent yet stays when the end of its run names the request', async () => {
  const { open: proceed, opened } = gate()
  const { connection, resume } = server(async function* (input) {
    yield* [...call('c1', 1), ask('c1', 'a1', 1)]
    await opened
    yield finish(input, ['a1', 'c1'])
  }, ends)
  const { sent, ...chat } = await startOpen(connection)
  const approval = chat.approve('a1')
  proceed()
  await Promise.all([sent, approval])
  expect(resume()).toEqual([[], ['a1 yes']])
  expect(statesOf(chat)).toEqual([['complete', true, 'settled']])
})

test('a request that is raised again is open after a reload, and its answer is sent once', async () => {
  const { connection, resume } = server(asks, (input) => [finish(input, ['a1', 'c1'])], ends)
  const storage = memoryPersistence()
  const options = { connection, persistence: persistent(storage) }
  const first = open(options)
  await first.client.sendMessage('pay')
  await first.approve('a1')
  await first.client.dispose()
  const second = open(options)
  await second.client.restore()
  expect(second.pending()).toEqual([['a1', 'c1', { n: 1 }]])
  await second.approve('a1')
  expect(resume()).toEqual([[], ['a1 yes'], ['a1 yes']])
})

const problems = ({ calls }: ReturnType<typeof open>) =>
  calls().map(({ input, state, approval }) => [input, state, approval?.problem])

test.each([
  ['streams the call again', call('c1', 2, 'other')],
  ['says them in the request', []],
])(
  'after retry(), a pending request that has other arguments is shown with those but not answerable, until a message has cancelled it: the run %s',
  async (_, events) => {
    const run = (input: Parameters<typeof finish>[0]) => [...events, raise(input, says(2))]
    const chat = await start(() => [...call('c1', 1), ask('c1', 'a1', 1), 'cut'], run, run)
    await chat.client.retry()
    expect(chat.pending()).toEqual([['a1', 'c1', { n: 2 }]])
    expect(problems(chat)).toEqual([
      [{ n: 1 }, 'cancelled', 'approval-changed'],
      [{ n: 2 }, 'approval-requested', 'approval-changed'],
    ])
    expect(await chat.approve('a1')).toMatchObject({ status: 'closed' })
    expect(chat.warnings).toEqual([expect.stringContaining('changed after it was shown')])
    await chat.client.sendMessage('again')
    expect(chat.pending()).toEqual([['a1', 'c1', { n: 2 }]])
    expect(await chat.approve('a1')).toEqual({ status: 'sent' })
    expect(chat.resume()).toEqual([[], [], ['a1 cancelled'], ['a1 yes']])
  },
)

test('a request that the run with its answer repeats only by an event is open again when nothing comes of the answer', async () => {
  const asked: string[] = []
  const onApprovalRequest = ({ approvalId }: { approvalId: string }) => void asked.push(approvalId)
  const chat = await startWith(
    { onApprovalRequest },
    (input) => [...call('c1', 1), raise(input, {})],
    (input) => [ask('c1', 'a1', 1), finish(input)],
    (input) => [ask('c1', 'a1', 1), resultOf('c1'), finish(input)],
  )
  await chat.approve('a1')
  expect(chat.pending()).toEqual([['a1', 'c1', { n: 1 }]])
  expect(asked).toEqual(['a1', 'a1'])
  await chat.approve('a1')
  expect(chat.resume()).toEqual([[], ['a1 yes'], ['a1 yes']])
  expect(chat.calls()).toMatchObject([{ state: 'complete', approval: { delivery: 'settled' } }])
})

test('a request that the run with its answer raises again is open again, though the run was rejoined after a reload', () => {
  const part: ToolCallPart = {
    type: 'tool-call',
    id: 'c1',
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
  store.dispatch(ask('c1', 'a1', 1))
  expect(store.getSnapshot().pendingApprovals).toEqual([])
  store.dispatch(raise(run, {}), ({ type }) => asked.push(type))
  store.dispatch({ type: 'run-closed', end: { type: 'success' } })
  expect(store.getSnapshot().pendingApprovals).toMatchObject([{ id: 'c1', approval: { id: 'a1' } }])
  expect(asked).toEqual(['approval-requested'])
})

test.each([
  ['under its id', () => 'a1'],
  ['under new ids', (n: number) => `a${n}`],
])(
  'code that answers every request does not answer one without end that its server raises again and again %s',
  async (_, id) => {
    const errors: unknown[] = []
    const again = Array.from({ length: 50 }, (_, n) => (input: RunAgentInput) => [
      raise(input, { id: id(n + 2) }),
    ])
    const { connection, requests } = server((input) => [...call('c1', 1), raise(input, {})], ...again)
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

const pending = ({ client }: Pick<ReturnType<typeof openPage>, 'client'>) =>
  client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)

test('after a reload, a stored approval does not hide that the server asks anew about the call, and is never sent for it', async () => {
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
  const answered = await first.client.addToolApprovalResponse(yes(old))
  expect(answered).toMatchObject({ status: 'failed' })
  await vi.waitUntil(async () => (await local.load('t'))?.messages.length)
  first.leave()

  const other = openPage(server)
  await vi.waitUntil(() => pending(other).length > 0)
  balance = 1
  await other.client.addToolApprovalResponse(yes(old))
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
  expect(await reloaded.client.addToolApprovalResponse(yes(old))).toMatchObject({
    status: expect.stringMatching(/^(closed|not-found)$/),
  })
  await reloaded.client.retry()
  expect(pending(reloaded)).toEqual([anew])
  expect(ran).toEqual([])
  expect(reloaded.requests.filter(({ method }) => method === 'POST')).toEqual([])
  expect(await reloaded.client.addToolApprovalResponse(yes(anew))).toEqual({ status: 'sent' })
  expect(ran).toEqual(['ann at 1'])
})
