import {
  approvalQueue,
  ChatClient,
  type ChatClientOptions,
  isCountersignError,
  type UIMessage,
} from '@countersign/client'
import { threadList } from '@countersign/client/thread-list'
import { standingGrants } from '@countersign/client/ui'
import { clientTool } from '@countersign/core'
import {
  call,
  custom,
  error,
  finish,
  gated,
  hold,
  passMacrotasks,
  scriptedConnection,
  text,
} from '@countersign/testing'
import fc from 'fast-check'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { full } from '../full.js'
import { callOf, failOnUnhandledRejections, stateOf } from './open-chat.js'

failOnUnhandledRejections()

/** What the platform was told of as uncaught. */
const reported = vi.fn()
beforeEach(() => {
  reported.mockClear()
  vi.stubGlobal('reportError', reported)
  onTestFinished(() => void vi.unstubAllGlobals())
})

class Click {
  readonly type = 'click'
  readonly target = {}
  readonly nativeEvent = this
}

const cyclic: Record<string, unknown> = { id: 'a1', toolCallId: 'c2', text: 'hello', approved: true }
cyclic['output'] = cyclic
cyclic['input'] = cyclic
cyclic['payload'] = cyclic
cyclic['metadata'] = cyclic

/** What people hand over by mistake. */
const mistakes: Readonly<Record<string, unknown>> = {
  undefined: undefined,
  null: null,
  zero: 0,
  'not a number': Number.NaN,
  'an empty text': '',
  'an unknown id': 'nowhere',
  true: true,
  'an empty list': [],
  'a list of nothing': [undefined],
  'an empty object': {},
  'a function': () => 'a1',
  'a symbol': Symbol('a1'),
  'a big integer': 1n,
  'a date': new Date(0),
  'a map': new Map([['id', 'a1']]),
  'a promise': Promise.resolve('a1'),
  'a click': new Click(),
  'an error': new Error('no'),
  'a cycle': cyclic,
  'ids of the wrong type': { id: 1, toolCallId: {}, messageId: [], approved: true, payload: 1, output: 1 },
  'an id that is only inherited': Object.create({ id: 'a1', toolCallId: 'c2' }),
}

/** The same mistakes inside of what is otherwise right. */
const wrap: Readonly<Record<string, (value: unknown) => unknown>> = {
  itself: (value) => value,
  'an answer': (approved) => ({ id: 'a1', approved }),
  'the reason of an answer': (reason) => ({ id: 'a1', approved: false, reason }),
  'the edit of an answer': (input) => ({ id: 'a1', approved: true, input }),
  'the scope of an answer': (scope) => ({ id: 'a1', approved: true, scope }),
  'the id of an answer': (id) => ({ id, approved: true }),
  'the output of a tool': (output) => ({ toolCallId: 'c2', output }),
  'the error of a tool': (error) => ({ toolCallId: 'c2', error }),
  'the reply to a question': (payload) => ({ id: 'i1', payload }),
  'the text of a message': (given) => ({ text: given }),
  'the files of a message': (files) => ({ text: 'look', files }),
  'a file of a message': (file) => ({ text: 'look', files: [file] }),
  'the metadata of a message': (metadata) => ({ text: 'look', metadata: { metadata } }),
  'a message': (message) => [message],
  'the parts of a message': (parts) => [{ id: 'm', role: 'user', parts }],
  'a part of a message': (part) => [{ id: 'm', role: 'user', parts: [part] }],
  'the message to answer': (messageId) => ({ messageId }),
  'the connection': (connection) => ({ connection }),
  'the tools': (tools) => ({ tools }),
  'a tool': (tool) => ({ tools: [tool] }),
  'a callback': (callback) => ({ onError: callback, onFinish: callback }),
  'the mode': (mode) => ({ onPendingMessage: mode, onDetach: mode, notify: mode }),
}

const commands = [
  'sendMessage',
  'cancelQueued',
  'addToolApprovalResponse',
  'addToolResult',
  'respondToInterrupt',
  'regenerate',
  'setMessages',
  'setOptions',
  'getMessage',
  'subscribe',
  'subscribeMessage',
  'observe',
  'revokeGrant',
] as const satisfies readonly (keyof ChatClient)[]
type Command = (typeof commands)[number]

/** A chat in which everything is open: a question, a call left to the page, an interrupt. */
async function everythingOpen(options: Partial<ChatClientOptions> = {}) {
  const server = scriptedConnection(
    [[...gated(1), call('c2', 'locate'), finish({ interrupts: [{ id: 'i1', reason: 'input_required' }] })]],
    { otherwise: [hold()] },
  )
  const client = new ChatClient({ connection: server, onWarning: () => {}, notify: 'sync', ...options })
  onTestFinished(() => client.dispose())
  await client.sendMessage('go')
  return { client, server }
}

/** What came of a mistake: refused, or taken for something that could be meant, and then perhaps still under way. */
async function attempt(client: ChatClient, command: Command, value: unknown): Promise<'refused' | 'taken'> {
  const call = async (): Promise<unknown> =>
    Reflect.apply(client[command] as () => unknown, undefined, [value])
  const told = await Promise.race([
    call().catch((error: unknown) => {
      if (!isCountersignError(error) || error.message.length < 20) throw error
      return { status: 'refused' }
    }),
    passMacrotasks(2),
  ])
  const status = typeof told === 'object' && told !== null && 'status' in told ? told.status : undefined
  return status === 'refused' || status === 'not-found' ? 'refused' : 'taken'
}

const snapshotOf = (client: ChatClient) =>
  structuredClone({ ...client.getSnapshot(), error: client.getSnapshot().error?.code })

describe('careless use of every public command', () => {
  test('what is refused says so with a code and changes nothing; nothing throws later', async () => {
    let [tried, refused] = [0, 0]
    for (const command of commands) {
      for (const [place, put] of Object.entries(wrap)) {
        let opened = await everythingOpen()
        for (const [what, mistake] of Object.entries(mistakes)) {
          const { client, server } = opened
          const before = snapshotOf(client)
          const requests = server.requests.length
          const name = `${command}(${place}: ${what})`
          const result = await attempt(client, command, put(mistake)).catch((error: unknown) => {
            throw new Error(`${name} threw ${String(error)}`, { cause: error })
          })
          tried++
          if (result === 'taken') {
            // It was something that could be meant: the next mistake meets a chat in which all is open.
            client.dispose()
            opened = await everythingOpen()
            continue
          }
          refused++
          expect([name, snapshotOf(client), server.requests.length]).toEqual([name, before, requests])
        }
        await passMacrotasks(1)
        expect([command, place, reported.mock.calls.flat().map(String)]).toEqual([command, place, []])
      }
    }
    console.info(`careless use: ${tried} calls of ${commands.length} commands, ${refused} refused`)
    expect(refused).toBeGreaterThan(1000)
  })

  test('options that are null are left out: the message is sent, and nothing rejects', async () => {
    const server = scriptedConnection([], { otherwise: [text('Well.')] })
    const client = new ChatClient({ connection: server, onWarning: () => {}, notify: 'sync' })
    onTestFinished(() => client.dispose())
    const none = null as never
    expect(await client.sendMessage('go', none)).toEqual({ status: 'sent' })
    const parts = [{ type: 'text' as const, text: 'go' }]
    expect(await client.append({ role: 'user', parts }, none)).toEqual({ status: 'sent' })
    expect(await client.regenerate({}, none)).toEqual({ status: 'sent' })
  })

  test('every store refuses a listener that is no function', () => {
    const chat = new ChatClient({ connection: scriptedConnection([]) })
    const stores = [chat, approvalQueue(chat), standingGrants(chat), threadList('http://server.test/chat')]
    for (const { subscribe } of stores)
      expect(() => subscribe(undefined as never)).toThrow(
        expect.objectContaining({ code: 'invalid-argument' }),
      )
  })

  test('the commands that take nothing do not mind what they are given', async () => {
    for (const mistake of Object.values(mistakes)) {
      const { client } = await everythingOpen()
      for (const command of ['retry', 'stop', 'attach', 'detach', 'restore', 'clear'] as const)
        await Reflect.apply(client[command] as () => unknown, undefined, [mistake])
      expect(client.getSnapshot()).toMatchObject({ messages: [], status: 'ready' })
    }
    expect(reported).not.toHaveBeenCalled()
  })

  test('bad options are refused by the constructor and by setOptions alike, and change nothing', async () => {
    const { client, server } = await everythingOpen({ forwardedProps: 'before' })
    for (const [option, value] of [
      ['connection', {}],
      ['connection', null],
      ['tools', [{}]],
      ['headers', 'x'],
      ['onPendingMessage', 'ask'],
      ['onDetach', 'kill'],
      ['notify', 'soon'],
      ['maxContinuations', Number.NaN],
      ['generateId', 'id'],
      ['now', 0],
      ['onError', {}],
    ] as const) {
      const refusal = expect.objectContaining({ code: 'invalid-option', data: { option } })
      const given = { forwardedProps: 'after', [option]: value } as Partial<ChatClientOptions>
      expect(() => client.setOptions(given)).toThrow(refusal)
      expect(() => new ChatClient({ connection: server, ...given })).toThrow(refusal)
    }
    void client.sendMessage('on')
    expect((await server.request(2)).number).toBe(2)
    expect(server.requests[1]?.forwardedProps).toBe('before')
  })
})

describe('functions of the application that fail', () => {
  const fail = (): never => {
    throw new Error('ours')
  }

  test('every callback may throw: the chat goes on, and the platform is told', async () => {
    const server = scriptedConnection([
      [...gated(1), custom('mine', 1)],
      [call('c2', 'locate')],
      [text('Done.')],
      [error('no')],
    ])
    const client = new ChatClient({
      connection: server,
      notify: 'sync',
      tools: [
        clientTool({ name: 'locate', description: 'Where', input: z.object({}), execute: () => 'Lisbon' }),
      ],
      onApprovalRequest: fail,
      onToolCall: fail,
      onFinish: fail,
      onError: fail,
      onEvent: fail,
      onWarning: fail,
      generateId: fail,
      now: fail,
    })
    onTestFinished(() => client.dispose())
    client.subscribe(fail)
    client.observe(fail)
    expect(await client.sendMessage('go')).toEqual({ status: 'sent' })
    expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
    await vi.waitFor(() => expect(callOf(client, 'c2').state).toBe('complete'))
    await vi.waitFor(() => expect(client.getSnapshot().isLoading).toBe(false))
    expect(await client.sendMessage('on')).toMatchObject({ status: 'failed' })
    expect(new Set(reported.mock.calls.flat().map(String))).toEqual(new Set(['Error: ours']))
    const ids = client.getMessageIds()
    expect(new Set(ids).size).toBe(ids.length)
  })

  const ids: Readonly<Record<string, () => unknown>> = {
    'always the same id': () => 'same',
    'an empty id': () => '',
    'a number': () => 7,
    nothing: () => undefined,
  }
  for (const [what, generateId] of Object.entries(ids))
    test(`a generateId that gives ${what} loses no message`, async () => {
      const server = scriptedConnection([], { otherwise: [text('Yes.')] })
      const client = new ChatClient({ connection: server, generateId: generateId as () => string })
      onTestFinished(() => client.dispose())
      for (const said of ['one', 'two', 'three'])
        expect(await client.sendMessage(said)).toEqual({ status: 'sent' })
      const sent = server.requests.at(-1)?.messages.filter(({ role }) => role === 'user')
      expect(sent?.map(({ content }) => content)).toEqual(['one', 'two', 'three'])
    })

  const checks: Readonly<Record<string, () => string>> = {
    throws: fail,
    'gives a reason': () => 'It does not fit.',
  }
  for (const [what, checkResponse] of Object.entries(checks))
    test(`an answer is not let through by a checkResponse that ${what}`, async () => {
      const { client, server } = await everythingOpen({ checkResponse })
      const before = snapshotOf(client)
      const result = await client.respondToInterrupt({ id: 'i1', payload: 1 })
      expect(result).toMatchObject({ status: 'refused', reason: expect.stringMatching(/checkResponse|fit/) })
      expect([snapshotOf(client), server.requests.length]).toEqual([before, 1])
    })

  for (const [what, output] of Object.entries({
    'a cycle': cyclic,
    'a big integer': 1n,
    'a function': fail,
  }))
    test(`a client tool that gives ${what} has failed, and the conversation goes on`, async () => {
      const server = scriptedConnection([[call('c1', 'locate')]], { otherwise: [text('Yes.')] })
      const execute = () => output as unknown
      const tools = [clientTool({ name: 'locate', description: 'Where', input: z.object({}), execute })]
      const client = new ChatClient({ connection: server, tools, notify: 'sync' })
      onTestFinished(() => client.dispose())
      await client.sendMessage('go')
      await vi.waitFor(() => expect(stateOf(client, 'c1')).toBe('error'))
      await vi.waitFor(() => expect(client.getSnapshot().isLoading).toBe(false))
      expect(callOf(client, 'c1').error?.message).toMatch(/no JSON form/)
      expect(await client.sendMessage('on')).toEqual({ status: 'sent' })
    })
})

test('objects that the application changes afterwards change no message, answer or result', async () => {
  const message: UIMessage = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'before' }] }
  const input = { path: '1.log' }
  const output = { city: 'Lisbon' }
  const metadata = { deep: { from: 'page' } }
  const { client } = await everythingOpen()
  const mutate = [
    () => Object.assign(input, { path: 'all' }),
    () => Object.assign(output, { city: 'Rome' }),
    () => Object.assign(metadata.deep, { from: 'elsewhere' }),
  ]
  void client.addToolResult({ toolCallId: 'c2', output })
  void client.sendMessage({ text: 'look', metadata })
  const before = snapshotOf(client)
  for (const change of mutate) change()
  expect(snapshotOf(client)).toEqual(before)
  client.setMessages([message])
  expect(client.getMessage('m')).toEqual(message)
})

/** Anything at all, also what looks like the right thing. */
const anything = fc.oneof(
  fc.constantFrom(...Object.values(mistakes)),
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
  fc.record(
    {
      id: fc.constantFrom('a1', 'i1', 7, null),
      toolCallId: fc.constantFrom('c1', 'c2', undefined),
      approved: fc.anything(),
      input: fc.anything(),
      scope: fc.anything(),
      reason: fc.anything(),
      output: fc.anything(),
      error: fc.anything(),
      payload: fc.anything(),
      cancel: fc.anything(),
      text: fc.anything(),
      files: fc.anything(),
      metadata: fc.anything(),
      messageId: fc.anything(),
    },
    { requiredKeys: [] },
  ),
)

test('random mistakes in random order: nothing but CountersignErrors, nothing thrown later, and the chat still works', async () => {
  const [seed, numRuns] = [20261122, full ? 20_000 : 300]
  console.info(`careless use at random: seed ${seed}, ${numRuns} runs`)
  const calls = fc.array(fc.tuple(fc.constantFrom(...commands), anything), { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(calls, async (made) => {
      reported.mockClear()
      const { client, server } = await everythingOpen()
      const under: Promise<unknown>[] = []
      for (const [command, value] of made) {
        // A listener that is a function is called, and may well throw: that is the application's own affair.
        if (command !== 'setOptions') under.push(attempt(client, command, value))
      }
      client.stop()
      await Promise.all(under)
      client.setOptions({ connection: scriptedConnection([], { otherwise: [text('Yes.')] }) })
      client.clear()
      expect(await client.sendMessage('still there?')).toEqual({ status: 'sent' })
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', isLoading: false })
      expect(reported.mock.calls.flat().map(String)).toEqual([])
      client.dispose()
      for (const run of server.requests) expect(() => JSON.stringify(run)).not.toThrow()
    }),
    { seed, numRuns },
  )
})
