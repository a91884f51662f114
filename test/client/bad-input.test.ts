import { ChatClient, type Connection, fetchHttpStream, fetchServerSentEvents } from '@countersign/client'
import {
  ask,
  bytes,
  call,
  createTimeline,
  cut,
  end,
  event,
  gated,
  type RunScript,
  resolve,
  respond,
  result,
  type Steps,
  started,
  text,
  textDelta,
  textStart,
  until,
  watch,
} from '@countersign/testing'
import { scriptedServer } from '@countersign/testing/server'
import { describe, expect, onTestFailed, onTestFinished, test, vi } from 'vitest'
import { answersOf, callOf, failOnUnhandledRejections, saidBy, stateOf } from './open-chat.js'

failOnUnhandledRejections()

const limit = 100_000

interface Wire {
  readonly name: string
  readonly connect: (url: string) => Connection
  /** Raw text as one whole event of that wire. */
  readonly framed: (data: string) => string
}

const wires: readonly Wire[] = [
  {
    name: 'server-sent events',
    connect: (url) => fetchServerSentEvents(url, { maxEventBytes: limit }),
    framed: (data) => `data: ${data}\n\n`,
  },
  {
    name: 'JSON lines',
    connect: (url) => fetchHttpStream(url, { maxEventBytes: limit }),
    framed: (data) => `${data}\n`,
  },
]

async function openOver(wire: Wire, runs: readonly RunScript[]) {
  const timeline = createTimeline()
  const server = await scriptedServer(runs, { timeline })
  const onError = vi.fn()
  const onEvent = vi.fn()
  const onWarning = vi.fn()
  const client = new ChatClient({ connection: wire.connect(server.url), onError, onEvent, onWarning })
  onTestFailed(() => console.log(timeline.print()))
  onTestFinished(async () => {
    client.dispose()
    await server.close()
  })
  watch(client, timeline)
  return { client, person: client.actions, server, onError, onEvent, onWarning }
}

const page = '<!doctype html><html><body><script>alert(1)</script>Bad gateway</body></html>'

/** Each fault, what it has to be called, and whether the server had begun its run when it came. */
const faults: readonly [name: string, steps: (wire: Wire) => Steps, code: string, begun: boolean][] = [
  [
    'an event that is not JSON',
    ({ framed }) => [started(), bytes(framed('{"type": "TEXT_MESS'))],
    'malformed-event',
    true,
  ],
  [
    'an event that is JSON but no event',
    ({ framed }) => [started(), bytes(framed('[1, 2]'))],
    'malformed-event',
    true,
  ],
  [
    'an event with a wrong value',
    ({ framed }) => [started(), bytes(framed('{"type":"TEXT_MESSAGE_START","messageId":7}'))],
    'malformed-event',
    true,
  ],
  [
    'bytes that are not UTF-8 text of an event',
    ({ framed }) => [bytes(framed('\u0000\u0001'))],
    'malformed-event',
    false,
  ],
  [
    'HTTP 500 with JSON',
    () => [respond(500, '{"code":"model-failed","message":"No model."}')],
    'http-status',
    false,
  ],
  ['HTTP 500 with HTML', () => [respond(500, page, 'text/html')], 'http-status', false],
  ['HTTP 401', () => [respond(401, '{"code":"approval-not-yours"}')], 'http-status', false],
  [
    'a page in place of a stream',
    () => [respond(200, page, 'text/html; charset=utf-8')],
    'not-an-event-stream',
    false,
  ],
  ['JSON in place of a stream', () => [respond(200, '{"answer":42}')], 'not-an-event-stream', false],
  [
    'a connection cut in mid-delta',
    () => [textStart(), textDelta('I am go'), cut()],
    'connection-failed',
    true,
  ],
  ['a connection cut before anything', () => [cut()], 'connection-failed', false],
  ['an empty body', () => [end()], 'empty-response', false],
  [
    'a body of keep-alive comments alone',
    ({ name }) => [bytes(name === 'JSON lines' ? '\n\n' : ': ping\n\n: ping\n\n'), end()],
    'empty-response',
    false,
  ],
  ['a run that just stops', () => [textStart(), textDelta('I am'), end()], 'truncated-stream', true],
  [
    'a body that ends inside an event',
    () => [started(), bytes('data: {"type":"TEXT_'), end()],
    'truncated-stream',
    true,
  ],
  [
    'an oversized event',
    ({ framed }) => [
      started(),
      bytes(framed(JSON.stringify({ type: 'CUSTOM', name: 'x', value: 'x'.repeat(limit) }))),
    ],
    'event-too-large',
    true,
  ],
  [
    'an oversized event that never ends',
    () => [started(), bytes(`data: ${'x'.repeat(2 * limit)}`)],
    'event-too-large',
    true,
  ],
  [
    'events in an order that is not legal',
    () => [event({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'never', delta: 'x' })],
    'protocol-violation',
    true,
  ],
  [
    'the events of another run',
    () => [event({ type: 'RUN_STARTED', threadId: 'other', runId: 'other' })],
    'protocol-violation',
    false,
  ],
  [
    'events after the end of the run',
    () => [text('Hi.'), { step: 'finish', options: {} }, textStart()],
    'protocol-violation',
    true,
  ],
  ['an error before the run began', () => [event({ type: 'RUN_ERROR', message: 'No.' })], 'run-error', false],
]

describe.each(wires)('over $name', (wire) => {
  test.each(faults)('%s: a typed error, a chat that goes on, everything intact', async (_, steps, code) => {
    const { client, person, server, onError } = await openOver(wire, [
      [text('Hello.')],
      steps(wire),
      [text('There you are.')],
    ])
    await person.sendMessage('hi')
    const before = client.getSnapshot().messages
    expect(await person.sendMessage('again')).toMatchObject({
      status: 'failed',
      error: { name: 'CountersignError', code },
    })
    const after = client.getSnapshot()
    expect(after).toMatchObject({ status: 'error', isLoading: false, error: { code } })
    expect(onError.mock.calls.map(([error]) => error)).toEqual([after.error])
    expect(after.error?.message).not.toContain('<script>')
    expect(before.every((message, index) => after.messages[index] === message)).toBe(true)
    expect(saidBy(client, 'user')).toBe('hi again')
    await person.retry()
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(saidBy(client)).toMatch(/There you are\.$/)
    expect(server.requests).toHaveLength(3)
    expect(await person.sendMessage('').then(({ status }) => status)).toBe('refused')
  })

  test.each(faults)(
    '%s, in the continuation that carried one answer of two chains: no answer and no request is lost',
    async (_, steps, code, begun) => {
      const { client, person, server } = await openOver(wire, [
        gated(1),
        steps(wire),
        [resolve(), text('Done.')],
      ])
      await person.sendMessage('go')
      const answered = await person.addToolApprovalResponse({ id: 'a1', approved: true, reason: 'fine' })
      expect(answered).toMatchObject({ status: 'failed', error: { code } })
      expect(callOf(client, 'c1')).toMatchObject({
        state: 'approval-responded',
        approval: { approved: true, reason: 'fine', delivery: begun ? 'unknown' : 'waiting' },
      })
      await person.retry()
      expect(answersOf(server)).toEqual([[], ['a1 yes (fine)'], ['a1 yes (fine)']])
      expect(server.requests[2]?.resume).toEqual(server.requests[1]?.resume)
      expect(stateOf(client, 'c1')).toBe('complete')
    },
  )

  test.each(faults.filter(([, , , begun]) => begun))(
    '%s, after it asked: the request stays and can be answered',
    async (_, steps, code) => {
      const { client, person, server } = await openOver(wire, [
        [gated(1), steps(wire).filter((step) => !('step' in step && step.step === 'finish'))],
        [resolve(), text('Done.')],
      ])
      await person.sendMessage('go')
      expect(client.getSnapshot()).toMatchObject({
        status: 'error',
        error: { code: expect.stringMatching(/^[a-z-]+$/) },
      })
      expect(code).toBeTypeOf('string')
      expect(stateOf(client, 'c1')).toBe('approval-requested')
      expect(client.getSnapshot().pendingApprovals).toEqual([callOf(client, 'c1')])
      expect(await person.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
      expect(answersOf(server)).toEqual([[], ['a1 yes']])
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    },
  )

  test("HTTP errors carry the status and the server's own code, kept short", async () => {
    const { client, person } = await openOver(wire, [
      [respond(413, `{"code":"request-too-large","message":"${'x'.repeat(10_000)}"}`)],
    ])
    await person.sendMessage('go')
    const { error } = client.getSnapshot()
    expect(error?.data).toMatchObject({ status: 413, body: expect.stringContaining('request-too-large') })
    expect(String(error?.data['body']).length).toBeLessThanOrEqual(1000)
    expect(error?.message).toMatch(/413/)
  })

  test('an event of unknown type leaves no error, only onEvent', async () => {
    const news = { type: 'NEWS_FLASH', headline: 'x' }
    const { client, person, onEvent, onError } = await openOver(wire, [
      [event(news), text('Hello.'), event(news)],
    ])
    expect(await person.sendMessage('go')).toEqual({ status: 'sent' })
    expect(onEvent.mock.calls.map(([given]) => given)).toEqual([news, news])
    expect(onError).not.toHaveBeenCalled()
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(saidBy(client)).toBe('Hello.')
  })

  test('a result for an unknown call leaves no error, only onEvent and a warning', async () => {
    const { client, person, onEvent, onWarning, onError } = await openOver(wire, [
      [text('Hello.'), result('nothing', 1)],
    ])
    expect(await person.sendMessage('go')).toEqual({ status: 'sent' })
    expect(onEvent).toHaveBeenCalledWith(
      expect.objectContaining({ type: 'TOOL_CALL_RESULT', toolCallId: 'nothing' }),
    )
    expect(onWarning).toHaveBeenCalledTimes(1)
    expect(onError).not.toHaveBeenCalled()
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  })

  test.each(['event', 'interrupt', 'both'] as const)(
    'a request for approval of an unknown call (by %s) is shown as it says, and leaves no error',
    async (by) => {
      const { client, person, onEvent, onError } = await openOver(wire, [
        [text('Hello.'), ask('a1', 'nothing', { by })],
        [text('Fine.')],
      ])
      expect(await person.sendMessage('go')).toEqual({ status: 'sent' })
      expect(onEvent).not.toHaveBeenCalled()
      expect(onError).not.toHaveBeenCalled()
      expect(client.getSnapshot()).toMatchObject({
        status: 'awaiting-approval',
        error: undefined,
        pendingApprovals: [{ id: 'nothing', input: {}, approval: { id: 'a1' } }],
      })
      expect(await person.sendMessage('and?')).toEqual({ status: 'sent' })
    },
  )

  test('unknown fields and a newer version of the protocol leave a warning and nothing else', async () => {
    const { client, person, onWarning } = await openOver(wire, [
      (input) => [
        event({
          type: 'RUN_STARTED',
          threadId: input.threadId,
          runId: input.runId,
          protocolVersion: '7.2',
          mood: 'good',
        }),
        text('Hello.'),
      ],
    ])
    expect(await person.sendMessage('go')).toEqual({ status: 'sent' })
    expect(onWarning.mock.calls.length).toBeGreaterThanOrEqual(2)
    expect(saidBy(client)).toBe('Hello.')
  })

  test('a malformed request for approval leaves a warning, and a proper one after it works', async () => {
    const broken = ['nonsense', null, {}, { toolCallId: 'c1' }, { toolCallId: 'c1', approval: { id: 7 } }]
    const { client, person, onWarning } = await openOver(wire, [
      [
        call('c1', 'x'),
        broken.map((value) => event({ type: 'CUSTOM', name: 'approval-requested', value })),
        ask('a1', 'c1'),
      ],
      [resolve()],
    ])
    await person.sendMessage('go')
    expect(onWarning).toHaveBeenCalledTimes(broken.length)
    expect(client.getSnapshot().pendingApprovals).toHaveLength(1)
    expect(await person.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
  })
})

test('a server that cannot be reached is a connection-failed, and retry works once it is there', async () => {
  const gone = await scriptedServer([])
  const { url } = gone
  await gone.close()
  const client = new ChatClient({ connection: fetchServerSentEvents(url) })
  expect(await client.sendMessage('go')).toMatchObject({
    status: 'failed',
    error: { code: 'connection-failed' },
  })
  const server = await scriptedServer([[text('Hello.')]])
  onTestFinished(() => server.close())
  client.setOptions({ connection: fetchServerSentEvents(server.url) })
  await client.retry()
  await until(client, ({ status }) => status === 'ready')
  expect(saidBy(client)).toBe('Hello.')
})

test("a connection of one's own that throws at once, rejects or yields nonsense is an error like any other", async () => {
  const broken: Connection['connect'][] = [
    () => {
      throw new TypeError('no')
    },
    () => undefined as unknown as AsyncIterable<unknown>,
    async function* () {
      yield 'nonsense'
    },
    async function* () {
      yield null
    },
  ]
  for (const connect of broken) {
    const client = new ChatClient({ connection: { connect } })
    const sent = await client.sendMessage('go')
    expect(sent).toMatchObject({ status: 'failed', error: { name: 'CountersignError' } })
    expect(client.getSnapshot()).toMatchObject({ status: 'error', isLoading: false })
  }
})
