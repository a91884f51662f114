import { approvalView, ChatClient, type ChatClientOptions } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { clientTool, type Message, type ToolCallPart } from '@countersign/core'
import {
  ask,
  call,
  cut,
  error,
  event,
  finish,
  gated,
  hold,
  passMacrotasks,
  type RunScript,
  resolve,
  result,
  scriptedConnection,
  text,
  textDelta,
  textStart,
  until,
} from '@countersign/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { callOf, failOnUnhandledRejections, parts, stateOf } from './open-chat.js'

failOnUnhandledRejections()

function open(runs: readonly RunScript[], options: Partial<ChatClientOptions> = {}) {
  const connection = scriptedConnection(runs)
  const client = new ChatClient({ connection, notify: 'sync', ...options })
  onTestFinished(() => client.dispose())
  return { client, connection }
}

const approve = (id: string) => ({ id, approved: true })

/** What careless code does to what it was handed, past the types. */
function tamper(change: () => void): void {
  try {
    change()
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
  }
}

// biome-ignore lint/suspicious/noExplicitAny: code without types is what this is about
const untyped = (value: unknown): any => value

describe('what is shown of a question cannot be changed by the page that shows it', () => {
  const asking = [
    call('c1', 'send', { to: 'ada@example.com', lines: [{ text: 'Hello' }] }),
    ask('a1', 'c1', { display: { to: 'a***', lines: [] }, allowEdits: true }),
  ]
  const exact = { to: 'ada@example.com', lines: [{ text: 'Hello' }] }
  const isAsIs = (part: ToolCallPart) => {
    expect(part.input).toEqual(exact)
    expect(part.approval).toMatchObject({ display: { to: 'a***', lines: [] }, options: ['deny', 'once'] })
  }
  const change = (part: ToolCallPart) => {
    tamper(() => {
      untyped(part).input.to = 'eve@example.com'
    })
    tamper(() => untyped(part).input.lines.push({ text: 'more' }))
    tamper(() => {
      untyped(part).input.lines[0].text = 'Bye'
    })
    tamper(() => {
      untyped(part).input = {}
    })
    tamper(() => {
      untyped(part).approval.display.to = 'b***'
    })
    tamper(() => {
      untyped(part).approval.display = undefined
    })
    tamper(() => untyped(part).approval.options.push('session'))
  }

  test('arguments, display and options of a pending call are frozen', async () => {
    const { client } = open([asking])
    await client.sendMessage('send it')
    const before = callOf(client, 'c1')
    expect(() => {
      untyped(before).input.to = 'eve@example.com'
    }).toThrow(TypeError)
    change(before)
    isAsIs(callOf(client, 'c1'))
    for (const part of client.getSnapshot().pendingApprovals) isAsIs(part)
  })

  test('nor is what was changed while it streamed, or before it was asked about, shown as the question', async () => {
    const { client, connection } = open([
      [
        { step: 'call-start', id: 'c1', name: 'send' },
        { step: 'call-args', id: 'c1', delta: '{"to":"ada@example.com","lines":[{"text":"Hello"}]' },
        hold(),
        { step: 'call-args', id: 'c1', delta: '}' },
        { step: 'call-end', id: 'c1' },
        hold(),
        ask('a1', 'c1', { display: { to: 'a***', lines: [] } }),
      ],
    ])
    const sent = client.sendMessage('send it')
    await until(client, () => parts(client).length > 0)
    await passMacrotasks(4)
    change(callOf(client, 'c1'))
    connection.release()
    await until(client, () => callOf(client, 'c1').state === 'input-complete')
    change(callOf(client, 'c1'))
    connection.release()
    await sent
    isAsIs(callOf(client, 'c1'))
  })

  test('onApprovalRequest gets what cannot be changed', async () => {
    const { client } = open([asking], {
      onApprovalRequest: ({ input, approval }) => {
        tamper(() => {
          untyped(input).to = 'eve@example.com'
        })
        tamper(() => {
          untyped(approval).display.to = 'b***'
        })
      },
    })
    await client.sendMessage('send it')
    isAsIs(callOf(client, 'c1'))
  })

  test('a question that was stored, or handed in, is protected as one that was streamed', async () => {
    const first = open([asking])
    await first.client.sendMessage('send it')
    const messages = JSON.parse(JSON.stringify(first.client.getSnapshot().messages))
    const { client } = open([], { initialMessages: messages })
    change(callOf(client, 'c1'))
    isAsIs(callOf(client, 'c1'))
    client.setMessages(messages)
    change(callOf(client, 'c1'))
    isAsIs(callOf(client, 'c1'))
    // what was handed in still belongs to the page
    expect(messages.flatMap((message: { parts: unknown[] }) => message.parts).some(Object.isFrozen)).toBe(
      false,
    )
    const persistence = memoryPersistence()
    const stored = open([asking], { persistence, threadId: 't' })
    await stored.client.sendMessage('send it')
    stored.client.dispose()
    await passMacrotasks(4)
    const page = open([], { persistence, threadId: 't' })
    await page.client.restore()
    change(callOf(page.client, 'c1'))
    isAsIs(callOf(page.client, 'c1'))
  })

  test('an edit begins with a copy of the arguments, and what is given is what is sent', async () => {
    const { client, connection } = open([asking, [resolve()]])
    await client.sendMessage('send it')
    const { edit } = approvalView(callOf(client, 'c1')) ?? {}
    if (edit?.status !== 'offered') throw new Error('Nothing can be edited.')
    const spread = { ...untyped(edit.input), to: 'bob@example.com' }
    const cloned = untyped(structuredClone(edit.input))
    cloned.lines[0].text = 'Bye'
    const input = { ...spread, lines: cloned.lines }
    await client.addToolApprovalResponse({ ...approve('a1'), input })
    expect(connection.requests[1]?.resume?.[0]?.payload.editedArgs).toEqual({
      to: 'bob@example.com',
      lines: [{ text: 'Bye' }],
    })
  })

  test('an answer that waits is sent as it was given', async () => {
    const { client, connection } = open([[...asking, gated(2)].flat(), [resolve()]])
    await client.sendMessage('send it')
    const input = { to: 'bob@example.com', lines: [] }
    await client.addToolApprovalResponse({ ...approve('a1'), input })
    tamper(() => {
      untyped(callOf(client, 'c1')).approval.input.to = 'eve@example.com'
    })
    await client.addToolApprovalResponse(approve('a2'))
    expect(connection.requests[1]?.resume?.[0]?.payload.editedArgs).toEqual(input)
  })

  test('metadata that comes for a call that is asked about is still taken', async () => {
    const { client } = open([
      [
        event({
          type: 'TOOL_CALL_START',
          toolCallId: 'c1',
          toolCallName: 'send',
          parentMessageId: 'm',
          metadata: { a: 1 },
        }),
        event({ type: 'TOOL_CALL_END', toolCallId: 'c1' }),
        ask('a1', 'c1', { by: 'event', input: {} }),
        event({ type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'm', role: 'assistant', content: 'Well.' }] }),
        event({
          type: 'REASONING_ENCRYPTED_VALUE',
          subtype: 'tool-call',
          entityId: 'c1',
          encryptedValue: 'sealed',
        }),
      ],
    ])
    expect(await client.sendMessage('send it')).toEqual({ status: 'sent' })
    expect(callOf(client, 'c1').metadata).toEqual({ a: 1, countersign: { encryptedValue: 'sealed' } })
  })
})

describe('what an answer method says is so', () => {
  const begun = [resolve(), text('Deleting.'), hold()]

  test('after stop() an answer that the server has is `sent`', async () => {
    const { client } = open([gated(1), begun])
    await client.sendMessage('delete it')
    const answered = client.addToolApprovalResponse(approve('a1'))
    await until(client, ({ status }) => status === 'streaming')
    await passMacrotasks(4)
    client.stop()
    expect(await answered).toEqual({ status: 'sent' })
  })

  test.each([
    ['was confirmed', async () => {}, false],
    ['was not confirmed, but has its result', () => new Promise<void>(() => {}), true],
  ])('after stop() an answer into the open run that %s is `sent`', async (_, answer, release) => {
    const connection = Object.assign(scriptedConnection([[...gated(1), hold(), result('c1'), hold()]]), {
      answer,
    })
    const { client } = open([], { connection })
    void client.sendMessage('delete it')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    const answered = client.addToolApprovalResponse(approve('a1'))
    if (release) connection.release()
    await passMacrotasks(4)
    client.stop()
    expect(await answered).toEqual({ status: 'sent' })
  })

  test('after stop() a tool result that the server has is `sent`', async () => {
    const { client } = open([[call('c1', 'ask', {})], begun])
    await client.sendMessage('ask')
    const answered = client.addToolResult({ toolCallId: 'c1', output: 1 })
    await until(client, ({ status }) => status === 'streaming')
    await passMacrotasks(4)
    client.stop()
    expect(await answered).toEqual({ status: 'sent' })
  })

  test('after clear() an answer that was not sent is closed: it is not kept', async () => {
    const { client } = open([[...gated(1), hold()]])
    void client.sendMessage('delete it')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    const answered = client.addToolApprovalResponse(approve('a1'))
    client.clear()
    expect(await answered).toEqual({ status: 'closed', reason: 'cancelled' })
  })

  test('after clear() an answer that the server has is `sent`', async () => {
    const { client } = open([gated(1), begun])
    await client.sendMessage('delete it')
    const answered = client.addToolApprovalResponse(approve('a1'))
    await until(client, ({ status }) => status === 'streaming')
    await passMacrotasks(4)
    client.clear()
    expect(await answered).toEqual({ status: 'sent' })
  })

  test('after regenerate() an answer that was not sent is closed: the call is gone', async () => {
    const { client } = open([[...gated(1), hold()], [text('Otherwise.')]])
    void client.sendMessage('delete it')
    await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
    const answered = client.addToolApprovalResponse(approve('a1'))
    await client.regenerate()
    expect(await answered).toEqual({ status: 'closed', reason: 'cancelled' })
  })

  test('after dispose() an answer that was not sent is closed, unless the conversation is stored', async () => {
    for (const persistence of [undefined, memoryPersistence()]) {
      const { client } = open([[...gated(1), hold()]], { persistence, threadId: 't' })
      void client.sendMessage('delete it')
      await until(client, ({ pendingApprovals }) => pendingApprovals.length === 1)
      const answered = client.addToolApprovalResponse(approve('a1'))
      client.dispose()
      expect(await answered).toEqual(
        persistence ? { status: 'waiting' } : { status: 'closed', reason: 'cancelled' },
      )
    }
  })
})

describe('setOptions checks what it is given as the constructor does', () => {
  test('what is no object is refused', () => {
    const { client } = open([])
    const refusal = expect.objectContaining({ code: 'invalid-option' })
    for (const options of [null, undefined, 'onError', 1, [], () => {}])
      expect(() => client.setOptions(untyped(options))).toThrow(refusal)
  })

  test('an option that does not exist is refused by name, by both', () => {
    const { client, connection } = open([])
    const refusal = expect.objectContaining({
      code: 'invalid-option',
      data: { option: 'onFinsh' },
      message: expect.stringContaining('`onFinsh`'),
    })
    expect(() => client.setOptions(untyped({ onFinsh: () => {} }))).toThrow(refusal)
    expect(() => new ChatClient(untyped({ connection, onFinsh: () => {} }))).toThrow(refusal)
    expect(() => client.setOptions(untyped({ onFinsh: undefined }))).not.toThrow()
  })
})

describe('what has no JSON form is an error that says so, and not an empty object', () => {
  const values: Readonly<Record<string, unknown>> = {
    Map: new Map([['a', 1]]),
    Set: new Set([1]),
    Error: Object.assign(new Error('no'), { code: 'ENOENT' }),
    RegExp: /a/,
    Promise: Promise.resolve(1),
    Uint8Array: new Uint8Array(2),
    Response: new Response('ok'),
    Function: () => 1,
    NaN: Number.NaN,
    Infinity: Number.POSITIVE_INFINITY,
    ['__proto__']: JSON.parse('{"__proto__":{"admin":true}}'),
  }

  test.each(Object.entries(values))('a client tool whose result holds one: %s', async (name, value) => {
    for (const output of [[value], { deep: [value] }]) {
      const tool = clientTool({
        name: 'ask',
        description: '',
        input: z.object({}),
        execute: () => output,
      })
      const { client, connection } = open([[call('c1', 'ask', {}), finish()], [text('Done.')]], {
        tools: [tool],
      })
      await client.sendMessage('ask')
      await until(client, ({ status }) => status === 'ready')
      const said = `The result of "ask": What was given has no JSON form (${name}). Give plain objects and lists.`
      expect(callOf(client, 'c1').error?.message).toBe(said)
      expect(connection.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', error: said })
    }
  })

  test.each([Number('12,5'), Number.POSITIVE_INFINITY, () => 1, /a/])(
    'an edit that has one is refused, and the request stays open: %s',
    async (limit) => {
      const { client, connection } = open([
        [call('c1', 'pay', { limit: 5 }), ask('a1', 'c1', { allowEdits: true })],
      ])
      await client.sendMessage('pay')
      expect(await client.addToolApprovalResponse({ ...approve('a1'), input: { limit } })).toMatchObject({
        status: 'refused',
        reason: expect.stringContaining('no JSON form'),
      })
      expect(client.getSnapshot().status).toBe('awaiting-approval')
      expect(connection.requests).toHaveLength(1)
    },
  )

  test('addToolResult refuses it, and the call stays open', async () => {
    const { client } = open([[call('c1', 'ask', {})]])
    await client.sendMessage('ask')
    expect(await client.addToolResult({ toolCallId: 'c1', output: new Map() })).toMatchObject({
      status: 'refused',
      reason: expect.stringContaining('no JSON form (Map)'),
    })
    expect(callOf(client, 'c1').state).toBe('input-complete')
  })

  test('a Date, a class with fields and what has toJSON go on as JSON has them', async () => {
    class Point {
      readonly x = 1
    }
    const output = {
      at: new Date(0),
      point: new Point(),
      url: new URL('https://a.example/'),
      none: {},
      list: [],
    }
    const { client } = open([[call('c1', 'ask', {})], [text('Done.')]])
    await client.sendMessage('ask')
    expect(await client.addToolResult({ toolCallId: 'c1', output })).toEqual({ status: 'sent' })
    expect(callOf(client, 'c1').output).toEqual(JSON.parse(JSON.stringify(output)))
  })
})

test('of long arguments that stream in what is shown is made anew at intervals that grow, and in the end all is there', async () => {
  const whole = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key ${at}`, at]))
  const json = JSON.stringify(whole)
  const pieces = Array.from({ length: Math.ceil(json.length / 64) }, (_, at) =>
    json.slice(64 * at, 64 * at + 64),
  )
  const { client } = open([
    [
      event({ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'fill' }),
      ...pieces.map((delta) => event({ type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta })),
      event({ type: 'TOOL_CALL_END', toolCallId: 'c1' }),
      resolve(),
    ],
  ])
  const shown = new Set<unknown>()
  client.subscribe(() => {
    const part = parts(client).at(-1)
    if (part?.type === 'tool-call') shown.add(part.input)
  })
  await client.sendMessage('fill it in')
  expect(callOf(client, 'c1').input).toEqual(whole)
  // up to 64 KiB for each piece, then for each sixteenth more
  expect(shown.size).toBeGreaterThan(1000)
  expect(shown.size).toBeLessThan(1200)
})

describe('messages of another library are refused, and nothing of them is lost in silence', () => {
  test.each([
    { type: 'tool-weather', toolCallId: 'c1', state: 'output-available', input: {}, output: 1 },
    { type: 'dynamic-tool', toolName: 'weather', toolCallId: 'c1', state: 'input-available', input: {} },
    { type: 'step-start' },
    { type: 'file', mediaType: 'image/png', url: 'https://a.example/a.png' },
  ])('a part of the AI SDK: $type', (part) => {
    const messages = untyped([{ id: 'm1', role: 'assistant', parts: [part] }])
    const { client } = open([])
    const refusal = expect.objectContaining({ message: expect.stringContaining('fromAiSdkMessages') })
    expect(() => client.setMessages(messages)).toThrow(refusal)
    expect(() => open([], { initialMessages: messages })).toThrow(/messages/)
    expect(client.getSnapshot().messages).toEqual([])
  })
})

describe('a snapshot that has one id twice', () => {
  const snapshot = (...messages: Message[]) => event({ type: 'MESSAGES_SNAPSHOT', messages })
  const said = (id: string, content: string): Message => ({ id, role: 'assistant', content })
  const shown = (client: ChatClient) =>
    client
      .getSnapshot()
      .messages.filter(({ role }) => role === 'assistant')
      .map(({ id, parts }) => [id, parts.map((part) => ('text' in part ? part.text : part.type)).join()])

  test('shows both messages, the later one under the next free name, also when it comes again', async () => {
    const twice = [said('m', 'First.'), said('m', 'Second.'), said('m-2', 'Third.')]
    const { client } = open([[snapshot(...twice)], [snapshot(...twice)]])
    await client.sendMessage('hello')
    const expected = [
      ['m', 'First.'],
      ['m-2', 'Second.'],
      ['m-2-2', 'Third.'],
    ]
    expect(shown(client)).toEqual(expected)
    await client.sendMessage('once more')
    expect(shown(client)).toEqual(expected)
  })
})

test('what the user did is stored at once: a queued message, one taken back, a chat that was cleared', async () => {
  const stored = memoryPersistence()
  const { client } = open([[textStart(), textDelta('Once'), hold()]], {
    persistence: persistent(stored),
    threadId: 't',
  })
  // nothing is awaited in between but the storage itself, which takes a moment: `saveEvery` is two seconds
  const record = async () => {
    await passMacrotasks(8)
    return JSON.parse(stored.texts.get('t') ?? 'null')
  }
  void client.sendMessage('tell me')
  const { id } = (await client.sendMessage('and then?')) as { id: string }
  expect(await record()).toMatchObject({ queue: [{ id }] })
  client.cancelQueued(id)
  expect(await record()).toMatchObject({ queue: [] })
  client.clear()
  expect((await record())?.messages ?? []).toEqual([])
})

describe('a reload in the middle of an answer', () => {
  async function reloadedDuring(run: RunScript, more: readonly RunScript[] = []) {
    const stored = memoryPersistence()
    const { texts } = stored
    const first = open([run], { persistence: persistent(stored, { saveEvery: 0 }), threadId: 't' })
    void first.client.sendMessage('tell me')
    await until(first.client, () => parts(first.client).length > 1)
    await passMacrotasks(4)
    const copy = memoryPersistence()
    await vi.waitFor(() => expect(JSON.parse(texts.get('t') ?? '{}')).toMatchObject({ messages: [{}, {}] }))
    for (const [thread, record] of texts) copy.texts.set(thread, record)
    const second = open(more, { persistence: copy, threadId: 't' })
    await second.client.restore()
    return second
  }

  test('is told of as an error, and retry() asks for the whole answer', async () => {
    const { client, connection } = await reloadedDuring(
      [textStart(), textDelta('Once upon a'), hold()],
      [[text('Once upon a time.')]],
    )
    expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
    await client.retry()
    expect(connection.requests[0]?.messages.map(({ role }) => role)).toEqual(['user'])
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(parts(client).at(-1)).toMatchObject({ text: 'Once upon a time.' })
  })

  /** The page as it is after a reload at the moment when the first one shows what `isThere` says. */
  async function leftWhen(
    runs: readonly RunScript[],
    act: ((client: ChatClient) => void) | undefined,
    isThere: (client: ChatClient) => boolean,
    more: readonly RunScript[] = [],
  ) {
    const stored = memoryPersistence()
    const first = open(runs, { persistence: persistent(stored, { saveEvery: 0 }), threadId: 't' })
    void first.client.sendMessage('tell me')
    await until(first.client, ({ pendingApprovals }) => act === undefined || pendingApprovals.length > 0)
    act?.(first.client)
    await until(first.client, () => isThere(first.client))
    const stands = () => JSON.parse(stored.texts.get('t') ?? '{}').messages
    await vi.waitFor(() =>
      expect(stands()).toEqual(JSON.parse(JSON.stringify(first.client.getSnapshot().messages))),
    )
    await passMacrotasks(8)
    const copy = memoryPersistence()
    copy.texts.set('t', stored.texts.get('t') ?? '')
    const second = open(more, { persistence: copy, threadId: 't' })
    await second.client.restore()
    return second
  }

  test.each<[string, RunScript, number, string]>([
    ['before its first word', [hold()], 1, 'user'],
    ['after a text that has ended', [text('One moment.'), hold()], 2, 'user'],
    ['after a call of the server', [call('c1', 'search', {}), result('c1', 'x'), hold()], 2, 'tool'],
  ])('is told of %s', async (_, run, shown, asked) => {
    const { client, connection } = await leftWhen([run], undefined, (first) => parts(first).length >= shown, [
      [text('Once upon a time.')],
    ])
    expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
    await client.retry()
    expect(connection.requests[0]?.messages.at(-1)?.role).toBe(asked)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(parts(client).at(-1)).toMatchObject({ text: 'Once upon a time.' })
  })

  test('is told of after an approved call has run, and retry() goes on from its result', async () => {
    const { client, connection } = await leftWhen(
      [gated(1), [resolve(), hold()]],
      (first) => void first.addToolApprovalResponse(approve('a1')),
      (first) => stateOf(first, 'c1') === 'complete',
      [[text('It is done.')]],
    )
    expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
    await client.retry()
    expect(connection.requests.map(({ messages, resume }) => [messages.at(-1)?.role, resume])).toEqual([
      ['tool', undefined],
    ])
    expect(callOf(client, 'c1').state).toBe('complete')
    expect(parts(client).at(-1)).toMatchObject({ text: 'It is done.' })
  })

  test('is no error where the user is asked, or an answer is sent again: either goes on', async () => {
    const asked = await leftWhen(
      [[call('c1', 'send', {}), ask('a1', 'c1'), hold()]],
      undefined,
      ({ getSnapshot }) => getSnapshot().pendingApprovals.length > 0,
    )
    expect(asked.client.getSnapshot()).toMatchObject({ status: 'awaiting-approval', error: undefined })
    const answered = await leftWhen(
      [gated(1), [hold()]],
      (first) => void first.addToolApprovalResponse(approve('a1')),
      (first) => callOf(first, 'c1').approval?.delivery === 'sent',
      [[resolve()]],
    )
    expect(answered.client.getSnapshot().error).toBeUndefined()
    await answered.client.retry()
    expect(answered.connection.requests[0]?.resume).toMatchObject([
      { interruptId: 'a1', payload: { approved: true } },
    ])
  })

  /** The page after so many reloads of what was stored. */
  async function reloaded(stored: ReturnType<typeof memoryPersistence>, times: number) {
    for (let left = times; left > 1; left--) {
      const page = open([], { persistence: persistent(stored, { saveEvery: 0 }), threadId: 't' })
      await page.client.restore()
      page.client.dispose()
      await passMacrotasks(4)
    }
    const page = open([[text('Once upon a time.')]], { persistence: stored, threadId: 't' })
    await page.client.restore()
    return page
  }

  const broken: readonly [string, RunScript, number, string][] = [
    ['the network broke before the answer', [cut()], 1, 'connection-failed'],
    ['the network broke in the answer', [textStart(), textDelta('Once'), cut()], 2, 'connection-failed'],
    ['the server ended the run with an error', [text('Do not'), error('The model failed.')], 2, 'run-error'],
    [
      'the network broke after a tool had run',
      [call('c1', 'search', {}), result('c1', 'x'), cut()],
      3,
      'connection-failed',
    ],
  ]
  test.each(broken.flatMap((one) => [1, 2, 3].map((times) => [...one, times] as const)))(
    '%s: the error is there after a reload, and retry() asks again',
    async (_, run, shown, code, times) => {
      const stored = memoryPersistence()
      const first = open([run], { persistence: persistent(stored, { saveEvery: 0 }), threadId: 't' })
      await first.client.sendMessage('tell me')
      const { error: before } = first.client.getSnapshot()
      expect([before?.code, parts(first.client).length]).toEqual([code, shown])
      await passMacrotasks(4)
      const { client } = await reloaded(stored, times)
      const { status, error: after } = client.getSnapshot()
      expect([status, after?.code, after?.message]).toEqual(['error', code, before?.message])
      await client.retry()
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
      expect(parts(client).at(-1)).toMatchObject({ text: 'Once upon a time.' })
    },
  )

  test.each([1, 2, 3])(
    'is told of after %i reloads, and retry() asks for the whole answer',
    async (times) => {
      const stored = memoryPersistence()
      const { client: first } = open([[textStart(), textDelta('Once upon a'), hold()]], {
        persistence: persistent(stored, { saveEvery: 0 }),
        threadId: 't',
      })
      void first.sendMessage('tell me')
      await vi.waitFor(() => expect(stored.texts.get('t')).toContain('Once upon a'))
      const copy = memoryPersistence()
      copy.texts.set('t', stored.texts.get('t') ?? '')
      const { client } = await reloaded(copy, times)
      expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
      await client.retry()
      expect(parts(client).map((part) => part.type === 'text' && part.text)).toEqual([
        'tell me',
        'Once upon a time.',
      ])
    },
  )

  test('a stopped answer is no error after a reload', async () => {
    const stored = memoryPersistence()
    const { client: first } = open([[textStart(), textDelta('Once'), hold()]], {
      persistence: persistent(stored, { saveEvery: 0 }),
      threadId: 't',
    })
    void first.sendMessage('tell me')
    await until(first, () => parts(first).length > 1)
    first.stop()
    await passMacrotasks(4)
    const { client } = await reloaded(stored, 1)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  })

  test('is told of too where nothing of the answer had come', async () => {
    const stored = memoryPersistence()
    const connection = {
      connect: () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) }),
    }
    const left = open([], { connection, persistence: persistent(stored, { saveEvery: 0 }), threadId: 't' })
    void left.client.sendMessage('tell me')
    await vi.waitFor(() =>
      expect(JSON.parse(stored.texts.get('t') ?? '{}')).toMatchObject({ messages: [{}] }),
    )
    const { client } = open([[text('Once upon a time.')]], { persistence: stored, threadId: 't' })
    await client.restore()
    expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
    await client.retry()
    expect(parts(client).at(-1)).toMatchObject({ text: 'Once upon a time.' })
  })

  test('is not told of where a question waits: answering it goes on', async () => {
    const { client } = await reloadedDuring([text('Well.'), ...gated(1), hold()])
    expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-approval', error: undefined })
  })
})

test('a message that is sent while the stored conversation loads waits for a request that nobody has seen yet', async () => {
  const persistence = persistent(memoryPersistence())
  const stored = open([gated(1)], { persistence, threadId: 't' })
  await stored.client.sendMessage('delete it')
  stored.client.dispose()
  await passMacrotasks(4)
  const page = open([[resolve(), text('Done.')], [text('Hello.')]], {
    persistence,
    threadId: 't',
  })
  expect(await page.client.sendMessage('hello')).toMatchObject({ status: 'queued' })
  expect(callOf(page.client, 'c1').state).toBe('approval-requested')
  expect(page.connection.requests.length).toBe(0)
  expect(await page.client.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
  await until(page.client, ({ queue, status }) => queue.length === 0 && status === 'ready')
  expect(callOf(page.client, 'c1').approval?.approved).toBe(true)
  expect(page.connection.requests.length).toBe(2)
})
