import { getEventListeners, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChatClient, type ChatClientOptions, type Connection } from '@countersign/client'
import { type WebSocketOptions, type WebSocketUrl, webSocket } from '@countersign/client/web-socket'
import {
  byHand,
  bytes,
  cut,
  finish,
  gated,
  hold,
  macrotasks,
  passMacrotasks,
  type RunScript,
  resolve,
  respond,
  result,
  type Step,
  started,
  text,
  until,
  watch,
} from '@countersign/testing'
import { type ScriptedSocket, type ScriptedSocketOptions, scriptedSocket } from '@countersign/testing/server'
import { describe, expect, onTestFailed, onTestFinished, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { answersOf, callOf, failOnUnhandledRejections, flags, idle, saidBy, stateOf } from './open-chat.js'

failOnUnhandledRejections()

/** Every socket a client opened. */
const opened: WebSocket[] = []
class CountedSocket extends WebSocket {
  constructor(url: string, protocols?: string | string[]) {
    super(url, protocols)
    opened.push(this)
  }
}

interface Setup {
  readonly script?: ScriptedSocketOptions
  readonly socket?: WebSocketOptions
  readonly chat?: Omit<ChatClientOptions, 'connection'>
}

async function openServer(
  runs: readonly RunScript[],
  options?: ScriptedSocketOptions,
): Promise<ScriptedSocket> {
  const server = await scriptedSocket(runs, options)
  onTestFailed(() => console.log(server.timeline.print()))
  onTestFinished(() => server.close())
  return server
}

function openClient(server: ScriptedSocket, connection: Connection, options: Setup['chat'] = {}) {
  const client = new ChatClient({ connection, ...options })
  onTestFinished(() => client.dispose())
  watch(client, server.timeline)
  return { client, person: client.actions }
}

async function openChat(runs: readonly RunScript[], { script, socket, chat }: Setup = {}) {
  const server = await openServer(runs, script)
  const connection = webSocket(server.url, { WebSocket: CountedSocket, ...socket })
  return { server, connection, ...openClient(server, connection, chat) }
}

const approve = (id: string) => ({ id, approved: true })
const asked = (client: ChatClient, id: string) =>
  until(client, ({ pendingApprovals }) => pendingApprovals.some(({ approval }) => approval?.id === id))
const framesOf = (server: ScriptedSocket) => server.frames.map(({ type }) => type)
const closed = (server: ScriptedSocket) => vi.waitFor(() => expect(server.sockets.open).toBe(0))

test('a plain run travels over one socket, which is closed after it', async () => {
  const { client, person, server } = await openChat([[text('Hello ', 'there.')]])
  expect(server.sockets.opened).toBe(0)
  expect(await person.sendMessage('hi')).toEqual({ status: 'sent' })
  expect(saidBy(client)).toBe('Hello there.')
  expect(framesOf(server)).toEqual(['run'])
  await closed(server)
  expect(server.sockets.opened).toBe(1)
})

test('a run that the server does not end after RUN_FINISHED is over soon, and the server is told', async () => {
  const { client, person, server } = await openChat([[text('Hello.'), finish(), hold()]])
  expect(await person.sendMessage('hi')).toEqual({ status: 'sent' })
  expect([saidBy(client), client.getSnapshot().status]).toEqual(['Hello.', 'ready'])
  await closed(server)
  expect(framesOf(server)).toEqual(['run', 'stop'])
})

describe('live answers', () => {
  test('S2.35 an answer during the run goes into it at once: one request, no continuation', async () => {
    const { client, person, server } = await openChat([
      async function* (): AsyncGenerator<Step> {
        for (const x of [1, 2]) {
          yield* gated(x)
          await server.answered(`a${x}`)
          yield result(`c${x}`)
        }
        yield text('Done.')
      },
    ])
    const sent = person.sendMessage('go')
    await asked(client, 'a1')
    const first = person.addToolApprovalResponse({ ...approve('a1'), reason: 'fine' })
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { delivery: 'sent' },
    })
    expect(flags(client)).toEqual(idle)
    await asked(client, 'a2')
    expect(stateOf(client, 'c1')).toBe('complete')
    const second = person.addToolApprovalResponse(approve('a2'))
    expect([await first, await second, await sent]).toEqual([
      { status: 'sent' },
      { status: 'sent' },
      { status: 'sent' },
    ])
    expect(saidBy(client)).toBe('Done.')
    expect(server.requests).toHaveLength(1)
    expect(server.frames).toMatchObject([
      { type: 'run' },
      {
        type: 'answer',
        threadId: client.threadId,
        runId: server.requests[0]?.runId,
        resume: [
          {
            interruptId: 'a1',
            status: 'resolved',
            payload: { approved: true, reason: 'fine' },
            metadata: { countersign: { token: 'token-a1' } },
          },
        ],
      },
      { type: 'answer', resume: [{ interruptId: 'a2' }] },
    ])
    await passMacrotasks(4)
    expect(server.requests).toHaveLength(1)
    expect(client.getSnapshot().status).toBe('ready')
  })

  test('several answers of one tick all go into the run, each by itself', async () => {
    const { client, person, server } = await openChat([
      async function* (): AsyncGenerator<Step> {
        yield* [...gated(1), ...gated(2), ...gated(3)]
        for (const x of [3, 2, 1]) {
          await server.answered(`a${x}`)
          yield result(`c${x}`)
        }
      },
    ])
    void person.sendMessage('go')
    await asked(client, 'a3')
    const answers = ['a1', 'a2', 'a3'].map((id) => person.addToolApprovalResponse(approve(id)))
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'already-answered' })
    expect(await Promise.all(answers)).toEqual([{ status: 'sent' }, { status: 'sent' }, { status: 'sent' }])
    expect(framesOf(server)).toEqual(['run', 'answer', 'answer', 'answer'])
    expect(server.requests).toHaveLength(1)
  })

  test('S2.35 an answer that the run refuses is sent with the continuation after the stream', async () => {
    const { client, person, server } = await openChat(
      [
        [...gated(1), hold()],
        [resolve(), text('Done.')],
      ],
      {
        script: { onAnswer: () => ({ refuse: 'not-here' }) },
      },
    )
    void person.sendMessage('go')
    await asked(client, 'a1')
    const answered = person.addToolApprovalResponse(approve('a1'))
    await until(client, () => callOf(client, 'c1').approval?.delivery === 'waiting')
    expect(flags(client)).toEqual({ continuationPending: false, continuationSkipped: true })
    expect(server.requests).toHaveLength(1)
    server.release()
    expect(await answered).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['a1 yes']])
    expect(saidBy(client)).toBe('Done.')
  })

  test('S2.35 an answer that is not confirmed by the end of the run is sent with the continuation', async () => {
    const { client, person, server } = await openChat(
      [
        [...gated(1), hold()],
        [resolve(), text('Done.')],
      ],
      {
        script: { onAnswer: () => 'ignore' },
      },
    )
    void person.sendMessage('go')
    await asked(client, 'a1')
    const answered = person.addToolApprovalResponse(approve('a1'))
    await vi.waitFor(() => expect(framesOf(server)).toEqual(['run', 'answer']))
    server.release()
    expect(await answered).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([[], ['a1 yes']])
    expect(stateOf(client, 'c1')).toBe('complete')
  })

  test.each(['take', 'ignore'] as const)(
    'when the socket breaks, the fate of an answer (%s) is unknown until retry() delivers it',
    async (decision) => {
      const { client, person, server } = await openChat(
        [
          [...gated(1), hold(), cut()],
          [resolve(), text('Done.')],
        ],
        {
          script: { onAnswer: () => decision },
        },
      )
      void person.sendMessage('go')
      await asked(client, 'a1')
      const answered = person.addToolApprovalResponse(approve('a1'))
      await vi.waitFor(() => expect(framesOf(server)).toEqual(['run', 'answer']))
      server.release()
      expect(await answered).toMatchObject({ status: 'failed', error: { code: 'connection-failed' } })
      expect(callOf(client, 'c1').approval?.delivery).toBe('unknown')
      await passMacrotasks(4)
      expect(server.requests).toHaveLength(1)
      expect(client.getSnapshot().status).toBe('error')
      await person.retry()
      expect(answersOf(server)).toEqual([[], ['a1 yes']])
      expect(client.getSnapshot().status).toBe('ready')
      expect(stateOf(client, 'c1')).toBe('complete')
    },
  )

  test('an answer given after the run has ended makes a continuation, as over any wire', async () => {
    const { client, person, server } = await openChat([gated(1), [resolve(), text('Done.')]])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
    expect(framesOf(server)).toEqual(['run', 'run'])
    expect(saidBy(client)).toBe('Done.')
  })

  test('a continuation that breaks before RUN_STARTED leaves the answer waiting, and retry() delivers it', async () => {
    const { client, person, server } = await openChat([gated(1), [cut()], [resolve()]])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toMatchObject({ status: 'failed' })
    expect(callOf(client, 'c1').approval?.delivery).toBe('waiting')
    await person.retry()
    expect(answersOf(server)).toEqual([[], ['a1 yes'], ['a1 yes']])
    expect(stateOf(client, 'c1')).toBe('complete')
  })

  test('an answer for a run that is not open on this connection is not sent', async () => {
    const { connection, server } = await openChat([])
    const answers = { threadId: 't', runId: 'r', resume: [] }
    const options = { signal: new AbortController().signal, headers: {} }
    await expect(connection.answer(answers, options)).rejects.toMatchObject({ code: 'run-error' })
    expect(server.sockets.opened).toBe(0)
  })
})

describe('stop', () => {
  test('tells the server, applies nothing later, and a message in the same tick is sent', async () => {
    const { client, person, server } = await openChat([byHand, [text('Second.')]])
    void person.sendMessage('one')
    const run = await server.request(1)
    run.emit(text('First.'))
    await until(client, () => saidBy(client) === 'First.')
    run.emit(text('Late.'))
    person.stop()
    expect(client.getSnapshot().status).toBe('ready')
    expect(await person.sendMessage('two')).toEqual({ status: 'sent' })
    expect(await run.closed).toBe('aborted')
    expect(framesOf(server)).toEqual(['run', 'stop', 'run'])
    expect(saidBy(client)).toBe('First. Second.')
    expect(server.sockets.opened).toBe(1)
  })

  test('before the socket is open sends nothing', async () => {
    const { client, person, server } = await openChat([[text('Hello.')]])
    const sent = person.sendMessage('one')
    person.stop()
    await sent
    await sleep(20)
    expect(server.frames).toEqual([])
    expect(server.sockets.open).toBe(0)
    expect(client.getSnapshot().status).toBe('ready')
  })

  test('with an answer under way leaves its outcome to the user', async () => {
    const { client, person, server } = await openChat([[...gated(1), hold()], [resolve()]], {
      script: { onAnswer: () => 'ignore' },
    })
    void person.sendMessage('go')
    await asked(client, 'a1')
    const answered = person.addToolApprovalResponse(approve('a1'))
    person.stop()
    expect(await answered).toEqual({ status: 'waiting' })
    await passMacrotasks(4)
    expect(server.requests).toHaveLength(1)
    expect(callOf(client, 'c1').approval).toMatchObject({ approved: true, delivery: 'unknown' })
  })
})

describe('one socket for many', () => {
  test('two threads run on it side by side, and their answers do not mix', async () => {
    const answering = async function* (input: { readonly threadId: string }): AsyncGenerator<Step> {
      yield* gated(input.threadId)
      await server.answered(`a${input.threadId}`)
      yield* [result(`c${input.threadId}`), text(`Done ${input.threadId}.`)]
    }
    const server = await openServer([answering, answering])
    const connection = webSocket(server.url, { WebSocket: CountedSocket })
    const chats = ['x', 'y'].map((threadId) => openClient(server, connection, { threadId }))
    const sent = chats.map(({ person }) => person.sendMessage('go'))
    await Promise.all(chats.map(({ client }) => asked(client, `a${client.threadId}`)))
    expect(server.openStreams).toBe(2)
    const answers = chats.map(({ client, person }) =>
      person.addToolApprovalResponse(approve(`a${client.threadId}`)),
    )
    expect(await Promise.all([...answers, ...sent])).toEqual(Array(4).fill({ status: 'sent' }))
    expect(chats.map(({ client }) => saidBy(client))).toEqual(['Done x.', 'Done y.'])
    expect(server.sockets.opened).toBe(1)
    await closed(server)
  })

  test('when it breaks, every run on it fails with connection-failed, and no socket follows by itself', async () => {
    const server = await openServer([
      [started(), hold('x'), cut()],
      [started(), hold('y')],
    ])
    const connection = webSocket(server.url, { WebSocket: CountedSocket })
    const chats = ['x', 'y'].map((threadId) => openClient(server, connection, { threadId }))
    for (const { person } of chats) void person.sendMessage('go')
    await Promise.all([server.held('x'), server.held('y')])
    server.release('x')
    for (const { client } of chats) {
      const { error } = await until(client, ({ status }) => status === 'error')
      expect(error?.code).toBe('connection-failed')
    }
    await passMacrotasks(4)
    expect(server.sockets).toMatchObject({ opened: 1, open: 0 })
  })

  test('a chain of runs that follow at once stays on it', async () => {
    const { person, server } = await openChat([gated(1), [resolve(), gated(2)], [resolve()]], {
      chat: { onApprovalRequest: () => {} },
    })
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    await person.addToolApprovalResponse(approve('a2'))
    expect(server.sockets.opened).toBe(1)
  })

  test('the same run id twice at once is an error that says so', async () => {
    const server = await openServer([[started(), hold()]])
    const connection = webSocket(server.url, { WebSocket: CountedSocket })
    const counting = () => {
      let count = 0
      return () => `same-${++count}`
    }
    const one = openClient(server, connection, { threadId: 'x', generateId: counting() })
    const two = openClient(server, connection, { threadId: 'y', generateId: counting() })
    void one.person.sendMessage('go')
    await until(one.client, ({ status }) => status === 'streaming')
    const sent = await two.person.sendMessage('go')
    expect(sent).toMatchObject({ status: 'failed', error: { code: 'invalid-argument' } })
    expect(one.client.getSnapshot().status).toBe('streaming')
  })

  test('close() ends the runs on it, and a later run opens another', async () => {
    const { client, connection, person, server } = await openChat([[started(), hold()], [text('Hello.')]])
    const sent = person.sendMessage('go')
    await server.held()
    connection.close()
    expect(await sent).toMatchObject({ status: 'failed', error: { code: 'connection-failed' } })
    await closed(server)
    await person.retry()
    expect(client.getSnapshot().status).toBe('ready')
    expect(server.sockets.opened).toBe(2)
  })

  test('keepAlive holds it open between runs', async () => {
    const { connection, person, server } = await openChat([[text('1')], [text('2')]], {
      socket: { keepAlive: 60_000 },
    })
    await person.sendMessage('one')
    await sleep(20)
    expect(server.sockets.open).toBe(1)
    await person.sendMessage('two')
    expect(server.sockets.opened).toBe(1)
    connection.close()
    await closed(server)
  })

  test('200 runs, stopped, broken and well, leave no socket, listener or timer', async () => {
    const endings: RunScript[] = [[text('Hello.')], [started(), hold('never')], [started(), cut()], gated(1)]
    const runs = Array.from({ length: 200 }, (_, index) => endings[index % endings.length] ?? [])
    const server = await openServer(runs)
    const connection = webSocket(server.url, { WebSocket: CountedSocket })
    const before = opened.length
    const signals: AbortSignal[] = []
    for (let index = 0; index < runs.length; index++) {
      const stop = new AbortController()
      signals.push(stop.signal)
      const input = { threadId: 't', runId: `r${index}`, messages: [], tools: [], context: [] }
      const reading = drain(
        connection.connect(input, { signal: stop.signal, messages: [], headers: {}, onEventId: () => {} }),
      )
      if (index % endings.length === 1) {
        await server.request(index + 1)
        stop.abort()
      }
      await reading
    }
    await closed(server)
    const mine = opened.slice(before)
    await vi.waitFor(() => expect(mine.every(({ readyState }) => readyState === WebSocket.CLOSED)).toBe(true))
    expect(signals.flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([])
    expect(server.openStreams).toBe(0)
    expect(mine.length).toBeLessThanOrEqual(runs.length)
    // A socket that broke took its timer along: nothing closes or opens later.
    const count = opened.length
    await passMacrotasks(4)
    expect(opened).toHaveLength(count)
  })
})

describe('a faulty server', () => {
  test.each([
    ['text that is no JSON', 'Bad gateway', 'malformed-event'],
    ['JSON that is no object', '[1]', 'malformed-event'],
    ['a frame without a type', '{}', 'malformed-event'],
    ['events that are no array', '{"type":"events","runId":"r","events":{}}', 'malformed-event'],
    ['an end of no run', '{"type":"end"}', 'malformed-event'],
    [
      'a message above the limit',
      JSON.stringify({ type: 'later', text: 'x'.repeat(10_000) }),
      'event-too-large',
    ],
  ])('%s fails the run', async (_, message, code) => {
    const { client, person, server } = await openChat([[text('one'), bytes(message), hold()]], {
      socket: { maxEventBytes: 5000 },
    })
    expect(await person.sendMessage('go')).toMatchObject({ status: 'failed', error: { code } })
    expect(saidBy(client)).toBe('one')
    await closed(server)
  })

  test('binary messages fail the run', async () => {
    const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
    onTestFinished(() => void server.close())
    server.on('connection', (socket) => socket.on('message', () => socket.send(new Uint8Array([123, 125]))))
    await once(server, 'listening')
    const address = server.address()
    const client = new ChatClient({
      connection: webSocket(`ws://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`, {
        WebSocket,
      }),
    })
    expect(await client.sendMessage('go')).toMatchObject({
      status: 'failed',
      error: { code: 'malformed-event' },
    })
  })

  test('types of frames and runs that the client does not know are passed over', async () => {
    const { client, person } = await openChat([
      [
        text('one'),
        bytes('{"type":"later","runId":1}'),
        bytes('{"type":"events","runId":"another","events":[{"type":"NONSENSE"}]}'),
        bytes('{"type":"end","runId":"another"}'),
        bytes('{"type":"answered","id":"99"}'),
        text('two'),
      ],
    ])
    expect(await person.sendMessage('go')).toEqual({ status: 'sent' })
    expect(saidBy(client)).toBe('onetwo')
  })

  test('an error frame fails its run with its code, and the answers of the request wait', async () => {
    const { client, person } = await openChat([gated(1), [respond(413, 'Too long.')], [resolve()]])
    await person.sendMessage('go')
    expect(await person.addToolApprovalResponse(approve('a1'))).toMatchObject({
      status: 'failed',
      error: { code: 'run-error', message: 'Too long.', data: { code: '413' } },
    })
    expect(callOf(client, 'c1').approval?.delivery).toBe('waiting')
  })

  test('an error frame without a run fails every run and ends the socket', async () => {
    const { person, server } = await openChat([
      [started(), bytes('{"type":"error","code":"going-away","message":"Deploying."}'), hold()],
    ])
    expect(await person.sendMessage('go')).toMatchObject({
      status: 'failed',
      error: { code: 'run-error', data: { code: 'going-away' } },
    })
    await closed(server)
  })

  test('what nobody reads does not grow without end: the run fails with event-too-large', async () => {
    const server = await openServer([[text(...Array<string>(100).fill('x'.repeat(100)))], [text('Hello.')]])
    const connection = webSocket(server.url, { WebSocket: CountedSocket, maxUnreadBytes: 5000 })
    const events = connection.connect(
      { threadId: 't', runId: 'r', messages: [], tools: [], context: [] },
      { signal: new AbortController().signal, messages: [], headers: {}, onEventId: () => {} },
    )
    const reader = events[Symbol.asyncIterator]()
    await reader.next()
    await (await server.request(1)).closed
    await sleep(20)
    const rest = async () => {
      while (!(await reader.next()).done);
    }
    await expect(rest()).rejects.toMatchObject({ code: 'event-too-large' })
    await closed(server)
  })
})

test('a run can be taken up after the last event that was read, where the server keeps runs', async () => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => void server.close())
  const said: unknown[] = []
  server.on('connection', (socket) =>
    socket.on('message', (data) => {
      said.push(JSON.parse(String(data)))
      const event = { type: 'CUSTOM', name: 'n', value: said.length }
      const frame = { type: 'events', runId: 'r', events: [event], id: `r:${said.length}` }
      socket.send(JSON.stringify(frame), () => {
        if (said.length === 1) socket.terminate()
        else socket.send(JSON.stringify({ type: 'end', runId: 'r' }))
      })
    }),
  )
  await once(server, 'listening')
  const address = server.address()
  const url = `ws://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`
  expect(webSocket(url).rejoin).toBeUndefined()
  const connection = webSocket(url, { WebSocket: CountedSocket, rejoin: true })
  const ids: string[] = []
  const options = {
    signal: new AbortController().signal,
    messages: [],
    headers: {},
    onEventId: (id: string) => ids.push(id),
  }
  const input = { threadId: 't', runId: 'r', messages: [], tools: [], context: [] }
  await drain(connection.connect(input, options))
  expect(ids).toEqual(['r:1'])
  await drain(connection.rejoin?.({ threadId: 't', runId: 'r', lastEventId: 'r:1' }, options) ?? none())
  expect(ids).toEqual(['r:1', 'r:2'])
  expect(said).toEqual([
    { type: 'run', input },
    { type: 'rejoin', threadId: 't', runId: 'r', lastEventId: 'r:1' },
  ])
})

test('a frame without events is a sign of life, and does not hide the id of the event before it', async () => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => void server.close())
  let sendRest = () => {}
  server.on('connection', (socket) =>
    socket.on('message', () => {
      const send = (events: unknown[], id?: string) =>
        socket.send(JSON.stringify({ type: 'events', runId: 'r', events, id }))
      send([])
      sendRest = () => {
        send([{ type: 'CUSTOM', name: 'n', value: 1 }], 'r:1')
        send([])
        socket.send(JSON.stringify({ type: 'end', runId: 'r' }))
      }
    }),
  )
  await once(server, 'listening')
  const address = server.address()
  const url = `ws://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`
  const { signal } = new AbortController()
  const ids: string[] = []
  const options = { signal, messages: [], headers: {}, onEventId: (id: string) => ids.push(id) }
  const input = { threadId: 't', runId: 'r', messages: [], tools: [], context: [] }
  const sizes: unknown[] = []
  for await (const batch of webSocket(url, { WebSocket: CountedSocket, rejoin: true }).connect(
    input,
    options,
  )) {
    sizes.push(Array.isArray(batch) && batch.length)
    if (sizes.length === 1) sendRest()
  }
  expect(sizes).toEqual([0, 1])
  expect(ids).toEqual(['r:1'])
})

test('retry() takes the run up first; a server that kept nothing gets the request again', async () => {
  const { client, person, server } = await openChat([[text('one'), cut()], [text('two')]], {
    socket: { rejoin: true },
  })
  await person.sendMessage('go')
  expect(client.getSnapshot().status).toBe('error')
  await person.retry()
  expect(framesOf(server)).toEqual(['run', 'rejoin', 'run'])
  expect(client.getSnapshot().status).toBe('ready')
})

async function* none() {}

describe('opening', () => {
  const fails = async (url: WebSocketUrl, options: WebSocketOptions = { WebSocket }) => {
    const client = new ChatClient({ connection: webSocket(url, options) })
    const sent = await client.sendMessage('go')
    return 'error' in sent ? sent.error : undefined
  }

  test('a socket that cannot be opened is connection-failed, and its ticket is not in the message', async () => {
    const server = await scriptedSocket([])
    await server.close()
    const error = await fails(`${server.url}chat?ticket=secret`)
    expect(error).toMatchObject({ code: 'connection-failed' })
    expect(error?.message).toContain('/chat"')
    expect(JSON.stringify([error?.message, error?.data])).not.toContain('secret')
  })

  test('a bad address or a missing WebSocket says which option to set', async () => {
    expect(await fails('/chat')).toMatchObject({ code: 'invalid-option', data: { option: 'url' } })
    vi.stubGlobal('WebSocket', undefined)
    onTestFinished(() => void vi.unstubAllGlobals())
    expect(await fails('ws://127.0.0.1:1/', {})).toMatchObject({
      code: 'invalid-option',
      data: { option: 'WebSocket' },
    })
  })

  test('an address that is a function is asked for each socket; http: becomes ws:', async () => {
    const server = await openServer([[text('1')], [text('2')]])
    const url = vi.fn(async () => server.url.replace('ws:', 'http:'))
    const { person } = openClient(server, webSocket(url, { WebSocket: CountedSocket }))
    expect(url).not.toHaveBeenCalled()
    await person.sendMessage('one')
    await closed(server)
    await person.sendMessage('two')
    expect(url).toHaveBeenCalledTimes(2)
  })

  test("the client's headers go with each request and each answer", async () => {
    const { client, person, server } = await openChat([[...gated(1), macrotasks(1), hold()]], {
      chat: { headers: { authorization: 'Bearer t' } },
    })
    void person.sendMessage('go')
    await asked(client, 'a1')
    void person.addToolApprovalResponse(approve('a1'))
    await vi.waitFor(() => expect(server.frames).toHaveLength(2))
    expect(server.frames).toMatchObject(Array(2).fill({ headers: { authorization: 'Bearer t' } }))
  })
})

async function drain(batches: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const _ of batches);
  } catch {
    // A run that broke has ended too.
  }
}
