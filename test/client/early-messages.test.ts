import { expect, test, vi } from 'vitest'
import { openPage, startServer } from './threads-server.js'

type Page = Pick<ReturnType<typeof openPage>, 'client'>

const said = ({ client }: Page) =>
  client
    .getSnapshot()
    .messages.flatMap(({ role, parts }) => (role === 'user' ? parts : []))
    .map((part) => 'text' in part && part.text)

const queued = ({ client }: Page) =>
  client
    .getSnapshot()
    .queue.flatMap(({ message }) => message.parts)
    .map((part) => 'text' in part && part.text)

/** A server whose loads wait until `open` is called. */
function slowServer(server = startServer()) {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const handle = async (request: Request) => {
    if (request.method === 'GET') await opened
    return server.handle(request)
  }
  return { server, handle, open }
}

test.each(['a new conversation', 'one that exists'])(
  'messages that are sent while %s is loading are sent in their order',
  async (which) => {
    const { server, handle, open } = slowServer()
    if (which === 'one that exists') {
      const before = openPage(server)
      await before.client.sendMessage('zero')
      before.leave()
    }
    const page = openPage({ handle }, { pollEvery: 60_000 })
    await vi.waitUntil(() => page.requests.length > 0)
    const all = ['one', 'two', 'three'].map((text) => page.client.sendMessage(text))
    open()
    await Promise.all(all)
    await vi.waitUntil(() => page.client.getSnapshot().status === 'ready' && queued(page).length === 0)
    expect(said(page).slice(-3)).toEqual(['one', 'two', 'three'])
  },
)

test('messages that are sent at once after one that failed are sent in their order', async () => {
  const page = openPage(startServer())
  await page.client.sendMessage('zero')
  page.network.isUp = false
  await page.client.sendMessage('one')
  page.network.isUp = true
  await Promise.all(['two', 'three', 'four'].map((text) => page.client.sendMessage(text)))
  await vi.waitUntil(() => page.client.getSnapshot().status === 'ready' && queued(page).length === 0)
  expect(said(page)).toEqual(['zero', 'one', 'two', 'three', 'four'])
})

test.each(['is loading', 'could not be loaded'])(
  'stop() while the conversation %s holds what was sent, also over a reload, until the user goes on',
  async (what) => {
    const { server, handle, open } = slowServer()
    const before = openPage(server)
    await before.client.sendMessage('zero')
    before.leave()
    const page = openPage({ handle }, { pollEvery: 60_000 })
    if (what === 'could not be loaded') {
      page.network.isUp = false
      open()
      await vi.waitUntil(() => page.client.getSnapshot().status === 'error')
    }
    void page.client.sendMessage('one')
    void page.client.sendMessage('two')
    await vi.waitUntil(() => queued(page).length === 2)
    page.client.stop()
    await vi.waitUntil(() => String([...page.local.texts.values()]).includes('"isHeld":true'))
    page.network.isUp = true
    open()
    page.leave()
    const next = openPage(server, { local: page.local })
    await vi.waitUntil(() => said(next).length > 0)
    const seen = next.requests.length
    await vi.waitUntil(() => next.requests.length > seen + 3)
    expect([said(next), queued(next)]).toEqual([['zero'], ['one', 'two']])
    await next.client.retry()
    await vi.waitUntil(() => next.client.getSnapshot().status === 'ready' && queued(next).length === 0)
    expect(said(next)).toEqual(['zero', 'one', 'two'])
  },
)

test('stop() while the conversation is loading holds what was sent once it is loaded', async () => {
  const { handle, open } = slowServer()
  const page = openPage({ handle }, { pollEvery: 10 })
  const all = [page.client.sendMessage('one'), page.client.sendMessage('two')]
  page.client.stop()
  open()
  expect(await Promise.all(all)).toMatchObject([{ status: 'queued' }, { status: 'queued' }])
  const seen = page.requests.length
  await vi.waitUntil(() => page.requests.length > seen + 2)
  expect([said(page), queued(page)]).toEqual([[], ['one', 'two']])
  await page.client.sendMessage('three')
  await vi.waitUntil(() => page.client.getSnapshot().status === 'ready' && queued(page).length === 0)
  expect(said(page)).toEqual(['one', 'two', 'three'])
})
