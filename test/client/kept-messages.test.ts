import { ChatClient } from '@countersign/client'
import { passMacrotasks } from '@countersign/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type MemoryPersistence, memoryPersistence } from './fake-browser.js'
import { openPage, startServer, stop, words } from './threads-server.js'
import { gate } from './tools-in-pages.js'

// A message that the server does not have yet stays: on the page, and for the next page of the browser.

type Page = ReturnType<typeof openPage>

/** What the users said, as far as it is shown: in the conversation, or waiting. */
const said = ({ client }: { client: ChatClient }) => {
  const { messages, queue } = client.getSnapshot()
  const all = [...messages.filter(({ role }) => role === 'user'), ...queue.map(({ message }) => message)]
  return all.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? part.text : [])))
}

/** Another client of the same page, such as that of a component that is mounted anew. */
function mountAnew({ threads }: Pick<Page, 'threads'>) {
  const client = new ChatClient({ ...threads, threadId: 't', notify: 'sync' })
  const detach = client.attach()
  onTestFinished(() => {
    detach()
    client.dispose()
  })
  return { client }
}

const chat = 'http://server.test/chat'
const never = () => new Promise<never>(() => {})

test.each([
  ['server', (request: Request) => (request.method === 'GET' ? never() : undefined), undefined],
  ['storage', () => undefined, never],
])(
  'a message that could not be sent yet stays, and is sent once the conversation has loaded, where the %s took too long when the page was opened',
  async (_, hold, load) => {
    const server = startServer()
    await openPage(server).client.sendMessage('before')
    const kept = memoryPersistence()
    let isSlow = true
    const handle = (request: Request) => (isSlow && hold(request)) || server.handle(request)
    const local: MemoryPersistence = {
      ...kept,
      load: (threadId) => (isSlow && load ? load() : kept.load(threadId)),
    }
    const page = openPage({ handle }, { local, timeout: 30 })
    await vi.waitUntil(() => page.errors.length > 0)
    page.network.isUp = false
    expect(await page.client.sendMessage('mine')).toMatchObject({ status: 'queued' })
    isSlow = false
    page.network.isUp = true
    const isDone = ({ client }: Pick<Page, 'client'>) =>
      client.getSnapshot().messages.length === 4 && client.getSnapshot().status === 'ready'
    await vi.waitUntil(() => isDone(page))
    expect(said(page)).toEqual(['before', 'mine'])
    page.leave()
    const next = openPage(server, { local: kept })
    await vi.waitUntil(() => isDone(next))
    expect(said(next)).toEqual(['before', 'mine'])
  },
)

test('what was queued on a client that no page shows any more is shown by the next one, which sends it', async () => {
  const { opened } = gate()
  const server = startServer(async function* () {
    yield words('Well, ')
    await opened
    yield stop
  })
  const page = openPage(server)
  void page.client.sendMessage('one')
  await vi.waitUntil(() => page.client.getSnapshot().status === 'streaming')
  expect(await page.client.sendMessage('two')).toMatchObject({ status: 'queued' })
  page.client.detach()
  page.client.stop()
  const next = mountAnew(page)
  await vi.waitUntil(() => said(next).length === 2)
  await next.client.retry()
  await vi.waitUntil(() => next.client.getSnapshot().messages.length === 4)
  expect(said(next)).toEqual(['one', 'two'])
})

test('a page that was opened offline shows what this browser has kept once it is online, also where the server has no such conversation', async () => {
  const server = startServer()
  const local = memoryPersistence()
  const before = openPage(server, { local })
  await before.client.restore()
  before.network.isUp = false
  await before.client.sendMessage('mine')
  before.leave()
  let isUp = false
  const handle = async (request: Request) => {
    if (!isUp) throw new TypeError('fetch failed')
    return server.handle(request)
  }
  const page = openPage({ handle }, { local })
  await page.client.restore()
  expect(page.errors).toEqual(['connection-failed'])
  isUp = true
  await vi.waitUntil(() => said(page).length === 1)
  await page.client.retry()
  expect(page.client.getSnapshot()).toMatchObject({ status: 'ready', messages: [{}, {}] })
})

test('what a tab that is closed has not sent is shown by another one, also where the server has no such conversation', async () => {
  const server = startServer()
  const local = memoryPersistence()
  const handle = (request: Request) => (request.method === 'POST' ? never() : server.handle(request))
  const one = openPage({ handle }, { local })
  void one.client.sendMessage('mine')
  await vi.waitUntil(() => one.requests.some(({ method }) => method === 'POST'))
  await one.client.restore()
  const two = openPage(server, { local })
  await two.client.restore()
  expect(said(two)).toEqual([])
  one.leave()
  await vi.waitUntil(() => said(two).length === 1)
  await two.client.retry()
  await vi.waitUntil(() => two.client.getSnapshot().messages.length === 2)
})

test('what this browser has kept is shown also if the user says something while it is loaded', async () => {
  const server = startServer()
  const local = memoryPersistence()
  const before = openPage(server, { local })
  await before.client.restore()
  before.network.isUp = false
  await before.client.sendMessage('first')
  before.leave()
  let isUp = false
  const loads = gate()
  const asked = vi.fn()
  const handle = async (request: Request) => {
    if (!isUp) throw new TypeError('fetch failed')
    const isLoad = request.method === 'GET' && !new URL(request.url).searchParams.has('since')
    if (isLoad) {
      asked()
      await loads.opened
    }
    return server.handle(request)
  }
  const page = openPage({ handle }, { local })
  await page.client.restore()
  isUp = true
  await vi.waitUntil(() => asked.mock.calls.length > 0)
  const sent = page.client.sendMessage('second')
  loads.open()
  await sent
  await vi.waitUntil(() => said(page).includes('first'))
  expect(said(page).sort()).toEqual(['first', 'second'])
})

test('what a closed tab has left is shown by a later look, also if the user says something during an earlier one', async () => {
  const server = startServer()
  const local = memoryPersistence()
  await openPage(server, { local }).client.sendMessage('before')
  const handle = (request: Request) => (request.method === 'POST' ? never() : server.handle(request))
  const one = openPage({ handle }, { local })
  void one.client.sendMessage('mine')
  await vi.waitUntil(() => one.requests.some(({ method }) => method === 'POST'))
  const loads = gate()
  const asked = vi.fn()
  let isClosed = false
  const held = async (request: Request) => {
    const isLoad = request.method === 'GET' && !new URL(request.url).searchParams.has('since')
    if (isLoad && isClosed) {
      asked()
      await loads.opened
    }
    return server.handle(request)
  }
  const two = openPage({ handle: held }, { local })
  await two.client.restore()
  expect(said(two)).toEqual(['before'])
  isClosed = true
  one.leave()
  await vi.waitUntil(() => asked.mock.calls.length > 0)
  const sent = two.client.sendMessage('second')
  loads.open()
  await sent
  await vi.waitUntil(() => said(two).length === 3)
  expect(said(two).sort()).toEqual(['before', 'mine', 'second'])
})

test('a request that is stopped while it waits does not replace the version that its page has gone on with', async () => {
  const { open, opened } = gate()
  const server = startServer(async function* () {
    await opened
    yield stop
  })
  const headers = { 'content-type': 'application/json' }
  const send = (runId: string, text: string, countersign = {}) => {
    const messages = [{ id: text, role: 'user', content: text }]
    const forwardedProps = { countersign }
    const body = JSON.stringify({ threadId: 't', runId, messages, tools: [], context: [], forwardedProps })
    return server.handle(new Request(chat, { method: 'POST', headers, body }))
  }
  const first = await send('held', 'one')
  const waits = send('waits', 'two', { edit: 'one' })
  await passMacrotasks(2)
  await server.handle(new Request(`${chat}?threadId=t&runId=waits`, { method: 'DELETE' }))
  open()
  await first.text()
  const { status } = await waits
  expect([status, await (await waits).text()]).toEqual([
    409,
    expect.stringContaining('stopped before it began'),
  ])
  const stored = await (await server.handle(new Request(`${chat}?threadId=t`))).json()
  expect(stored.messages.map(({ id }: { id: string }) => id)).not.toContain('two')
  expect((await send('after', 'two')).status).toBe(200)
})

test('what was said on a client that no page shows any more is shown by the one that was shown in its place before it was kept', async () => {
  const server = startServer()
  const kept = memoryPersistence()
  const slow = gate()
  let isSlow = false
  const update: MemoryPersistence['update'] = async (threadId, change) => {
    if (isSlow) await slow.opened
    return kept.update?.(threadId, change)
  }
  const page = openPage(server, { local: { ...kept, update } })
  await page.client.restore()
  page.network.isUp = false
  isSlow = true
  page.client.detach()
  await page.client.sendMessage('mine')
  await passMacrotasks(5)
  page.network.isUp = true
  const next = mountAnew(page)
  await next.client.restore()
  expect(said(next)).toEqual([])
  slow.open()
  await vi.waitUntil(() => said(next).length === 1)
})
