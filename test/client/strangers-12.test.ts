import type { Connection } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { checkResponse } from '@countersign/client/response-schema'
import { passMacrotasks } from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a sixth stranger found.

const interrupt = (id: string, toolCallId: string, countersign: object): Event => ({
  ...{ type: 'RUN_FINISHED', threadId: 't', runId: '' },
  outcome: {
    type: 'interrupt',
    interrupts: [{ id, reason: 'tool_call', toolCallId, metadata: { countersign } }],
  },
})

test('K a request for a call that did not arrive is shown with the name and arguments that it carries', async () => {
  const { connection, resume } = server(({ runId }) => [
    { ...interrupt('int-A', 'c0', { toolName: 'act', input: { n: 1 } }), runId } as Event,
  ])
  const { client, pending, calls } = open({ connection })
  await client.sendMessage('pay')
  expect(pending()).toEqual([['int-A', 'c0', { n: 1 }]])
  expect(calls()).toMatchObject([{ name: 'act', arguments: '{"n":1}', state: 'approval-requested' }])
  expect(await client.addToolApprovalResponse({ id: 'int-A', approved: true })).toEqual({ status: 'sent' })
  expect(resume()).toEqual([[], [['int-A', { approved: true }]]])
})

test('K a request for a call that did not arrive, and that does not say what it is about, is shown and can only be denied', async () => {
  const { connection, resume } = server(({ runId }) => [
    { ...interrupt('int-A', 'c0', { token: 'T' }), runId } as Event,
  ])
  const { client, pending, warnings } = open({ connection, checkResponse })
  await client.sendMessage('pay')
  expect(pending()).toEqual([])
  expect(client.getSnapshot().interrupts).toMatchObject([{ id: 'int-A', toolCallId: 'c0' }])
  expect(warnings.join()).toContain('"c0" did not arrive')
  expect(await client.respondToInterrupt({ id: 'int-A', payload: { approved: true } })).toMatchObject({
    status: 'refused',
    code: 'approval-malformed',
  })
  expect(await client.respondToInterrupt({ id: 'int-A', payload: { approved: false } })).toEqual({
    status: 'sent',
  })
  expect(resume()).toEqual([[], [['int-A', { approved: false }]]])
})

test('K a call that the page has with the same id from an earlier run is not taken for one that did not arrive', async () => {
  const result: Event = {
    type: 'TOOL_CALL_RESULT',
    messageId: 'r',
    toolCallId: 'c0',
    role: 'tool',
    content: 'ok',
  }
  const { connection } = server(
    (input) => [...call('c0', 1), result, finish(input)],
    ({ runId }) => [{ ...interrupt('int-A', 'c0', { toolName: 'act', input: { n: 2 } }), runId } as Event],
  )
  const { client, pending } = open({ connection })
  await client.sendMessage('pay')
  await client.sendMessage('again')
  expect(pending()).toEqual([['int-A', 'c0', { n: 2 }]])
})

test('K an open run that asks about a call whose arguments were lost gets its answer', async () => {
  const answers: unknown[] = []
  const base: Connection = {
    async *connect({ threadId, runId }) {
      yield { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
      const [start, , end] = call('c0', 1)
      yield* [start]
      const approval = { id: 'int-A', options: ['deny', 'once'] }
      yield {
        type: 'CUSTOM',
        name: 'approval-requested',
        value: { toolCallId: 'c0', input: { n: 1 }, approval },
      }
      yield {
        type: 'CUSTOM',
        name: 'approval-requested',
        value: { toolCallId: 'c1', approval: { id: 'int-B' } },
      }
      await vi.waitUntil(() => answers.length === 2)
      yield* [end]
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } }
    },
    async answer({ resume }) {
      answers.push(resume)
    },
  }
  const { client, pending } = open({ connection: base })
  const sent = client.sendMessage('pay')
  await vi.waitUntil(() => pending().length === 1)
  expect(pending()).toEqual([['int-A', 'c0', { n: 1 }]])
  const results = [
    client.addToolApprovalResponse({ id: 'int-A', approved: true }),
    client.respondToInterrupt({ id: 'int-B', cancel: true }),
  ]
  expect(await sent).toEqual({ status: 'sent' })
  expect(await Promise.all(results)).toEqual([{ status: 'sent' }, { status: 'sent' }])
  expect(answers).toMatchObject([[{ interruptId: 'int-A' }], [{ interruptId: 'int-B', status: 'cancelled' }]])
  expect(client.getSnapshot().interrupts).toEqual([])
})

test('K a request without its call that an open run raised stays open when that run breaks, or ends without naming it', async () => {
  const lone: Event = {
    ...{ type: 'CUSTOM', name: 'approval-requested' },
    value: { toolCallId: 'c0', approval: { id: 'int-A', token: 'T' } },
  }
  for (const end of ['cut', 'finished']) {
    const { connection, requests } = server((input) => [lone, end === 'cut' ? 'cut' : finish(input)])
    const { client } = open({ connection })
    await client.sendMessage('pay')
    expect(client.getSnapshot().interrupts.map(({ id }) => id)).toEqual(['int-A'])
    expect(await client.respondToInterrupt({ id: 'int-A', cancel: true })).toEqual({ status: 'sent' })
    expect(requests.at(-1)?.resume).toEqual([
      { interruptId: 'int-A', status: 'cancelled', metadata: { countersign: { token: 'T' } } },
    ])
  }
})

test.each([
  ['that the server did not confirm', 'hangs', { status: 'closed', reason: 'cancelled' }],
  ['that the server has confirmed', 'confirmed', { status: 'sent' }],
])('K a yes into the open run %s, and that a regeneration withdraws: %s', async (_, how, expected) => {
  const resumes: unknown[] = []
  const base: Connection = {
    async *connect(input, { signal }) {
      const { threadId, runId, resume } = input
      resumes.push(resume)
      yield { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
      if (resumes.length === 1) {
        yield* [...call('c0', 1), ask('c0', 'int-A', 1)]
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return
      }
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } }
    },
    async answer() {
      if (how === 'hangs') await new Promise(() => {})
    },
  }
  const { client, pending } = open({ connection: base })
  void client.sendMessage('pay')
  await vi.waitUntil(() => pending().length === 1)
  const result = client.addToolApprovalResponse({ id: 'int-A', approved: true })
  await passMacrotasks(2)
  const again = client.regenerate()
  const late = client.addToolApprovalResponse({ id: 'int-A', approved: true })
  expect(await again).toEqual({ status: 'sent' })
  expect([await result, await late]).toEqual([expected, { status: 'not-found' }])
  expect(resumes).toEqual([undefined, [{ interruptId: 'int-A', status: 'cancelled' }]])
})

test.each([
  ['an approval request', [...call('c0', 1), ask('c0', 'int-A', 1)]],
  ['a request for a call that did not arrive', [ask('c0', 'int-A', 1)]],
])('K a page that is closed right after %s appeared finds it again', async (_, events) => {
  const kept = memoryPersistence()
  const { load, save, remove } = kept
  const persistence = persistent({ load, save, remove }, { saveEvery: 60_000 })
  const { connection } = server(async function* () {
    yield* events
    await new Promise(() => {})
  })
  const { client } = open({ connection, persistence })
  const asked = () => {
    const { pendingApprovals, interrupts } = client.getSnapshot()
    return pendingApprovals.length + interrupts.length
  }
  void client.sendMessage('pay')
  await vi.waitUntil(() => asked() === 1)
  await passMacrotasks(2)
  const texts = new Map(kept.texts)
  client.stop()
  const later = memoryPersistence()
  for (const [id, text] of texts) later.texts.set(id, text)
  const next = open({ connection, persistence: later })
  await next.client.restore()
  const { pendingApprovals, interrupts } = next.client.getSnapshot()
  expect(pendingApprovals.length + interrupts.length).toBe(1)
})
