import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { clientTool, fetchServerSentEvents, stream } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { ask, call, type Event, finish, open, server } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

// What a stranger found with a server that is not ours: it numbers requests anew in each run, repeats call ids and sends no tokens.

const yes = { approved: true }

test('K an answer is not sent once its id belongs to the request of another call', async () => {
  const { connection, resume } = server(
    (input) => [...call('c1', 1), finish(input, ['int-0', 'c1'])],
    () => ['cut'],
    (input) => [...call('c2', 2), finish(input, ['int-0', 'c2'])],
    () => ['cut'],
  )
  const { client, pending, calls } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-0', approved: true })
  await client.sendMessage('something else')
  expect(pending()).toEqual([['int-0', 'c2', { n: 2 }]])
  expect(calls()[0]?.approval).toMatchObject({ delivery: 'settled', problem: 'approval-interrupted' })
  await client.addToolApprovalResponse({ id: 'int-0', approved: false })
  await client.retry()
  const no = ['int-0', { approved: false }]
  expect(resume()).toEqual([[], [['int-0', yes]], [], [no], [no]])
})

test('K an answer is not sent once its id belongs to an interrupt that is no approval request', async () => {
  const { connection, resume } = server(
    (input) => [...call('c1', 1), finish(input, ['int-0', 'c1'])],
    () => ['cut'],
    (input) => [finish(input, ['int-0'])],
  )
  const { client } = open({ connection })
  await client.sendMessage('go')
  await client.addToolApprovalResponse({ id: 'int-0', approved: true })
  await client.sendMessage('something else')
  expect(client.getSnapshot().interrupts).toMatchObject([{ id: 'int-0', reason: 'input_required' }])
  await client.retry()
  expect(resume().slice(2)).toEqual([[]])
})

test('K a cancellation is not sent once its id belongs to a new request', async () => {
  const { connection, resume } = server(
    (input) => [...call('c1', 1), finish(input, ['int-0', 'c1'])],
    () => [...call('c2', 2), ask('c2', 'int-0', 2), 'cut'],
  )
  const { client, pending } = open({ connection })
  await client.sendMessage('go')
  await client.regenerate()
  expect(pending()).toEqual([['int-0', 'c2', { n: 2 }]])
  await client.retry()
  await client.addToolApprovalResponse({ id: 'int-0', approved: true })
  expect(resume()).toEqual([[], [['int-0', 'cancelled']], [], [['int-0', yes]]])
})

test.each(['c2', 'c1'])(
  'K a request with an id that was answered in the same turn is shown, also where the call (%s) repeats an id',
  async (second) => {
    const { connection, resume } = server(
      (input) => [...call('c1', 1), finish(input, ['int-0', 'c1'])],
      (input) => [...call(second, 2), finish(input, ['int-0', second])],
    )
    const { client, pending } = open({ connection })
    await client.sendMessage('go')
    expect(await client.addToolApprovalResponse({ id: 'int-0', approved: true })).toEqual({ status: 'sent' })
    expect(pending()).toEqual([['int-0', second, { n: 2 }]])
    await client.addToolApprovalResponse({ id: 'int-0', approved: true })
    expect(resume()).toEqual([[], [['int-0', yes]], [['int-0', yes]]])
  },
)

test.each(['c2', 'c1'])(
  'K a pending request is never replaced: if a later run uses its id for another call (%s), it is cancelled, the new one is shown but not answerable, and the turn goes on',
  async (second) => {
    const { connection, resume } = server(
      () => [...call('c1', 1), ask('c1', 'int-0', 1), 'cut'],
      (input) => [
        ...[...call(second, 2), ask(second, 'int-0', 2), ...call('c3', 3), ask('c3', 'int-1', 3)],
        finish(input, ['int-0', second], ['int-1', 'c3']),
      ],
    )
    const { client, pending, calls, warnings } = open({ connection })
    await client.sendMessage('go')
    await client.retry()
    expect(pending()).toEqual([
      ['int-0', second, { n: 2 }],
      ['int-1', 'c3', { n: 3 }],
    ])
    expect(calls().slice(0, 2)).toMatchObject([
      { state: 'cancelled', approval: { problem: 'approval-changed' } },
      { state: 'approval-requested', approval: { problem: 'approval-changed' } },
    ])
    expect(warnings).not.toEqual([])
    expect(await client.addToolApprovalResponse({ id: 'int-0', approved: true })).toMatchObject({
      status: 'closed',
    })
    await client.addToolApprovalResponse({ id: 'int-1', approved: true })
    expect(resume().at(-1)).toEqual([
      ['int-1', yes],
      ['int-0', 'cancelled'],
    ])
  },
)

test.each(['cut', 'RUN_ERROR'])(
  'K after a reload, a call of a broken run (%s) holds no answer back, and runs no client tool',
  async (end) => {
    const ran: unknown[] = []
    const input = z.object({ n: z.number() })
    const act = clientTool({ name: 'act', description: 'Acts.', input, execute: ({ n }) => ran.push(n) })
    for (const asks of [true, false]) {
      const { connection, resume } = server(
        () => [...call('c1', 1), end === 'cut' ? 'cut' : { type: 'RUN_ERROR', message: 'It failed.' }],
        (input) => (asks ? [...call('c2', 2), finish(input, ['int-2', 'c2'])] : [finish(input)]),
      )
      const persistence = memoryPersistence()
      const page = async () => {
        const { client } = open({ connection, persistence, tools: [act] })
        client.attach()
        await client.restore()
        return client
      }
      const before = await page()
      await before.sendMessage('go')
      await before.retry()
      before.dispose()
      const after = await page()
      await after.retry()
      if (asks)
        expect(await after.addToolApprovalResponse({ id: 'int-2', ...yes })).toEqual({ status: 'sent' })
      expect(resume()).toEqual(asks ? [[], [], [['int-2', yes]]] : [[], []])
      after.dispose()
    }
    expect(ran).toEqual([])
  },
)

test.each([true, false])(
  'K a call of the open run stays while a snapshot has only an earlier call with its id (request by event: %s)',
  async (byEvent) => {
    const { connection } = server(
      () => [...call('c1', 1), 'cut'],
      (input) => [
        ...[...call('c1', 2), ...(byEvent ? [ask('c1', 'int-2', 2)] : [])],
        { type: 'MESSAGES_SNAPSHOT', messages: structuredClone(input.messages) },
        finish(input, ['int-2', 'c1']),
      ],
    )
    const { client, pending } = open({ connection })
    await client.sendMessage('go')
    await client.retry()
    expect(pending()).toEqual([['int-2', 'c1', { n: 2 }]])
  },
)

test('K a cancellation stays one if its request is refused whole, and is sent with the next', async () => {
  const resume: unknown[] = []
  const web = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const input: RunAgentInput = JSON.parse(body)
      resume.push(input.resume?.map(({ interruptId, status }) => [interruptId, status]))
      if (resume.length === 2) return void response.writeHead(422).end('no')
      const n = resume.length
      const { threadId, runId } = input
      const started: Event = { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
      const rest = n > 3 ? [finish(input)] : [...call(`c${n}`, n), finish(input, [`int-${n}`, `c${n}`])]
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end([started, ...rest].map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
    })
  })
  await new Promise<void>((listening) => web.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void web.close())
  const { port } = web.address() as AddressInfo
  const { client } = open({ connection: fetchServerSentEvents(`http://127.0.0.1:${port}/`) })
  await client.sendMessage('go')
  expect(await client.regenerate()).toMatchObject({ status: 'failed' })
  expect(client.getSnapshot().interrupts).toEqual([])
  await client.retry()
  expect(await client.addToolApprovalResponse({ id: 'int-3', approved: true })).toEqual({ status: 'sent' })
  expect(resume).toEqual([
    undefined,
    [['int-1', 'cancelled']],
    [['int-1', 'cancelled']],
    [['int-3', 'resolved']],
  ])
})

test.each([true, false])(
  'K an answer (%s) that was not sent before the server cancelled its call is `closed`',
  async (approved) => {
    let proceed = () => {}
    const until = new Promise<void>((resolve) => {
      proceed = resolve
    })
    const connection = stream(async function* (input) {
      const { threadId, runId } = input
      const started: AGUIEvent = { type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' }
      yield [started, ...call('c1', 1), ask('c1', 'a1', 1)]
      await until
      const result: Event = {
        type: 'TOOL_CALL_RESULT',
        messageId: 'r1',
        toolCallId: 'c1',
        role: 'tool',
        content: '{}',
        metadata: { countersign: { outcome: 'cancelled' } },
      }
      yield result
      yield finish(input)
    })
    const { client, pending } = open({ connection })
    const sent = client.sendMessage('go')
    await expect.poll(pending).toHaveLength(1)
    const answer = client.addToolApprovalResponse({ id: 'a1', approved })
    proceed()
    await sent
    expect(await answer).toEqual({ status: 'closed', reason: 'cancelled' })
  },
)
