import { type Persistence, persistent } from '@countersign/client/persistence'
import type { CountersignError, ThreadRecord } from '@countersign/core'
import {
  byHand,
  finish,
  gated,
  passMacrotasks,
  scriptedConnection,
  text,
  textDelta,
  textEnd,
  textStart,
} from '@countersign/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { failOnUnhandledRejections, linesOf, openClient, saying } from './open-chat.js'

failOnUnhandledRejections()

// What a storage holds: records that are damaged, and how often a conversation is saved.

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
      { ...saying('u', 'delete it'), ...first },
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
    'two messages of one id': record({ messages: [saying('m', 'one'), saying('m', 'two')] }),
    'a text in its place': 'not a record',
  }

  /** A chat over an own storage that holds this. */
  const load = async (stored: unknown) => {
    const save = vi.fn<Persistence['save']>(async () => {})
    const remove = async () => {}
    const errors: CountersignError[] = []
    const server = scriptedConnection([], { otherwise: [text('hi')] })
    const client = openClient({
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

describe('F57 how often a conversation is saved', () => {
  /** A storage that keeps all that it was given, and time that stands still. */
  function keeping() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const saved: string[] = []
    const save = async (_: string, record: unknown) => void saved.push(JSON.stringify(record))
    return { saved, storage: { load: async () => undefined, save, remove: async () => {} } }
  }

  /** A storage of one's own, and a stream of `seconds` that grows ten times a second. */
  async function stream(seconds: number, options?: Parameters<typeof persistent>[1]) {
    const { saved, storage } = keeping()
    const server = scriptedConnection([byHand])
    const client = openClient({
      connection: server,
      threadId: 't',
      persistence: persistent(storage, options),
    })
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
    const { saved, storage } = keeping()
    const server = scriptedConnection([gated(1), byHand])
    const client = openClient({ connection: server, threadId: 't', persistence: persistent(storage) })
    await client.sendMessage('go')
    void client.addToolApprovalResponse({ id: 'a1', approved: true })
    await passMacrotasks(2)
    expect(saved.at(-1)).toContain('"approved":true')
  })
})
