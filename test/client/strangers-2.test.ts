import { ChatClient, type ChatClientOptions, type UIMessage } from '@countersign/client'
import { type Persistence, persistent } from '@countersign/client/persistence'
import type { CountersignError, ThreadRecord } from '@countersign/core'
import { event, gated, resolve, scriptedConnection, text } from '@countersign/testing'
import { verified } from '@countersign/testing/suites'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { failOnUnhandledRejections } from './open-chat.js'

failOnUnhandledRejections()

function open(options: ChatClientOptions) {
  const client = new ChatClient({ notify: 'sync', ...options })
  onTestFinished(() => client.dispose())
  return client
}

const said = (id: string, words: string, role: UIMessage['role'] = 'user'): UIMessage => ({
  id,
  role,
  parts: [{ type: 'text', text: words }],
})

const linesOf = (client: ChatClient) =>
  client
    .getSnapshot()
    .messages.map(
      ({ role, parts }) =>
        `${role}: ${parts.map((part) => ('text' in part ? part.text : part.type)).join('|')}`,
    )

describe('a stored record that is none', () => {
  const asking = {
    type: 'tool-call',
    id: 'c1',
    name: 'delete_file',
    arguments: '{"path":"/a"}',
    input: { path: '/a' },
    state: 'approval-requested',
    approval: { id: 'a1', needsApproval: true, options: ['deny', 'once'], token: 'T' },
  }
  const record = (more: object = {}, part: object | null = {}, first: object = {}) => ({
    version: 1,
    messages: [
      { ...said('u', 'delete it'), ...first },
      { id: 'a', role: 'assistant', parts: [part && { ...asking, ...part }] },
    ],
    unsentOutputs: [],
    ready: [],
    interrupts: [],
    queue: [],
    ...more,
  })
  const bad: Record<string, unknown> = {
    'a damaged message after an open question': record({ messages: [...record().messages, { oops: 1 }] }),
    'no interrupts': record({ interrupts: undefined }),
    'an interrupt without an id': record({ interrupts: [{ interrupt: { reason: 'input' } }] }),
    'messages that are a text': record({ messages: 'x' }),
    'a message without parts': record({}, {}, { parts: undefined }),
    'a part that is null': record({}, null),
    'a text that is a number': record({}, {}, { parts: [{ type: 'text', text: 5 }] }),
    'a role that nobody has': record({}, {}, { role: 'robot' }),
    'a call in a state that is none': record({}, { state: 'weird' }),
    'a call without a name': record({}, { name: undefined }),
    'arguments that are no text': record({}, { arguments: { path: '/a' } }),
    'a last run that is null': record({ run: null }),
    'a last run whose calls are no list': record({ run: { runId: 'r', pendingToolCallIds: 5 } }),
    'two messages of one id': record({ messages: [said('m', 'one'), said('m', 'two')] }),
    'a text in its place': 'not a record',
  }

  /** A chat over an own storage that holds this. */
  const load = async (stored: unknown) => {
    const save = vi.fn<Persistence['save']>(async () => {})
    const remove = async () => {}
    const errors: CountersignError[] = []
    const server = scriptedConnection([], { otherwise: [text('hi')] })
    const client = open({
      connection: server,
      threadId: 't',
      onError: (error) => errors.push(error),
      persistence: persistent(
        { load: async () => stored as ThreadRecord, save, remove },
        { saveEvery: 0, timeout: 1000 },
      ),
    })
    await client.restore()
    return { client, server, save, errors }
  }

  for (const [what, stored] of Object.entries(bad)) {
    test(`with ${what} is told as corrupt, none of it is restored and none of it is sent or written over`, async () => {
      const { client, server, save, errors } = await load(stored)
      expect(errors.map(({ code, data }) => [code, data])).toEqual([
        ['persistence-corrupt', { threadId: 't', reason: 'wrong-form' }],
      ])
      expect(client.getSnapshot()).toMatchObject({ messages: [], pendingApprovals: [], status: 'ready' })
      await client.sendMessage('hello')
      expect(linesOf(client)).toEqual(['user: hello', 'assistant: hi'])
      expect(server.requests[0]?.messages.map(({ content }) => content)).toEqual(['hello'])
      expect(server.requests[0]?.resume).toBeUndefined()
      expect(save).not.toHaveBeenCalled()
    })
  }

  test('but is of a newer version is told as that, and left as it is', async () => {
    const { client, save, errors } = await load({ ...record(), version: 2 })
    expect(errors.map(({ code, data }) => [code, data])).toEqual([
      ['persistence-unavailable', { threadId: 't', version: 2 }],
    ])
    await client.sendMessage('hello')
    expect(linesOf(client)).toEqual(['user: hello', 'assistant: hi'])
    expect(save).not.toHaveBeenCalled()
  })

  test('is another thing than a whole one, which is restored, and than nothing', async () => {
    const whole = await load(record())
    expect(whole.errors).toEqual([])
    expect(whole.client.getSnapshot().pendingApprovals).toHaveLength(1)
    const empty = await load(null)
    expect(empty.errors).toEqual([])
    await empty.client.sendMessage('hello')
    expect(empty.save).toHaveBeenCalled()
  })
})

describe('a list of messages with one id twice', () => {
  const twice = [said('a', 'first'), said('b', 'between'), said('a', 'second')]
  const refusal = expect.objectContaining({
    code: 'invalid-argument',
    message: expect.stringMatching(/messages\[2\].*"a".*messages\[0\]/),
    data: { at: 2, id: 'a', first: 0 },
  })

  test('is refused by `setMessages`, which changes nothing', () => {
    const client = open({ connection: scriptedConnection([]), initialMessages: [said('old', 'old')] })
    expect(() => client.setMessages(twice)).toThrow(refusal)
    expect(linesOf(client)).toEqual(['user: old'])
  })

  test('is refused as `initialMessages`', () => {
    expect(() => open({ connection: scriptedConnection([]), initialMessages: twice })).toThrow(refusal)
  })
})

describe('a message whose id was used before', () => {
  const start = (messageId: string) => event({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
  const delta = (messageId: string, words: string) =>
    event({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: words })
  const end = (messageId: string) => event({ type: 'TEXT_MESSAGE_END', messageId })
  const say = (messageId: string, words: string) => [
    start(messageId),
    delta(messageId, words),
    end(messageId),
  ]

  const chat = (
    runs: Parameters<typeof scriptedConnection>[0],
    initialMessages: readonly UIMessage[] = [],
  ) => {
    const told: unknown[] = []
    const server = scriptedConnection(runs)
    const client = open({
      connection: verified(server),
      initialMessages,
      onWarning: (warning) => told.push(warning),
      onError: (error) => told.push(error),
    })
    return { client, server, told }
  }

  test('by an earlier turn is a message of its own at the end, in every turn', async () => {
    const { client, server, told } = chat(['one', 'two', 'three'].map((words) => say('m1', words)))
    for (const question of ['q1', 'q2', 'q3']) await client.sendMessage(question)
    const lines = ['user: q1', 'assistant: one', 'user: q2', 'assistant: two', 'user: q3', 'assistant: three']
    expect(linesOf(client)).toEqual(lines)
    const { messages } = client.getSnapshot()
    expect(new Set(messages.map(({ id }) => id)).size).toBe(6)
    expect(messages[1]?.id).toBe('m1')
    expect(server.requests[2]?.messages.map(({ content }) => content)).toEqual([
      'q1',
      'one',
      'q2',
      'two',
      'q3',
    ])
    expect(told).toEqual([])
  })

  test('by what the person said is a message of its own, not lost', async () => {
    const { client, told } = chat([say('m1', 'one'), say('m1', 'two')], [said('m1', 'old')])
    await client.sendMessage('q1')
    await client.sendMessage('q2')
    const lines = ['user: old', 'user: q1', 'assistant: one', 'user: q2', 'assistant: two']
    expect(linesOf(client)).toEqual(lines)
    expect(told).toEqual([])
  })

  test('takes along what names it: its reasoning, its sources, its calls, and what is said after them', async () => {
    const run = (n: number) => [
      event({ type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning' }),
      event({ type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: `think ${n}` }),
      event({ type: 'REASONING_MESSAGE_END', messageId: 'r1' }),
      ...say('m1', `look ${n}`),
      event({ type: 'CUSTOM', name: 'source', value: { messageId: 'm1', id: `s${n}` } }),
      event({ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'look', parentMessageId: 'm1' }),
      event({ type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' }),
      event({ type: 'TOOL_CALL_END', toolCallId: 'c1' }),
      event({ type: 'TOOL_CALL_RESULT', messageId: `t${n}`, toolCallId: 'c1', content: 'seen' }),
      ...say('m1', `found ${n}`),
    ]
    const { client, told } = chat([run(1), run(2)])
    await client.sendMessage('q1')
    await client.sendMessage('q2')
    const answer = (n: number) => `assistant: think ${n}|look ${n}|source|tool-call|tool-result|found ${n}`
    expect(linesOf(client)).toEqual(['user: q1', answer(1), 'user: q2', answer(2)])
    expect(told).toEqual([])
  })

  test('in the same turn goes on, also in the run that takes the answer to a question', async () => {
    const { client, told } = chat([
      [...say('m1', 'I will ask.'), gated(1)],
      [resolve(), ...say('m1', 'Deleted.')],
    ])
    await client.sendMessage('go')
    const [asked] = client.getSnapshot().pendingApprovals
    await client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved: true })
    const { messages } = client.getSnapshot()
    expect(messages.filter(({ id }) => id.startsWith('m1')).map(({ id }) => id)).toEqual(['m1'])
    expect(linesOf(client).filter((line) => line.includes('I will ask.|'))).toHaveLength(1)
    expect(linesOf(client).join()).toContain('Deleted.')
    expect(told).toEqual([])
  })

  test('does so too where the conversation was loaded, and the answers of a later load stay apart', async () => {
    const first = chat([say('m1', 'one'), say('m1', 'two')])
    await first.client.sendMessage('q1')
    await first.client.sendMessage('q2')
    const again = chat([say('m1', 'three')], first.client.getSnapshot().messages)
    await again.client.sendMessage('q3')
    expect(linesOf(again.client).slice(-3)).toEqual(['assistant: two', 'user: q3', 'assistant: three'])
    expect(again.told).toEqual([])
  })
})
