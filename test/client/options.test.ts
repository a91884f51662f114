import {
  ChatClient,
  type ChatClientOptions,
  clientTool,
  createChatClients,
  fetchServerSentEvents,
  stream,
} from '@countersign/client'
import { tabs } from '@countersign/client/tabs'
import { webStorage } from '@countersign/client/web-storage'
import type { AGUIEvent } from '@countersign/core'
import {
  action,
  custom,
  event,
  gated,
  hold,
  resolve,
  scriptedConnection,
  text,
  textDelta,
  textStart,
  until,
} from '@countersign/testing'
import { scriptedServer } from '@countersign/testing/server'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { callOf, failOnUnhandledRejections, openChat, parts, saidBy, stateOf, wires } from './open-chat.js'

failOnUnhandledRejections()

const approve = (id: string) => ({ id, approved: true })

describe('the constructor', () => {
  test('does nothing that can be observed: no fetch, no timer, no listener, no call of an option', () => {
    const spies = [
      vi.spyOn(globalThis, 'fetch'),
      vi.spyOn(globalThis, 'setTimeout'),
      vi.spyOn(globalThis, 'setInterval'),
      vi.spyOn(globalThis, 'queueMicrotask'),
      vi.spyOn(EventTarget.prototype, 'addEventListener'),
    ]
    const connect = vi.fn()
    const callbacks = {
      onError: vi.fn(),
      onEvent: vi.fn(),
      onFinish: vi.fn(),
      onWarning: vi.fn(),
      now: vi.fn(() => 0),
    }
    const execute = vi.fn()
    const tool = clientTool({ name: 't', description: 't', input: z.object({}), execute })
    new ChatClient({
      connection: { connect },
      ...callbacks,
      tools: [tool],
      initialMessages: [pendingMessage],
      threadId: 't1',
    })
    new ChatClient({ connection: fetchServerSentEvents('/api/chat') })
    for (const spy of [...spies, connect, execute, ...Object.values(callbacks)])
      expect(spy).not.toHaveBeenCalled()
    vi.restoreAllMocks()
  })

  test.each([
    ['connection', {}],
    ['connection', { connection: '/api/chat' }],
    ['connection', { connection: {} }],
    ['onPendingMessage', { onPendingMessage: 'ask' }],
    ['maxContinuations', { maxContinuations: -1 }],
    ['maxContinuations', { maxContinuations: Number.NaN }],
    ['threadId', { threadId: '' }],
    ['threadId', { threadId: 7 }],
    ['initialMessages', { initialMessages: 'hello' }],
    ['tools', { tools: {} }],
    ['notify', { notify: 'sometimes' }],
    ['notify', { notify: -5 }],
    ['onError', { onError: 'log' }],
    ['generateId', { generateId: 7 }],
    ['now', { now: 12 }],
    ['headers', { headers: 'x-a: b' }],
    ['persistence', { threadId: 't', persistence: { load() {}, save() {}, remove() {} } }],
    ['persistence', { threadId: 't', persistence: 'localStorage' }],
    ['maxContinuations', { maxContinuations: '5' }],
  ])('refuses a bad option by its name: %s', (option, given) => {
    const make = () =>
      new ChatClient({ connection: scriptedConnection([]), ...given } as unknown as ChatClientOptions)
    const broken = () => new ChatClient(given as unknown as ChatClientOptions)
    expect(option === 'connection' ? broken : make).toThrow(
      expect.objectContaining({
        code: 'invalid-option',
        data: { option },
        message: expect.stringContaining(`\`${option}\``),
      }),
    )
  })

  test('refuses no options at all in the same way', () => {
    const construct = ChatClient as unknown as new () => unknown
    expect(() => new construct()).toThrow(expect.objectContaining({ code: 'invalid-option' }))
  })

  test('takes a name that reads like a number below zero', () => {
    expect(new ChatClient({ connection: stream(async function* () {}), threadId: '-12' }).threadId).toBe(
      '-12',
    )
  })
})

describe('setOptions', () => {
  test('takes effect when the option is next used: connection, headers, forwardedProps, tools, callbacks', async () => {
    const second = scriptedConnection([[text('from the second')]])
    const { client, person, server } = await openChat('in-process', [[hold(), text('from the first')]])
    const finished = vi.fn()
    const sent = person.sendMessage('go')
    client.setOptions({ connection: second, forwardedProps: { model: 'big' }, onFinish: finished })
    server.release()
    await sent
    expect(saidBy(client)).toBe('from the first')
    expect(finished).toHaveBeenCalledTimes(1)
    await person.sendMessage('again')
    expect(second.requests[0]).toMatchObject({ forwardedProps: { model: 'big' }, threadId: client.threadId })
    expect(saidBy(client)).toMatch(/from the second$/)
  })

  test('checks what it is given and then changes nothing', async () => {
    const { client, person } = await openChat('in-process', [[text('Hello.')]])
    const setBadly = () =>
      client.setOptions({ onPendingMessage: 'never' } as unknown as Parameters<typeof client.setOptions>[0])
    expect(setBadly).toThrow(
      expect.objectContaining({ code: 'invalid-option', data: { option: 'onPendingMessage' } }),
    )
    await person.sendMessage('go')
    expect(client.getSnapshot().status).toBe('ready')
  })

  test('onPendingMessage counts at the moment of speaking', async () => {
    const { client, person } = await openChat('in-process', [gated(1)])
    await person.sendMessage('go')
    client.setOptions({ onPendingMessage: 'reject' })
    expect(await person.sendMessage('hello')).toMatchObject({ status: 'refused' })
    client.setOptions({ onPendingMessage: 'queue' })
    expect(await person.sendMessage('hello')).toMatchObject({ status: 'queued' })
  })

  test('headers are sent with each request over HTTP, as they are then', async () => {
    const server = await scriptedServer([[text('1')], [text('2')]])
    onTestFinished(() => server.close())
    const client = new ChatClient({
      connection: fetchServerSentEvents(server.url),
      headers: { 'x-tenant': 'a' },
    })
    await client.sendMessage('1')
    client.setOptions({ headers: { 'x-tenant': 'b' } })
    await client.sendMessage('2')
    expect([server.headers(1)['x-tenant'], server.headers(2)['x-tenant']]).toEqual(['a', 'b'])
    expect(server.headers(1)).toMatchObject({
      accept: 'text/event-stream',
      'content-type': 'application/json',
    })
  })
})

describe.each(wires)('callbacks, %s', (wire) => {
  test('S4.91 S4.93 onApprovalRequest hears of each request once, with everything a page needs', async () => {
    const onApprovalRequest = vi.fn()
    const { person } = await openChat(
      wire,
      [[gated(1), gated(2, 'send_mail', { to: 'team' })], [resolve()]],
      { onApprovalRequest },
    )
    await person.sendMessage('go')
    expect(onApprovalRequest.mock.calls.map(([request]) => request)).toMatchObject([
      {
        messageId: 'm1',
        toolCallId: 'c1',
        toolName: 'delete_file',
        input: { path: '1.log' },
        approvalId: 'a1',
        approval: { id: 'a1' },
      },
      { messageId: 'm1', toolCallId: 'c2', toolName: 'send_mail', input: { to: 'team' }, approvalId: 'a2' },
    ])
  })

  test('S4.91 a request for an unknown call is announced to nobody', async () => {
    const onApprovalRequest = vi.fn()
    const onWarning = vi.fn()
    const unknown = { toolCallId: 'nothing', approval: { id: 'a1', options: ['deny', 'once'] } }
    const { client, person } = await openChat(wire, [[text('hm'), custom('approval-requested', unknown)]], {
      onApprovalRequest,
      onWarning,
    })
    await person.sendMessage('go')
    expect(onApprovalRequest).not.toHaveBeenCalled()
    expect(onWarning).toHaveBeenCalledTimes(1)
    expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-answer', pendingApprovals: [] })
  })

  test("S4.94 onEvent hears of the application's own events and never of a request", async () => {
    const onEvent = vi.fn()
    const { person } = await openChat(
      wire,
      [
        [
          custom('weather', { sky: 'blue' }),
          gated(1),
          event({ type: 'STEP_STARTED', stepName: 's' }),
          event({ type: 'STEP_FINISHED', stepName: 's' }),
        ],
      ],
      { onEvent },
    )
    await person.sendMessage('go')
    const names = onEvent.mock.calls.map(([given]) => given.name ?? given.type)
    expect(names).toEqual(['weather', 'STEP_STARTED', 'STEP_FINISHED'])
  })

  test('S4.95 U.13 pendingApprovals is computed from the messages: without its message a request is gone from every view', async () => {
    const { client, person, settle, server } = await openChat(wire, [gated(1)])
    await person.sendMessage('go')
    const [request] = client.getSnapshot().pendingApprovals
    expect(request).toBe(callOf(client, 'c1'))
    person.setMessages(client.getSnapshot().messages.slice(0, 1))
    expect(client.getSnapshot()).toMatchObject({ pendingApprovals: [], status: 'ready' })
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'not-found' })
    await settle()
    expect(server.requests).toHaveLength(1)
  })

  test('onFinish tells the messages, the reason and the outcome of every run that ended well', async () => {
    const onFinish = vi.fn()
    const { client, person } = await openChat(wire, [gated(1), [resolve(), text('Done.')]], { onFinish })
    await person.sendMessage('go')
    await person.addToolApprovalResponse(approve('a1'))
    expect(onFinish.mock.calls.map(([info]) => [info.reason, info.outcome])).toEqual([
      ['tool_calls', 'interrupt'],
      ['stop', 'success'],
    ])
    expect(onFinish.mock.calls[1]?.[0].messages).toEqual(client.getSnapshot().messages)
  })

  test('callbacks and listeners that throw stop nobody and break nothing', async () => {
    const reported = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => reported.mockRestore())
    const careless = () => {
      throw new Error('careless')
    }
    const { client, person, server } = await openChat(
      wire,
      [
        [custom('x', 1), event({ type: 'NEWS' }), gated(1)],
        [resolve(), text('Done.')],
        [event({ type: 'TEXT_MESSAGE_END', messageId: 'never' })],
        [text('Fine.')],
      ],
      {
        onApprovalRequest: careless,
        onEvent: careless,
        onFinish: careless,
        onError: careless,
        onWarning: careless,
      },
    )
    client.subscribe(careless)
    const heard = vi.fn()
    client.subscribe(heard)
    expect(await person.sendMessage('go')).toEqual({ status: 'sent' })
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
    expect(await person.sendMessage('more')).toMatchObject({
      status: 'failed',
      error: { code: 'protocol-violation' },
    })
    expect(await person.sendMessage('more')).toEqual({ status: 'sent' })
    expect(heard).toHaveBeenCalled()
    expect(server.requests).toHaveLength(4)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(reported).toHaveBeenCalled()
  })

  test('a callback may call the client: an answer in onApprovalRequest is sent after its stream', async () => {
    const { client, person, server } = await openChat(
      wire,
      [
        [...gated(1), text('wait')],
        [resolve(), text('Done.')],
      ],
      {
        onApprovalRequest: ({ approvalId }) => void person.addToolApprovalResponse(approve(approvalId)),
      },
    )
    await person.sendMessage('go')
    await until(client, ({ isLoading }) => !isLoading && server.requests.length === 2)
    expect(saidBy(client)).toBe('wait Done.')
    expect(server.mostStreams).toBe(1)
  })

  test('a callback may call the client: a message sent in onFinish follows, one stream at a time', async () => {
    let rest = 2
    const { client, person, server } = await openChat(wire, [[text('1')], [text('2')], [text('3')]], {
      onFinish: () => {
        if (rest-- > 0) void person.sendMessage('more')
      },
    })
    await person.sendMessage('go')
    await until(client, () => saidBy(client) === '1 2 3')
    expect(server.mostStreams).toBe(1)
    expect(server.requests).toHaveLength(3)
  })

  test('a callback may call the client: retry in onError repeats the request', async () => {
    const { client, person, server } = await openChat(
      wire,
      [[{ step: 'cut', message: 'gone' }], [text('Now.')]],
      {
        onError: () => void person.retry(),
      },
    )
    await person.sendMessage('go')
    await until(client, ({ isLoading }) => !isLoading && server.requests.length === 2)
    expect(saidBy(client)).toBe('Now.')
    expect(client.getSnapshot().error).toBeUndefined()
  })
})

test('a listener may act: its action applies at once and is told of in the next round', async () => {
  const { client, person, server } = await openChat('in-process', [
    [...gated(1), hold()],
    [resolve(), text('Done.')],
  ])
  const rounds: string[] = []
  client.subscribe(() => {
    const [request] = client.getSnapshot().pendingApprovals
    rounds.push(stateOf(client, 'c1') ?? 'none')
    if (request?.approval) {
      void person.addToolApprovalResponse(approve(request.approval.id))
      expect(stateOf(client, 'c1')).toBe('approval-responded')
      rounds.push('acted')
    }
  })
  void person.sendMessage('go')
  await server.held()
  server.release()
  await until(client, () => saidBy(client) === 'Done.')
  const acted = rounds.indexOf('acted')
  expect(rounds[acted - 1]).toBe('approval-requested')
  expect(rounds[acted + 1]).toBe('approval-responded')
  expect(rounds.filter((round) => round === 'acted')).toHaveLength(1)
})

test('what arrives together is told together, requests included; notify sync tells of every event', async () => {
  const ids = Array.from({ length: 50 }, (_, i) => `${i}`)
  const requests = ids.flatMap((id): AGUIEvent[] => [
    { type: 'TOOL_CALL_START', toolCallId: `c${id}`, toolCallName: 'rm' },
    { type: 'TOOL_CALL_ARGS', toolCallId: `c${id}`, delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: `c${id}` },
    {
      type: 'CUSTOM',
      name: 'approval-requested',
      value: { toolCallId: `c${id}`, toolName: 'rm', input: {}, approval: { id: `a${id}` } },
    },
  ])
  for (const [notify, least, most] of [
    ['sync', requests.length, requests.length + 10],
    [undefined, 1, 10],
  ] as const) {
    const asked: string[] = []
    const client = new ChatClient({
      connection: stream(async function* ({ threadId, runId }) {
        yield { type: 'RUN_STARTED', threadId, runId }
        yield requests
        yield { type: 'RUN_FINISHED', threadId, runId }
      }),
      onApprovalRequest: ({ approvalId }) => void asked.push(approvalId),
      ...(notify && { notify }),
    })
    let told = 0
    client.subscribe(() => told++)
    await client.sendMessage('go')
    expect(client.getSnapshot().pendingApprovals).toHaveLength(ids.length)
    expect(asked).toEqual(ids.map((id) => `a${id}`))
    expect(told).toBeGreaterThanOrEqual(least)
    expect(told).toBeLessThanOrEqual(most)
  }
})

test('notify sync tells of every delta, a microtask gathers those of one tick', async () => {
  for (const [notify, expected] of [
    ['sync', ['a', 'ab', 'abc']],
    ['microtask', ['abc']],
  ] as const) {
    const burst = stream(async function* ({ threadId, runId }) {
      yield { type: 'RUN_STARTED', threadId, runId }
      yield { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' }
      yield ['a', 'b', 'c'].map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT' as const, messageId: 'm', delta }))
      yield { type: 'TEXT_MESSAGE_END', messageId: 'm' }
      yield { type: 'RUN_FINISHED', threadId, runId }
    })
    const client = new ChatClient({ connection: burst, notify })
    const seen = new Set<string>()
    client.subscribe(() => seen.add(saidBy(client)))
    await client.sendMessage('go')
    expect(saidBy(client)).toBe('abc')
    expect([...seen].filter((words) => words !== '')).toEqual(expected)
  }
})

test('with no option for it growth is told at the latest before what follows it', async () => {
  const { client, person } = await openChat('in-process', [
    [
      textStart(),
      textDelta('one'),
      action('look', () => {}),
      textDelta(' two'),
      { step: 'text-end' },
      ...gated(1),
    ],
  ])
  let whenAsked = ''
  client.subscribe(() => {
    if (whenAsked === '' && client.getSnapshot().pendingApprovals.length > 0) whenAsked = saidBy(client)
  })
  await person.sendMessage('go')
  expect(whenAsked).toBe('one two')
})

test('actions may be passed around without their object and stay the same', async () => {
  const { client } = await openChat('in-process', [[text('Hello.')]])
  const { sendMessage, stop } = client
  expect(client.actions).toBe(client.actions)
  expect(client.actions.sendMessage).toBe(sendMessage)
  await sendMessage('go')
  stop()
  expect(saidBy(client)).toBe('Hello.')
})

test('invariant 11: a message that was not touched stays the same object, also through approvals and results', async () => {
  const { client, person } = await openChat('in-process', [
    [text('Hello.')],
    gated(1),
    [resolve(), text('Done.')],
  ])
  await person.sendMessage('hi')
  const before = client.getSnapshot().messages
  await person.sendMessage('go')
  await person.addToolApprovalResponse(approve('a1'))
  const after = client.getSnapshot().messages
  expect(after.slice(0, before.length).every((message, index) => message === before[index])).toBe(true)
  expect(client.getSnapshot()).toBe(client.getSnapshot())
  expect(parts(client).length).toBeGreaterThan(before.length)
})

const pendingMessage = {
  id: 'm1',
  role: 'assistant',
  parts: [
    {
      type: 'tool-call',
      id: 'c1',
      name: 'delete_file',
      arguments: '{}',
      input: {},
      state: 'approval-requested',
      approval: {
        id: 'a1',
        needsApproval: true,
        options: ['deny', 'once'],
        expiresAt: '2020-01-01T00:00:00Z',
      },
    },
  ],
} as const

test('what cannot change stays with a client when the page that brought it has gone', () => {
  const clients = createChatClients({ connection: scriptedConnection([]) })
  const own = { threadId: 't', persistence: webStorage(), tabs: tabs(), initialState: 1, forwardedProps: 2 }
  const client = clients.get(own)
  const setOptions = vi.spyOn(client, 'setOptions')
  const page = {}
  clients.follow(client, page, own)
  clients.leave(client, page)
  expect(setOptions.mock.calls).toEqual([[{ forwardedProps: 2 }], [{ forwardedProps: undefined }]])
})
