import { ChatClient, type ChatClientOptions, type UIMessage } from '@countersign/client'
import { webStorage } from '@countersign/client/web-storage'
import { clientTool, type RunAgentInput, type ThreadRecord } from '@countersign/core'
import {
  ask,
  call,
  clientReady,
  cut,
  failure,
  finish,
  gated,
  hold,
  passMacrotasks,
  type RunScript,
  resolve,
  scriptedConnection,
  started,
  text,
  textDelta,
  textStart,
  until,
} from '@countersign/testing'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { type MemoryPersistence, memoryPersistence } from './fake-browser.js'
import {
  answersOf,
  callOf,
  failOnUnhandledRejections,
  openChat,
  saidBy,
  stateOf,
  type Wire,
  wires,
} from './open-chat.js'

failOnUnhandledRejections()

const approve = (id: string) => ({ id, approved: true })
const deny = (id: string) => ({ id, approved: false })

/** The same thread in a new page: with what is stored at this moment, or with nothing. */
async function openPage(
  wire: Wire,
  runs: readonly RunScript[],
  { persistence }: { readonly persistence: MemoryPersistence },
  options: Partial<Omit<ChatClientOptions, 'connection'>> = {},
) {
  const copy = memoryPersistence()
  for (const [threadId, record] of persistence.texts) copy.texts.set(threadId, record)
  const opened = await openChat(wire, runs, { threadId: 't', persistence: copy, ...options })
  opened.client.attach()
  await opened.client.restore()
  return { ...opened, persistence: copy }
}

const first = { persistence: memoryPersistence() }

describe.each(wires)('%s', (wire) => {
  test('U.14 E.8 a reload while a request is pending: it is shown, sends nothing, and answering it goes on', async () => {
    const before = await openPage(wire, [[text('Two files.'), gated(1), gated(2)]], first)
    await before.person.sendMessage('tidy up')
    await before.settle()
    const { client, person, server, settle } = await openPage(wire, [[resolve(), text('Done.')]], before)
    expect(client.getSnapshot()).toEqual(before.client.getSnapshot())
    await settle()
    expect(server.requests).toHaveLength(0)
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'waiting' })
    expect(await person.addToolApprovalResponse(deny('a2'))).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([['a1 yes', 'a2 no']])
    expect(saidBy(client)).toBe('Two files. Done.')
  })

  test('E.8 one request pending and one answered but unsent: both are there, and answering the one completes both', async () => {
    const before = await openPage(wire, [[gated(1), gated(2)]], first)
    await before.person.sendMessage('go')
    await before.person.addToolApprovalResponse({ ...approve('a1'), reason: 'old' })
    await before.settle()
    const { client, person, server, settle } = await openPage(wire, [[resolve(), text('Done.')]], before)
    expect(client.getSnapshot().pendingApprovals.map(({ id }) => id)).toEqual(['c2'])
    expect(callOf(client, 'c1').approval).toMatchObject({ approved: true, delivery: 'waiting' })
    await person.retry()
    await settle()
    expect(server.requests, 'a sibling is unanswered').toHaveLength(0)
    expect(await person.addToolApprovalResponse({ id: 'a1', approved: false })).toEqual({
      status: 'already-answered',
    })
    expect(await person.addToolApprovalResponse(deny('a2'))).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([['a1 yes (old)', 'a2 no']])
    expect(saidBy(client)).toBe('Done.')
  })

  test('a reload in the middle of the continuation: the answer is in doubt, resume sends it once, unchanged', async () => {
    const before = await openPage(
      wire,
      [gated(1), [started(), textStart(), textDelta('I am'), hold()]],
      first,
    )
    await before.person.sendMessage('go')
    void before.person.addToolApprovalResponse({ ...approve('a1'), reason: 'yes' })
    await before.server.held()
    await before.settle()
    const { client, person, server, settle } = await openPage(wire, [[resolve(), text('Done.')]], before)
    await settle()
    expect(server.requests).toHaveLength(0)
    expect(callOf(client, 'c1')).toMatchObject({
      state: 'approval-responded',
      approval: { delivery: 'unknown' },
    })
    expect(client.getSnapshot()).toMatchObject({ isLoading: false, status: 'ready' })
    await Promise.all([person.retry(), person.retry(), person.retry()])
    await person.retry()
    expect(server.requests[0]?.resume).toEqual(before.server.requests[1]?.resume)
    expect(server.requests).toHaveLength(1)
    expect(stateOf(client, 'c1')).toBe('complete')
  })

  test('an answer that is merely loaded is sent by the next action, whatever it is', async () => {
    const before = await openPage(wire, [gated(1), [cut()]], first)
    await before.person.sendMessage('go')
    await before.person.addToolApprovalResponse(approve('a1'))
    await before.settle()
    const { person, server } = await openPage(wire, [[resolve(), text('Done.')]], before)
    expect(await person.sendMessage('and?')).toEqual({ status: 'sent' })
    expect(answersOf(server)).toEqual([['a1 yes']])
    await person.retry()
    expect(server.requests).toHaveLength(1)
  })

  test('the queue, the shared state and what was answered to an interrupt are there again', async () => {
    const asks = finish({
      interrupts: [
        { id: 'i1', reason: 'ask' },
        { id: 'i2', reason: 'ask' },
      ],
    })
    const before = await openPage(
      wire,
      [[{ step: 'event', event: { type: 'STATE_SNAPSHOT', snapshot: { n: 1 } } }, asks]],
      first,
      { onPendingMessage: 'queue' },
    )
    await before.person.sendMessage('go')
    await before.person.respondToInterrupt({ id: 'i1', payload: 'one' })
    expect((await before.person.sendMessage('later')).status).toBe('queued')
    await before.client.detach()
    await before.settle()
    const { client, person, server, settle } = await openPage(
      wire,
      [[text('Both.')], [text('And that.')]],
      before,
      { onPendingMessage: 'queue' },
    )
    expect(client.getSnapshot()).toMatchObject({
      state: { n: 1 },
      interrupts: [{ id: 'i2' }],
      queue: [{ message: { parts: [{ type: 'text', text: 'later' }] } }],
    })
    expect(await person.respondToInterrupt({ id: 'i2', payload: 'two' })).toEqual({ status: 'sent' })
    await until(client, ({ isLoading, queue }) => !isLoading && queue.length === 0)
    await settle()
    expect(server.requests[0]?.resume).toMatchObject([{ payload: 'one' }, { payload: 'two' }])
    expect(server.requests).toHaveLength(2)
    expect(saidBy(client, 'user')).toBe('go later')
  })

  test('the answer to an interrupt whose request a reload cut off is sent by retry', async () => {
    const asks = finish({ interrupts: [{ id: 'i1', reason: 'ask' }] })
    const before = await openPage(wire, [[asks], [started(), hold()]], first)
    await before.person.sendMessage('go')
    void before.person.respondToInterrupt({ id: 'i1', payload: 'one' })
    await before.server.held()
    await before.settle()
    const { client, person, server } = await openPage(wire, [[text('Fine.')]], before)
    await person.retry()
    expect(server.requests[0]?.resume).toMatchObject([{ interruptId: 'i1', payload: 'one' }])
    expect(saidBy(client)).toBe('Fine.')
  })

  test('a server call whose result a reload cut off does not hold back an answer for ever', async () => {
    const before = await openPage(wire, [[gated(1), call('c9', 'slow'), hold()]], first)
    void before.person.sendMessage('go')
    await before.server.held()
    await until(before.client, () => stateOf(before.client, 'c9') === 'input-complete')
    void before.person.addToolApprovalResponse(approve('a1'))
    await before.settle()
    const { client, person, server } = await openPage(wire, [[resolve(), text('Done.')]], before)
    expect(stateOf(client, 'c9')).toBe('input-complete')
    await person.retry()
    expect(answersOf(server)).toEqual([['a1 yes']])
  })

  test('E.12 an approved tool that failed is asked for anew when the user tries again: one run for each approval', async () => {
    const before = await openPage(
      wire,
      [gated(1), [failure('c1', 'Disk full.'), text('It failed.')], [gated(2)]],
      first,
    )
    await before.person.sendMessage('delete it')
    await before.person.addToolApprovalResponse(approve('a1'))
    expect(callOf(before.client, 'c1')).toMatchObject({ state: 'error', error: { message: 'Disk full.' } })
    await before.person.retry()
    await before.person.retry()
    expect(before.server.requests).toHaveLength(2)
    await before.person.sendMessage('try again')
    await before.settle()
    const { client, person, server } = await openPage(wire, [[resolve(), text('Done.')]], before)
    expect(await person.addToolApprovalResponse(approve('a1'))).toEqual({ status: 'already-answered' })
    expect(await person.addToolApprovalResponse(approve('a2'))).toEqual({ status: 'sent' })
    expect([answersOf(before.server), answersOf(server)].flat(2)).toEqual(['a1 yes', 'a2 yes'])
    expect(stateOf(client, 'c2')).toBe('complete')
  })

  test('E.16 U.15 an earlier message edited while a request is pending: it is gone, also after a reload', async () => {
    const before = await openPage(wire, [[text('Hello.')], [gated(1), gated(2)], [text('Fine.')]], first)
    await before.person.sendMessage('hi')
    await before.person.sendMessage('go')
    await before.person.addToolApprovalResponse(approve('a1'))
    before.person.setMessages(before.client.getSnapshot().messages.slice(0, 2))
    await before.person.sendMessage('something else')
    await before.settle()
    await before.client.detach()
    await before.settle()
    const { client, person, server, settle } = await openPage(wire, [], before)
    expect(client.getSnapshot()).toMatchObject({ status: 'ready', pendingApprovals: [] })
    await person.retry()
    await settle()
    expect(server.requests).toHaveLength(0)
    expect(answersOf(before.server)).toEqual([[], [], []])
    expect(await person.addToolApprovalResponse(approve('a2'))).toEqual({ status: 'not-found' })
  })
})

/** A server that hands out an approved client tool as often as it is asked, so that only the client can see to it that it runs once. */
const toolServer = (input: RunAgentInput): ReturnType<Extract<RunScript, (...args: never[]) => unknown>> => {
  if (input.messages.some((message) => message.role === 'tool')) return [text('Done.')]
  if (JSON.stringify(input).includes('"approved":true')) return [clientReady('c1')]
  return [call('c1', 'locate'), ask('a1', 'c1')]
}

function counted(execute: () => unknown = () => 'Bremen') {
  const ran = vi.fn(execute)
  return { ran, tools: [clientTool({ name: 'locate', description: '', input: z.object({}), execute: ran })] }
}

test('E.11 a client tool runs at most once, wherever in its life the page is loaded again', async () => {
  const persistence = memoryPersistence()
  const { ran, tools } = counted()
  const moments: { text: string; ranSoFar: number }[] = []
  const { save } = persistence
  persistence.save = async (threadId, record) => {
    moments.push({ text: JSON.stringify(record), ranSoFar: ran.mock.calls.length })
    await save(threadId, record)
  }
  const connection = scriptedConnection([], { otherwise: toolServer })
  const client = new ChatClient({ connection, threadId: 't', persistence, tools })
  client.attach()
  await client.sendMessage('where?')
  await client.addToolApprovalResponse(approve('a1'))
  await until(client, ({ isLoading }) => !isLoading && saidBy(client) === 'Done.')
  client.detach()
  await passMacrotasks(3)
  expect(ran).toHaveBeenCalledTimes(1)
  expect(moments.length).toBeGreaterThan(4)

  const ends = new Set<string>()
  for (const [index, moment] of moments.entries()) {
    const kept = memoryPersistence()
    kept.texts.set('t', moment.text)
    const again = counted()
    const page = new ChatClient({
      connection: scriptedConnection([], { otherwise: toolServer }),
      threadId: 't',
      persistence: kept,
      tools: again.tools,
    })
    page.attach()
    await page.restore()
    await passMacrotasks(3)
    expect(again.ran, 'nothing runs because it was loaded').not.toHaveBeenCalled()
    // Nothing was asked yet: the person says it again.
    if (stateOf(page, 'c1') === undefined || !callOf(page, 'c1').approval) continue
    if (page.getSnapshot().pendingApprovals.length > 0) await page.addToolApprovalResponse(approve('a1'))
    await page.retry()
    await page.retry()
    await until(page, ({ isLoading }) => !isLoading && saidBy(page).endsWith('Done.'))
    // The page went away at some time before the next save: by then the tool may have run as often as that save has seen.
    const before = moments[index + 1]?.ranSoFar ?? 1
    expect(before + again.ran.mock.calls.length, `loaded at save ${index}`).toBeLessThanOrEqual(1)
    ends.add(stateOf(page, 'c1') ?? '')
    page.dispose()
  }
  expect([...ends].sort()).toEqual(['complete', 'error'])
})

test('a client tool does not run where it cannot be stored first that it does', async () => {
  const persistence = memoryPersistence()
  const { ran, tools } = counted()
  const { client, person } = await openChat('in-process', [], {
    otherwise: (input) => {
      persistence.failure = new Error('full')
      return toolServer(input)
    },
    threadId: 't',
    persistence,
    tools,
  })
  await client.restore()
  await person.sendMessage('where?')
  await person.addToolApprovalResponse(approve('a1'))
  await until(client, () => saidBy(client) === 'Done.')
  expect(ran).not.toHaveBeenCalled()
  expect(callOf(client, 'c1').error).toMatchObject({ code: 'not-stored' })
})

test('a storage that is full is told of once, loses nothing that is shown, and is tried again', async () => {
  const persistence = memoryPersistence()
  const errors: string[] = []
  const { client, person, settle } = await openChat(
    'in-process',
    [gated(1), [resolve(), gated(2)], [resolve(), text('Done.')]],
    { threadId: 't', persistence, onError: ({ code }) => errors.push(code) },
  )
  client.attach()
  await client.restore()
  persistence.failure = new DOMException('no room', 'QuotaExceededError')
  await person.sendMessage('go')
  await person.addToolApprovalResponse(approve('a1'))
  await settle()
  expect(errors).toEqual(['persistence-unavailable'])
  expect(client.getSnapshot().pendingApprovals.map(({ id }) => id)).toEqual(['c2'])
  expect(persistence.texts.size).toBe(0)
  persistence.failure = undefined
  expect(await person.addToolApprovalResponse(approve('a2'))).toEqual({ status: 'sent' })
  await settle()
  const page = await openPage('in-process', [], { persistence })
  expect(stateOf(page.client, 'c1')).toBe('complete')
  persistence.failure = new Error('gone')
  person.clear()
  client.detach()
  await settle()
  expect(errors).toHaveLength(2)
})

test('a record that cannot be read is told of, and the chat begins anew', async () => {
  const area = new Map([['countersign:t', '{"version":1,"record":{"version":1,"messages":[{"id":7}]}}']])
  const storage = {
    getItem: (key: string) => area.get(key) ?? null,
    setItem: (key: string, value: string) => void area.set(key, value),
    removeItem: (key: string) => void area.delete(key),
  }
  vi.stubGlobal('localStorage', storage)
  const errors: string[] = []
  const { client, person } = await openChat('in-process', [[text('Hello.')]], {
    threadId: 't',
    persistence: webStorage(),
    onError: ({ code }) => errors.push(code),
  })
  expect(await person.sendMessage('hi')).toEqual({ status: 'sent' })
  expect(errors).toEqual(['persistence-corrupt'])
  expect(saidBy(client)).toBe('Hello.')
  vi.unstubAllGlobals()
})

test('what the user does before the conversation is loaded waits for it, in order', async () => {
  const before = await openPage('in-process', [gated(1)], first)
  await before.person.sendMessage('go')
  await before.settle()
  const persistence = memoryPersistence()
  for (const [threadId, record] of before.persistence.texts) persistence.texts.set(threadId, record)
  const { load } = persistence
  let loaded = () => {}
  const gate = new Promise<void>((open) => {
    loaded = open
  })
  persistence.load = async (threadId) => {
    await gate
    return load(threadId)
  }
  const { client, person, server } = await openChat(
    'in-process',
    [[resolve(), text('Done.')], [text('Yes.')]],
    {
      threadId: 't',
      persistence,
    },
  )
  const answered = person.addToolApprovalResponse(approve('a1'))
  const sent = person.sendMessage('and?')
  await passMacrotasks(3)
  expect(server.requests).toHaveLength(0)
  expect(client.getSnapshot().messages).toEqual([])
  loaded()
  expect(await answered).toEqual({ status: 'sent' })
  expect((await sent).status).toBe('queued')
  await until(client, () => saidBy(client) === 'Done. Yes.')
  expect(answersOf(server)).toEqual([['a1 yes'], []])
})

test('what the user said is stored before the server can have answered', async () => {
  const persistence = memoryPersistence()
  const { person, server } = await openChat('in-process', [[started(), hold()]], {
    threadId: 't',
    persistence,
  })
  void person.sendMessage('go')
  await server.held()
  await passMacrotasks(1)
  const record = JSON.parse(persistence.texts.get('t') ?? '{}') as ThreadRecord
  expect(record.messages.map(({ role }: UIMessage) => role)).toEqual(['user'])
})
