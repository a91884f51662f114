import { createServer } from 'node:http'
import { ChatClient } from '@countersign/client'
import { serverHistory } from '@countersign/client/server-history'
import { webSocket } from '@countersign/client/web-socket'
import { memoryThreads, type ThreadFull, type ThreadStore } from '@countersign/server'
import { socketServerLimits, toSocketHandler } from '@countersign/server/node'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { listening } from '../engine/listening.js'
import { openPage, startServerWith, stop, words } from './threads-server.js'

// K18 S3: messages of the user that the server had refused were dropped when the queue went on by itself.

/** A store that has no room while `full.is`, as `redisThreads` at `maxmemory`. */
function littleRoom() {
  const full = { is: false }
  const base = memoryThreads()
  const unlessFull = async <T>(act: () => Promise<T>): Promise<T | ThreadFull> =>
    full.is ? { status: 'full', limit: 'store' } : act()
  const threads: ThreadStore = {
    ...base,
    id: 'little-room',
    append: (...change) => unlessFull(() => base.append(...change)),
    hold: (...held) => unlessFull(() => base.hold(...held)),
  }
  return { full, threads }
}

/** A server whose first reply ends when it is told to. */
function startHeld(options: Parameters<typeof startServerWith>[0]) {
  let end = () => {}
  const held = new Promise<void>((resolve) => {
    end = resolve
  })
  const server = startServerWith(options, async function* () {
    yield words('One.')
    await held
    yield stop
  })
  return { server, end }
}

type Page = ReturnType<typeof openPage>

const statusOf = ({ client }: Pick<Page, 'client'>) => client.getSnapshot().status

/** What the user has said, as far as it is in the conversation, and what is queued. */
function said({ client }: Pick<Page, 'client'>) {
  const { messages, queue } = client.getSnapshot()
  const textOf = ({ parts }: (typeof messages)[number]) =>
    parts.map((part) => (part.type === 'text' ? part.text.slice(0, 9) : part.type)).join()
  return {
    sent: messages.filter(({ role }) => role === 'user').map(textOf),
    queued: queue.map(({ message }) => textOf(message)),
  }
}

/** Sends a message, and others while its reply streams. */
async function sendAndQueue(page: Pick<Page, 'client'>, ...texts: readonly string[]) {
  void page.client.sendMessage('1')
  await vi.waitUntil(() => statusOf(page) === 'streaming')
  for (const text of texts) expect(await page.client.sendMessage(text)).toMatchObject({ status: 'queued' })
}

const large = 'too large '.repeat(200_000)
const bodyBytes = 1_000_000

test('what is queued behind a message for which the store has no room waits, and retry() sends all of it in order', async () => {
  const { full, threads } = littleRoom()
  const { server, end } = startHeld({ threads })
  const page = openPage(server, { attempts: 1 })
  await sendAndQueue(page, '2', '3', '4')
  const { append } = threads
  // Full from the end of the first run on: that is stored.
  threads.append = async (...change) => {
    const result = await append(...change)
    full.is ||= change[1].release === true
    return result
  }
  end()
  await vi.waitUntil(() => statusOf(page) === 'error')
  expect(said(page)).toEqual({ sent: ['1', '2'], queued: ['3', '4'] })
  expect(page.errors).toEqual(['http-status'])
  full.is = false
  threads.append = append
  await page.client.retry()
  await vi.waitUntil(() => statusOf(page) === 'ready' && page.client.getSnapshot().queue.length === 0)
  expect(said(page)).toEqual({ sent: ['1', '2', '3', '4'], queued: [] })
})

test('a message for which the store had no room goes along with the next one', async () => {
  const { full, threads } = littleRoom()
  const page = openPage(startServerWith({ threads }), { attempts: 1 })
  await page.client.sendMessage('1')
  full.is = true
  expect(await page.client.sendMessage('2')).toMatchObject({ error: { data: { status: 507 } } })
  full.is = false
  expect(await page.client.sendMessage('3')).toEqual({ status: 'sent' })
  expect(said(page).sent).toEqual(['1', '2', '3'])
})

test('in a thread that is full, every queued message stays in the page, also after a reload', async () => {
  const { server, end } = startHeld({ threads: memoryThreads({ maxMessages: 2 }) })
  const page = openPage(server, { attempts: 1 })
  await sendAndQueue(page, '2', '3', '4')
  end()
  await vi.waitUntil(() => statusOf(page) === 'error')
  const expected = { sent: ['1', '2'], queued: ['3', '4'] }
  expect(said(page)).toEqual(expected)
  await vi.waitUntil(() => page.local.texts.size > 0)
  page.leave()
  const later = openPage(server, { local: page.local, attempts: 1 })
  await vi.waitUntil(() => statusOf(later) === 'error')
  const looks = later.requests.length
  await vi.waitUntil(() => later.requests.length > looks + 2)
  expect(said(later)).toEqual(expected)
})

/** A server with live answers, and the pages of one user. */
async function overSocket(options: Parameters<typeof startServerWith>[0], subject: string) {
  const { server, end } = startHeld(options)
  const http = createServer()
  const url = `ws://${await listening(http)}/`
  const serveRun = toSocketHandler(server.agent, { context: () => ({ subject }) })
  new WebSocketServer({ server: http, ...socketServerLimits }).on('connection', serveRun)
  const open = (threadId: string) => {
    const connection = serverHistory(webSocket(url, { WebSocket }))
    const client = new ChatClient({ connection, threadId, notify: 'sync' })
    onTestFinished(() => client.dispose())
    return { client }
  }
  return { open, end }
}

test('in a thread that is full, queued messages stay in the page also over a WebSocket', async () => {
  const { open, end } = await overSocket({ threads: memoryThreads({ maxMessages: 2 }) }, 'ada')
  const page = open('t')
  await sendAndQueue(page, '2', '3', '4')
  end()
  await vi.waitUntil(() => statusOf(page) === 'error')
  expect(page.client.getSnapshot().error?.data.code).toBe('thread-full')
  expect(said(page)).toEqual({ sent: ['1', '2'], queued: ['3', '4'] })
})

test.each([
  ['thread-busy', 409, {}, 't'],
  ['too-many-runs', 429, { limits: { runs: { perOwner: 1 } } }, 'another'],
] as const)(
  'what is queued behind a message that is refused over a WebSocket as %s waits, and retry() sends all of it in order',
  async (code, status, options, held) => {
    // Runs that other tests of this process have abandoned count for their own users.
    const { open, end } = await overSocket(options, `refused-${code}`)
    const other = open(held)
    await sendAndQueue(other)
    const page = open('t')
    for (const text of ['2', '3', '4']) void page.client.sendMessage(text)
    await vi.waitUntil(() => statusOf(page) === 'error')
    expect(page.client.getSnapshot().error?.data).toEqual({ code, status })
    expect(said(page)).toEqual({ sent: ['2'], queued: ['3', '4'] })
    end()
    await vi.waitUntil(() => statusOf(other) === 'ready')
    await page.client.retry()
    await vi.waitUntil(() => statusOf(page) === 'ready' && page.client.getSnapshot().queue.length === 0)
    expect(said(page)).toEqual({ sent: ['2', '3', '4'], queued: [] })
  },
)

test('what is queued behind a message that is too large waits until the user acts, also after a reload', async () => {
  const { server, end } = startHeld({ limits: { bodyBytes } })
  const page = openPage(server)
  await sendAndQueue(page, large, '3', '4')
  end()
  await vi.waitUntil(() => statusOf(page) === 'error')
  const expected = { sent: ['1', 'too large'], queued: ['3', '4'] }
  expect(said(page)).toEqual(expected)
  await page.client.retry()
  expect(said(page)).toEqual(expected)
  await vi.waitUntil(() => page.local.texts.size > 0)
  page.leave()
  const later = openPage(server, { local: page.local })
  await vi.waitUntil(() => statusOf(later) === 'error')
  const looks = later.requests.length
  await vi.waitUntil(() => later.requests.length > looks + 2)
  expect(said(later)).toEqual(expected)
  const [, refused] = later.client.getSnapshot().messages.filter(({ role }) => role === 'user')
  expect(await later.client.sendMessage({ text: '2', messageId: refused?.id })).toEqual({ status: 'sent' })
  await vi.waitUntil(() => statusOf(later) === 'ready' && said(later).queued.length === 0)
  expect(said(later).sent).toEqual(['1', '2', '3', '4'])
})

test.each([
  ['the next message', '5', ['1', '3', '4', '5']],
  ['sendMessage() without content', undefined, ['1', '3', '4']],
])('%s sends what is queued behind a message that is too large, without that one', async (_, text, sent) => {
  const { server, end } = startHeld({ limits: { bodyBytes } })
  const page = openPage(server)
  await sendAndQueue(page, large, '3', '4')
  end()
  await vi.waitUntil(() => statusOf(page) === 'error')
  await page.client.sendMessage(text)
  await vi.waitUntil(() => statusOf(page) === 'ready' && said(page).queued.length === 0)
  expect(said(page).sent).toEqual(sent)
})

test('what waits behind a message that was refused is sent by itself once the server turns out to have that message', async () => {
  const { server, end } = startHeld({})
  let isLost = false
  const page = openPage({
    async handle(request) {
      const response = await server.handle(request)
      if (request.method !== 'POST' || !isLost) return response
      isLost = false
      await response.text()
      // What a proxy may say of a response that it does not want to wait for.
      return new Response(null, { status: 503 })
    },
  })
  await sendAndQueue(page, '2', '3')
  isLost = true
  end()
  await vi.waitUntil(() => page.errors.length > 0)
  await vi.waitUntil(() => statusOf(page) === 'ready' && said(page).queued.length === 0)
  expect(said(page).sent).toEqual(['1', '2', '3'])
})

/** A page in which messages have failed one after the other, all while the network was down. */
async function failAll(page: Page, ...texts: readonly string[]) {
  page.network.isUp = false
  for (const text of texts) expect(await page.client.sendMessage(text)).toMatchObject({ status: 'failed' })
  page.network.isUp = true
}

const idsOf = ({ client }: Page) =>
  client.getSnapshot().messages.flatMap(({ id, role }) => (role === 'user' ? [id] : []))

for (const [where, texts] of Object.entries({
  first: [large, '2', '3'],
  'in the middle': ['1', large, '3'],
  last: ['1', '2', large],
}))
  for (const isReloaded of [false, true])
    describe(`of several messages that failed, one is too large: the ${where}${isReloaded ? ', after a reload' : ''}`, () => {
      const at = texts.indexOf(large)
      const others = texts.filter((text) => text !== large)

      async function open() {
        const server = startServerWith({ limits: { bodyBytes } })
        let page = openPage(server, { attempts: 1 })
        await page.client.sendMessage('0')
        await failAll(page, ...texts)
        await page.client.retry()
        expect(page.client.getSnapshot().error?.data.status).toBe(413)
        if (isReloaded) {
          await vi.waitUntil(() => String([...page.local.texts.values()]).includes('"status":413'))
          page.leave()
          page = openPage(server, { local: page.local, attempts: 1 })
          await vi.waitUntil(() => statusOf(page) === 'error')
        }
        expect(said(page).sent).toHaveLength(4)
        return page
      }

      test('the next message is sent with the others, and without that one', async () => {
        const page = await open()
        expect(await page.client.sendMessage('4')).toEqual({ status: 'sent' })
        expect(said(page).sent).toEqual(['0', ...others, '4'])
      })

      test('once that one is edited, retry() sends what came after it', async () => {
        const page = await open()
        const messageId = idsOf(page)[at + 1]
        expect(await page.client.sendMessage({ text: 'short', messageId })).toEqual({ status: 'sent' })
        await vi.waitUntil(() => said(page).sent.length === 4)
        await page.client.retry()
        await vi.waitUntil(() => statusOf(page) === 'ready')
        expect(said(page).sent).toEqual(['0', ...texts.map((text) => (text === large ? 'short' : text))])
      })
    })
