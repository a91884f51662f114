import type { UIMessage } from '@countersign/client'
import { versionsOf } from '@countersign/client/server-threads'
import { expect, test, vi } from 'vitest'
import { calls, openPage, type Reply, startServer, stop, words } from './threads-server.js'

// Edited messages and regenerated replies in a page whose server keeps the conversation.

type Page = ReturnType<typeof openPage>

const messagesIn = ({ client }: Page): readonly UIMessage[] => client.getSnapshot().messages
const textsIn = (page: Page) =>
  messagesIn(page).map(({ parts }) =>
    parts
      .map((part) => (part.type === 'text' ? part.text : part.type === 'tool-call' ? part.state : ''))
      .join(),
  )
/** The message as a page shows it: "2 of 3". */
const counter = (message: UIMessage | undefined) => {
  const ids = message ? versionsOf(message) : []
  return `${ids.indexOf(message?.id ?? '') + 1} of ${ids.length}`
}
const posts = ({ requests }: Page) =>
  requests.filter(({ method }) => method === 'POST').map(({ body }) => body)

const said = (text: string) => () => [words(text), stop]

test('T9 a page regenerates a reply, shows "2 of 2", and shows the first one again; another page follows', async () => {
  const server = startServer(said('First.'), said('Second.'), said('More.'))
  const page = openPage(server)
  const other = openPage(server)
  await page.client.sendMessage('Hello')
  expect(await page.client.regenerate()).toEqual({ status: 'sent' })
  await vi.waitUntil(() => counter(messagesIn(page)[1]) === '2 of 2')
  await vi.waitUntil(() => counter(messagesIn(other)[1]) === '2 of 2')
  const [first = ''] = versionsOf(messagesIn(page)[1] ?? { metadata: {} })
  await page.threads.persistence.showVersion('t', first)
  expect([textsIn(page), counter(messagesIn(page)[1])]).toEqual([['Hello', 'First.'], '1 of 2'])
  await vi.waitUntil(() => textsIn(other)[1] === 'First.')
  expect(await other.client.sendMessage('Go on')).toEqual({ status: 'sent' })
  await vi.waitUntil(() => textsIn(page).length === 4)
  expect(textsIn(page)).toEqual(['Hello', 'First.', 'Go on', 'More.'])
  expect([...page.errors, ...other.errors]).toEqual([])
})

test('T9 a page edits an earlier message: the request names it, and brings only the new one', async () => {
  const server = startServer(said('One.'), said('Two.'), said('Three.'), said('Four.'))
  const page = openPage(server)
  await page.client.sendMessage('First')
  await page.client.sendMessage('Second')
  const [first, , second] = messagesIn(page)
  const edit = { text: 'Second, edited', messageId: second?.id }
  expect(await page.client.sendMessage(edit)).toEqual({ status: 'sent' })
  expect(posts(page)[2]).toMatchObject({
    messages: [{ content: 'Second, edited' }],
    forwardedProps: { countersign: { edit: second?.id, after: first?.id } },
  })
  expect(textsIn(page)).toEqual(['First', 'One.', 'Second, edited', 'Three.'])
  await vi.waitUntil(() => counter(messagesIn(page)[2]) === '2 of 2')
  await page.client.sendMessage({ text: 'First, edited', messageId: first?.id })
  await vi.waitUntil(() => counter(messagesIn(page)[0]) === '2 of 2')
  expect(textsIn(page)).toEqual(['First, edited', 'Four.'])
  await page.threads.persistence.showVersion('t', first?.id ?? '')
  await vi.waitUntil(() => textsIn(page).length === 4)
  expect(textsIn(page)).toEqual(['First', 'One.', 'Second, edited', 'Three.'])
})

test('T9 an edit that did not reach the server is one when it is sent again, and may be edited in turn', async () => {
  const server = startServer(said('One.'), said('Two.'))
  const page = openPage(server)
  await page.client.sendMessage('First')
  const [first] = messagesIn(page)
  page.network.isUp = false
  await page.client.sendMessage({ text: 'Edited', messageId: first?.id })
  const [edited] = messagesIn(page)
  await page.client.sendMessage({ text: 'Edited twice', messageId: edited?.id })
  page.network.isUp = true
  await page.client.retry()
  await vi.waitUntil(() => counter(messagesIn(page)[0]) === '2 of 2')
  expect(textsIn(page)).toEqual(['Edited twice', 'Two.'])
})

test('T9 an edit cancels the requests that were open below it: the old card comes back as cancelled', async () => {
  const server = startServer(() => calls('send', { to: 'ada' }), said('Well.'))
  const page = openPage(server)
  const other = openPage(server)
  await page.client.sendMessage('Send it')
  await vi.waitUntil(() => other.client.getSnapshot().pendingApprovals.length > 0)
  const [card] = other.client.getSnapshot().pendingApprovals
  const [first] = messagesIn(page)
  await page.client.sendMessage({ text: 'Leave it', messageId: first?.id })
  expect(textsIn(page)).toEqual(['Leave it', 'Well.'])
  await vi.waitUntil(() => other.client.getSnapshot().pendingApprovals.length === 0)
  expect(await other.client.addToolApprovalResponse({ id: card?.approval.id ?? '', approved: true })).toEqual(
    {
      status: 'not-found',
    },
  )
  await page.threads.persistence.showVersion('t', first?.id ?? '')
  expect([textsIn(page)[1], page.client.getSnapshot().pendingApprovals]).toEqual(['cancelled,', []])
  expect(server.executed).toEqual([])
})

test('T9 a page that is not there, or in the middle of a run, cannot show another version', async () => {
  let go = () => {}
  const going = new Promise<void>((resolve) => {
    go = resolve
  })
  const server = startServer(async function* () {
    yield words('Slow')
    await going
    yield stop
  })
  const page = openPage(server)
  const { showVersion } = page.threads.persistence
  await expect(showVersion('another', 'm')).rejects.toMatchObject({ code: 'invalid-argument' })
  const sending = page.client.sendMessage('Hello')
  await vi.waitUntil(() => page.client.getSnapshot().status === 'streaming')
  await expect(showVersion('t', 'm')).rejects.toMatchObject({ code: 'thread-busy' })
  go()
  await sending
})

test("a message that replaces one that is not there, or is not the user's, is refused and changes nothing", async () => {
  const page = openPage(startServer())
  await page.client.sendMessage('Hello')
  for (const messageId of ['unknown', messagesIn(page)[1]?.id ?? '', ''])
    expect(await page.client.sendMessage({ text: 'Edited', messageId })).toMatchObject({
      status: 'refused',
      error: { code: 'invalid-argument' },
    })
  expect(textsIn(page)).toEqual(['Hello', 'Well.'])
})

// K18 M3
test.each([
  [
    'fails',
    () => {
      throw new Error('The provider is down.')
    },
  ],
  [
    'is stopped',
    async function* () {
      await new Promise(() => {})
    },
  ],
  ['has nothing to say', () => [stop]],
] as const)(
  'T9 a new version that %s before its first word leaves the reply in place that it was to replace, with what followed that',
  async (how, reply: Reply) => {
    const server = startServer(said('One.'), said('Two.'), reply, said('Again.'))
    const page = openPage(server)
    await page.client.sendMessage('First')
    await page.client.sendMessage('Second')
    const before = textsIn(page)
    const [first] = messagesIn(page)
    const again = page.client.regenerate({ messageId: first?.id ?? '' })
    if (how === 'is stopped') {
      await vi.waitUntil(() => page.client.getSnapshot().status === 'streaming')
      page.client.stop()
    }
    await again
    await vi.waitUntil(() => textsIn(page).length === before.length)
    const other = openPage(server)
    await vi.waitUntil(() => textsIn(other).length === before.length)
    for (const { client } of [page, other])
      expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect([textsIn(page), textsIn(other)]).toEqual([before, before])
    await page.client.regenerate({ messageId: first?.id ?? '' })
    expect(textsIn(page)).toEqual(['First', 'Again.'])
    await vi.waitUntil(() => messagesIn(page).flatMap(versionsOf).length === 2)
  },
)

test('T9 an edit that is posted again continues the branch that it made; without its message it changes nothing', async () => {
  const server = startServer(said('One.'), said('Two.'), said('Edited.'), said('Again.'))
  const post = async (messages: readonly { id: string; content: string }[], countersign: object) => {
    const runId = globalThis.crypto.randomUUID()
    const users = messages.map((message) => ({ ...message, role: 'user' }))
    const body = { threadId: 't', runId, messages: users, tools: [], context: [], state: {} }
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const request = new Request('http://server.test/chat', {
      ...init,
      body: JSON.stringify({ ...body, forwardedProps: { countersign } }),
    })
    await (await server.handle(request)).text()
    const loaded = await server.handle(new Request('http://server.test/chat?threadId=t'))
    const { messages: stored }: { messages: { content: string }[] } = await loaded.json()
    return stored.map(({ content }) => content)
  }
  await post([{ id: 'm1', content: 'First' }], {})
  await post([{ id: 'm2', content: 'Second' }], {})
  const edited = [{ id: 'e1', content: 'First, edited' }]
  expect(await post(edited, { edit: 'm1' })).toEqual(['First, edited', 'Edited.'])
  // A page that lacks a reply gets it anew, as after any other lost response.
  expect(await post(edited, { edit: 'm1' })).toEqual(['First, edited', 'Again.'])
  expect((await post([], { edit: 'm1' })).slice(0, 2)).toEqual(['First, edited', 'Again.'])
  expect((await post([], { edit: 'e1' })).slice(0, 2)).toEqual(['First, edited', 'Again.'])
})

test.each([
  ['the first message, retried at once', 0, 60_000],
  ['a later message, retried at once', 1, 60_000],
  ['the first message, after the page has seen what is stored', 0, 10],
  ['a later message, after the page has seen what is stored', 1, 10],
] as const)(
  'T9 an edit whose response was lost is not lost, nor is what is said next (%s)',
  async (_, which, pollEvery) => {
    const server = startServer(said('One.'), said('Two.'), said('Edited.'), said('Edited again.'))
    const network = losing(server)
    const page = openPage(network, { pollEvery, attempts: 1 })
    await page.client.sendMessage('First')
    await page.client.sendMessage('Second')
    const messageId = messagesIn(page).filter(({ role }) => role === 'user')[which]?.id
    await page.client.sendMessage({ text: 'LOSE this edit', messageId })
    network.heals()
    if (pollEvery === 10) await vi.waitUntil(() => textsIn(page).includes('Edited.'))
    await page.client.retry()
    const before = which === 0 ? [] : ['First', 'One.']
    const [text, reply = ''] = textsIn(page).slice(before.length)
    expect([textsIn(page).slice(0, before.length), text]).toEqual([before, 'LOSE this edit'])
    expect(reply).toMatch(/^Edited/)
    await page.client.sendMessage('Next')
    const fresh = openPage(server)
    await vi.waitUntil(() => textsIn(fresh).length === before.length + 4)
    expect(textsIn(fresh)).toEqual([...before, 'LOSE this edit', reply, 'Next', expect.any(String)])
  },
)

test('T9 an approval that an edit led to can be given although the response to the edit was lost', async () => {
  const server = startServer(said('One.'), said('Two.'), () => calls('send', { to: 'ada' }), said('Sent.'))
  const network = losing(server)
  const page = openPage(network, { attempts: 1 })
  await page.client.sendMessage('First')
  await page.client.sendMessage('Second')
  await page.client.sendMessage({ text: 'LOSE this edit', messageId: messagesIn(page)[2]?.id })
  network.heals()
  await vi.waitUntil(() => page.client.getSnapshot().pendingApprovals.length > 0)
  const [card] = page.client.getSnapshot().pendingApprovals
  expect(await page.client.addToolApprovalResponse({ id: card?.approval.id ?? '', approved: true })).toEqual({
    status: 'sent',
  })
  expect([server.executed, textsIn(page).at(-1)]).toEqual([['ada'], 'Sent.'])
})

/** A network that loses the response to a request that says LOSE, after the server has carried it out, and is down until it `heals`. */
function losing({ handle }: ReturnType<typeof startServer>) {
  let isDown = false
  let hasLost = false
  return {
    heals: () => {
      isDown = false
    },
    handle: async (request: Request) => {
      if (isDown) throw new TypeError('fetch failed')
      const isLost = (await request.clone().text()).includes('LOSE')
      const response = await handle(request)
      if (!isLost || hasLost) return response
      hasLost = true
      await response.text()
      isDown = true
      throw new TypeError('fetch failed')
    },
  }
}

test('T9 a page that rejoins a run of a version that was left meanwhile shows what the server shows', async () => {
  let breakOff = () => {}
  const brokenOff = new Promise<void>((resolve) => {
    breakOff = resolve
  })
  const slow = async function* () {
    await brokenOff
    yield words('one')
    yield stop
  }
  const server = startServer(slow, () => [words('two'), stop])
  // The response breaks off once the run has begun.
  const handle = async (request: Request) => {
    const response = await server.handle(request)
    const reader = request.method === 'POST' ? response.body?.getReader() : undefined
    if (reader === undefined) return response
    let isBegun = false
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      if (!isBegun) controller.enqueue((await reader.read()).value ?? new Uint8Array())
      else {
        page.network.isUp = false
        controller.error(new TypeError('network error'))
        breakOff()
      }
      isBegun = true
    }
    return new Response(new ReadableStream({ pull }), response)
  }
  const page = openPage({ handle })
  const other = openPage(server)
  void page.client.sendMessage('first')
  await expect.poll(() => textsIn(other)).toEqual(['first', 'one'])
  await expect.poll(() => page.client.getSnapshot().error?.code).toBe('connection-failed')
  await other.client.sendMessage({ text: 'edited', messageId: messagesIn(other)[0]?.id })
  page.network.isUp = true
  await expect.poll(() => textsIn(page)).toEqual(['edited', 'two', 'first'])
  await page.client.retry()
  await expect.poll(() => textsIn(page)).toEqual(['edited', 'two'])
})
