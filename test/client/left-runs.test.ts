// A page with storage in the browser is left in mid-reply, and the run goes on without it (`goOnFor`): docs/streaming.md.
import { ChatClient, type Connection, fetchServerSentEvents, type ToolCallPart } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import {
  createAgent,
  handleChat,
  type ModelEvent,
  memoryLedger,
  rejoinResponse,
  scriptedModel,
  tool,
} from '@countersign/server'
import { passMacrotasks } from '@countersign/testing'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { FakeBrowser, memoryPersistence } from './fake-browser.js'
import { FakeLocks } from './fake-locks.js'
import { saidBy } from './open-chat.js'
import { calls, here, stop, words } from './threads-server.js'

const context = { subject: 'ada' }

/** The routes of docs/streaming.md. Each reply of the model waits for `go` where it says so. */
function serve(goOnFor: number | undefined, ...replies: (ModelEvent | 'wait')[][]) {
  const gates: (() => void)[] = []
  const ran: string[] = []
  let asked = 0
  const model = scriptedModel(async function* () {
    asked++
    for (const event of replies.shift() ?? [words('Once more.'), stop]) {
      if (event === 'wait') await new Promise<void>((go) => gates.push(go))
      else yield event
    }
  })
  const input = z.object({ x: z.number() })
  const agent = createAgent({
    model,
    tools: [
      tool({ name: 'note', description: 'Notes.', input, execute: () => void ran.push('note') }),
      tool({
        name: 'slow',
        description: 'Takes long.',
        input,
        needsApproval: true,
        async execute() {
          ran.push('slow')
          await new Promise<void>((go) => gates.push(go))
        },
      }),
      here.client(() => 0),
    ],
    approvals: { ledger: memoryLedger(), secret: 'a secret of more than thirty-two characters' },
    warn: () => {},
  })
  const network = { isUp: true, isLive: false }
  const handle = (request: Request) => {
    if (!network.isUp) throw new TypeError('fetch failed')
    return request.method === 'POST'
      ? handleChat(agent, request, { context, goOnFor, live: network.isLive })
      : rejoinResponse(agent, request, { context })
  }
  const go = async () => {
    await vi.waitFor(() => expect(gates).not.toHaveLength(0))
    gates.shift()?.()
  }
  return { handle, go, ran, asked: () => asked, network }
}

type Server = ReturnType<typeof serve>

/** Nothing arrives in a page that is left, and nothing is stored by it. */
function openPage(server: Server, stored = memoryPersistence(), rejoin = true, saveEvery = 1) {
  const gone = new AbortController()
  const never = new Promise<never>(() => {})
  const fetch: typeof globalThis.fetch = async (url, init) => {
    if (gone.signal.aborted) return never
    const signals = [gone.signal, init?.signal].filter((signal) => signal !== undefined && signal !== null)
    return server.handle(new Request(url, { ...init, signal: AbortSignal.any(signals) }))
  }
  // Pages with the same storage are pages of one browser.
  const locks = new FakeLocks(stored)
  const ranHere: string[] = []
  const errors: string[] = []
  const client = locks.during(
    () =>
      new ChatClient({
        connection: fetchServerSentEvents('http://server.test/chat', { rejoin, fetch }),
        threadId: 't',
        tools: [here.client(() => ranHere.push('here'))],
        notify: 'sync',
        persistence: persistent(
          {
            load: (threadId) => stored.load(threadId),
            save: (threadId, record) => (gone.signal.aborted ? never : stored.save(threadId, record)),
            remove: (threadId) => stored.remove(threadId),
          },
          { saveEvery },
        ),
        onError: ({ code }) => void errors.push(code),
      }),
  )
  client.attach()
  const leave = () => {
    gone.abort()
    locks.leave()
  }
  onTestFinished(leave)
  return { client, stored, ranHere, errors, leave }
}

/** What docs/streaming.md does when a page has loaded. */
async function load({ client }: Pick<ReturnType<typeof openPage>, 'client'>) {
  await client.restore()
  if (!client.getSnapshot().error) void client.retry()
}

const stateOf = (client: ChatClient) =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts)
    .filter((part): part is ToolCallPart => part.type === 'tool-call')
    .map(({ name, state }) => `${name} ${state}`)

const isStored = (stored: ReturnType<typeof memoryPersistence>, part: string) =>
  vi.waitFor(() => expect([...stored.texts.values()].join()).toContain(part))

test.each([401, 429, 503])(
  'a reload whose first attempt to rejoin is answered with %i knows the run still: retry() rejoins it',
  async (status) => {
    const server = serve(
      60_000,
      [words('Noted,'), 'wait', ...calls('note', { x: 1 })],
      [words('done.'), stop],
    )
    const before = openPage(server)
    void before.client.sendMessage('go')
    await isStored(before.stored, 'Noted,')
    before.leave()
    let refusals = 1
    const handle = async (request: Request) =>
      refusals-- > 0 ? new Response(null, { status }) : server.handle(request)
    const after = openPage({ ...server, handle }, before.stored)
    await after.client.restore()
    await vi.waitUntil(() => after.client.getSnapshot().status === 'error')
    const replied = after.client.retry()
    await server.go()
    await replied
    expect([server.ran, server.asked()]).toEqual([['note'], 2])
    expect(saidBy(after.client)).toBe('Noted, done.')
  },
)

test('a page that is reloaded twice, before it has rejoined a run that waits for an answer, shows its text once', async () => {
  const server = serve(60_000, [words('Once. '), ...calls('slow', { x: 1 })])
  server.network.isLive = true
  const first = openPage(server)
  void first.client.sendMessage('go')
  await isStored(first.stored, 'approval-requested')
  first.leave()
  const slow = { ...server, handle: () => new Promise<never>(() => {}) }
  const saves = first.stored.saves
  const second = openPage(slow, first.stored)
  void second.client.restore()
  await vi.waitUntil(() => first.stored.saves > saves)
  second.leave()
  const third = openPage(server, first.stored)
  await third.client.restore()
  await vi.waitUntil(() => third.client.getSnapshot().pendingApprovals.length === 1)
  expect(saidBy(third.client)).toBe('Once. ')
})

test('a reload in mid-reply rejoins the run that goes on: each call runs once, and the model is asked once for each reply', async () => {
  const server = serve(60_000, [words('Noted,'), 'wait', ...calls('note', { x: 1 })], [words('done.'), stop])
  const before = openPage(server)
  void before.client.sendMessage('go')
  await isStored(before.stored, 'Noted,')
  before.leave()
  const page = openPage(server, before.stored)
  await load(page)
  await vi.waitFor(() => expect(page.client.getSnapshot().isLoading).toBe(true))
  await server.go()
  await vi.waitFor(() => expect(saidBy(page.client)).toBe('Noted, done.'))
  await vi.waitFor(() => expect(page.client.getSnapshot().isLoading).toBe(false))
  expect(server.ran).toEqual(['note'])
  expect(server.asked()).toBe(2)
  expect(stateOf(page.client)).toEqual(['note complete'])
  expect(page.client.getSnapshot().error).toBeUndefined()
})

test('a reload while an approved call runs rejoins the run: the answer is sent once, and its result arrives', async () => {
  const server = serve(60_000, calls('slow', { x: 1 }), [words('done.'), ...calls('note', { x: 1 })])
  const before = openPage(server)
  await before.client.sendMessage('go')
  const [asked] = before.client.getSnapshot().pendingApprovals
  void before.client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved: true })
  await vi.waitFor(() => expect(server.ran).toEqual(['slow']))
  before.leave()
  const page = openPage(server, before.stored)
  await load(page)
  await server.go()
  await vi.waitFor(() => expect(saidBy(page.client)).toBe('done. Once more.'))
  await vi.waitFor(() => expect(page.client.getSnapshot().isLoading).toBe(false))
  expect(server.ran).toEqual(['slow', 'note'])
  expect(server.asked()).toBe(3)
  expect(stateOf(page.client)).toEqual(['slow complete', 'note complete'])
})

test('a reload in the reply to a client tool rejoins the run: its output is not sent again', async () => {
  const server = serve(60_000, calls('here', { x: 1 }), [words('It '), 'wait', words('is 0.'), stop])
  const before = openPage(server)
  await before.client.sendMessage('go')
  await isStored(before.stored, 'It ')
  before.leave()
  const page = openPage(server, before.stored)
  await load(page)
  await server.go()
  await vi.waitFor(() => expect(page.client.getSnapshot().isLoading).toBe(false))
  expect(saidBy(page.client)).toBe('It is 0.')
  expect(server.asked()).toBe(2)
  expect(stateOf(page.client)).toEqual(['here complete'])
})

test('a run that is gone is not asked for anew by itself: its text stays with the error, and what was said meanwhile is sent', async () => {
  const server = serve(undefined, [words('Half'), 'wait', stop], [words('Whole.'), stop])
  const before = openPage(server)
  void before.client.sendMessage('go')
  await isStored(before.stored, 'Half')
  before.leave()
  const stored = memoryPersistence()
  for (const [id, text] of before.stored.texts) stored.texts.set(id, text)
  const page = openPage(server, before.stored)
  await load(page)
  await vi.waitFor(() => expect(page.client.getSnapshot().error?.code).toBe('truncated-stream'))
  expect(saidBy(page.client)).toBe('Half')
  expect(server.asked()).toBe(1)
  await page.client.retry()
  expect(saidBy(page.client)).toBe('Whole.')
  page.leave()

  const other = openPage(server, stored)
  await other.client.restore()
  expect(await other.client.sendMessage('And?', { until: 'turn' })).toEqual({ status: 'sent' })
  expect(server.asked()).toBe(3)
  expect(saidBy(other.client)).toBe('Half Once more.')
})

test('a page that is opened while another has the run open follows it, and leaves its client tools to that one', async () => {
  const server = serve(60_000, [words('One, '), 'wait', ...calls('here', { x: 1 })], [words('two.'), stop])
  const first = openPage(server)
  void first.client.sendMessage('go')
  await isStored(first.stored, 'One, ')
  const second = openPage(server, first.stored)
  await load(second)
  expect(second.client.getSnapshot().isLoading).toBe(true)
  await server.go()
  await vi.waitFor(() => expect(saidBy(first.client)).toBe('One,  two.'))
  await vi.waitFor(() => expect(second.client.getSnapshot().isLoading).toBe(false))
  expect([first.ranHere, second.ranHere]).toEqual([['here'], []])
  expect(server.asked()).toBe(2)
  expect(stateOf(second.client)).toEqual(['here input-complete'])
})

test('a reload while a client tool was called: it runs once, in the page that has rejoined the run', async () => {
  const server = serve(60_000, [words('One, '), 'wait', ...calls('here', { x: 1 })], [words('two.'), stop])
  const before = openPage(server)
  void before.client.sendMessage('go')
  await isStored(before.stored, 'One, ')
  before.leave()
  const page = openPage(server, before.stored)
  await load(page)
  await server.go()
  await vi.waitFor(() => expect(saidBy(page.client)).toBe('One,  two.'))
  expect(page.ranHere).toEqual(['here'])
  expect(server.asked()).toBe(2)
})

test('an answer whose request has never arrived is sent once it is known that there is no such run', async () => {
  const server = serve(60_000, calls('slow', { x: 1 }), [words('Done.'), stop])
  const before = openPage(server)
  await before.client.sendMessage('go')
  const [asked] = before.client.getSnapshot().pendingApprovals
  const { handle } = server
  const never = { handle: () => new Promise<Response>(() => {}) }
  server.handle = never.handle
  void before.client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved: true })
  await isStored(before.stored, 'approval-responded')
  before.leave()
  server.handle = handle
  const page = openPage(server, before.stored)
  await load(page)
  await server.go()
  await vi.waitFor(() => expect(saidBy(page.client)).toBe('Done.'))
  expect(server.ran).toEqual(['slow'])
  expect(stateOf(page.client)).toEqual(['slow complete'])
})

test('what is said before it is known whether the run goes on is sent, also where it does not', async () => {
  const server = serve(undefined, [words('Half'), 'wait', stop])
  const before = openPage(server)
  void before.client.sendMessage('go')
  await isStored(before.stored, 'Half')
  before.leave()
  const page = openPage(server, before.stored)
  expect(await page.client.sendMessage('And?', { until: 'turn' })).toEqual({ status: 'sent' })
  expect(saidBy(page.client, 'user')).toBe('go And?')
  expect(saidBy(page.client)).toBe('Half Once more.')
})

test('F13 what is said as soon as the conversation is shown again does not give up the run that is open', async () => {
  const server = serve(60_000, [words('Noted,'), 'wait', ...calls('note', { x: 1 })], [words('done.'), stop])
  const before = openPage(server)
  void before.client.sendMessage('go')
  await isStored(before.stored, 'Noted,')
  before.leave()
  const { client } = openPage(server, before.stored)
  const unsubscribe = client.subscribe(() => {
    if (client.getSnapshot().messages.length === 0) return
    unsubscribe()
    queueMicrotask(() => void client.sendMessage('And?'))
  })
  await client.restore()
  await server.go()
  await vi.waitUntil(() => saidBy(client).includes('Once more.') && !client.getSnapshot().isLoading)
  expect([server.ran, server.asked()]).toEqual([['note'], 3])
  expect(saidBy(client)).toBe('Noted, done. Once more.')
})

test('F13 a page that is reloaded again once it knows that its run is gone shows the error, too', async () => {
  const server = serve(undefined, [words('Half '), 'wait'])
  const before = openPage(server)
  void before.client.sendMessage('go')
  await isStored(before.stored, 'Half ')
  before.leave()
  const restarted = { ...server, handle: async () => new Response(null, { status: 204 }) }
  const second = openPage(restarted, before.stored, true, 60_000)
  await second.client.restore()
  await vi.waitUntil(() => second.client.getSnapshot().status === 'error')
  await passMacrotasks(20)
  second.leave()
  const third = openPage(restarted, before.stored)
  await third.client.restore()
  expect(third.client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
})

test('while the server cannot be reached, the text stays, and the next page rejoins the run', async () => {
  const server = serve(60_000, [words('Half '), 'wait', words('whole.'), stop])
  const before = openPage(server)
  void before.client.sendMessage('go')
  await isStored(before.stored, 'Half ')
  before.leave()
  server.network.isUp = false
  const offline = openPage(server, before.stored)
  await load(offline)
  await vi.waitFor(() => expect(offline.client.getSnapshot().error?.code).toBe('connection-failed'))
  expect(saidBy(offline.client)).toBe('Half ')
  await isStored(before.stored, 'connection-failed')
  offline.leave()
  server.network.isUp = true
  const page = openPage(server, before.stored)
  await load(page)
  await server.go()
  await vi.waitFor(() => expect(page.client.getSnapshot().isLoading).toBe(false))
  expect(saidBy(page.client)).toBe('Half whole.')
  expect(server.asked()).toBe(1)
})

test('F13 what is said while the page loads waits, if the run that it left cannot be rejoined yet: retry() shows the reply, and then sends it', async () => {
  const server = serve(60_000, [words('Half '), 'wait', words('whole.'), stop], [words('Second.'), stop])
  const before = openPage(server)
  void before.client.sendMessage('go')
  await isStored(before.stored, 'Half ')
  before.leave()
  server.network.isUp = false
  const page = openPage(server, before.stored)
  const sent = page.client.sendMessage('And?')
  expect((await sent).status).toBe('queued')
  await vi.waitFor(() => expect(page.client.getSnapshot().error?.code).toBe('connection-failed'))
  await isStored(before.stored, 'And?')
  expect([saidBy(page.client, 'user'), page.client.getSnapshot().queue.length]).toEqual(['go', 1])
  server.network.isUp = true
  const replied = page.client.retry()
  await server.go()
  await replied
  await vi.waitFor(() => expect(saidBy(page.client)).toBe('Half whole. Second.'))
  expect([saidBy(page.client, 'user'), server.asked()]).toEqual(['go And?', 2])
})

/** The server gets the next request, but none of its response arrives: the connection breaks, or a proxy reports a failure. */
function loseResponse(server: Server, status?: number) {
  const { handle } = server
  server.handle = async (request) => {
    server.handle = handle
    await (await handle(request)).body?.getReader().cancel()
    if (status === undefined) throw new TypeError('network error')
    return new Response(null, { status })
  }
}

/** What the user does after a failed request: clicks _Retry_ in the page, or in the one that is loaded in its place. */
const retries = [
  ['retry()', async (page: ReturnType<typeof openPage>) => page],
  [
    'retry() after a reload',
    async (page: ReturnType<typeof openPage>, server: Server) => {
      page.leave()
      const next = openPage(server, page.stored)
      await next.client.restore()
      return next
    },
  ],
] as const

test.each(
  retries.flatMap(([how, reload]) => [undefined, 502, 504].map((status) => [how, status, reload] as const)),
)(
  'F13 no response to a request that the server has: %s takes up the run that goes on, and its tools run once (status %s)',
  async (_, status, reload) => {
    const server = serve(60_000, calls('note', { x: 1 }), ['wait', words('done.'), stop])
    const before = openPage(server)
    loseResponse(server, status)
    expect((await before.client.sendMessage('go')).status).toBe('failed')
    const code = status === undefined ? 'connection-failed' : 'http-status'
    expect(before.client.getSnapshot().error?.code).toBe(code)
    const { client } = await reload(before, server)
    void client.retry()
    await server.go()
    await vi.waitFor(() => expect(saidBy(client)).toBe('done.'))
    await vi.waitFor(() => expect(client.getSnapshot().status).toBe('ready'))
    expect([server.ran, server.asked()]).toEqual([['note'], 2])
  },
)

test.each(retries)(
  'F13 an approval whose request got no response: %s takes up the run that carried it, and nothing is sent again',
  async (_, reload) => {
    const server = serve(60_000, calls('slow', { x: 1 }), [words('done.'), stop])
    const before = openPage(server)
    await before.client.sendMessage('go')
    const [asked] = before.client.getSnapshot().pendingApprovals
    loseResponse(server)
    const id = asked?.approval.id ?? ''
    const answer = await before.client.addToolApprovalResponse({ id, approved: true })
    expect(answer.status).toBe('failed')
    const { client } = await reload(before, server)
    void client.retry()
    await server.go()
    await vi.waitFor(() => expect(saidBy(client)).toBe('done.'))
    await vi.waitFor(() => expect(client.getSnapshot().status).toBe('ready'))
    expect([server.ran, server.asked()]).toEqual([['slow'], 2])
    expect(stateOf(client)).toEqual(['slow complete'])
  },
)

test.each(retries)(
  'F13 the output of a client tool whose request got no response: %s takes up the run that carried it',
  async (_, reload) => {
    const server = serve(60_000, calls('here', { x: 1 }), ['wait', words('done.'), stop])
    const { handle } = server
    server.handle = (request) => {
      loseResponse(Object.assign(server, { handle }))
      return handle(request)
    }
    const before = openPage(server)
    await before.client.sendMessage('go', { until: 'turn' })
    await vi.waitFor(() => expect(before.client.getSnapshot().status).toBe('error'))
    const page = await reload(before, server)
    void page.client.retry()
    await server.go()
    await vi.waitFor(() => expect(saidBy(page.client)).toBe('done.'))
    await vi.waitFor(() => expect(page.client.getSnapshot().status).toBe('ready'))
    expect([server.asked(), before.ranHere.length]).toEqual([2, 1])
    expect(stateOf(page.client)).toEqual(['here complete'])
  },
)

test.each(retries)(
  'F13 an approval whose request has not reached the server: %s sends it',
  async (_, reload) => {
    const server = serve(60_000, calls('slow', { x: 1 }), [words('done.'), stop])
    const before = openPage(server)
    await before.client.sendMessage('go')
    const [asked] = before.client.getSnapshot().pendingApprovals
    server.network.isUp = false
    await before.client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved: true })
    server.network.isUp = true
    const { client, errors } = await reload(before, server)
    const seen = errors.length
    void client.retry()
    await server.go()
    await vi.waitFor(() => expect(saidBy(client)).toBe('done.'))
    expect([server.ran, server.asked(), errors.slice(seen)]).toEqual([['slow'], 2, []])
  },
)

test.each(['was opened while that was frozen', 'had sent its retry() to that'])(
  'a tab that takes over from a frozen one, and %s, rejoins the run: retry() starts no other',
  async (how) => {
    const server = serve(
      60_000,
      [words('Noted,'), 'wait', ...calls('note', { x: 1 })],
      [words('done.'), stop],
    )
    const browser = new FakeBrowser()
    browser.timeout = how.startsWith('was') ? 50 : 60_000
    const connection: Connection = fetchServerSentEvents('http://server.test/chat', {
      rejoin: true,
      fetch: async (url, init) => server.handle(new Request(url, init)),
    })
    const first = browser.open(connection)
    await first.client.restore()
    const early = browser.timeout > 50 ? browser.open(connection) : undefined
    await early?.client.restore()
    void first.client.sendMessage('go')
    await vi.waitFor(() => expect(saidBy(first.client)).toBe('Noted,'))
    first.freeze()
    const { client } = early ?? browser.open(connection)
    await client.restore()
    const onItsWay = early?.client.retry()
    first.close()
    await vi.waitFor(() => expect(client.getSnapshot().isLoading).toBe(true))
    await (onItsWay ?? client.retry())
    await server.go()
    await vi.waitFor(() => expect(saidBy(client)).toBe('Noted, done.'))
    expect([server.ran, server.asked()]).toEqual([['note'], 2])
  },
)

test('a tab that takes over rejoins the run of the tab that was closed', async () => {
  const server = serve(60_000, [words('Noted,'), 'wait', ...calls('note', { x: 1 })], [words('done.'), stop])
  const browser = new FakeBrowser()
  const connection: Connection = fetchServerSentEvents('http://server.test/chat', {
    rejoin: true,
    fetch: async (url, init) => server.handle(new Request(url, init)),
  })
  const first = browser.open(connection)
  await first.client.restore()
  const second = browser.open(connection)
  const third = browser.open(connection)
  for (const { client } of [second, third]) await client.restore()
  void first.client.sendMessage('go')
  for (const { client } of [second, third]) await vi.waitFor(() => expect(saidBy(client)).toBe('Noted,'))
  first.close()
  await vi.waitFor(() => expect(browser.lockRequests).toBe(2))
  await server.go()
  for (const { client } of [second, third]) {
    await vi.waitFor(() => expect(saidBy(client)).toBe('Noted, done.'))
    await vi.waitFor(() => expect(client.getSnapshot().isLoading).toBe(false))
  }
  expect(server.ran).toEqual(['note'])
  expect(server.asked()).toBe(2)
  expect(second.client.getSnapshot().messages).toEqual(third.client.getSnapshot().messages)
})

for (const when of ['while that runs', 'once it has replied'])
  test(`retry() in a page that only followed the run of another page does not run its client tool again: ${when}`, async () => {
    const server = serve(
      60_000,
      [words('Look: '), 'wait', ...calls('here', { x: 1 })],
      [words('done.'), stop],
    )
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const first = openPage(server)
    first.client.setOptions({ tools: [here.client(() => ended.then(() => first.ranHere.push('here')))] })
    void first.client.sendMessage('go')
    await isStored(first.stored, 'Look: ')
    const second = openPage(server, first.stored)
    await load(second)
    await server.go()
    await vi.waitFor(() => expect(second.client.getSnapshot().isLoading).toBe(false))
    await isStored(first.stored, 'executing')
    if (when === 'while that runs') {
      await second.client.retry()
      expect(second.errors).toEqual(['thread-busy'])
    }
    end()
    await vi.waitFor(() => expect(saidBy(first.client)).toBe('Look:  done.'))
    await vi.waitFor(() => expect(first.client.getSnapshot().isLoading).toBe(false))
    await second.client.retry()
    await vi.waitFor(() => expect(second.client.getSnapshot().isLoading).toBe(false))
    expect([first.ranHere, second.ranHere]).toEqual([['here'], []])
    expect(saidBy(second.client)).toBe('Look:  done.')
    expect(server.asked()).toBe(2)
    await isStored(first.stored, 'done.')
  })

test('a page that has followed a run whose page was closed meanwhile keeps the end of it, and retry() runs its client tool', async () => {
  const server = serve(60_000, [words('Look: '), 'wait', ...calls('here', { x: 1 })], [words('done.'), stop])
  const first = openPage(server)
  void first.client.sendMessage('go')
  await isStored(first.stored, 'Look: ')
  const second = openPage(server, first.stored)
  await load(second)
  first.leave()
  await server.go()
  await vi.waitFor(() => expect(second.client.getSnapshot().isLoading).toBe(false))
  expect(stateOf(second.client)).toEqual(['here input-complete'])
  await isStored(first.stored, 'input-complete')
  second.leave()
  const third = openPage(server, first.stored)
  await load(third)
  await vi.waitFor(() => expect(saidBy(third.client)).toBe('Look:  done.'))
  expect([first, second, third].map(({ ranHere }) => ranHere)).toEqual([[], [], ['here']])
  expect(server.asked()).toBe(2)
})

test('what is written in a page that follows the run of another page is there after a reload', async () => {
  const server = serve(60_000, [words('Look: '), 'wait', stop])
  const first = openPage(server)
  void first.client.sendMessage('go')
  await isStored(first.stored, 'Look: ')
  const second = openPage(server, first.stored)
  await load(second)
  void second.client.sendMessage('And then?')
  await isStored(first.stored, 'And then?')
})

/** The response breaks behind the event that brings this text. */
async function cutAfter(text: string, response: Response): Promise<Response> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let read = ''
  while (!read.includes(text)) read += (await reader?.read())?.value ?? ''
  await reader?.cancel()
  const events = read.split('\n\n')
  const until = events.findIndex((event) => event.includes(text)) + 1
  const parts = [`${events.slice(0, until).join('\n\n')}\n\n`]
  const body = new ReadableStream<string>({
    pull(controller) {
      const part = parts.shift()
      if (part === undefined) controller.error(new TypeError('network error'))
      else controller.enqueue(part)
    },
  })
  return new Response(body.pipeThrough(new TextEncoderStream()), response)
}

test.each(['One ', 'two '])(
  'a rejoin that breaks behind "%s" takes away nothing that was shown, and retry() shows the rest',
  async (text) => {
    const server = serve(60_000, [
      ...['One ', 'two ', 'three '].map(words),
      'wait',
      ...['four ', 'five.'].map(words),
      stop,
    ])
    const before = openPage(server)
    void before.client.sendMessage('go')
    await isStored(before.stored, 'three ')
    before.leave()
    let cuts = 2
    const handle = async (request: Request) => {
      const response = await server.handle(request)
      return cuts-- > 0 ? cutAfter(text, response) : response
    }
    const page = openPage({ ...server, handle }, before.stored)
    await page.client.restore()
    await vi.waitUntil(() => page.client.getSnapshot().status === 'error')
    expect(saidBy(page.client)).toBe('One two three ')
    await page.client.retry()
    expect(saidBy(page.client)).toBe('One two three ')
    expect(page.client.getSnapshot().status).toBe('error')
    const retried = page.client.retry()
    await server.go()
    await retried
    expect(saidBy(page.client)).toBe('One two three four five.')
    expect(server.asked()).toBe(1)
  },
)

test('what is queued when the stream of a run breaks waits while that run may go on: retry() rejoins it, then that is sent', async () => {
  const server = serve(60_000, [words('Half '), 'wait', words('whole.'), stop])
  let cuts = 1
  const handle = async (request: Request) => {
    const response = await server.handle(request)
    return cuts-- > 0 ? cutAfter('Half ', response) : response
  }
  const { client } = openPage({ ...server, handle })
  void client.sendMessage('go')
  await client.sendMessage('And?')
  await vi.waitUntil(() => client.getSnapshot().status === 'error')
  expect([client.getSnapshot().queue.length, saidBy(client), server.asked()]).toEqual([1, 'Half ', 1])
  const retried = client.retry()
  await server.go()
  await retried
  await vi.waitUntil(() => !client.getSnapshot().isLoading)
  expect(saidBy(client)).toBe('Half whole. Once more.')
  expect(server.asked()).toBe(2)
})
