import { ChatClient, type ChatClientOptions, type UIMessage } from '@countersign/client'
import { type Persistence, persistent } from '@countersign/client/persistence'
import type { CountersignError, ThreadRecord } from '@countersign/core'
import { scriptedConnection, text } from '@countersign/testing'
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
