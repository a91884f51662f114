import {
  ChatClient,
  type ChatClientOptions,
  clientTool,
  fetchServerSentEvents,
  type UIMessage,
} from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import type { AnyClientTool } from '@countersign/core'
import {
  ask,
  byHand,
  call,
  event,
  finish,
  gated,
  hold,
  passMacrotasks,
  resolve,
  scriptedConnection,
  text,
  textDelta,
  textEnd,
  textStart,
  until,
} from '@countersign/testing'
import * as v from 'valibot'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { callOf, failOnUnhandledRejections, stateOf } from './open-chat.js'

failOnUnhandledRejections()

/** Every change of a field of the snapshot, in order, as a subscriber sees it. */
function seen<T>(client: ChatClient, read: (client: ChatClient) => T): T[] {
  const values = [read(client)]
  client.subscribe(() => {
    const value = read(client)
    if (value !== values.at(-1)) values.push(value)
  })
  return values
}

const statusOf = (client: ChatClient) => client.getSnapshot().status

function open(options: ChatClientOptions) {
  const client = new ChatClient({ notify: 'sync', ...options })
  onTestFinished(() => client.dispose())
  return client
}

const locate = (execute: () => unknown, more: Partial<AnyClientTool> = {}): AnyClientTool => ({
  ...clientTool({ name: 'locate', description: 'Where', input: z.object({}), execute }),
  ...more,
})

describe('F25 the tools of a request', () => {
  const describeTools = async (tools: readonly AnyClientTool[]) => {
    const server = scriptedConnection([[text('hi')], [text('hi')]])
    const onWarning = vi.fn()
    const client = open({ connection: server, tools, onWarning })
    await client.sendMessage('one')
    await client.sendMessage('two')
    return { tools: server.requests.map((request) => request.tools), warnings: onWarning.mock.calls.flat() }
  }

  test('F25 a tool that only the page names goes out with the JSON Schema that its own schema gives', async () => {
    const input = z.object({ city: z.string(), country: z.string().optional() })
    const tool = clientTool({ name: 'locate', description: 'Where', input, execute: () => 1 })
    const { tools, warnings } = await describeTools([tool])
    const parameters = {
      type: 'object',
      properties: { city: { type: 'string' }, country: { type: 'string' } },
      required: ['city'],
    }
    expect(tools).toEqual([
      [{ name: 'locate', description: 'Where', parameters }],
      [{ name: 'locate', description: 'Where', parameters }],
    ])
    expect(warnings).toEqual([])
  })

  test('F25 the parameters that a tool gives itself count for more', async () => {
    const parameters = { type: 'object', description: 'own' }
    const { tools } = await describeTools([locate(() => 1, { parameters })])
    expect(tools[0]).toEqual([{ name: 'locate', description: 'Where', parameters }])
  })

  test('F25 a schema that gives no JSON Schema is warned of once, with the way out', async () => {
    const tool = clientTool({
      name: 'locate',
      description: 'Where',
      input: v.object({ city: v.string() }),
      execute: () => 1,
    })
    const { tools, warnings } = await describeTools([tool])
    expect(tools[1]).toEqual([{ name: 'locate', description: 'Where' }])
    expect(warnings).toEqual([
      'The model does not know the parameters of the tool "locate": its schema (valibot) gives no JSON Schema. Give the tool `parameters`.',
    ])
  })
})

describe('F27 messages that the application gives', () => {
  const first: UIMessage = { id: 'old', role: 'user', parts: [{ type: 'text', text: 'before' }] }
  const careless: readonly [string, unknown][] = [
    ['a function that gives no messages', () => 'none'],
    ['nothing', undefined],
    ['a text', 'hello'],
    ['one message', first],
    ['a message without parts', [first, { id: 'm2', role: 'user', content: 'hello' }]],
    ['a message without an id', [first, { role: 'user', parts: [] }]],
    ['a hole', [first, null]],
    ['a part that is nothing', [{ ...first, parts: [undefined] }]],
  ]
  for (const [what, messages] of careless) {
    test(`F27 setMessages(${what}) is refused and changes nothing`, async () => {
      const server = scriptedConnection([[text('hi')]])
      const client = open({ connection: server, initialMessages: [first] })
      const before = structuredClone(client.getSnapshot())
      expect(() => client.setMessages(messages as readonly UIMessage[])).toThrow(
        expect.objectContaining({
          code: 'invalid-argument',
          message: expect.stringMatching(/each with id, role and parts.*Nothing was changed/),
        }),
      )
      expect(client.getMessageIds()).toEqual(['old'])
      expect(client.getSnapshot()).toEqual(before)
      await client.sendMessage('go on')
      expect(server.requests[0]?.messages.map(({ content }) => content)).toEqual(['before', 'go on'])
    })

    if (messages !== undefined)
      test(`F27 initialMessages: ${what} is refused by name`, () => {
        const initialMessages = messages as readonly UIMessage[]
        expect(() => open({ connection: scriptedConnection([]), initialMessages })).toThrow(
          expect.objectContaining({ code: 'invalid-option', data: { option: 'initialMessages' } }),
        )
      })
  }
})

describe('F29 the status', () => {
  test('F29 while a client tool works the chat is loading, so that there is something to stop', async () => {
    let found = (_: string) => {}
    const promise = new Promise<string>((done) => {
      found = done
    })
    const server = scriptedConnection([[call('c1', 'locate')], [text('You are in Lisbon.')]])
    const client = open({ connection: server, tools: [locate(() => promise)] })
    const loading = seen(client, (chat) => chat.getSnapshot().isLoading)
    const statuses = seen(client, statusOf)
    void client.sendMessage('where am I?')
    await until(client, () => stateOf(client, 'c1') === 'executing')
    expect([statusOf(client), client.getSnapshot().isLoading]).toEqual(['executing', true])
    found('Lisbon')
    await until(client, ({ messages, isLoading }) => messages.length > 2 && !isLoading)
    expect(loading).toEqual([false, true, false])
    expect(statuses).toEqual([
      'ready',
      'submitted',
      'streaming',
      'executing',
      'submitted',
      'streaming',
      'ready',
    ])
  })

  test('F29 stop() while a client tool works ends the loading', async () => {
    const server = scriptedConnection([[call('c1', 'locate')]])
    const client = open({ connection: server, tools: [locate(() => new Promise(() => {}))] })
    void client.sendMessage('where am I?')
    await until(client, () => stateOf(client, 'c1') === 'executing')
    client.stop()
    expect([statusOf(client), client.getSnapshot().isLoading]).toEqual(['ready', false])
  })

  test('F29 nobody sees `ready` between an answer and its request', async () => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const client = open({ connection: server })
    await client.sendMessage('tidy up')
    const statuses = seen(client, statusOf)
    await client.addToolApprovalResponse({ id: 'a1', approved: true })
    expect(statuses).toEqual(['awaiting-approval', 'submitted', 'streaming', 'ready'])
  })

  test('F29 nor between the result that the application gives and its request', async () => {
    const server = scriptedConnection([[call('c1', 'locate')], [text('Done.')]])
    const client = open({ connection: server })
    await client.sendMessage('where am I?')
    const statuses = seen(client, statusOf)
    await client.addToolResult({ toolCallId: 'c1', output: 'Lisbon' })
    expect(statuses).toEqual(['ready', 'submitted', 'streaming', 'ready'])
  })
})

describe('F32 what a person sends', () => {
  const file = { type: 'file', media: 'image', source: { type: 'url', value: 'https://x.example/a.png' } }
  const careless: readonly [string, unknown][] = [
    ['null', null],
    ['a number', 7],
    ['a function', () => 'hello'],
    ['an event', { type: 'click', target: {} }],
    ['a list', ['hello']],
    ['nothing', ''],
    ['white space', ' \n\t\u00a0'],
    ['an object without text', {}],
    ['a text that is none', { text: 7 }],
    ['white space in an object', { text: '  ' }],
    ['files that are no list', { text: 'look', files: file }],
    ['a File', { text: 'look', files: [new File(['x'], 'a.txt')] }],
    ['a FileList', { text: 'look', files: { 0: new File(['x'], 'a.txt'), length: 1 } }],
    ['a part that is no file', { text: 'look', files: [{ type: 'text', text: 'no' }] }],
    ['a file without a source', { text: 'look', files: [{ type: 'file', media: 'image' }] }],
    ['metadata that is none', { text: 'look', metadata: 'x' }],
  ]
  for (const [what, input] of careless) {
    test(`F32 sendMessage(${what}) is refused and sends nothing`, async () => {
      const server = scriptedConnection([[text('hi')]])
      const client = open({ connection: server })
      const before = structuredClone(client.getSnapshot())
      const result = await client.sendMessage(input as string)
      expect(result).toMatchObject({ status: 'refused', error: { code: 'invalid-argument' } })
      expect([server.requests, client.getSnapshot()]).toEqual([[], before])
    })
  }

  test('F32 the refusal of a File names the way out', async () => {
    const client = open({ connection: scriptedConnection([]) })
    const files = [new File(['x'], 'a.txt')] as never
    const result = await client.sendMessage({ text: 'look', files })
    expect(result).toMatchObject({ error: { message: expect.stringContaining('source') } })
  })

  test('F32 files alone are sent, and white space beside them is left out', async () => {
    const server = scriptedConnection([[text('hi')]])
    const client = open({ connection: server })
    expect(await client.sendMessage({ text: ' ', files: [file as never] })).toEqual({ status: 'sent' })
    expect(client.getSnapshot().messages[0]?.parts).toEqual([file])
  })

  test('F32 a send that is stopped says so', async () => {
    const server = scriptedConnection([[text('hi'), hold()], [text('hi')], [hold()]])
    const client = open({ connection: server })
    const sent = client.sendMessage('one')
    await server.request(1)
    client.stop()
    expect(await sent).toEqual({ status: 'stopped' })
    await client.sendMessage('two')
    const again = client.regenerate()
    await server.request(3)
    client.clear()
    expect(await again).toEqual({ status: 'stopped' })
  })

  test('F32 what the application does with its objects afterwards changes no message', async () => {
    const client = open({ connection: scriptedConnection([[text('hi')]]) })
    const input = { text: 'look', files: [structuredClone(file)], metadata: { from: 'page' } }
    await client.sendMessage(input as never)
    const before = structuredClone(client.getSnapshot().messages)
    input.metadata.from = 'elsewhere'
    Object.assign(input.files[0] ?? {}, { media: 'video' })
    expect(client.getSnapshot().messages).toEqual(before)
  })
})

describe('F34 client tools', () => {
  const output = z.object({ city: z.string(), country: z.string().default('Portugal') })

  test('F34 the result of a client tool is what its `output` schema makes of it', async () => {
    const server = scriptedConnection([[call('c1', 'locate')], [text('Done.')]])
    const client = open({
      connection: server,
      tools: [locate(() => ({ city: 'Lisbon', secret: 1 }), { output })],
    })
    await client.sendMessage('where am I?')
    await until(client, ({ messages, isLoading }) => messages.length > 2 && !isLoading)
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'complete',
      output: { city: 'Lisbon', country: 'Portugal' },
    })
    expect(callOf(client, 'c1').output).not.toHaveProperty('secret')
  })

  test('F34 a result that does not fit is a failure of the tool, and the model is told what is wrong', async () => {
    const server = scriptedConnection([[call('c1', 'locate')], [text('Done.')]])
    const client = open({ connection: server, tools: [locate(() => ({ city: 7 }), { output })] })
    await client.sendMessage('where am I?')
    await until(client, ({ messages, isLoading }) => messages.length > 2 && !isLoading)
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'error',
      error: { message: expect.stringMatching(/^The result of "locate" is not valid: city: /) },
    })
  })

  const careless: readonly [string, unknown][] = [
    ['two tools of one name', [locate(() => 1), locate(() => 2)]],
    ['a record of tools', { locate: locate(() => 1) }],
    ['a definition that was placed nowhere', [{ ...locate(() => 1), execute: undefined }]],
    ['a tool without an input schema', [{ name: 'locate', description: 'x', execute: () => 1 }]],
    ['a hole', [undefined]],
  ]
  for (const [what, tools] of careless) {
    test(`F34 ${what} is refused by the constructor and by setOptions, which then changes nothing`, async () => {
      const connection = scriptedConnection([[text('hi')]])
      const refusal = expect.objectContaining({ code: 'invalid-option', data: { option: 'tools' } })
      expect(() => open({ connection, tools: tools as never })).toThrow(refusal)
      const client = open({ connection, tools: [locate(() => 1)], forwardedProps: 'before' })
      expect(() => client.setOptions({ tools: tools as never, forwardedProps: 'after' })).toThrow(refusal)
      await client.sendMessage('hello')
      expect(connection.requests[0]).toMatchObject({ forwardedProps: 'before', tools: [{ name: 'locate' }] })
    })
  }
})

describe('F36 a platform without `crypto`, as React Native', () => {
  test('F36 the constructor does not throw, and messages, runs and the thread get ids that differ', async () => {
    vi.stubGlobal('crypto', undefined)
    onTestFinished(() => void vi.unstubAllGlobals())
    const server = scriptedConnection([[text('hi')], [text('hi')]])
    const [one, two] = [open({ connection: server }), open({ connection: server })]
    expect([await one.sendMessage('a'), await two.sendMessage('b')]).toEqual([
      { status: 'sent' },
      { status: 'sent' },
    ])
    const ids = server.requests.flatMap(({ threadId, runId, messages }) => [
      threadId,
      runId,
      ...messages.map(({ id }) => id),
    ])
    expect(new Set(ids).size).toBe(6)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
  })

  test('F36 a fetch that gives no body is told of with the way out', async () => {
    const fetch = async () => {
      const response = new Response('data: {}\n\n', { headers: { 'content-type': 'text/event-stream' } })
      return Object.defineProperty(response, 'body', { value: undefined })
    }
    const client = open({ connection: fetchServerSentEvents('https://chat.invalid/', { fetch }) })
    const result = await client.sendMessage('hello')
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'empty-response', message: expect.stringMatching(/expo\/fetch.*option `fetch`/s) },
    })
  })
})

describe('F51 the thread of a chat without a `threadId`', () => {
  test('F51 nothing random and no clock is read before something needs it', () => {
    const generateId = vi.fn(() => 'id')
    const spies = [
      vi.spyOn(crypto, 'randomUUID'),
      vi.spyOn(crypto, 'getRandomValues'),
      vi.spyOn(Math, 'random'),
      vi.spyOn(Date, 'now'),
    ]
    onTestFinished(() => void vi.restoreAllMocks())
    const connection = scriptedConnection([])
    for (const client of [open({ connection }), open({ connection, generateId })]) {
      client.getSnapshot()
      client.getServerSnapshot()
      client.subscribe(() => {})
    }
    for (const spy of [...spies, generateId]) expect(spy).not.toHaveBeenCalled()
  })

  test('F51 the id is made with the first request, is told then, and stays', async () => {
    const server = scriptedConnection([[text('hi')], [text('hi')]])
    const client = open({ connection: server })
    const threads = seen(client, (chat) => chat.getSnapshot().threadId)
    expect([client.getSnapshot().threadId, client.getServerSnapshot().threadId]).toEqual(['', ''])
    await client.sendMessage('one')
    await client.sendMessage('two')
    expect(threads).toEqual(['', client.threadId])
    expect(server.requests.map(({ threadId }) => threadId)).toEqual([client.threadId, client.threadId])
    expect(client.threadId).toMatch(/./)
  })

  test('F51 whoever asks a client for its thread gets the one that its requests name', async () => {
    const server = scriptedConnection([[text('hi')]])
    const client = open({ connection: server })
    const { threadId } = client
    expect(client.getSnapshot().threadId).toBe(threadId)
    await client.sendMessage('one')
    expect(server.requests[0]?.threadId).toBe(threadId)
  })
})

describe('F57 how often a conversation is saved', () => {
  /** A storage of one's own, and a stream of `seconds` that grows ten times a second. */
  async function stream(seconds: number, options?: Parameters<typeof persistent>[1]) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const saved: string[] = []
    const storage = {
      load: async () => undefined,
      save: async (_: string, record: unknown) => void saved.push(JSON.stringify(record)),
      remove: async () => {},
    }
    const server = scriptedConnection([byHand])
    const client = open({ connection: server, threadId: 't', persistence: persistent(storage, options) })
    await client.restore()
    const sent = client.sendMessage('go')
    const run = await server.request(1)
    await passMacrotasks(2)
    run.emit(textStart())
    await passMacrotasks(2)
    const before = saved.length
    for (let at = 0; at < seconds * 10; at++) {
      run.emit(textDelta(`word${at} `))
      await passMacrotasks(1)
      await vi.advanceTimersByTimeAsync(100)
    }
    const during = saved.length - before
    const words = () => saved.at(-1)?.match(/word\d+/g)?.length ?? 0
    return { client, run, sent, during, words, saved }
  }

  test('F57 a stream of 10 s is saved every 2 s, and whole at its end', async () => {
    const { run, sent, during, words } = await stream(10)
    expect(during).toBe(5)
    run.emit(textDelta('word100'), textEnd(), finish())
    await sent
    expect(words()).toBe(101)
  })

  test('F57 the option `saveEvery` says how often, and is checked', async () => {
    expect((await stream(4, { saveEvery: 1000 })).during).toBe(4)
    expect(() => persistent({} as never, { saveEvery: -1 })).toThrow(
      expect.objectContaining({ code: 'invalid-option', data: { option: 'saveEvery' } }),
    )
  })

  test('F57 an answer is saved at once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const saved: string[] = []
    const storage = {
      load: async () => undefined,
      save: async (_: string, record: unknown) => void saved.push(JSON.stringify(record)),
      remove: async () => {},
    }
    const server = scriptedConnection([gated(1), byHand])
    const client = open({ connection: server, threadId: 't', persistence: persistent(storage) })
    await client.sendMessage('go')
    void client.addToolApprovalResponse({ id: 'a1', approved: true })
    await passMacrotasks(2)
    expect(saved.at(-1)).toContain('"approved":true')
  })
})

test('F35 a chat that says so is stopped when no page shows it any more', async () => {
  const server = scriptedConnection([[text('hi'), hold()], [text('hi')]])
  const client = open({ connection: server, onDetach: 'stop' })
  const detach = client.attach()
  const sent = client.sendMessage('one')
  await server.request(1)
  // A page that is taken away and put back in one turn, as the strict mode does it, has not left.
  detach()
  const again = client.attach()
  await passMacrotasks(1)
  expect(client.getSnapshot().isLoading).toBe(true)
  again()
  expect(await sent).toEqual({ status: 'stopped' })
  expect(await client.sendMessage('two')).toEqual({ status: 'sent' })
})

test('F54 a person hears that the edit does not fit, and answers the same request again', async () => {
  const asked = gated(1)
  const server = scriptedConnection([
    asked,
    [
      event({
        type: 'CUSTOM',
        name: 'approval-refused',
        value: { approvalId: 'a1', toolCallId: 'c1', code: 'approval-edit-invalid', message: 'n: at most 5' },
      }),
      ask('a1', 'c1'),
    ],
    [resolve(), text('Done.')],
  ])
  const client = open({ connection: server })
  await client.sendMessage('go')
  const refused = await client.addToolApprovalResponse({ id: 'a1', approved: true })
  expect(refused).toEqual({ status: 'refused', code: 'approval-edit-invalid', reason: 'n: at most 5' })
  expect(client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)).toEqual(['a1'])
  expect([statusOf(client), callOf(client, 'c1').error?.message]).toEqual([
    'awaiting-approval',
    'n: at most 5',
  ])
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
  expect(callOf(client, 'c1')).toMatchObject({ state: 'complete' })
  expect(callOf(client, 'c1').error).toBeUndefined()
})
