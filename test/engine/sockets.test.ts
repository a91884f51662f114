import { once } from 'node:events'
import { createServer } from 'node:http'
import { ChatClient, fetchServerSentEvents, postAnswers } from '@countersign/client'
import { webSocket } from '@countersign/client/web-socket'
import type { ClientFrame, ServerFrame } from '@countersign/core'
import {
  type AgentOptions,
  createAgent,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
} from '@countersign/server'
import { socketServerLimits, toNodeAnswerHandler, toSocketHandler } from '@countersign/server/node'
import { until } from '@countersign/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { call, calls, lastText, mailTool, pendingId, says, scriptedModel, states } from './engine.js'
import { listening } from './listening.js'
import { serve } from './wires.js'

function mailAgent(options: Partial<AgentOptions> = {}) {
  const { mail, sent } = mailTool()
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'user'
      ? calls(call('c1', 'send_email', { to: 'a@example.org' }))
      : says('Sent.'),
  )
  const agent = createAgent({
    model,
    tools: [mail],
    warn: () => {},
    approvals: { ledger: memoryLedger() },
    ...options,
  })
  return { agent, model, sent }
}

type SocketOptions = Parameters<typeof toSocketHandler>[1]

/** A socket server whose people come from a header of the frame, and a plain socket of it. */
async function openSocket(options: SocketOptions = {}, origin?: string, more?: Partial<AgentOptions>) {
  const { agent, sent, model } = mailAgent(more)
  const server = createServer()
  const sockets = new WebSocketServer({ server, ...socketServerLimits })
  const context = (_: unknown, { user }: Readonly<Record<string, string>>) => ({
    ...(user !== undefined && { subject: user }),
  })
  sockets.on('connection', toSocketHandler(agent, { context, ...options }))
  const url = `ws://${await listening(server)}/`
  onTestFinished(() => {
    for (const socket of sockets.clients) socket.terminate()
  })
  return { url, agent, sent, model, open: () => connect(url, origin) }
}

async function connect(url: string, origin?: string) {
  const socket = new WebSocket(url, origin === undefined ? {} : { origin })
  const frames: ServerFrame[] = []
  const watchers = new Set<() => void>()
  let closed: number | undefined
  const wake = () => {
    for (const watcher of [...watchers]) watcher()
  }
  socket.on('message', (data) => {
    frames.push(JSON.parse(String(data)))
    wake()
  })
  socket.on('close', (code) => {
    closed = code
    wake()
  })
  await once(socket, 'open')
  const seen = <Found>(find: () => Found | undefined): Promise<Found> =>
    new Promise((resolve) => {
      const look = () => {
        const found = find()
        if (found === undefined) return
        watchers.delete(look)
        resolve(found)
      }
      watchers.add(look)
      look()
    })
  const events = (runId: string) =>
    frames.flatMap((frame) =>
      frame.type === 'events' && frame.runId === runId
        ? (frame.events as { type: string; name?: string }[])
        : [],
    )
  return {
    frames,
    events,
    send: (frame: ClientFrame) => socket.send(JSON.stringify(frame)),
    raw: (text: string) => socket.send(text),
    terminate: () => socket.terminate(),
    closed: () => seen(() => closed),
    reply: (id: string) =>
      seen(() => frames.find((frame) => 'id' in frame && frame.type !== 'events' && frame.id === id)),
    ended: (runId: string) =>
      seen(() =>
        frames.find((frame) => (frame.type === 'end' || frame.type === 'error') && frame.runId === runId),
      ),
    asked: (runId: string): Promise<Asked> =>
      seen(() => {
        const found = events(runId).find((event) => event.name === 'approval-requested')
        return found && (found as unknown as { value: Asked }).value
      }),
  }
}

interface Asked {
  readonly approval: { readonly id: string; readonly token: string }
}

const run = (runId: string, user?: string, threadId = 'thread'): ClientFrame => ({
  type: 'run',
  input: {
    threadId,
    runId,
    protocolVersion: '1.0',
    messages: [{ id: `u-${runId}`, role: 'user', content: 'go' }],
    tools: [],
    context: [],
  },
  ...(user !== undefined && { headers: { user } }),
})

const answerFrame = (
  id: string,
  runId: string,
  { approval }: Asked,
  user?: string,
  threadId = 'thread',
): ClientFrame => ({
  type: 'answer',
  id,
  threadId,
  runId,
  resume: [
    {
      interruptId: approval.id,
      status: 'resolved',
      payload: { approved: true },
      metadata: { countersign: { token: approval.token } },
    },
  ],
  ...(user !== undefined && { headers: { user } }),
})

test('a run stays open on its socket until it is answered; the answer is confirmed before the end', async () => {
  const { open, sent } = await openSocket()
  const peer = await open()
  peer.send(run('r1', 'ann'))
  const asked = await peer.asked('r1')
  expect(peer.frames.some(({ type }) => type === 'end')).toBe(false)
  peer.send(answerFrame('1', 'r1', asked, 'ann'))
  expect(await peer.reply('1')).toEqual({ type: 'answered', id: '1' })
  expect(await peer.ended('r1')).toEqual({ type: 'end', runId: 'r1' })
  expect(sent).toEqual(['a@example.org'])
  const order = peer.frames.map(({ type }) => type)
  expect(order.indexOf('answered')).toBeLessThan(order.indexOf('end'))
  // The id of a frame is that of its last event.
  let sentSoFar = 0
  for (const frame of peer.frames) {
    if (frame.type !== 'events') continue
    sentSoFar += frame.events.length
    expect(frame.id).toBe(`r1:${sentSoFar}`)
  }
})

test('an answer that the run never takes is refused before its end', async () => {
  const { open } = await openSocket()
  const peer = await open()
  peer.send(run('r1', 'ann'))
  const asked = await peer.asked('r1')
  peer.send(answerFrame('stray', 'r1', { approval: { ...asked.approval, id: 'approval_nobody' } }, 'ann'))
  peer.send(answerFrame('1', 'r1', asked, 'ann'))
  expect(await peer.reply('stray')).toMatchObject({ type: 'refused', code: 'run-ended' })
  await peer.ended('r1')
  const order = peer.frames.map(({ type }) => type)
  expect(order.indexOf('refused')).toBeLessThan(order.indexOf('end'))
})

test('S2.34 S3.89 an answer reaches only the run of its own user and thread, whatever socket it comes by', async () => {
  const { open, sent } = await openSocket()
  const [ann, bob, phone] = [await open(), await open(), await open()]
  ann.send(run('r1', 'ann'))
  const asked = await ann.asked('r1')
  bob.send(answerFrame('1', 'r1', asked, 'bob'))
  expect(await bob.reply('1')).toMatchObject({ type: 'refused', code: 'run-ended' })
  ann.send(answerFrame('2', 'r1', asked, 'ann', 'another thread'))
  expect(await ann.reply('2')).toMatchObject({ type: 'refused', code: 'run-ended' })
  expect(sent).toEqual([])
  phone.send(answerFrame('3', 'r1', asked, 'ann'))
  expect(await phone.reply('3')).toEqual({ type: 'answered', id: '3' })
  await ann.ended('r1')
  expect(sent).toEqual(['a@example.org'])
})

test('where the application has no users, only the socket that started a run answers into it', async () => {
  const { open, sent } = await openSocket()
  const [one, other] = [await open(), await open()]
  one.send(run('r1'))
  const asked = await one.asked('r1')
  other.send(answerFrame('1', 'r1', asked))
  expect(await other.reply('1')).toMatchObject({ type: 'refused', code: 'run-ended' })
  one.send(answerFrame('2', 'r1', asked))
  await one.ended('r1')
  expect(sent).toEqual(['a@example.org'])
})

test('two runs side by side on one socket end by themselves', async () => {
  const { open, sent } = await openSocket()
  const peer = await open()
  peer.send(run('r1', 'ann', 'one'))
  peer.send(run('r2', 'ann', 'two'))
  const [first, second] = [await peer.asked('r1'), await peer.asked('r2')]
  peer.send(answerFrame('2', 'r2', second, 'ann', 'two'))
  await peer.ended('r2')
  expect(peer.frames.some((frame) => frame.type === 'end' && frame.runId === 'r1')).toBe(false)
  peer.send(answerFrame('1', 'r1', first, 'ann', 'one'))
  await peer.ended('r1')
  expect(sent).toHaveLength(2)
})

test('stop ends a run that waits; nothing more is sent of it, and the question stays good', async () => {
  const { open, sent } = await openSocket()
  const peer = await open()
  peer.send(run('r1', 'ann'))
  const asked = await peer.asked('r1')
  peer.send({ type: 'stop', runId: 'r1' })
  const before = peer.events('r1').length
  peer.send(answerFrame('1', 'r1', asked, 'ann'))
  expect(await peer.reply('1')).toMatchObject({ type: 'refused', code: 'run-ended' })
  expect(peer.events('r1').length).toBe(before)
  expect(sent).toEqual([])
})

test('a socket that breaks takes its runs along; with goOnFor another one takes a run up and answers it', async () => {
  const { open, sent } = await openSocket({ goOnFor: 60_000 })
  const peer = await open()
  peer.send(run('r1', 'ann'))
  const asked = await peer.asked('r1')
  const lastEventId = peer.frames.findLast((frame) => frame.type === 'events')?.id
  peer.terminate()
  const next = await open()
  next.send({
    type: 'rejoin',
    threadId: 'thread',
    runId: 'r1',
    lastEventId: String(lastEventId),
    headers: { user: 'ann' },
  })
  next.send(answerFrame('1', 'r1', asked, 'ann'))
  expect(await next.reply('1')).toEqual({ type: 'answered', id: '1' })
  await next.ended('r1')
  expect(next.events('r1').map(({ type }) => type)).toContain('RUN_FINISHED')
  expect(next.events('r1').map(({ type }) => type)).not.toContain('RUN_STARTED')
  expect(sent).toEqual(['a@example.org'])
})

test('stop ends a run at once on the socket that took it up too', async () => {
  const { open } = await openSocket({ goOnFor: 60_000 })
  const peer = await open()
  peer.send(run('r1', 'ann'))
  await peer.asked('r1')
  peer.terminate()
  const rejoin = { type: 'rejoin', threadId: 'thread', runId: 'r1', headers: { user: 'ann' } } as const
  const next = await open()
  next.send(rejoin)
  await next.asked('r1')
  next.send({ type: 'stop', runId: 'r1' })
  const last = await open()
  last.send(rejoin)
  expect(await last.ended('r1')).toEqual({ type: 'end', runId: 'r1' })
  expect(last.events('r1').map(({ type }) => type)).toContain('RUN_FINISHED')
})

/** A method that waits, each time it is called, until it is let go on. */
function held<Args extends readonly unknown[], Result>(method: (...args: Args) => Promise<Result>) {
  const waiting: (() => void)[] = []
  return {
    waiting,
    async call(...args: Args) {
      await new Promise<void>((resolve) => waiting.push(resolve))
      return method(...args)
    },
  }
}

/** What the server makes of a frame, it makes after the frames before. */
async function handled(peer: Awaited<ReturnType<typeof connect>>) {
  peer.raw(JSON.stringify({ type: 'run', input: { runId: 'bad' } }))
  await peer.ended('bad')
}

test.each([['ann'], [undefined]])(
  'stop ends a run that waits for its conversation, although it may go on without a reader (of %s)',
  async (subject) => {
    const threads = memoryThreads()
    const hold = held(threads.hold)
    const { open, model } = await openSocket({ goOnFor: 60_000 }, undefined, {
      threads: { ...threads, hold: hold.call },
    })
    const peer = await open()
    peer.send(run('r1', subject))
    await vi.waitFor(() => expect(hold.waiting).toHaveLength(1))
    peer.send({ type: 'stop', runId: 'r1' })
    await handled(peer)
    hold.waiting[0]?.()
    const stored = () => threads.load({ owner: subject ?? null, threadId: 'thread' })
    await vi.waitFor(async () =>
      expect([(await stored())?.messages.length, (await stored())?.run]).toEqual([1, undefined]),
    )
    expect(model.requests).toEqual([])
  },
)

test('stop ends a run that is taken up before its record has been read', async () => {
  const log = memoryRunLog()
  const read = held(log.read)
  const { open } = await openSocket({ goOnFor: 60_000 }, undefined, { runLog: { ...log, read: read.call } })
  const peer = await open()
  peer.send(run('r1', 'ann'))
  await peer.asked('r1')
  peer.terminate()
  const rejoin = { type: 'rejoin', threadId: 'thread', runId: 'r1', headers: { user: 'ann' } } as const
  const next = await open()
  next.send(rejoin)
  await vi.waitFor(() => expect(read.waiting).toHaveLength(1))
  next.send({ type: 'stop', runId: 'r1' })
  await handled(next)
  read.waiting[0]?.()
  const last = await open()
  last.send(rejoin)
  await vi.waitFor(() => expect(read.waiting).toHaveLength(2))
  read.waiting[1]?.()
  expect(await last.ended('r1')).toEqual({ type: 'end', runId: 'r1' })
  expect(last.events('r1').map(({ type }) => type)).toContain('RUN_FINISHED')
})

test('a socket that breaks while its user is looked up is no error of the server', async () => {
  const warnings: string[] = []
  const warn = (message: string) => void warnings.push(message)
  const asked: unknown[] = []
  const context = async (_: unknown, headers: Readonly<Record<string, string>>) => {
    asked.push(headers.user)
    return headers.user === undefined ? {} : new Promise<never>(() => {})
  }
  const { open, agent } = await openSocket({ context, goOnFor: 60_000 }, undefined, { warn })
  warnings.length = 0
  const peer = await open()
  peer.send(run('r1', 'ann'))
  peer.send({ type: 'rejoin', threadId: 'thread', runId: 'r2', headers: { user: 'ann' } })
  await vi.waitFor(() => expect(asked).toHaveLength(3))
  peer.terminate()
  await agent.drain()
  await open()
  expect(warnings).toEqual([])
})

test('a rejoin that finds nothing ends without an event, also for another user', async () => {
  const { open } = await openSocket({ goOnFor: 60_000 })
  const [ann, bob] = [await open(), await open()]
  ann.send(run('r1', 'ann'))
  await ann.asked('r1')
  bob.send({ type: 'rejoin', threadId: 'thread', runId: 'r1', headers: { user: 'bob' } })
  expect(await bob.ended('r1')).toEqual({ type: 'end', runId: 'r1' })
  expect(bob.events('r1')).toEqual([])
})

test.each([
  ['another origin is turned away', {}, 'https://evil.example', 1008],
  ['the own host passes', {}, 'own', undefined],
  ['no origin, so no browser, passes', {}, undefined, undefined],
  ['an origin that is named passes', { origins: ['https://app.example'] }, 'https://app.example', undefined],
  ['an opaque origin is turned away', {}, 'null', 1008],
] as const)('a socket checks Origin: %s', async (_, options, origin, code) => {
  const { url } = await openSocket(options)
  const own = origin === 'own' ? url.replace('ws:', 'http:').replace(/\/$/, '') : origin
  const peer = await connect(url, own)
  if (code !== undefined) expect(await peer.closed()).toBe(code)
  else {
    peer.send(run('r1', 'ann'))
    await peer.asked('r1')
  }
})

test.each([
  ['no JSON', '{'],
  ['no frame', '[]'],
  ['too deep', `{"type":"run","input":${'['.repeat(80)}${']'.repeat(80)}}`],
  ['a run without an id', '{"type":"run","input":{}}'],
  ['a stop whose run is no text', '{"type":"stop","runId":{"toString":1}}'],
  ['a stop without a run', '{"type":"stop"}'],
])('a message that breaks the rules ends the socket: %s', async (_, text) => {
  const { open } = await openSocket()
  const peer = await open()
  peer.raw(text)
  expect(await peer.closed()).toBe(1008)
  expect(peer.frames).toMatchObject([{ type: 'error', code: 'invalid-request' }])
})

test('a frame of a type from the future is passed over, and a bad input fails its run alone', async () => {
  const { open } = await openSocket()
  const peer = await open()
  peer.raw('{"type":"hello"}')
  peer.raw('{"type":"run","input":{"threadId":"t","runId":"bad","messages":7}}')
  expect(await peer.ended('bad')).toMatchObject({ type: 'error', code: 'invalid-request' })
  peer.send(run('r1', 'ann'))
  await peer.asked('r1')
})

test('an answer whose run is no text is refused, and the socket stays', async () => {
  const { open } = await openSocket()
  const peer = await open()
  peer.raw('{"type":"answer","id":"1","threadId":"t","runId":{"toString":1},"resume":[]}')
  expect(await peer.reply('1')).toMatchObject({ type: 'refused', code: 'invalid-request' })
  peer.send(run('r1', 'ann'))
  await peer.asked('r1')
})

test('a socket holds only so many runs at once', async () => {
  const { open } = await openSocket({ maxRuns: 1 })
  const peer = await open()
  peer.send(run('r1', 'ann'))
  await peer.asked('r1')
  peer.send(run('r2', 'ann', 'two'))
  expect(await peer.ended('r2')).toMatchObject({ type: 'error', code: 'too-many-runs' })
})

test('S2.35 over server-sent events with posted answers, an answer goes into the run that is open: one request', async () => {
  const { agent, sent } = mailAgent()
  const { url } = await serve(agent, true)
  const chat = new ChatClient({
    connection: { ...fetchServerSentEvents(url), ...postAnswers(`${url}answers`) },
  })
  onTestFinished(chat.dispose)
  const done = chat.sendMessage('go')
  await until(chat, ({ pendingApprovals }) => pendingApprovals.length === 1)
  expect(chat.getSnapshot().isLoading).toBe(true)
  await chat.addToolApprovalResponse({ id: pendingId(chat), approved: true })
  await done
  expect(sent).toEqual(['a@example.org'])
  expect(states(chat)).toEqual(['send_email:complete'])
  expect(lastText(chat)).toBe('Sent.')
})

test('S2.35 a user who stops a live run and answers later is answered by a request of its own', async () => {
  const { agent, sent } = mailAgent()
  const { url } = await serve(agent, true)
  const connection = webSocket(url, { WebSocket })
  const chat = new ChatClient({ connection })
  onTestFinished(() => {
    chat.dispose()
    connection.close()
  })
  const done = chat.sendMessage('go')
  await until(chat, ({ pendingApprovals }) => pendingApprovals.length === 1)
  chat.stop()
  await done
  expect(chat.getSnapshot().status).toBe('awaiting-approval')
  expect(await chat.addToolApprovalResponse({ id: pendingId(chat), approved: true })).toEqual({
    status: 'sent',
  })
  expect(sent).toEqual(['a@example.org'])
  expect(lastText(chat)).toBe('Sent.')
})

test('the answer endpoint: a user, a page of the own host, JSON, and a run that is open', async () => {
  const { agent } = mailAgent()
  const handler = toNodeAnswerHandler(agent, {
    context: (request) => ({
      ...(request.headers['x-user'] !== undefined && { subject: String(request.headers['x-user']) }),
    }),
  })
  const url = `http://${await listening(createServer(handler))}/`
  const body = JSON.stringify({
    threadId: 't',
    runId: 'r',
    resume: [{ interruptId: 'a', status: 'resolved' }],
  })
  const post = async (headers: Record<string, string>, text = body) => {
    const response = await fetch(url, {
      method: 'POST',
      body: text,
      headers: { 'content-type': 'application/json', 'x-user': 'ann', ...headers },
    })
    return [response.status, (await response.json()).error?.code]
  }
  expect(await post({})).toEqual([409, 'run-ended'])
  expect(await post({ origin: 'https://evil.example' })).toEqual([403, 'invalid-request'])
  expect(await post({ 'content-type': 'text/plain' })).toEqual([415, 'invalid-request'])
  expect(await post({}, '{"threadId":"t","runId":"r","resume":[]}')).toEqual([400, 'invalid-request'])
  expect(await post({}, '[]')).toEqual([400, 'invalid-request'])
  expect((await fetch(url)).status).toBe(405)
  const anonymous = await fetch(url, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  })
  expect(anonymous.status).toBe(403)
})
