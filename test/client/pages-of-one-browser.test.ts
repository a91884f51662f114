import { type ModelEvent, tool } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { calls, here, openPage, startServer, startServerWith, stop, words } from './threads-server.js'
import { gate } from './tools-in-pages.js'

// Several pages of one browser on a conversation that the server keeps: they share what was not sent.

type Page = ReturnType<typeof openPage>

const parts = ({ client }: Page) => client.getSnapshot().messages.flatMap((message) => message.parts)

const texts = (page: Page) => parts(page).flatMap((part) => (part.type === 'text' ? part.text : []))

const posts = (...pages: Page[]) =>
  pages.flatMap(({ requests }) => requests.filter(({ method }) => method === 'POST'))

/** Pages that run the client tool `here`. Which of them did is in `ran`. */
function pages(server: ReturnType<typeof startServer>, finished: Promise<void> = Promise.resolve()) {
  const local = memoryPersistence()
  const ran: string[] = []
  const page = (name: string, browser = local) => {
    const execute = async () => {
      ran.push(name)
      await finished
      return 1
    }
    return openPage(server, { local: browser }, { tools: [here.client(execute)] })
  }
  return { ran, page, local }
}

const streams = (opened: Promise<void>, then: readonly ModelEvent[]) =>
  async function* () {
    yield words('hm')
    await opened
    yield* then
  }

test.each(['before', 'during'])(
  'a client tool runs in the tab that sent the message, not in another one opened %s the run',
  async (when) => {
    const { open, opened } = gate()
    const server = startServer(streams(opened, calls('here', { x: 1 })), () => [words('Done.'), stop])
    const { ran, page } = pages(server)
    const one = page('one')
    await one.client.restore()
    let two = when === 'before' ? page('two') : undefined
    await two?.client.restore()
    void one.client.sendMessage('go')
    await vi.waitUntil(() => texts(one).includes('hm'))
    two ??= page('two')
    const other = two
    await vi.waitUntil(() => texts(other).includes('hm'))
    open()
    await vi.waitUntil(() => [one, other].every((page) => texts(page).includes('Done.')))
    expect(ran).toEqual(['one'])
    expect(posts(one, other)).toHaveLength(2)
  },
)

test('a reload of the tab that sent the message takes its run up: its client tool runs there, though another tab is open', async () => {
  const { open, opened } = gate()
  const server = startServer(streams(opened, calls('here', { x: 1 })), () => [words('Done.'), stop])
  const { ran, page } = pages(server)
  const two = page('two')
  await two.client.restore()
  const one = page('one')
  void one.client.sendMessage('go')
  await vi.waitUntil(() => texts(one).includes('hm') && texts(two).includes('hm'))
  one.leave()
  const reloaded = page('reloaded')
  await vi.waitUntil(() => texts(reloaded).includes('hm'))
  open()
  await vi.waitUntil(() => [two, reloaded].every((page) => texts(page).includes('Done.')))
  expect(ran).toEqual(['reloaded'])
})

const status = ({ client }: Page) => client.getSnapshot().status

const call = (page: Page, name: string) =>
  parts(page).flatMap((part) => (part.type === 'tool-call' && part.name === name ? part : []))[0]

test('retry() in another tab does not run a client tool that still runs, and says so', async () => {
  const { open, opened } = gate()
  const server = startServer(
    () => calls('here', { x: 1 }),
    () => [words('Done.'), stop],
  )
  const { ran, page } = pages(server, opened)
  const one = page('one')
  void one.client.sendMessage('go')
  await vi.waitUntil(() => ran.length > 0)
  const two = page('two')
  await vi.waitUntil(() => call(two, 'here') !== undefined)
  await two.client.retry()
  expect([ran, two.errors, status(two)]).toEqual([['one'], ['thread-busy'], 'ready'])
  open()
  await vi.waitUntil(() => [one, two].every((page) => texts(page).includes('Done.')))
  expect([ran, posts(two)]).toEqual([['one'], []])
})

test('a client tool of a tab that is gone waits for retry() in another one, and runs there once', async () => {
  const { open, opened } = gate()
  const server = startServer(streams(opened, calls('here', { x: 1 })), () => [words('Done.'), stop])
  const { ran, page } = pages(server)
  const two = page('two')
  await two.client.restore()
  const one = page('one')
  void one.client.sendMessage('go')
  await vi.waitUntil(() => texts(two).includes('hm'))
  one.leave()
  open()
  await vi.waitUntil(() => call(two, 'here')?.state === 'input-complete' && status(two) === 'ready')
  expect(ran).toEqual([])
  await two.client.retry()
  await vi.waitUntil(() => texts(two).includes('Done.'))
  expect([ran, two.errors]).toEqual([['two'], []])
})

test.each(['before', 'during'])(
  'a message queued in one tab is sent by that tab alone, with another one opened %s the run',
  async (when) => {
    const { open, opened } = gate()
    const server = startServer(
      streams(opened, [stop]),
      () => [words('First.'), stop],
      () => [words('Second.'), stop],
    )
    const { page } = pages(server)
    const one = page('one')
    await one.client.restore()
    let two = when === 'before' ? page('two') : undefined
    await two?.client.restore()
    void one.client.sendMessage('go')
    await vi.waitUntil(() => texts(one).includes('hm'))
    void one.client.sendMessage('q1')
    void one.client.sendMessage('q2')
    two ??= page('two')
    const other = two
    await vi.waitUntil(() => texts(other).includes('hm'))
    open()
    await vi.waitUntil(() => [one, other].every((page) => texts(page).includes('Second.')))
    expect([posts(one).length, posts(other).length]).toEqual([3, 0])
    await vi.waitUntil(() => texts(other).join() === 'go,hm,q1,First.,q2,Second.')
  },
)

test('a queued message of a tab that is gone is sent by the tab that is opened next', async () => {
  const { open, opened } = gate()
  const server = startServer(streams(opened, [stop]), () => [words('First.'), stop])
  const { page } = pages(server)
  const one = page('one')
  void one.client.sendMessage('go')
  await vi.waitUntil(() => texts(one).includes('hm'))
  void one.client.sendMessage('q1')
  await vi.waitUntil(() => one.local.texts.get('t')?.includes('q1'))
  one.leave()
  const next = page('next')
  await vi.waitUntil(() => texts(next).includes('hm'))
  open()
  await vi.waitUntil(() => texts(next).includes('First.'))
  expect(posts(next)).toHaveLength(1)
})

test.each([1, 2])(
  'an answer that is given while the reply streams is kept by %d reloads during that run, and counts',
  async (reloads) => {
    const second = gate()
    const ran: number[] = []
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({ n: z.number() }),
      needsApproval: true,
      execute: ({ n }) => ran.push(n),
    })
    const asks = (n: number): ModelEvent => ({
      type: 'tool-call',
      id: `c${n}`,
      name: 'pay',
      arguments: `{"n":${n}}`,
    })
    async function* reply() {
      yield asks(1)
      await second.opened
      yield asks(2)
      yield { type: 'finish', reason: 'tool_calls' } as const
    }
    const server = startServerWith({ tools: [pay] }, reply, () => [words('Done.'), stop])
    const { page } = pages(server)
    const open = (page: Page) => page.client.getSnapshot().pendingApprovals
    let now = page('one')
    void now.client.sendMessage('go')
    await vi.waitUntil(() => open(now).length > 0)
    const first = open(now)[0]?.approval.id ?? ''
    void now.client.addToolApprovalResponse({ id: first, approved: true })
    await vi.waitUntil(() => now.local.texts.get('t')?.includes('approval-responded'))
    for (let n = 0; n < reloads; n++) {
      now.leave()
      now = page('reloaded')
      await vi.waitUntil(() => call(now, 'pay') !== undefined)
    }
    // What it saves now must not remove the answer.
    void now.client.sendMessage('and then')
    now.client.cancelQueued(now.client.getSnapshot().queue[0]?.id ?? '')
    second.open()
    await vi.waitUntil(() => call(now, 'pay')?.approval?.approved === true && open(now).length === 1)
    const rest = open(now)[0]?.approval.id ?? ''
    await now.client.addToolApprovalResponse({ id: rest, approved: true })
    await vi.waitUntil(() => texts(now).includes('Done.'))
    expect(ran.sort()).toEqual([1, 2])
  },
)
