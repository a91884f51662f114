import { type ThreadListOptions, threadList } from '@countersign/client/thread-list'
import { passMacrotasks } from '@countersign/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openPage, type Reply, startServer, stop, words } from './threads-server.js'

// The list of conversations, over the real route.

const reply: Reply = () => [words('Well.'), stop]

/** A user with that many conversations, and the list in one page. */
async function setUp(count: number, options: ThreadListOptions = {}) {
  const server = startServer(...Array.from({ length: count }, () => reply))
  const say = async (threadId: string, text: string) => {
    const { client, leave } = openPage(server, {}, { threadId })
    await client.sendMessage(text)
    leave()
  }
  for (let at = 1; at <= count; at++) await say(`t${at}`, `Message ${at}`)
  const network = { isUp: true, requests: 0 }
  const list = threadList('http://server.test/chat', {
    ...options,
    fetch: async (input, init) => {
      network.requests++
      if (!network.isUp) throw new TypeError('fetch failed')
      return server.handle(new Request(input, init))
    },
  })
  const titles = () => list.getSnapshot().threads.map(({ title }) => title)
  return { list, network, say, titles }
}

test('T5: a list loads with its first listener, page by page, and again as many as it shows', async () => {
  const { list, network, say, titles } = await setUp(5, { pageSize: 2 })
  expect([list.getSnapshot().isLoading, network.requests]).toEqual([false, 0])
  onTestFinished(list.subscribe(() => {}))
  onTestFinished(list.subscribe(() => {}))
  await expect.poll(titles).toEqual(['Message 5', 'Message 4'])
  expect(network.requests).toBe(1)
  await list.loadMore()
  await list.loadMore()
  expect([titles().at(-1), list.getSnapshot().hasMore]).toEqual(['Message 1', false])
  await list.loadMore()
  expect(network.requests, 'there is no more').toBe(3)
  const [first] = list.getSnapshot().threads
  await say('t1', 'Once more')
  await list.load()
  expect(titles()).toEqual(['Message 1', 'Message 5', 'Message 4', 'Message 3', 'Message 2'])
  expect(list.getSnapshot().threads[1], 'an unchanged entry is the same object').toBe(first)
})

test('T5: what moves to another page meanwhile is listed once', async () => {
  const { list, say, titles } = await setUp(4, { pageSize: 2 })
  await list.load()
  await say('t4', 'More')
  await list.loadMore()
  expect(titles().toSorted()).toEqual(['Message 1', 'Message 2', 'Message 3', 'Message 4'])
})

test('T5: a conversation is renamed and removed; if that fails, the list stays and says why', async () => {
  const { list, network, titles } = await setUp(2)
  await list.load()
  expect(await list.rename('t1', 'New name')).toBe(true)
  expect(titles()).toEqual(['Message 2', 'New name'])
  network.isUp = false
  expect([await list.rename('t1', 'Lost'), await list.remove('t1')]).toEqual([false, false])
  expect([titles(), list.getSnapshot().error?.code]).toEqual([['Message 2', 'New name'], 'connection-failed'])
  network.isUp = true
  expect(await list.rename('unknown', 'x')).toBe(false)
  expect(list.getSnapshot().error).toMatchObject({ code: 'http-status', data: { status: 404 } })
  expect(await list.remove('t1')).toBe(true)
  expect([titles(), list.getSnapshot().error]).toEqual([['Message 2'], undefined])
})

test('of two loads at once the later one counts, and a response that is no list is an error', async () => {
  const { list, titles } = await setUp(1)
  await Promise.all([list.load(), list.rename('t1', 'New name'), list.load()])
  expect([titles(), list.getSnapshot().isLoading]).toEqual([['New name'], false])
  for (const body of ['{}', 'no json', '{"threads":[1]}']) {
    const other = threadList('/chat', { fetch: async () => new Response(body) })
    await other.load()
    expect(other.getSnapshot()).toMatchObject({ threads: [], error: { code: 'empty-response' } })
  }
  expect(() => threadList('/chat', { pageSize: 0 })).toThrow('pageSize')
})

test('the list is loaded when the user returns to the page, until nobody listens any more', async () => {
  const page = new EventTarget()
  for (const name of ['addEventListener', 'removeEventListener'] as const)
    vi.stubGlobal(name, page[name].bind(page))
  const { list, network } = await setUp(1)
  const leave = list.subscribe(() => {})
  await expect.poll(() => network.requests).toBe(1)
  page.dispatchEvent(new Event('focus'))
  await expect.poll(() => network.requests).toBe(2)
  leave()
  page.dispatchEvent(new Event('focus'))
  expect(network.requests).toBe(2)
})

test.each([
  ['throws', () => expect.unreachable('a listener')],
  ['rejects', () => Promise.reject(new Error('a listener'))],
])('a listener of the thread list that %s is reported, and stops nothing', async (_, listener) => {
  const reported = vi.fn()
  vi.stubGlobal('reportError', reported)
  onTestFinished(() => void vi.unstubAllGlobals())
  const thread = { threadId: 't', updatedAt: 1, createdAt: 1, isRunning: false }
  const list = threadList('http://server.test/chat', {
    fetch: async () => Response.json({ threads: [thread] }),
  })
  let told = 0
  onTestFinished(list.subscribe(listener))
  onTestFinished(list.subscribe(() => void told++))
  await list.load()
  expect(await list.rename('t', 'New')).toBe(true)
  await passMacrotasks(2)
  expect(list.getSnapshot()).toMatchObject({ threads: [thread], isLoading: false, error: undefined })
  expect(told).toBeGreaterThan(1)
  expect(reported).toHaveBeenCalledWith(expect.objectContaining({ message: expect.any(String) }))
})
