import { ChatClient, type ChatClientOptions } from '@countersign/client'
import { tabs } from '@countersign/client/tabs'
import { clientTool } from '@countersign/core'
import {
  ask,
  byHand,
  call,
  callArgs,
  callEnd,
  callStart,
  clientReady,
  cut,
  error,
  event,
  finish,
  gated,
  hold,
  type RunScript,
  reasoning,
  resolve,
  result,
  type Steps,
  scriptedConnection,
  started,
  text,
  textDelta,
  textEnd,
  textStart,
  until,
} from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { FakeBrowser, type FakeTab, memoryPersistence, quiet, shown } from './fake-browser.js'
import { answersOf, callOf, failOnUnhandledRejections, saidBy, stateOf } from './open-chat.js'

failOnUnhandledRejections()

const approve = (id: string) => ({ id, approved: true })
const deny = (id: string) => ({ id, approved: false })

async function open(
  runs: readonly RunScript[],
  {
    count = 2,
    otherwise,
    ...options
  }: { count?: number; otherwise?: RunScript } & Partial<ChatClientOptions> = {},
) {
  const browser = new FakeBrowser()
  const server = scriptedConnection(runs, otherwise ? { otherwise } : {})
  const opened: FakeTab[] = []
  for (let i = 0; i < count; i++) {
    opened.push(browser.open(server, options))
    await quiet()
  }
  const [first, second] = opened
  if (!first || !second) throw new RangeError('At least two tabs.')
  return { browser, server, opened, first, second }
}

test('two tabs show the same after every step, and so does every tab that comes in the middle', async () => {
  const { browser, server, opened, first } = await open([byHand, byHand, byHand, byHand], {
    onPendingMessage: 'queue',
  })
  const compare = async (what: string) => {
    await quiet()
    opened.push(browser.open(server, { onPendingMessage: 'queue' }))
    await quiet()
    const [leader, ...others] = opened.map(({ client }) => shown(client))
    for (const other of others) expect(other, what).toEqual(leader)
  }
  const play = async (number: number, ...steps: Steps) => {
    const run = await server.request(number)
    for (const step of steps) {
      run.emit(step)
      await compare(JSON.stringify(step))
    }
  }
  void first.client.sendMessage('go')
  await compare('sent')
  await play(
    1,
    started(),
    reasoning('Hm.'),
    event({ type: 'STATE_SNAPSHOT', snapshot: { step: 1 } }),
    textStart(),
    textDelta('Two '),
    textDelta('files'),
    textEnd(),
    callStart('c1', 'delete_file'),
    callArgs('c1', '{"path":"a'),
    callArgs('c1', '.log"}'),
    callEnd('c1'),
    ask('a1', 'c1'),
    // Told again, which a tab that comes in its middle has to know.
    callStart('c1', 'delete_file'),
    callArgs('c1', '{"path":"a'),
    callArgs('c1', '.log"}'),
    callEnd('c1'),
    gated(2),
    call('c3', 'look'),
    result('c3', { found: true }),
  )
  void first.client.sendMessage('queued')
  await compare('queued')
  void first.client.addToolApprovalResponse({ ...deny('a1'), reason: 'no' })
  await compare('answered while it streams')
  await play(1, finish())
  void first.client.addToolApprovalResponse(approve('a2'))
  await compare('the last answer')
  await play(2, resolve(), text('Done.'), finish())
  await play(3, started(), textStart(), textDelta('half'), error('The model is gone.', 'gone'))
  void first.client.retry()
  await play(4, text('whole'), finish())
  first.client.clear()
  await compare('cleared')
  expect(server.mostStreams).toBe(1)
})

test('an answer given in one tab is seen in the other, and a late one there is told', async () => {
  const { server, first, second } = await open([gated(1), [resolve(), text('Done.')]])
  await first.client.sendMessage('go')
  await quiet()
  expect(second.client.getSnapshot().pendingApprovals).toHaveLength(1)
  expect(await second.client.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
  await quiet()
  expect(stateOf(first.client, 'c1')).toBe('complete')
  expect(shown(second.client)).toEqual(shown(first.client))
  for (const { client } of [first, second]) {
    expect(await client.addToolApprovalResponse(deny('a1'))).toEqual({ status: 'already-answered' })
  }
  expect(answersOf(server)).toEqual([[], ['a1 yes']])
})

test('a tab that follows refuses what has no JSON form, as a tab by itself does', async () => {
  const asking = [call('c1', 'send', { n: 1 }), ask('a1', 'c1', { allowEdits: true })]
  const { server, second, first } = await open([asking, [resolve(), text('Done.')]])
  await first.client.sendMessage('go')
  await quiet()
  for (const n of [Number.NaN, 1n, new Map(), () => 1, new Date(Number.NaN)])
    expect(
      await second.client.addToolApprovalResponse({ id: 'a1', approved: true, input: { n } }),
    ).toMatchObject({ status: 'refused', code: 'approval-malformed' })
  expect(second.client.getSnapshot().pendingApprovals).toHaveLength(1)
  expect(answersOf(server)).toEqual([[]])
})

test('E.10 two tabs answer differently at the same time: the first wins, the second is told', async () => {
  for (const turns of [0, 1, 2, 3, 5]) {
    const { server, first, second } = await open([gated(1), [resolve(), text('Done.')]])
    await first.client.sendMessage('go')
    await quiet()
    const late = second.client.addToolApprovalResponse(deny('a1'))
    for (let i = 0; i < turns; i++) await new Promise(setImmediate)
    const results = await Promise.all([first.client.addToolApprovalResponse(approve('a1')), late])
    expect(results.map(({ status }) => status).sort()).toEqual(['already-answered', 'sent'])
    expect(answersOf(server).flat()).toHaveLength(1)
    await quiet()
    expect(shown(second.client)).toEqual(shown(first.client))
  }
})

test('every action of a tab that follows is done by the one that leads', async () => {
  const { server, first, second } = await open([
    [text('Hello.')],
    [textStart(), textDelta('I'), hold()],
    [text('Queued came.')],
    [call('c1', 'locate')],
    [text('You are in Bremen.')],
    [event({ type: 'RUN_STARTED', threadId: 't', runId: '' }), cut()],
    [text('Again.')],
    [text('Anew.')],
  ])
  const { client } = second
  expect(await client.sendMessage('hi')).toEqual({ status: 'sent' })
  const stopped = client.sendMessage('long')
  await server.held()
  await quiet()
  expect(client.getSnapshot().status).toBe('streaming')
  const queued = await client.sendMessage('queued')
  expect(queued.status).toBe('queued')
  await quiet()
  expect(client.cancelQueued(client.getSnapshot().queue[0]?.id ?? '')).toBe(true)
  await quiet()
  expect(client.getSnapshot().queue).toEqual([])
  client.stop()
  expect(await stopped).toEqual({ status: 'stopped' })
  await quiet()
  expect(client.getSnapshot().status).toBe('ready')
  expect(await client.sendMessage('go on')).toEqual({ status: 'sent' })
  expect(await client.sendMessage('where am I?')).toEqual({ status: 'sent' })
  expect(await client.addToolResult({ toolCallId: 'c1', output: 'Bremen' })).toEqual({ status: 'sent' })
  expect(await client.sendMessage('more')).toMatchObject({
    status: 'failed',
    error: { code: expect.any(String) },
  })
  await client.retry()
  expect(await client.regenerate()).toEqual({ status: 'sent' })
  await quiet()
  expect(saidBy(client)).toMatch(/^Hello\. I Queued came\. .*You are in Bremen\. Anew\.$/)
  client.clear()
  await quiet()
  expect(first.client.getSnapshot().messages).toEqual([])
  expect(server.requests).toHaveLength(8)
  expect(shown(client)).toEqual(shown(first.client))
})

test('an answer to an interrupt of a tab that follows is sent by the one that leads', async () => {
  const ending = finish({ interrupts: [{ id: 'i1', reason: 'ask', message: 'Which one?' }] })
  const { server, first, second } = await open([[ending], [text('Fine.')]])
  await first.client.sendMessage('go')
  await quiet()
  expect(second.client.getSnapshot().interrupts).toHaveLength(1)
  expect(await second.client.respondToInterrupt({ id: 'i1', payload: 'this' })).toEqual({ status: 'sent' })
  expect(await second.client.respondToInterrupt({ id: 'i1', payload: 'that' })).toEqual({
    status: 'not-found',
  })
  expect(server.requests[1]?.resume).toMatchObject([{ interruptId: 'i1', payload: 'this' }])
})

test('a leading tab that closes in the middle of a continuation: the other takes over, and retry loses and doubles nothing', async () => {
  for (const turns of [0, 1, 2, 4, 8]) {
    const { server, first, second, browser } = await open([
      gated(1),
      [started(), textStart(), textDelta('half'), hold()],
      [resolve(), text('Done.')],
    ])
    await first.client.sendMessage('go')
    await quiet()
    const answer = second.client.addToolApprovalResponse(approve('a1'))
    await server.held()
    for (let i = 0; i < turns; i++) await new Promise(setImmediate)
    first.close()
    expect(await answer).toMatchObject({ status: 'failed', error: { code: 'connection-failed' } })
    await quiet()
    expect(callOf(second.client, 'c1').approval).toMatchObject({ approved: true })
    expect(['waiting', 'unknown']).toContain(callOf(second.client, 'c1').approval?.delivery)
    expect(second.client.getSnapshot()).toMatchObject({ status: 'error', isLoading: false })
    expect(server.requests).toHaveLength(2)
    await second.client.retry()
    expect(stateOf(second.client, 'c1')).toBe('complete')
    expect(answersOf(server)).toEqual([[], ['a1 yes'], ['a1 yes']])
    await quiet()
    expect(browser.persistence.texts.get('t')).toContain('Done.')
  }
})

test('actions under way when the leading tab closes: no message is doubled, and none is lost', async () => {
  for (let turns = 0; turns < 12; turns++) {
    const { server, first, second, opened } = await open([[text('Hi.')], [started(), text('One.'), hold()]], {
      count: 3,
      otherwise: [text('Yes.')],
    })
    await first.client.sendMessage('hi')
    await quiet()
    const results = [second.client.sendMessage('one'), opened[2]?.client.sendMessage('two')]
    for (let i = 0; i < turns; i++) await new Promise(setImmediate)
    first.close()
    server.release()
    for (const result of await Promise.all(results)) {
      expect(['sent', 'queued', 'failed'], `after ${turns} turns`).toContain(result?.status)
    }
    await second.client.retry()
    await second.client.sendMessage('three')
    await quiet()
    expect(saidBy(second.client, 'user').split(' ').sort(), `after ${turns} turns`).toEqual([
      'hi',
      'one',
      'three',
      'two',
    ])
    expect(second.client.getSnapshot().queue).toEqual([])
    const last = server.requests.at(-1)?.messages.filter(({ role }) => role === 'user')
    expect(last).toHaveLength(4)
  }
})

test('a tab that leads again after it left follows meanwhile, and nothing is lost', async () => {
  const { server, first, second, browser } = await open([
    gated(1),
    [resolve(), text('Done.')],
    [text('Third.')],
  ])
  await first.client.sendMessage('go')
  first.client.detach()
  await quiet()
  expect(browser.openChannels).toBe(1)
  expect(await second.client.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
  first.client.attach()
  await quiet()
  expect(shown(first.client)).toEqual(shown(second.client))
  expect(stateOf(first.client, 'c1')).toBe('complete')
  second.close()
  await quiet()
  expect(await first.client.sendMessage('more')).toEqual({ status: 'sent' })
  expect(server.requests).toHaveLength(3)
})

test('a tab that left and is alone again shows what is stored', async () => {
  const { first, second, browser } = await open([gated(1), [resolve(), text('Done.')]])
  await first.client.sendMessage('go')
  first.client.detach()
  await quiet()
  await second.client.addToolApprovalResponse(approve('a1'))
  second.client.detach()
  await quiet()
  expect(browser.openChannels + browser.lockRequests).toBe(0)
  first.client.attach()
  await quiet()
  expect(shown(first.client)).toEqual(shown(second.client))
})

test('an unmounted page in the middle of a run keeps its place until the run is over', async () => {
  const { server, first, second, browser } = await open([
    [textStart(), textDelta('a'), hold(), textDelta('b')],
  ])
  void first.client.sendMessage('go')
  await server.held()
  first.client.detach()
  await quiet()
  expect(browser.openChannels).toBe(2)
  server.release()
  await quiet()
  expect(browser.openChannels).toBe(1)
  expect(saidBy(second.client)).toBe('ab')
})

test('what is hostile or foreign on the channel changes nothing', async () => {
  const { server, first, second, browser } = await open([gated(1)])
  await first.client.sendMessage('go')
  await quiet()
  const before = [first.client.getSnapshot(), second.client.getSnapshot()]
  const from = 'stranger'
  const version = 1
  const posts: unknown[] = [
    undefined,
    null,
    7,
    'text',
    '{',
    {},
    { type: 'command', from, id: '1', name: 'answer', value: approve('a1'), version },
    { version: 2, type: 'command', from, id: '1', name: 'answer', value: approve('a1') },
    { type: 'command', from, id: '1', name: 'answer', value: approve('a1') },
    { version, type: 'command', from, id: '1', name: 'constructor', value: {} },
    { version, type: 'command', from, id: '1', name: 'knows', value: 'stop' },
    { version, type: 'command', from, id: '1', name: '__proto__', value: {} },
    { version, type: 'command', from, id: '2', name: 'answer', value: { id: 'a1' } },
    { version, type: 'command', from, id: '2', name: 'answer', value: { id: 'a1', approved: 'yes' } },
    { version, type: 'command', from, id: '3', name: 'answer', value: approve('nobody') },
    { version, type: 'command', from, id: '4', name: 'expire', value: ['a1'] },
    {
      version,
      type: 'command',
      from,
      id: '5',
      name: 'send',
      value: { id: 'x', role: 'assistant', parts: [] },
    },
    { version, type: 'command', from, id: '6', name: 'setMessages', value: [{}] },
    {
      version,
      type: 'steps',
      from,
      at: 99,
      steps: [{ type: 'answer', approvalId: 'a1', approved: true }],
      taken: [],
    },
    { version, type: 'steps', from, at: 1, steps: [{ type: 'set-messages', messages: [] }], taken: [] },
    { version, type: 'state', from, to: 'second', at: 1, state: {}, taken: [] },
    { version, type: 'done', from, id: '9', result: {} },
    { version, type: 'hello', from },
    { version, type: 'lead', from },
  ]
  for (const [index, post] of posts.entries()) {
    browser.say(index > 6 ? JSON.stringify(post) : post)
    await quiet()
  }
  expect(shown(first.client)).toEqual(JSON.parse(JSON.stringify(before[0])))
  expect(shown(second.client)).toEqual(JSON.parse(JSON.stringify(before[1])))
  expect(first.client.getSnapshot()).toBe(before[0])
  expect(server.requests).toHaveLength(1)
})

test('an answer over the channel for a request that nobody knows is not found', async () => {
  const { second } = await open([gated(1)])
  expect(await second.client.addToolApprovalResponse(approve('nobody'))).toEqual({ status: 'not-found' })
})

test('a tab that misses steps asks for everything again, and one with wrong members does no harm', async () => {
  const { first, second, browser } = await open([gated(1), [resolve(), text('Done.')]])
  const heard: { type: string; from: string; at: number }[] = []
  const ear = browser.createChannel('countersign:t')
  ear.onmessage = ({ data }) => void heard.push(JSON.parse(data))
  await first.client.sendMessage('go')
  await quiet()
  const { from, at } = heard.findLast(({ type }) => type === 'steps') ?? { from: '', at: 0 }
  const say = async (post: object) => {
    ear.postMessage(JSON.stringify({ version: 1, from, taken: [], ...post }))
    await quiet()
    expect(shown(second.client)).toEqual(shown(first.client))
  }
  await say({ type: 'steps', at: at + 1, steps: [{ type: 'user-message', message: { id: 'x' } }] })
  await say({ type: 'steps', at: at + 1, steps: [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 7 }] })
  await say({ type: 'steps', at: at + 9, steps: [{ type: 'set-messages', messages: [] }] })
  await say({ type: 'steps', at, steps: [{ type: 'set-messages', messages: [] }] })
  await first.client.addToolApprovalResponse(approve('a1'))
  await quiet()
  expect(shown(second.client)).toEqual(shown(first.client))
  ear.close()
})

test.each(['locks', 'BroadcastChannel'] as const)('without %s each tab is for itself', async (missing) => {
  vi.stubGlobal(missing === 'locks' ? 'navigator' : 'BroadcastChannel', undefined)
  const persistence = memoryPersistence()
  const make = () =>
    new ChatClient({
      connection: scriptedConnection([gated(1), [resolve(), text('Done.')]]),
      threadId: 't',
      persistence,
      tabs: tabs(missing === 'locks' ? {} : { locks: new FakeBrowserLocks() }),
    })
  const client = make()
  const detach = client.attach()
  await client.sendMessage('go')
  expect(await client.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
  detach()
  await quiet()
  const next = make()
  await next.restore()
  expect(next.getSnapshot().messages).toEqual(client.getSnapshot().messages)
  vi.unstubAllGlobals()
})

class FakeBrowserLocks implements Pick<LockManager, 'request'> {
  request = () => Promise.reject(new DOMException('none', 'SecurityError'))
}

test('where the platform refuses the lock or the channel, each tab is for itself', async () => {
  class Refused {
    constructor() {
      throw new DOMException('no origin', 'SecurityError')
    }
  }
  for (const options of [
    { locks: new FakeBrowserLocks() },
    { locks: new FakeBrowserLocks(), BroadcastChannel: Refused as unknown as typeof BroadcastChannel },
  ]) {
    const client = new ChatClient({
      connection: scriptedConnection([[text('Hello.')]]),
      threadId: 't',
      persistence: memoryPersistence(),
      tabs: tabs(options),
    })
    expect(await client.sendMessage('hi')).toEqual({ status: 'sent' })
  }
})

test('a client that is disposed of while another tab carries out its action does not hear that nothing happened', async () => {
  const { server, second } = await open([[textStart(), hold()]])
  const sent = second.client.sendMessage('go')
  await server.held()
  second.client.dispose()
  expect(await sent).toMatchObject({ status: 'failed', error: { code: 'connection-failed' } })
})

test('an approved client tool runs once, in the tab that leads; closed meanwhile, it does not run again', async () => {
  const execute = vi.fn(async () => 'Bremen')
  const locate = clientTool({ name: 'locate', description: '', input: z.object({}), execute })
  const runs = [[call('c1', 'locate'), ask('a1', 'c1')], [clientReady('c1')], [text('You are there.')]]
  const { server, first, second } = await open(runs, { tools: [locate] })
  await first.client.sendMessage('where?')
  await quiet()
  await second.client.addToolApprovalResponse(approve('a1'))
  await until(second.client, () => saidBy(second.client) === 'You are there.')
  expect(execute).toHaveBeenCalledTimes(1)
  expect(server.requests).toHaveLength(3)

  const forever = vi.fn(() => new Promise<string>(() => {}))
  const hanging = clientTool({ name: 'locate', description: '', input: z.object({}), execute: forever })
  const other = await open(runs, { tools: [hanging] })
  await other.first.client.sendMessage('where?')
  await quiet()
  void other.second.client.addToolApprovalResponse(approve('a1'))
  await until(other.second.client, () => stateOf(other.second.client, 'c1') === 'executing')
  other.first.close()
  await until(other.second.client, () => stateOf(other.second.client, 'c1') === 'error')
  expect(callOf(other.second.client, 'c1').error).toMatchObject({ code: 'interrupted' })
  await other.second.client.retry()
  await quiet()
  expect(forever).toHaveBeenCalledTimes(1)
  expect(other.server.requests).toHaveLength(3)
})

test('two clients over the BroadcastChannel of the platform', async () => {
  const browser = new FakeBrowser()
  const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
  const locks: Pick<LockManager, 'request'> = {
    request: async (name: string, ...rest: unknown[]) => {
      const [options, held] = rest as [LockOptions, () => unknown]
      return browser.request(name, options.signal, held).done
    },
  }
  const make = () =>
    new ChatClient({
      connection: server,
      threadId: 't',
      persistence: browser.persistence,
      tabs: tabs({ locks }),
    })
  const [first, second] = [make(), make()]
  first.attach()
  second.attach()
  await first.sendMessage('go')
  await until(second, ({ status }) => status === 'awaiting-approval')
  expect(await second.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'sent' })
  await until(first, () => saidBy(first) === 'Done.')
  first.dispose()
  second.dispose()
  await quiet()
  expect(browser.lockRequests).toBe(0)
})

test('an approval that expires is closed in every tab, whichever noticed', async () => {
  let now = 0
  const expiresAt = new Date(50).toISOString()
  const runs = [[call('c1', 'delete_file'), ask('a1', 'c1', { expiresAt })]]
  const { first, second } = await open(runs, { now: () => now })
  await first.client.sendMessage('go')
  await quiet()
  now = 60
  expect(await second.client.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'expired' })
  await quiet()
  expect(stateOf(first.client, 'c1')).toBe('cancelled')
  expect(shown(second.client)).toEqual(shown(first.client))
})
