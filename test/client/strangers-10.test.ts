import { ChatClient, stream, toolDefinition } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a fourth stranger found: servers that use ids again, and snapshots that are older than the answers of their run.

const assistant = (id: string, toolCallId: string, n: number) => ({
  ...{ id, role: 'assistant' as const, content: '' },
  toolCalls: [
    {
      id: toolCallId,
      type: 'function' as const,
      function: { name: 'act', arguments: JSON.stringify({ n }) },
    },
  ],
})

test('K a result whose call an older snapshot has removed leaves no hole, and what comes later is stored', async () => {
  const persistence = memoryPersistence()
  const more: (() => void)[] = []
  const pause = () => new Promise<void>((resolve) => void more.push(resolve))
  const { connection } = server(
    (input) => [
      { type: 'TEXT_MESSAGE_START', messageId: 't1', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 't1', delta: 'Hello.' },
      { type: 'TEXT_MESSAGE_END', messageId: 't1' },
      finish(input),
    ],
    (input) => [...call('c1', 1, 'm1'), ...call('c0', 0, 'm1'), finish(input, ['a1', 'c1'], ['a0', 'c0'])],
    async function* (input) {
      yield { type: 'MESSAGES_SNAPSHOT', messages: input.messages.slice(0, 1) }
      await pause()
      yield { type: 'TOOL_CALL_RESULT', messageId: 'r1', toolCallId: 'c1', role: 'tool', content: 'paid' }
      yield* [...call('c2', 2, 'm2'), ...call('c3', 3, 'm2'), finish(input, ['a2', 'c2'], ['a3', 'c3'])]
    },
  )
  const { client, pending } = open({ connection, persistence, notify: 'sync' })
  client.subscribe(() => client.getSnapshot())
  await client.sendMessage('hello')
  await client.sendMessage('pay')
  await client.addToolApprovalResponse({ id: 'a1', approved: true })
  const sent = client.sendMessage('and?')
  await vi.waitUntil(() => more.length > 0)
  client.getSnapshot()
  more[0]?.()
  await sent
  expect([...client.getSnapshot().messages].every((message) => message !== undefined)).toBe(true)
  expect(await client.addToolApprovalResponse({ id: 'a2', approved: true })).toEqual({ status: 'waiting' })
  await client.dispose()
  const second = open({ connection, persistence })
  await second.client.restore()
  expect(pending()).toEqual([['a3', 'c3', { n: 3 }]])
  expect(second.pending()).toEqual(pending())
  expect(second.calls().find(({ id }) => id === 'c2')).toMatchObject({ state: 'approval-responded' })
})

test.each(['during', 'after'])(
  'K no yes goes out for a request id that means a call of the open run, also behind a snapshot with an older open call (yes %s the run)',
  async (when) => {
    const more: (() => void)[] = []
    const { connection, resume } = server(
      () => [...call('c0', 1), ask('c0', 'int-0', 1), 'cut'],
      async function* (input) {
        const [user] = input.messages
        const messages = [...(user ? [user] : []), assistant('m0', 'c0', 0), assistant('m1', 'c0', 1)]
        yield { type: 'MESSAGES_SNAPSHOT', messages }
        await new Promise<void>((resolve) => void more.push(resolve))
        yield* [...call('c0', 2), finish(input, ['int-0', 'c0'])]
      },
    )
    const { client, pending } = open({ connection })
    await client.sendMessage('pay')
    const retried = client.retry()
    await vi.waitUntil(() => more.length > 0)
    const yes = () => client.addToolApprovalResponse({ id: 'int-0', approved: true })
    const early = when === 'during' ? yes() : undefined
    more[0]?.()
    await retried
    if (early) await early
    else if (pending().some(([id, , input]) => id === 'int-0' && JSON.stringify(input) !== '{"n":2}'))
      await yes()
    await client.sendMessage('and?')
    const sentYes = resume()
      .flat()
      .filter(([, payload]) => JSON.stringify(payload).includes('"approved":true'))
    expect(sentYes).toEqual([])
  },
)

const input =
  (question: string, id = 'int-0') =>
  ({ threadId, runId }: RunAgentInput): Event[] => [
    {
      ...{ type: 'RUN_FINISHED', threadId, runId },
      outcome: { type: 'interrupt', interrupts: [{ id, reason: 'input_required', message: question }] },
    },
  ]

test('K an interrupt whose id the server uses again for another question is shown anew, and the response to the earlier one is not sent', async () => {
  const { connection, resume } = server(
    // Its run ends twice, which is an error: `retry()` opens another.
    (given) => [...input('Delete staging?')(given), ...input('Delete staging?')(given)],
    async function* (given) {
      void client
        .respondToInterrupt({ id: 'int-0', payload: { yes: true } })
        .then((one) => void results.push(one))
      yield* input('Delete production?')(given)
    },
    (given) => [finish(given)],
  )
  const results: unknown[] = []
  const { client, warnings } = open({ connection })
  const shown = () => client.getSnapshot().interrupts.map(({ message }) => message)
  await client.sendMessage('tidy')
  expect(shown()).toEqual(['Delete staging?'])
  await client.retry()
  await vi.waitUntil(() => results.length > 0)
  expect([shown(), resume(), results]).toEqual([
    ['Delete production?'],
    [[], []],
    [{ status: 'closed', reason: 'cancelled' }],
  ])
  expect(warnings.join()).toContain('int-0')
  expect(await client.respondToInterrupt({ id: 'int-0', payload: { no: true } })).toEqual({ status: 'sent' })
  expect(resume()[2]).toEqual([['int-0', { no: true }]])
})

test.each([
  ['null prototype', Object.create(null)],
  ['a Symbol as its message', Object.assign(new Error('x'), { message: Symbol('m') })],
  ['an object as its message', Object.assign(new Error(), { message: { detail: 1 } })],
  ['no message', Object.assign(new Error(), { message: undefined })],
])('K a client tool that throws what is no text (%s) fails, and the chat goes on', async (_, thrown) => {
  let runs = 0
  const connection = stream(async function* ({ threadId, runId }) {
    yield { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
    if (runs++ === 0) yield* call('c', 1)
    yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } }
  })
  const act = toolDefinition({ name: 'act', description: 'Acts.', input: z.object({ n: z.number() }) })
  const tools = [act.client(() => Promise.reject(thrown))]
  const client = new ChatClient({ connection, tools, onError: () => {}, onWarning: () => {} })
  onTestFinished(() => client.dispose())
  await client.sendMessage('go')
  await vi.waitUntil(() => client.getSnapshot().status === 'ready')
  const part = client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts)
    .find(({ type }) => type === 'tool-call')
  expect(part).toMatchObject({ state: 'error', error: { message: expect.any(String) } })
  expect(await client.sendMessage('on')).toEqual({ status: 'sent' })
})
