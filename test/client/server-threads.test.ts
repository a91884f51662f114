import { ChatClient, type ToolCallPart } from '@countersign/client'
import { serverThreads } from '@countersign/client/server-threads'
import { handleChat, loadThread } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { calls, here, openPage, startServer, startServerWith, stop, words } from './threads-server.js'

function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

const shown = ({ client }: Pick<ReturnType<typeof openPage>, 'client'>) =>
  client
    .getSnapshot()
    .messages.map(({ role, parts }) => [
      role,
      ...parts.map((part) =>
        part.type === 'text' ? part.text : part.type === 'tool-call' ? part.state : part.type,
      ),
    ])

const cardOf = ({ client }: ReturnType<typeof openPage>) =>
  client.getSnapshot().pendingApprovals[0]?.approval.id ?? ''

const callIn = ({ client }: ReturnType<typeof openPage>) =>
  client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts)
    .find((part): part is ToolCallPart => part.type === 'tool-call')

const statusOf = ({ client }: ReturnType<typeof openPage>) => client.getSnapshot().status

async function* counting(more: ReturnType<typeof gate>) {
  yield words('One, ')
  await more.opened
  yield words('two.')
  yield stop
}

/** A page that shows the first word of a reply; the second comes once `more` is opened. */
async function openInMidReply() {
  const more = gate()
  const server = startServer(() => counting(more))
  const first = openPage(server)
  void first.client.sendMessage('Count')
  await vi.waitUntil(() => shown(first)[1]?.[1] === 'One, ')
  return { more, server, first }
}

test('a page loads the conversation that its server keeps, and sends only what is new', async () => {
  const server = startServer()
  const first = openPage(server)
  await first.client.sendMessage('Hello')
  first.leave()
  const second = openPage(server)
  await vi.waitUntil(() => second.client.getSnapshot().messages.length > 0)
  expect(shown(second)).toEqual([
    ['user', 'Hello'],
    ['assistant', 'Well.'],
  ])
  await second.client.sendMessage('And now?')
  const post = second.requests.find(({ method }) => method === 'POST')
  expect(post?.body).toMatchObject({ messages: [{ content: 'And now?' }] })
  expect(shown(second)).toHaveLength(4)
  expect([first.errors, second.errors]).toEqual([[], []])
})

test('the chat gets its id with its first message: a page that shows it, and takes its locks, has none before', async () => {
  const server = startServer()
  const page = openPage(server, {}, { threadId: undefined })
  const { client } = page
  const ids = new Set<string>()
  client.subscribe(() => ids.add(client.getSnapshot().threadId))
  await client.restore()
  client.setMessages([])
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect([client.getSnapshot().threadId, page.requests, [...ids]]).toEqual(['', [], ['']])
  await client.sendMessage('Hello')
  const { threadId } = client.getSnapshot()
  expect([threadId !== '', threadId]).toEqual([true, client.threadId])
  expect(page.requests.find(({ method }) => method === 'POST')?.body).toMatchObject({ threadId })
  expect([...ids]).toEqual(['', threadId])
})

test('an agent without threads tells its developer what is missing, and the page shows why its message waits', async () => {
  const told: string[] = []
  const server = startServerWith({ threads: undefined, warn: (message) => told.push(message) })
  const page = openPage(server)
  await vi.waitUntil(() => statusOf(page) === 'error')
  expect(await page.client.sendMessage('Hello')).toMatchObject({ status: 'queued' })
  expect(page.client.getSnapshot()).toMatchObject({
    status: 'error',
    queue: [{ message: { parts: [{ text: 'Hello' }] } }],
    error: {
      message: expect.stringContaining('keeps no conversations'),
      data: { status: 501, body: expect.stringContaining('invalid-option') },
    },
  })
  expect(told.filter((message) => message.includes('`threads: memoryThreads()`'))).toHaveLength(1)
})

test('a page whose address names a new conversation asks for it without an error in the console of its browser', async () => {
  const statuses: number[] = []
  const server = startServer()
  const handle = async (request: Request) => {
    const response = await server.handle(request)
    statuses.push(response.status)
    return response
  }
  const page = openPage({ handle }, { pollEvery: 20 })
  await vi.waitUntil(() => statuses.length > 2)
  await page.client.sendMessage('Hello')
  expect(shown(page)).toHaveLength(2)
  expect(statuses.filter((status) => status >= 400)).toEqual([])
  expect(page.errors).toEqual([])
})

test('T12 a reload in the middle of a reply: the text is complete, nothing is repeated', async () => {
  const more = gate()
  const server = startServer(async function* () {
    yield words('One, ')
    yield words('two, ')
    await more.opened
    yield words('three.')
    yield stop
  })
  const first = openPage(server)
  void first.client.sendMessage('Count')
  await vi.waitUntil(() => shown(first)[1]?.[1] === 'One, two, ')
  first.leave()
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => shown(second)[1]?.[1] === 'One, two, ')
  expect(statusOf(second)).toBe('streaming')
  more.open()
  await vi.waitUntil(() => statusOf(second) === 'ready')
  expect(shown(second)).toEqual([
    ['user', 'Count'],
    ['assistant', 'One, two, three.'],
  ])
  expect(second.requests.filter(({ method }) => method === 'POST')).toEqual([])
})

test('T12 stop() after a reload stops the run on the server, and it does not come back', async () => {
  const { more, server, first } = await openInMidReply()
  first.leave()
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => statusOf(second) === 'streaming')
  second.client.stop()
  await vi.waitUntil(() => second.requests.some(({ method }) => method === 'DELETE'))
  more.open()
  await vi.waitUntil(async () => {
    const thread = await server.agent.threads?.load({ owner: 'ada', threadId: 't' })
    return thread?.run === undefined
  })
  const before = second.requests.length
  await vi.waitUntil(() => second.requests.length > before + 2)
  expect(statusOf(second)).toBe('ready')
  expect(shown(second)).toEqual([
    ['user', 'Count'],
    ['assistant', 'One, '],
  ])
  expect(await second.client.sendMessage('Again')).toEqual({ status: 'sent' })
})

test('T12 a stop is not an error in the other page that follows the reply', async () => {
  const { more, server, first } = await openInMidReply()
  const second = openPage(server)
  await vi.waitUntil(() => shown(second)[1]?.[1] === 'One, ')
  first.client.stop()
  await vi.waitUntil(() => !second.client.getSnapshot().isLoading)
  for (const page of [first, second]) {
    expect(statusOf(page)).toBe('ready')
    expect(shown(page)[1]).toEqual(['assistant', 'One, '])
    expect(page.errors).toEqual([])
  }
  more.open()
  await second.client.retry()
  expect(shown(second)[1]).toEqual(['assistant', 'One, '])
})

test('T13 a reload with an approval pending: the card is there, and its answer counts', async () => {
  const server = startServer(() => calls('send', { to: 'ada' }))
  const first = openPage(server)
  await first.client.sendMessage('Send it')
  first.leave()
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => cardOf(second) !== '')
  expect(await second.client.addToolApprovalResponse({ id: cardOf(second), approved: true })).toEqual({
    status: 'sent',
  })
  expect([server.executed, callIn(second)?.state]).toEqual([['ada'], 'complete'])
})

test('T13 a reload with an answer that was not sent: it is there, and retry() sends it', async () => {
  const server = startServer(() => calls('send', { to: 'ada' }))
  const first = openPage(server)
  await first.client.sendMessage('Send it')
  first.network.isUp = false
  const answer = { id: cardOf(first), approved: true }
  expect(await first.client.addToolApprovalResponse(answer)).toMatchObject({ status: 'failed' })
  first.leave()
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => callIn(second)?.state === 'approval-responded')
  expect([server.executed, second.client.getSnapshot().pendingApprovals]).toEqual([[], []])
  await second.client.retry()
  expect([server.executed, callIn(second)?.state]).toEqual([['ada'], 'complete'])
})

test('T13 a reload with an answer whose reply was lost: its outcome appears', async () => {
  const more = gate()
  const server = startServer(
    () => calls('send', { to: 'ada' }),
    async function* () {
      yield words('Sent ')
      await more.opened
      yield words('it.')
      yield stop
    },
  )
  const first = openPage(server)
  await first.client.sendMessage('Send it')
  void first.client.addToolApprovalResponse({ id: cardOf(first), approved: true })
  await vi.waitUntil(() => shown(first).some(([, text]) => text === 'Sent '))
  first.leave()
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => statusOf(second) === 'streaming')
  more.open()
  await vi.waitUntil(() => statusOf(second) === 'ready')
  expect(server.executed).toEqual(['ada'])
  expect(shown(second)).toEqual([
    ['user', 'Send it'],
    ['assistant', 'complete', 'tool-result'],
    ['assistant', 'Sent it.'],
  ])
})

test('T13 a reload during a client tool: the call counts as interrupted, and does not run again', async () => {
  const server = startServer(() => calls('here', { x: 1 }))
  const ran: number[] = []
  const working = gate()
  const tools = [
    here.client(async ({ x }) => {
      ran.push(x)
      await working.opened
      return x
    }),
  ]
  const first = openPage(server, {}, { tools })
  await first.client.sendMessage('Go')
  await vi.waitUntil(() => ran.length === 1)
  first.leave()
  const second = openPage(server, { local: first.local }, { tools })
  await vi.waitUntil(() => callIn(second)?.state === 'error')
  expect(callIn(second)?.error?.code).toBe('interrupted')
  await second.client.retry()
  expect(ran).toEqual([1])
  expect(shown(second).at(-1)).toEqual(['assistant', 'Well.'])
})

test('T13 a reload with the output of a client tool that was not sent: retry() sends it, and it does not run again', async () => {
  const server = startServer(() => calls('here', { x: 1 }))
  const ran: number[] = []
  const page: { first?: ReturnType<typeof openPage> } = {}
  const tools = [
    here.client(({ x }) => {
      ran.push(x)
      if (page.first) page.first.network.isUp = false
      return 'Home'
    }),
  ]
  page.first = openPage(server, {}, { tools })
  void page.first.client.sendMessage('Go')
  const { local } = page.first
  await vi.waitUntil(() => local.texts.get('t')?.includes('"tool-result"'))
  page.first.leave()
  const second = openPage(server, { local }, { tools })
  await vi.waitUntil(() => callIn(second)?.state === 'complete')
  await second.client.retry()
  expect(ran).toEqual([1])
  expect(shown(second).at(-1)).toEqual(['assistant', 'Well.'])
  const sent = second.requests.find(({ method }) => method === 'POST')
  expect(sent?.body).toMatchObject({ messages: [{ role: 'tool', toolCallId: 'c1' }] })
})

test('a page that could not load its conversation shows the error, not an empty chat; retry() loads it', async () => {
  const server = startServer()
  const first = openPage(server)
  await first.client.sendMessage('Hello')
  first.leave()
  const response = { isBroken: true }
  const handle = async (request: Request) =>
    response.isBroken ? new Response(null, { status: 500 }) : server.handle(request)
  const second = openPage({ handle }, { pollEvery: 1_000_000 })
  await vi.waitUntil(() => statusOf(second) === 'error')
  expect(second.client.getSnapshot().error).toMatchObject({ code: 'http-status', data: { status: 500 } })
  await second.client.retry()
  expect(statusOf(second)).toBe('error')
  response.isBroken = false
  await second.client.retry()
  expect(shown(second)).toEqual([
    ['user', 'Hello'],
    ['assistant', 'Well.'],
  ])
  expect(statusOf(second)).toBe('ready')
})

test('the error of a load ends once a look or retry() loads the conversation, or finds that there is none', async () => {
  for (const { isNew, byRetry } of [
    { isNew: false, byRetry: false },
    { isNew: true, byRetry: false },
    { isNew: true, byRetry: true },
  ]) {
    const server = startServer()
    const first = openPage(server)
    if (!isNew) await first.client.sendMessage('Hello')
    first.leave()
    let fails = byRetry ? 1 : 2
    const handle = async (request: Request) =>
      fails-- > 0 ? new Response(null, { status: 503 }) : server.handle(request)
    const seen: string[] = []
    const second = openPage({ handle }, byRetry ? { pollEvery: 1_000_000 } : {})
    second.client.subscribe(() => seen.push(statusOf(second)))
    await vi.waitUntil(() => second.errors.length > 0)
    if (byRetry) await second.client.retry()
    await vi.waitUntil(() => seen.at(-1) === 'ready')
    expect(second.errors).toHaveLength(1)
    expect(seen).toContain('error')
    expect(shown(second)).toHaveLength(isNew ? 0 : 2)
  }
})

/** A page that was left with a message which had not reached the server. */
async function leaveUnsent(server: ReturnType<typeof startServer>) {
  const page = openPage(server)
  await page.client.sendMessage('Hello')
  page.network.isUp = false
  expect(await page.client.sendMessage('Anybody?')).toMatchObject({ status: 'failed' })
  page.leave()
  return page
}

test('a reload with a message that never reached the server: it is there, and retry() sends it', async () => {
  const server = startServer()
  const first = await leaveUnsent(server)
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => shown(second).length === 3)
  expect(second.client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'connection-failed' } })
  await second.client.retry()
  expect(shown(second)).toEqual([
    ['user', 'Hello'],
    ['assistant', 'Well.'],
    ['user', 'Anybody?'],
    ['assistant', 'Well.'],
  ])
  const stored = await server.agent.threads?.load({ owner: 'ada', threadId: 't' })
  expect(stored?.messages).toHaveLength(4)
})

test('T14 a second browser sees the run live and answers, and both show the outcome', async () => {
  const more = gate()
  const server = startServer(
    async function* () {
      yield words('I will ')
      await more.opened
      yield* calls('send', { to: 'ada' })
    },
    () => [words('Sent.'), stop],
  )
  const one = openPage(server)
  const two = openPage(server)
  void one.client.sendMessage('Send it')
  await vi.waitUntil(() => shown(two)[1]?.[1] === 'I will ')
  expect(statusOf(two)).toBe('streaming')
  more.open()
  await vi.waitUntil(() => cardOf(two) !== '' && statusOf(two) === 'awaiting-approval')
  expect(await two.client.addToolApprovalResponse({ id: cardOf(two), approved: true })).toEqual({
    status: 'sent',
  })
  const whole = [
    ['user', 'Send it'],
    ['assistant', 'I will ', 'complete', 'tool-result'],
    ['assistant', 'Sent.'],
  ]
  expect(shown(two)).toEqual(whole)
  await vi.waitUntil(() => shown(one).length === 3 && statusOf(one) === 'ready')
  expect(shown(one)).toEqual(whole)
  expect(server.executed).toEqual(['ada'])
  expect([one.errors, two.errors]).toEqual([[], []])
})

test('T14 a client tool runs in the browser that sent the message, and not in the one that watches', async () => {
  const server = startServer(() => calls('here', { x: 1 }))
  const ran: string[] = []
  const toolsOf = (page: string) => [here.client(() => void ran.push(page))]
  const two = openPage(server, {}, { tools: toolsOf('two') })
  const one = openPage(server, {}, { tools: toolsOf('one') })
  await one.client.sendMessage('Go')
  await vi.waitUntil(() => shown(two).at(-1)?.[1] === 'Well.' && shown(one).at(-1)?.[1] === 'Well.')
  expect(ran).toEqual(['one'])
})

test('T15 a page on the next day shows that the request has expired', async () => {
  const server = startServer(() => calls('send', { to: 'ada' }))
  const first = openPage(server)
  await first.client.sendMessage('Send it')
  first.leave()
  const tomorrow = () => Date.now() + 24 * 60 * 60 * 1000
  server.clock.now = tomorrow
  const second = openPage(server, { local: first.local }, { now: tomorrow })
  await vi.waitUntil(() => callIn(second)?.approval?.problem === 'approval-expired')
  expect(server.executed).toEqual([])
})

test('T20 a message to a conversation whose run another page has open waits for it, and is then sent', async () => {
  const more = gate()
  const server = startServer(async function* () {
    yield words('Wait. ')
    await more.opened
    yield words('Now.')
    yield stop
  })
  const one = openPage(server, { pollEvery: 60_000 })
  const two = openPage(server, { pollEvery: 60_000 })
  await two.client.restore()
  void one.client.sendMessage('First')
  await vi.waitUntil(() => shown(one)[1]?.[1] === 'Wait. ')
  const second = two.client.sendMessage('Second')
  await vi.waitUntil(() => two.requests.some(({ method }) => method === 'POST'))
  more.open()
  expect(await second).toEqual({ status: 'sent' })
  expect(two.errors).toEqual([])
  const thread = await server.agent.threads?.load({ owner: 'ada', threadId: 't' })
  const texts = thread?.messages.map(({ message }) => JSON.parse(message).content)
  expect(texts).toEqual(['First', 'Wait. Now.', 'Second', 'Well.'])
})

test('a run that broke for longer than the tries to reconnect lasted is rejoined once the server can be reached', async () => {
  const more = gate()
  const server = startServer(() => counting(more))
  const page = openPage(server)
  const sent = page.client.sendMessage('Count')
  await vi.waitUntil(() => shown(page)[1]?.[1] === 'One, ')
  page.network.isUp = false
  more.open()
  expect(await sent).toMatchObject({ status: 'failed' })
  page.network.isUp = true
  await vi.waitUntil(() => statusOf(page) === 'ready')
  expect(shown(page)).toEqual([
    ['user', 'Count'],
    ['assistant', 'One, two.'],
  ])
})

test('a conversation that cannot be loaded is reported, and loads once the server can be reached', async () => {
  const server = startServer()
  const first = openPage(server)
  await first.client.sendMessage('Hello')
  first.leave()
  const second = openPage(server)
  second.network.isUp = false
  await vi.waitUntil(() => second.errors.length > 0)
  expect(second.errors).toEqual(['connection-failed'])
  second.network.isUp = true
  await vi.waitUntil(() => shown(second).length === 2)
})

test('what the server has is not kept in the browser', async () => {
  const server = startServer(() => calls('send', { to: 'ada' }))
  const page = openPage(server)
  await page.client.sendMessage('Send it')
  await vi.waitUntil(() => page.local.texts.size === 0)
  await page.client.addToolApprovalResponse({ id: cardOf(page), approved: true })
  await vi.waitUntil(() => page.local.texts.size === 0)
})

test('options that cannot work are refused by name', async () => {
  for (const name of ['pollEvery', 'busyFor', 'timeout', 'delay', 'attempts', 'heartbeat'])
    expect(() => serverThreads('/chat', { [name]: 0 })).toThrow(`\`${name}\` has to be of the kind number`)
  const { tabs } = await import('@countersign/client/tabs')
  expect(() => new ChatClient({ ...serverThreads('/chat'), threadId: 't', tabs: tabs() })).toThrow(
    '`tabs` has to be left out',
  )
})

test('a client without a threadId begins a new conversation, and asks the server for nothing before something is said', async () => {
  const server = startServer(() => [words('Hello.'), stop])
  const { client, requests } = openPage(server, {}, { threadId: undefined })
  await client.restore()
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(requests).toEqual([])
  await client.sendMessage('Hi.')
  expect(client.getSnapshot().messages).toHaveLength(2)
  await vi.waitUntil(() => requests.filter(({ url }) => url.includes('since=')).length > 2)
  expect(requests.filter(({ method, url }) => method === 'GET' && !url.includes('since='))).toEqual([])
  const other = openPage(server, {}, { threadId: client.threadId })
  await other.client.restore()
  expect(other.client.getSnapshot().messages).toHaveLength(2)
})

test.each([
  { what: 'a message without a reply', reply: [] },
  {
    what: 'half a reply',
    reply: [
      {
        ...{ id: 'a1', role: 'assistant', content: 'Half of' },
        metadata: { countersign: { cut: true } },
      },
    ],
  },
])('T21 a page that loads $what of a process that died says so, and retry() continues', async ({ reply }) => {
  const server = startServer(() => [words('All of it.'), stop])
  const { threads } = server.agent
  const key = { owner: 'ada', threadId: 't' }
  const dead = { runId: 'dead', holder: 'dead process' }
  await threads?.hold(key, dead, 1)
  const messages = [{ id: 'u1', role: 'user', content: 'Go' }, ...reply].map((message, at) => ({
    ...{ id: message.id, parent: at === 0 ? null : 'u1', message: JSON.stringify(message) },
  }))
  await threads?.append(key, { version: 0, run: dead, messages, head: messages.at(-1)?.id ?? null })
  await expect.poll(() => server.agent.recover()).toBe(1)
  const page = openPage(server)
  await vi.waitUntil(() => page.client.getSnapshot().status === 'error')
  const { code, message } = page.client.getSnapshot().error ?? {}
  // Not that the page was closed: the server was.
  expect([code, message]).toEqual([
    'truncated-stream',
    'The reply was cut off before it was complete. Retry.',
  ])
  expect(shown(page)).toEqual([['user', 'Go'], ...reply.map(({ content }) => ['assistant', content])])
  await page.client.retry()
  expect(shown(page)).toEqual([
    ['user', 'Go'],
    ['assistant', 'All of it.'],
  ])
})

test('a complete reply is shown as complete while nothing has ended a run behind it that said nothing; retry() adds none', async () => {
  const server = startServer()
  const first = openPage(server)
  await first.client.sendMessage('Hello')
  first.leave()
  const dead = { runId: 'dead', holder: 'dead process' }
  await server.agent.threads?.hold({ owner: 'ada', threadId: 't' }, dead, 1)
  const second = openPage(server)
  await vi.waitUntil(() => shown(second).length === 2)
  expect(statusOf(second)).toBe('ready')
  await second.client.retry()
  expect(shown(second)).toHaveLength(2)
})

test("a user's message that got no reply at all is shown with an error in every page that loads it", async () => {
  const server = startServer(() => {
    throw new Error('The provider is down.')
  })
  const first = openPage(server)
  expect(await first.client.sendMessage('Hello')).toMatchObject({ status: 'failed' })
  const second = openPage(server)
  await vi.waitUntil(() => statusOf(second) === 'error')
  expect(second.client.getSnapshot().error?.code).toBe('truncated-stream')
  await second.client.retry()
  expect(shown(second).at(-1)).toEqual(['assistant', 'Well.'])
})

test('a message to which the model has nothing to say has no error after a reload', async () => {
  const server = startServer(() => [stop])
  const first = openPage(server)
  await first.client.sendMessage('Hello')
  first.leave()
  const second = openPage(server)
  await vi.waitUntil(() => shown(second).length === 1)
  expect(statusOf(second)).toBe('ready')
})

test('a message to which the model had nothing to say, and that it was asked about again without success, has an error after a reload', async () => {
  const server = startServer(
    () => [stop],
    () => {
      throw new Error('The provider is down.')
    },
  )
  const first = openPage(server)
  await first.client.sendMessage('Hello')
  expect(await first.client.regenerate()).toMatchObject({ status: 'failed' })
  const second = openPage(server)
  await vi.waitUntil(() => statusOf(second) === 'error')
  const looks = first.requests.length
  await vi.waitUntil(() => first.requests.length > looks + 2)
  expect(statusOf(first)).toBe('error')
  await second.client.retry()
  expect(shown(second).at(-1)).toEqual(['assistant', 'Well.'])
})

test('what was not sent is shown once a page has loaded whose first load failed', async () => {
  const server = startServer()
  const first = await leaveUnsent(server)
  let fails = 1
  const handle = async (request: Request) =>
    fails-- > 0 ? new Response(null, { status: 503 }) : server.handle(request)
  const second = openPage({ handle }, { local: first.local })
  await vi.waitUntil(() => shown(second).length === 3)
  expect(statusOf(second)).toBe('error')
  await second.client.retry()
  expect(shown(second).at(-1)).toEqual(['assistant', 'Well.'])
})

test('a message sent where the conversation could not be loaded loads it first, and cancels no request that was not shown', async () => {
  const server = startServer(() => calls('send', { to: 'ada' }))
  const first = openPage(server)
  await first.client.sendMessage('Send it')
  first.leave()
  const second = openPage(server, { pollEvery: 60_000 })
  second.network.isUp = false
  await vi.waitUntil(() => statusOf(second) === 'error')
  second.network.isUp = true
  expect(await second.client.sendMessage('Hello?')).toMatchObject({ status: 'queued' })
  expect(shown(second).at(-1)).toEqual(['assistant', 'approval-requested'])
  await second.client.addToolApprovalResponse({ id: cardOf(second), approved: true })
  await vi.waitUntil(() => shown(second).flat().includes('Hello?') && statusOf(second) === 'ready')
  expect(server.executed).toEqual(['ada'])
})

test('messages that are sent while the conversation can not be loaded wait in the queue, and are sent in order once it is', async () => {
  const server = startServer(() => calls('send', { to: 'ada' }))
  const before = openPage(server)
  await before.client.sendMessage('Send it')
  before.leave()
  let isUp = false
  const handle = async (request: Request) =>
    isUp || request.method !== 'GET' ? server.handle(request) : new Response(null, { status: 503 })
  const page = openPage({ handle }, { pollEvery: 20 })
  expect(await page.client.sendMessage('One')).toMatchObject({ status: 'queued' })
  expect(await page.client.sendMessage('Two')).toMatchObject({ status: 'queued' })
  expect(statusOf(page)).toBe('error')
  isUp = true
  await vi.waitUntil(() => cardOf(page) !== '')
  expect(page.client.getSnapshot().queue).toHaveLength(2)
  await page.client.addToolApprovalResponse({ id: cardOf(page), approved: true })
  await vi.waitUntil(() => shown(page).length === 7 && statusOf(page) === 'ready')
  expect(shown(page).flatMap(([role, text]) => (role === 'user' ? text : []))).toEqual([
    'Send it',
    'One',
    'Two',
  ])
  expect(server.executed).toEqual(['ada'])
})

test('what stop() holds is still held after a reload, and sent by retry()', async () => {
  const server = startServer(async function* () {
    yield words('Well, ')
    await new Promise(() => {})
  })
  const first = openPage(server)
  void first.client.sendMessage('Hello')
  await vi.waitUntil(() => shown(first).length === 2)
  await first.client.sendMessage('And now?')
  first.client.stop()
  await vi.waitUntil(() => String([...first.local.texts.values()]).includes('"isHeld":true'))
  first.leave()
  const second = openPage(server, { local: first.local })
  // What is taken back before the conversation has loaded changes nothing.
  void second.client.sendMessage('Oops')
  second.client.cancelQueued(second.client.getSnapshot().queue[0]?.id ?? '')
  const queued = () => second.client.getSnapshot().queue.length
  await vi.waitUntil(() => queued() === 1)
  const before = second.requests.length
  await vi.waitUntil(() => second.requests.length > before + 3)
  expect([queued(), second.requests.filter(({ method }) => method === 'POST')]).toEqual([1, []])
  await second.client.retry()
  await vi.waitUntil(() => shown(second).at(-1)?.[1] === 'Well.')
  expect(queued()).toBe(0)
})

test('a message that is sent while the conversation is loading is shown at once, and is not lost by a reload', async () => {
  const server = startServer()
  const before = openPage(server)
  await before.client.sendMessage('Hello')
  before.leave()
  const load = gate()
  const slow = {
    async handle(request: Request) {
      if (request.method === 'GET') await load.opened
      return server.handle(request)
    },
  }
  const first = openPage(slow)
  void first.client.sendMessage('And now?')
  const queued = ({ client }: typeof first) =>
    client
      .getSnapshot()
      .queue.flatMap(({ message }) => message.parts.map((part) => 'text' in part && part.text))
  expect([shown(first), queued(first)]).toEqual([[], ['And now?']])
  await vi.waitUntil(() => first.local.texts.size > 0)
  first.leave()
  const second = openPage(slow, { local: first.local })
  const sent = second.client.sendMessage('And then?')
  void second.client.sendMessage('Not this.')
  const last = second.client.getSnapshot().queue.at(-1)?.id ?? ''
  expect(second.client.cancelQueued(last)).toBe(true)
  expect(queued(second)).toEqual(['And then?'])
  load.open()
  await sent
  await vi.waitUntil(() => shown(second).length === 6 && statusOf(second) === 'ready')
  expect(shown(second).map(([, text]) => text)).toEqual([
    'Hello',
    'Well.',
    'And now?',
    'Well.',
    'And then?',
    'Well.',
  ])
  await vi.waitUntil(() => second.local.texts.size === 0)
  expect(second.errors).toEqual([])
})

test.each([
  ['before its first word', undefined],
  ['in the middle of its reply', 'Half of'],
])('where the user stops a new version %s, no page shows an error for that', async (_, half) => {
  const server = startServer(
    () => [words('Well.'), stop],
    async function* () {
      if (half) yield words(half)
      await new Promise(() => {})
    },
  )
  const page = openPage(server)
  await page.client.sendMessage('Hello')
  void page.client.regenerate()
  const last = half ?? 'Hello'
  await vi.waitUntil(() => statusOf(page) === 'streaming' && shown(page).at(-1)?.[1] === last)
  page.client.stop()
  const thread = () => server.agent.threads?.load({ owner: 'ada', threadId: 't' })
  await vi.waitUntil(async () => (await thread())?.run === undefined)
  const before = page.requests.length
  await vi.waitUntil(() => page.requests.length > before + 2)
  const other = openPage(server)
  await vi.waitUntil(() => shown(other).at(-1)?.[1] === (half ?? 'Well.'))
  expect([statusOf(page), statusOf(other)]).toEqual(['ready', 'ready'])
})

test.each([
  ['before its first word', undefined],
  ['in the middle of its reply', 'Half of'],
])(
  'a reply whose page was closed %s, and not continued without it, is cut off for the next page',
  async (_, half) => {
    const server = startServer(async function* () {
      if (half) yield words(half)
      await new Promise(() => {})
    })
    // without `goOnFor`
    const handle = (request: Request) =>
      request.method === 'POST'
        ? handleChat(server.agent, request, { context: { subject: 'ada' } })
        : server.handle(request)
    const page = openPage({ handle })
    void page.client.sendMessage('Hello')
    await vi.waitUntil(() => statusOf(page) === 'streaming' && shown(page).at(-1)?.[1] === (half ?? 'Hello'))
    page.leave()
    const next = openPage({ handle })
    await vi.waitUntil(() => statusOf(next) === 'error')
    expect(next.client.getSnapshot().error?.code).toBe('truncated-stream')
    await next.client.retry()
    expect(shown(next)).toEqual([
      ['user', 'Hello'],
      ['assistant', 'Well.'],
    ])
  },
)

const call = (id: string, to: string) => ({
  type: 'tool-call' as const,
  id,
  name: 'send',
  arguments: JSON.stringify({ to }),
})

test('two pages of one browser keep their unsent answers and messages for the next page, and each removes only its own', async () => {
  const replies = [[call('c1', 'ada'), call('c2', 'ben'), { type: 'finish' as const, reason: 'tool_calls' }]]
  const server = startServer(() => replies.shift() ?? [words('Done.'), stop])
  const first = openPage(server)
  await first.client.sendMessage('Send both')
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => second.client.getSnapshot().pendingApprovals.length === 2)
  const [to1, to2] = second.client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)
  first.network.isUp = second.network.isUp = false
  await first.client.addToolApprovalResponse({ id: to1 ?? '', approved: true })
  await second.client.addToolApprovalResponse({ id: to2 ?? '', approved: false })
  expect(await second.client.sendMessage('Both?')).toMatchObject({ status: 'failed' })
  first.leave()
  second.leave()
  const third = openPage(server, { local: first.local })
  const states = () => shown(third)[1]?.slice(1)
  await vi.waitUntil(() => states() !== undefined)
  expect([states(), server.executed]).toEqual([['approval-responded', 'approval-responded'], []])
  await third.client.retry()
  await vi.waitUntil(() => statusOf(third) === 'ready')
  expect(server.executed).toEqual(['ada'])
  expect(shown(third).flat()).toContain('Both?')
  expect(await first.local.load('t')).toBeUndefined()
})

test('a conversation that was loaded on the server is shown as it was given, whatever becomes of the object', async () => {
  const server = startServer(() => [words('One.'), stop])
  await openPage(server).client.sendMessage('Hello')
  const initialThread = await loadThread(server.agent, { subject: 'ada', threadId: 't' })
  const page = openPage(server, { pollEvery: 60_000 }, { initialThread })
  const expected = [
    ['user', 'Hello'],
    ['assistant', 'One.'],
  ]
  const [first] = initialThread?.messages ?? []
  Object.assign(first?.parts[0] ?? {}, { text: 'Changed' })
  Object.assign(initialThread ?? {}, { messages: [first], head: 'other' })
  expect(shown(page)).toEqual(expected)
  await page.client.restore()
  expect(shown(page)).toEqual(expected)
})

test('what a page has left comes before what is said after its reload, also where another page was working meanwhile', async () => {
  const more = gate()
  const server = startServer(() => counting(more))
  const working = openPage(server)
  const before = openPage(server, { local: working.local })
  void working.client.sendMessage('First')
  await vi.waitUntil(() => shown(before).length === 2)
  await before.client.sendMessage('Second')
  await vi.waitUntil(() => String([...before.local.texts.values()]).includes('Second'))
  before.leave()
  // It is told of nothing that happens elsewhere.
  const after = openPage(server, { local: working.local, pollEvery: 60_000 })
  await after.client.restore()
  await vi.waitUntil(() => shown(after).length === 2)
  more.open()
  await vi.waitUntil(() => statusOf(working) === 'ready' && statusOf(after) === 'ready')
  await after.client.sendMessage('Third', { until: 'turn' })
  await vi.waitUntil(() => shown(working).length === 6)
  expect(shown(working).flatMap(([role, text]) => (role === 'user' ? [text] : []))).toEqual([
    'First',
    'Second',
    'Third',
  ])
  expect(shown(after)).toEqual(shown(working))
})

test('a page that could not reconnect for some time rejoins its run by itself once it can', async () => {
  const [more, end] = [gate(), gate()]
  const server = startServer(async function* () {
    yield* [words('One, ')]
    await more.opened
    yield words('two, ')
    await end.opened
    yield* [words('three.'), stop]
  })
  const page = openPage(server)
  void page.client.sendMessage('Count')
  await vi.waitUntil(() => shown(page)[1]?.[1] === 'One, ')
  page.network.isUp = false
  more.open()
  await vi.waitUntil(() => statusOf(page) === 'error')
  page.network.isUp = true
  await vi.waitUntil(() => statusOf(page) === 'streaming' && shown(page)[1]?.[1] === 'One, two, ')
  end.open()
  await vi.waitUntil(() => statusOf(page) === 'ready')
  expect(shown(page)).toEqual([
    ['user', 'Count'],
    ['assistant', 'One, two, three.'],
  ])
})

test('what stop() holds is still held after a reload while the stopped run is open on the server', async () => {
  const { more, server, first } = await openInMidReply()
  await first.client.sendMessage('And now?')
  const { handle } = server
  // The request that stops it is lost with the page.
  server.handle = (request) => (request.method === 'DELETE' ? new Promise(() => {}) : handle(request))
  first.client.stop()
  await vi.waitUntil(() => String([...first.local.texts.values()]).includes('"isHeld":true'))
  first.leave()
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => statusOf(second) === 'streaming')
  more.open()
  await vi.waitUntil(() => statusOf(second) === 'ready')
  const before = second.requests.length
  await vi.waitUntil(() => second.requests.length > before + 3)
  const posts = () => second.requests.filter(({ method }) => method === 'POST').length
  expect([second.client.getSnapshot().queue.length, posts()]).toEqual([1, 0])
  await second.client.retry()
  await vi.waitUntil(() => shown(second).length === 4)
  expect(second.client.getSnapshot().queue).toEqual([])
})

test('the error of an answer that did not reach the server stays while the page looks for changes, and retry() sends it', async () => {
  const server = startServer(
    () => calls('send', { to: 'ann' }),
    () => [words('Done.'), stop],
  )
  const page = openPage(server, { attempts: 1 })
  await page.client.sendMessage('go')
  const [asked] = page.client.getSnapshot().pendingApprovals
  page.network.isUp = false
  void page.client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved: true })
  await vi.waitUntil(() => page.client.getSnapshot().status === 'error')
  page.network.isUp = true
  const seen = page.requests.length
  await vi.waitUntil(() => page.requests.length > seen + 5)
  expect(page.client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'connection-failed' } })
  await page.client.retry()
  await vi.waitUntil(() => page.client.getSnapshot().status === 'ready')
  expect(server.executed).toEqual(['ann'])
})
