import { ChatClient, type Connection, CountersignError, clientTool, postAnswers } from '@countersign/client'
import { reconnecting } from '@countersign/client/reconnect'
import {
  custom,
  cut,
  gated,
  hold,
  passMacrotasks,
  type RunScript,
  resolve,
  result,
  scriptedConnection,
  text,
  until,
  watch,
} from '@countersign/testing'
import { describe, expect, onTestFailed, onTestFinished, test, vi } from 'vitest'
import { ask, call, gate, resultOf, server, startOpen } from './foreign-server.js'
import { answersOf, callOf, failOnUnhandledRejections, openClient, saidBy, stateOf } from './open-chat.js'

failOnUnhandledRejections()

const approve = (id: string) => ({ id, approved: true })
const refused = () => new CountersignError('run-error', 'The run does not take it.')

/** A chat whose connection has a live channel that `deliver` stands for. */
function openChat(runs: readonly RunScript[], deliver: NonNullable<Connection['answer']>) {
  const server = scriptedConnection(runs)
  const live: string[] = []
  const connection: Connection = {
    connect: server.connect,
    answer(answers, options) {
      live.push(...answers.resume.map(({ interruptId }) => interruptId))
      return deliver(answers, options)
    },
  }
  const client = new ChatClient({ connection })
  onTestFailed(() => console.log(server.timeline.print()))
  onTestFinished(() => client.dispose())
  watch(client, server.timeline)
  return { client, server, live, person: client.actions }
}

/** Until the request is shown, and the run goes on. */
const asked = (client: ChatClient, count = 1) =>
  until(client, ({ pendingApprovals }) => pendingApprovals.length === count)

test('S2.35 an answer that was lost on its way is sent after a run that ends well', async () => {
  const chat = openChat(
    [
      [...gated(1), hold()],
      [resolve(), text('Done.')],
    ],
    () => Promise.reject(new TypeError('Failed to fetch')),
  )
  const { client, person, server, live } = chat
  void person.sendMessage('go')
  await asked(client)
  const answered = person.addToolApprovalResponse(approve('a1'))
  await passMacrotasks(2)
  expect(server.requests).toHaveLength(1)
  server.release()
  expect(await answered).toEqual({ status: 'sent' })
  expect(live).toEqual(['a1'])
  expect(answersOf(server)).toEqual([[], ['a1 yes']])
  expect(saidBy(client)).toBe('Done.')
})

test('an answer that was lost in a run that breaks is unknown, and only retry() offers it again', async () => {
  const chat = openChat([[...gated(1), hold(), cut()], [resolve()]], () =>
    Promise.reject(new TypeError('Failed')),
  )
  const { client, person, server } = chat
  void person.sendMessage('go')
  await asked(client)
  const answered = person.addToolApprovalResponse(approve('a1'))
  await passMacrotasks(2)
  server.release()
  expect(await answered).toMatchObject({ status: 'failed', error: { code: 'connection-failed' } })
  expect(callOf(client, 'c1').approval?.delivery).toBe('unknown')
  await passMacrotasks(2)
  expect(server.requests).toHaveLength(1)
  await person.retry()
  expect(answersOf(server)).toEqual([[], ['a1 yes']])
})

test('an answer that was refused in a run that breaks later waits for the next request', async () => {
  const chat = openChat([[...gated(1), hold(), cut()], [resolve()]], () => Promise.reject(refused()))
  const { client, person, server } = chat
  void person.sendMessage('go')
  await asked(client)
  void person.addToolApprovalResponse(approve('a1'))
  await passMacrotasks(2)
  expect(callOf(client, 'c1').approval?.delivery).toBe('waiting')
  server.release()
  await until(client, ({ status }) => status === 'error')
  await passMacrotasks(2)
  expect(callOf(client, 'c1').approval?.delivery).toBe('waiting')
  expect(server.requests).toHaveLength(1)
  await person.sendMessage('and then?')
  expect(answersOf(server)).toEqual([[], ['a1 yes']])
})

test.each([
  ['well', [hold()], 2],
  ['by a fault', [hold(), cut()], 1],
] as const)('a refusal that comes after the run ended %s', async (_, end, requests) => {
  let refuse = (_error: Error): void => {}
  const chat = openChat(
    [[...gated(1), ...end], [resolve()]],
    () =>
      new Promise((_resolve, reject) => {
        refuse = reject
      }),
  )
  const { client, person, server } = chat
  void person.sendMessage('go')
  await asked(client)
  void person.addToolApprovalResponse(approve('a1'))
  server.release()
  await until(client, ({ isLoading }) => !isLoading)
  refuse(refused())
  await passMacrotasks(4)
  expect(server.requests).toHaveLength(requests)
  expect(callOf(client, 'c1').approval?.delivery).toBe(requests === 2 ? 'settled' : 'unknown')
})

test('an answer that was lost on its way, and whose client tool was handed out all the same, is not sent again', async () => {
  const { client, person, server } = openChat(
    [[...gated(1), hold(), custom('client-tool-ready', { toolCallId: 'c1', input: {} })], [text('Done.')]],
    () => Promise.reject(new TypeError('Failed to fetch')),
  )
  void person.sendMessage('go')
  await asked(client)
  const { name } = callOf(client, 'c1')
  const input = {
    '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
  } as const
  client.setOptions({ tools: [clientTool({ name, description: '', input, execute: () => 'ran' })] })
  const answered = person.addToolApprovalResponse(approve('a1'))
  await passMacrotasks(2)
  server.release()
  expect(await answered).toEqual({ status: 'sent' })
  await until(client, ({ isLoading }) => !isLoading && saidBy(client) === 'Done.')
  expect(answersOf(server)).toEqual([[], []])
  expect(callOf(client, 'c1')).toMatchObject({ state: 'complete', output: 'ran' })
})

test('of parallel answers only the refused one is sent again', async () => {
  const chat = openChat(
    [
      [...gated(1), ...gated(2), hold(), result('c1')],
      [resolve(), text('Done.')],
    ],
    async ({ resume }) => {
      if (resume[0]?.interruptId === 'a2') throw refused()
    },
  )
  const { client, person, server, live } = chat
  void person.sendMessage('go')
  await asked(client, 2)
  const answers = [
    person.addToolApprovalResponse(approve('a1')),
    person.addToolApprovalResponse(approve('a2')),
  ]
  await passMacrotasks(2)
  server.release()
  expect(await Promise.all(answers)).toEqual([{ status: 'sent' }, { status: 'sent' }])
  expect(live).toEqual(['a1', 'a2'])
  expect(answersOf(server)).toEqual([[], ['a2 yes']])
  expect([stateOf(client, 'c1'), stateOf(client, 'c2')]).toEqual(['complete', 'complete'])
})

test('stop() while an answer is under way sends nothing, whatever becomes of it', async () => {
  let refuse = (_error: Error): void => {}
  const chat = openChat(
    [[...gated(1), hold()]],
    () =>
      new Promise((_resolve, reject) => {
        refuse = reject
      }),
  )
  const { client, person, server } = chat
  void person.sendMessage('go')
  await asked(client)
  const answered = person.addToolApprovalResponse(approve('a1'))
  person.stop()
  expect(await answered).toEqual({ status: 'waiting' })
  refuse(refused())
  await passMacrotasks(4)
  expect(server.requests).toHaveLength(1)
  expect(callOf(client, 'c1').approval?.delivery).toBe('unknown')
})

test('an answer into the open run goes over the connection that opened it, whatever the options say now', async () => {
  const { client, server, live, person } = openChat([[...gated(1), hold()]], async () => {})
  void person.sendMessage('go')
  await asked(client)
  const other = vi.fn(async () => {})
  client.setOptions({ connection: { connect: server.connect, answer: other } })
  void person.addToolApprovalResponse(approve('a1'))
  await passMacrotasks(2)
  expect([live, other.mock.calls]).toEqual([['a1'], []])
})

describe('an answer that is posted', () => {
  const html = { headers: { 'content-type': 'text/html' } }

  /** A chat that asks and waits, and answers are posted to a server that replies like this. */
  function openPosted(reply: () => Response) {
    const { answer } = postAnswers('http://chat.test/answers', { fetch: async () => reply() })
    const chat = openChat(
      [
        [...gated(1), hold()],
        [resolve(), text('Done.')],
      ],
      answer,
    )
    const told: string[] = []
    chat.client.setOptions({ onError: ({ code }) => told.push(code) })
    return { ...chat, told }
  }

  test.each([
    ['401', 'http-status', () => new Response('Sign in', { status: 401 })],
    ['403', 'http-status', () => new Response('{"code":"invalid-request"}', { status: 403 })],
    ['404', 'http-status', () => new Response(null, { status: 404 })],
    ['the page of a sign-in', 'not-an-event-stream', () => new Response('<html>', html)],
  ] as const)(
    'and replied with %s ends the run with that error, and retry() sends it',
    async (_, code, reply) => {
      const { client, person, server, told } = openPosted(reply)
      void person.sendMessage('go')
      await asked(client)
      const answered = person.addToolApprovalResponse(approve('a1'))
      expect(await answered).toMatchObject({ status: 'failed', error: { code } })
      expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code } })
      expect(callOf(client, 'c1').approval?.delivery).toBe('waiting')
      expect(told).toEqual([code])
      expect(server.requests).toHaveLength(1)
      await person.retry()
      expect(answersOf(server)).toEqual([[], ['a1 yes']])
      expect([saidBy(client), stateOf(client, 'c1')]).toEqual(['Done.', 'complete'])
    },
  )

  test.each([
    ['429', () => new Response('Slow down', { status: 429 })],
    ['503', () => new Response('Busy', { status: 503 })],
  ])(
    'and replied with %s is sent after a run that ends well, unless it is taken before',
    async (_, reply) => {
      const { client, person, server, told } = openPosted(reply)
      void person.sendMessage('go')
      await asked(client)
      const answered = person.addToolApprovalResponse(approve('a1'))
      await passMacrotasks(2)
      expect(callOf(client, 'c1').approval?.delivery).toBe('sent')
      server.release()
      expect(await answered).toEqual({ status: 'sent' })
      expect([answersOf(server), told]).toEqual([[[], ['a1 yes']], []])
    },
  )

  test('and that the run does not take (409) waits for its end', async () => {
    const { client, person, server, told } = openPosted(() => Response.json({}, { status: 409 }))
    void person.sendMessage('go')
    await asked(client)
    const answered = person.addToolApprovalResponse(approve('a1'))
    await passMacrotasks(2)
    expect(callOf(client, 'c1').approval?.delivery).toBe('waiting')
    server.release()
    expect(await answered).toEqual({ status: 'sent' })
    expect([answersOf(server), told]).toEqual([[[], ['a1 yes']], []])
  })

  test.each([
    ['JSON', () => Response.json({ status: 'taken' })],
    ['204', () => new Response(null, { status: 204 })],
    ['200 without content', () => new Response(null)],
  ])('is taken where the reply is %s', async (_, reply) => {
    const { client, person, server, told } = openPosted(reply)
    void person.sendMessage('go')
    await asked(client)
    const answered = person.addToolApprovalResponse(approve('a1'))
    await passMacrotasks(2)
    server.release()
    expect(await answered).toEqual({ status: 'sent' })
    expect([answersOf(server), told]).toEqual([[[]], []])
  })
})

test('an answer that was given while a live run was broken off goes into it once it is taken up again', async () => {
  const answered: string[] = []
  const asking = (id: string) => [...call(id, 1), ask(id, `a-${id}`, 1)]
  const { connection } = server(() => [...asking('c1'), ...asking('c2'), 'cut'])
  const client = openClient({
    connection: {
      ...connection,
      async *rejoin({ threadId, runId }) {
        for (const id of ['c1', 'c2']) {
          await vi.waitUntil(() => answered.includes(`a-${id}`))
          yield resultOf(id, 'paid')
        }
        yield { type: 'RUN_FINISHED', threadId, runId }
      },
      async answer({ resume }) {
        answered.push(...resume.map(({ interruptId }) => interruptId))
      },
    },
  })
  await client.sendMessage('go')
  expect(await client.addToolApprovalResponse(approve('a-c1'))).toEqual({ status: 'waiting' })
  const again = client.retry()
  await expect.poll(() => callOf(client, 'c1').state).toBe('complete')
  expect(await client.addToolApprovalResponse(approve('a-c2'))).toEqual({ status: 'sent' })
  await again
  expect(answered).toEqual(['a-c1', 'a-c2'])
  expect(client.getSnapshot().status).toBe('ready')
})

test('an answer given between two attempts to reconnect is sent once the run is there again', async () => {
  const answers: unknown[] = []
  let attempts = 0
  let isThere = true
  const { open: breakOff, opened } = gate()
  const runEnded = () => new CountersignError('run-error', 'The run is not open.', { code: 'run-ended' })
  const { connection } = server(async function* () {
    yield* [...call('c0', 1), ask('c0', 'int-A', 1)]
    await opened
    isThere = false
    throw new CountersignError('connection-failed', 'cut')
  })
  const base: Connection = {
    ...connection,
    async *rejoin({ threadId, runId }) {
      if (++attempts < 3) throw new CountersignError('connection-failed', 'not yet')
      isThere = true
      yield { type: 'CUSTOM', name: 'x', value: 1 }
      await vi.waitUntil(() => answers.length > 0)
      yield resultOf('c0', 'paid')
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } }
    },
    async answer({ resume }) {
      if (!isThere) throw runEnded()
      answers.push(resume.map(({ interruptId }) => interruptId))
    },
  }
  const { client, calls: shown, sent } = await startOpen(reconnecting(base, { delay: 50 }))
  breakOff()
  await vi.waitUntil(() => client.getSnapshot().status === 'reconnecting')
  const result = client.addToolApprovalResponse(approve('int-A'))
  expect(await sent).toEqual({ status: 'sent' })
  expect(await result).toEqual({ status: 'sent' })
  expect([answers, shown()[0]?.state]).toEqual([[['int-A']], 'complete'])
})
