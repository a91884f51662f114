import { ask, call, resolve, text } from '@countersign/testing'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { finish, open, raise, server, startWith, call as streamed, yes } from './foreign-server.js'
import { answersOf, callOf, failOnUnhandledRejections, openChat, stateOf } from './open-chat.js'

failOnUnhandledRejections()

const start = Date.parse('2030-01-01T00:00:00Z')
const minute = 60_000

beforeEach(() => {
  vi.useFakeTimers({ now: start, toFake: ['setTimeout', 'clearTimeout', 'Date'] })
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const askUntil = (id: string, at: number) => [
  call(`c${id}`, 'delete_file', { id }),
  ask(`a${id}`, `c${id}`, { expiresAt: new Date(at).toISOString() }),
]

async function openAsked(...ids: [string, number][]) {
  const chat = await openChat('in-process', [
    ids.map(([id, at]) => askUntil(id, at)),
    [resolve(), text('Fine.')],
  ])
  await chat.person.sendMessage('go')
  return chat
}

test('while a page shows it, a request closes when its time has run out, and nothing is sent before the user acts', async () => {
  const { client, person, server, settle } = await openAsked(['1', start + minute], ['2', start + 2 * minute])
  client.attach()
  vi.advanceTimersByTime(minute - 1)
  expect(stateOf(client, 'c1')).toBe('approval-requested')
  vi.advanceTimersByTime(1)
  expect(callOf(client, 'c1')).toMatchObject({
    state: 'cancelled',
    approval: { problem: 'approval-expired' },
  })
  expect(stateOf(client, 'c2')).toBe('approval-requested')
  vi.advanceTimersByTime(minute)
  expect(stateOf(client, 'c2')).toBe('cancelled')
  expect(client.getSnapshot()).toMatchObject({ status: 'ready', pendingApprovals: [] })
  await settle()
  expect(server.requests).toHaveLength(1)
  await person.sendMessage('go on')
  expect(answersOf(server)[1]?.toSorted()).toEqual(['a1 cancelled', 'a2 cancelled'])
})

test('an answer to an expired request resolves expired, closes the card and sends nothing, with nobody attached too', async () => {
  const { client, person, server, settle } = await openAsked(['1', start + minute])
  vi.setSystemTime(start + minute)
  expect(stateOf(client, 'c1')).toBe('approval-requested')
  expect(await person.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'expired' })
  expect(callOf(client, 'c1')).toMatchObject({
    state: 'cancelled',
    approval: { problem: 'approval-expired' },
  })
  await settle()
  expect(server.requests).toHaveLength(1)
  expect(await person.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({
    status: 'closed',
    reason: 'approval-expired',
  })
})

test.each([true, false])(
  'an answer (approved: %s) is sent when the last open request beside it expires',
  async (approved) => {
    const { client, person, server, settle } = await openAsked(
      ['1', start + minute],
      ['2', start + 5 * minute],
      ['3', start + 2 * minute],
    )
    client.attach()
    expect(await person.addToolApprovalResponse({ id: 'a2', approved })).toEqual({ status: 'waiting' })
    vi.advanceTimersByTime(minute)
    await settle()
    expect(server.requests).toHaveLength(1)
    vi.advanceTimersByTime(minute)
    await settle()
    expect(answersOf(server)[1]?.toSorted()).toEqual([
      'a1 cancelled',
      approved ? 'a2 yes' : 'a2 no',
      'a3 cancelled',
    ])
  },
)

test('an answer is sent when somebody answers the last open request beside it after its expiry, with nobody attached', async () => {
  const { person, server, settle } = await openAsked(['1', start + minute], ['2', start + 5 * minute])
  await person.addToolApprovalResponse({ id: 'a2', approved: true })
  vi.setSystemTime(start + minute)
  expect(await person.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'expired' })
  await settle()
  expect(answersOf(server)[1]?.toSorted()).toEqual(['a1 cancelled', 'a2 yes'])
})

test('after stop() an answer waits although the last open request beside it expires', async () => {
  const { client, person, server, settle } = await openAsked(['1', start + minute], ['2', start + 5 * minute])
  client.attach()
  await person.addToolApprovalResponse({ id: 'a2', approved: true })
  client.stop()
  vi.advanceTimersByTime(minute)
  await settle()
  expect(server.requests).toHaveLength(1)
})

test('a message that waits for open requests is sent when the last of them expires', async () => {
  const chat = await openChat('in-process', [[askUntil('1', start + minute)], [text('Fine.')]], {
    onPendingMessage: 'queue',
  })
  await chat.person.sendMessage('go')
  chat.client.attach()
  expect(await chat.person.sendMessage('and then?')).toMatchObject({ status: 'queued' })
  vi.advanceTimersByTime(minute)
  await chat.settle()
  expect(chat.server.requests).toHaveLength(2)
})

test("the client's now option is the clock", async () => {
  const now = start + 10 * minute
  const chat = await openChat('in-process', [askUntil('1', start + 9 * minute)], { now: () => now })
  await chat.person.sendMessage('go')
  expect(await chat.person.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({
    status: 'expired',
  })
})

test('detached and with no run open a client holds no timer', async () => {
  const { client } = await openAsked(['1', start + minute])
  expect(vi.getTimerCount()).toBe(0)
  const detach = client.attach()
  const detachToo = client.attach()
  expect(vi.getTimerCount()).toBe(1)
  detach()
  detach()
  expect(vi.getTimerCount()).toBe(1)
  detachToo()
  expect(vi.getTimerCount()).toBe(0)
  vi.advanceTimersByTime(2 * minute)
  expect(stateOf(client, 'c1')).toBe('approval-requested')
})

test('attaching again closes at once what ran out meanwhile', async () => {
  const { client } = await openAsked(['1', start + minute])
  client.attach()()
  vi.setSystemTime(start + 3 * minute)
  client.attach()
  vi.advanceTimersByTime(0)
  expect(stateOf(client, 'c1')).toBe('cancelled')
})

test('a request that was answered leaves no timer, and one that never expires needs none', async () => {
  const { client, person } = await openAsked(['1', start + minute])
  client.attach()
  await person.addToolApprovalResponse({ id: 'a1', approved: true })
  expect(vi.getTimerCount()).toBe(0)
  const forever = await openChat('in-process', [
    [call('c9', 'x'), ask('a9', 'c9', { expiresAt: 'when pigs fly' })],
  ])
  await forever.person.sendMessage('go')
  forever.client.attach()
  expect(vi.getTimerCount()).toBe(0)
})

test('an expiry further away than a timer can count does not fire at once', async () => {
  const { client } = await openAsked(['1', start + 60 * 24 * 60 * minute])
  client.attach()
  vi.advanceTimersByTime(40 * 24 * 60 * minute)
  expect(stateOf(client, 'c1')).toBe('approval-requested')
  vi.advanceTimersByTime(20 * 24 * 60 * minute)
  expect(stateOf(client, 'c1')).toBe('cancelled')
})

test('hundreds of requests that come and are answered while a page watches are not all looked through for each', async () => {
  const count = 400
  const ids = Array.from({ length: count }, (_, i): [string, number] => [`${i}`, start + minute])
  const { client, person } = await openChat('in-process', [ids.map(([id, at]) => askUntil(id, at))])
  client.attach()
  const parse = vi.spyOn(Date, 'parse')
  await person.sendMessage('go')
  for (const [id] of ids.slice(1)) void person.addToolApprovalResponse({ id: `a${id}`, approved: true })
  expect(parse.mock.calls.length).toBeLessThan(5 * count)
  vi.advanceTimersByTime(minute)
  expect([stateOf(client, 'c0'), stateOf(client, 'c1')]).toEqual(['cancelled', 'approval-responded'])
})

test('dispose leaves no timer', async () => {
  const { client } = await openAsked(['1', start + minute])
  client.attach()
  client.attach()
  client.dispose()
  expect(vi.getTimerCount()).toBe(0)
})

test('of two requests with the same time the one that is left when the other was answered closes too', async () => {
  const { client, person } = await openAsked(['1', start + minute], ['2', start + minute])
  client.attach()
  void person.addToolApprovalResponse({ id: 'a1', approved: true })
  vi.advanceTimersByTime(minute)
  expect([stateOf(client, 'c1'), stateOf(client, 'c2')]).toEqual(['approval-responded', 'cancelled'])
})

/** Two requests, of which the first expires, and a clock. */
async function twoRequests(options: Partial<Parameters<typeof open>[0]> = {}) {
  const clock = { now: 1000 }
  const { client, resume, approve } = await startWith(
    { now: () => clock.now, ...options },
    (input) => [
      ...streamed('c1', 1, 'm'),
      ...streamed('c2', 2, 'm'),
      raise(input, { expiresAt: new Date(2000).toISOString() }, { id: 'a2', toolCallId: 'c2' }),
    ],
    (input) => [finish(input)],
  )
  const answer = () => approve('a2')
  return { client, clock, resume, answer }
}

const both = ['a2 yes', 'a1 cancelled']

test.each([
  ['retry()', (client) => client.retry()],
  ['sendMessage()', (client) => client.sendMessage()],
  ['a message', (client) => client.sendMessage('go')],
] as [string, (client: ReturnType<typeof open>['client']) => Promise<unknown>][])(
  'where no page watches the clock, %s sends the answers that waited for an expired request',
  async (_, act) => {
    const { client, clock, resume, answer } = await twoRequests({ onPendingMessage: 'reject' })
    expect(await answer()).toEqual({ status: 'waiting' })
    clock.now = 2000
    await act(client)
    expect(resume()).toEqual([[], both])
  },
)

test('where no page watches the clock, an answer does not wait for an expired request', async () => {
  const { clock, resume, answer } = await twoRequests()
  clock.now = 2000
  expect(await answer()).toEqual({ status: 'sent' })
  expect(resume().at(-1)?.toSorted()).toEqual(both.toSorted())
})

test('an expired request closes nothing else while another one is open', async () => {
  const { client, clock, resume } = await twoRequests()
  clock.now = 2000
  await client.retry()
  expect(await client.addToolApprovalResponse(yes('a1'))).toEqual({ status: 'expired' })
  expect(client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)).toEqual(['a2'])
  expect(resume()).toEqual([[]])
})

/** A server that asks about one call until a time. */
const askedUntil = (expiresAt: string) =>
  server(
    (input) => [...streamed('c1', 1), raise(input, { expiresAt })],
    (input) => [finish(input)],
  )

test.each(['300', 'in 5 minutes', '5 min', '1', ''])(
  'a time to answer that is no date (%j) closes no request',
  async (expiresAt) => {
    const { client, pending, approve } = open({ connection: askedUntil(expiresAt).connection })
    onTestFinished(client.subscribe(() => {}))
    await client.sendMessage('go')
    expect(pending()).toHaveLength(1)
    expect(await approve('a1')).toEqual({ status: 'sent' })
  },
)

test.each(['2001-01-01', '2001-01-01T00:00:00Z', '2001-01-01T00:00:00+01:00'])(
  'a request whose time was over at %s has expired',
  async (expiresAt) => {
    const { client, approve } = open({ connection: askedUntil(expiresAt).connection })
    await client.sendMessage('go')
    expect(await approve('a1')).toEqual({ status: 'expired' })
  },
)
