import { ChatClient, nextStep } from '@countersign/client'
import { withRecord } from '@countersign/client/ui'
import { approvalHistory, CountersignError, type Message } from '@countersign/core'
import { scriptedModel, tool } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { FakeLocks } from './fake-locks.js'
import { openPage, startServerWith, stop, words } from './threads-server.js'
import { approve, asked, call, calls, finish, free, gate, sign, start } from './tools-in-pages.js'

// Several pages of one conversation that the server keeps, which are reloaded, and whose answers and messages come late.

test.each([
  ['is reloaded', true],
  ['has a second tab', false],
])(
  'a page that follows the run of another browser, and %s, does not take that run for its own: its client tool runs once',
  async (_, isReloaded) => {
    const { open, opened } = gate()
    const { ran, page } = start(
      Promise.resolve(),
      async function* () {
        yield words('Hm.')
        await opened
        yield calls('free', 'a')
        yield finish
      },
      () => [words('Done.'), stop],
    )
    const local = memoryPersistence()
    const [one, before] = [page('one'), page('two', local)]
    await before.client.restore()
    void one.client.sendMessage('go')
    const shows = (text: string) => (page: { readonly client: typeof one.client }) =>
      JSON.stringify(page.client.getSnapshot().messages).includes(text)
    await vi.waitUntil(() => shows('Hm.')(before))
    if (isReloaded) before.leave()
    const two = page('two, later', local)
    await vi.waitUntil(() => shows('Hm.')(two))
    open()
    await vi.waitUntil(() => [one, two].every(shows('Done.')))
    expect(ran).toEqual(['a in one'])
  },
)

test.each([
  [false, 'refused', 'yours was not used'],
  [true, 'sent', undefined],
])(
  'an answer (approved: %s) to a client tool that has run says whether it was used, and the model keeps the result of the tool',
  async (approved, status, said) => {
    const prompts: string[] = []
    const model = scriptedModel(({ messages }) => {
      prompts.push(JSON.stringify(messages))
      return prompts.length > 1 ? [words('Done.'), stop] : [calls('sign', 'a'), finish]
    })
    const server = startServerWith({ model, tools: [sign.client(() => 0)] })
    const tools = [sign.client(() => 'signed')]
    const one = openPage(server, {}, { tools })
    await one.client.sendMessage('go')
    const two = openPage(server, { pollEvery: 600_000 }, { tools, onWarning: () => {} })
    await two.client.restore()
    expect(asked(two)).toEqual([{ to: 'a' }])
    await approve(one, 'a')
    await vi.waitUntil(() => prompts.length > 1 && one.client.getSnapshot().status === 'ready')
    const result = await two.client.addToolApprovalResponse({
      id: call(two, 'a')?.approval?.id ?? '',
      approved,
    })
    const shown = call(two, 'a')
    expect([
      result.status,
      nextStep(result)?.message,
      shown?.state,
      shown && nextStep(shown)?.message,
    ]).toEqual([
      status,
      said && expect.stringContaining(said),
      'complete',
      said && expect.stringContaining(said),
    ])
    for (const prompt of prompts.slice(1)) expect(prompt).toContain('signed')
    expect(JSON.stringify(await server.agent.threads?.load({ owner: 'ada', threadId: 't' }))).not.toContain(
      'may not',
    )
  },
)

test('a queued message that the conversation has already, because another page has sent it, is not sent again, nor is a request without it', async () => {
  const { open, opened } = gate()
  const requests: (readonly Message[])[] = []
  const client: ChatClient = new ChatClient({
    connection: {
      async *connect({ threadId, runId, messages }) {
        requests.push(messages)
        yield { type: 'RUN_STARTED', threadId, runId }
        await opened
        const all = [
          ...messages,
          ...client.getSnapshot().queue.map(({ id }) => ({ id, role: 'user', content: 'b' })),
        ]
        yield {
          type: 'MESSAGES_SNAPSHOT',
          messages: [...all, { id: 'reply', role: 'assistant', content: 'Well.' }],
        }
        yield { type: 'RUN_FINISHED', threadId, runId }
      },
    },
    onWarning: () => {},
  })
  const first = client.sendMessage('a')
  await client.sendMessage('b')
  open()
  await first
  await vi.waitUntil(() => client.getSnapshot().queue.length === 0 && client.getSnapshot().status === 'ready')
  expect(requests.map((messages) => messages.map(({ content }) => content))).toEqual([['a']])
  expect(client.getSnapshot().messages.map(({ parts }) => parts[0])).toMatchObject(
    ['a', 'b', 'Well.'].map((text) => ({ text })),
  )
})

test('retry() starts no client tool while the storage of the browser cannot be read, where a tab that is gone may have started it', async () => {
  const { ran, page } = start(gate().opened, () => [calls('free', 'a'), finish])
  const local = memoryPersistence()
  const one = page('one', local)
  void one.client.sendMessage('go')
  await vi.waitUntil(() => ran.length > 0)
  one.leave()
  const load = vi
    .spyOn(local, 'load')
    .mockRejectedValue(new CountersignError('persistence-unavailable', 'Not now.'))
  const two = page('two', local)
  await two.client.restore()
  await two.client.retry()
  expect([call(two, 'a')?.state, new Set(two.errors)]).toEqual([
    'input-complete',
    new Set(['persistence-unavailable']),
  ])
  load.mockRestore()
  await two.client.retry()
  expect([ran, call(two, 'a')?.error?.code]).toEqual([['a in one'], 'interrupted'])
})

test('retry() starts the client tool also where the page looks for changes while it waits for the lock', async () => {
  const { ran, page } = start(Promise.resolve(), () => [calls('free', 'a'), finish])
  const one = page('one')
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  const two = page('two')
  await two.client.restore()
  const { query } = FakeLocks.prototype
  vi.spyOn(FakeLocks.prototype, 'query').mockImplementation(async function (this: FakeLocks) {
    const looks = two.requests.length
    await vi.waitUntil(() => two.requests.length > looks + 2)
    return query.call(this)
  })
  await two.client.retry()
  vi.restoreAllMocks()
  await vi.waitUntil(() => call(two, 'a')?.state === 'complete' || two.errors.length > 0)
  expect([ran, two.errors]).toEqual([['a in two'], []])
})

test.each([
  ['', 0],
  [', also where its clock is set back meanwhile', 3_600_000],
])('a page whose look for changes never gets a response looks again%s', async (_, ahead) => {
  const { now } = Date
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + ahead)
  const { server, page } = start(
    Promise.resolve(),
    () => [words('One.'), stop],
    () => [words('Two.'), stop],
  )
  const one = page('one')
  let isLost = false
  const handle = (request: Request) => {
    const loses = isLost && request.method === 'GET'
    if (loses) isLost = false
    return loses ? new Promise<never>(() => {}) : server.handle(request)
  }
  const two = openPage({ handle }, { timeout: 1000 })
  const shows = (text: string) => JSON.stringify(two.client.getSnapshot().messages).includes(text)
  await two.client.restore()
  await one.client.sendMessage('go')
  await vi.waitUntil(() => shows('One.'))
  isLost = true
  await vi.waitUntil(() => !isLost)
  clock.mockRestore()
  await one.client.sendMessage('more')
  await vi.waitUntil(() => shows('Two.'))
})

test('a run that began after its page was reloaded, and that the second tab then follows first, runs its client tool in one of them', async () => {
  const [arrival, look, reply] = [gate(), gate(), gate()]
  const { server, ran, page } = start(
    Promise.resolve(),
    async function* () {
      yield words('Hm.')
      await reply.opened
      yield calls('free', 'a')
      yield finish
    },
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  let hasLeft = false
  const sent = page('one', local, async (request) => {
    if (request.method !== 'POST') return server.handle(request)
    // What has left the page arrives, also if nobody waits for it.
    const { url, method, headers } = request
    const body = await request.text()
    hasLeft = true
    await arrival.opened
    return server.handle(new Request(url, { method, headers, body }))
  })
  await sent.client.restore()
  void sent.client.sendMessage('go')
  await vi.waitUntil(() => hasLeft)
  sent.leave()
  let gets = 0
  const reloaded = page('reloaded', local, async (request) => {
    if (request.method === 'GET' && ++gets > 1) await look.opened
    return server.handle(request)
  })
  await reloaded.client.restore()
  arrival.open()
  const shows = (text: string) => (page: { readonly client: typeof sent.client }) =>
    JSON.stringify(page.client.getSnapshot().messages).includes(text)
  await vi.waitUntil(async () => (await server.agent.threads?.load({ owner: 'ada', threadId: 't' }))?.run)
  const second = page('second', local)
  await vi.waitUntil(() => shows('Hm.')(second))
  look.open()
  await vi.waitUntil(() => shows('Hm.')(reloaded))
  reply.open()
  await vi.waitUntil(() => [reloaded, second].every((page) => call(page, 'a')?.state === 'complete'))
  expect(ran).toEqual(['a in second'])
})

test('a message that is sent while retry() loads the conversation twice stays, with the run that it has opened', async () => {
  const [loads, reply] = [gate(), gate()]
  const { server, page } = start(
    Promise.resolve(),
    () => [calls('free', 'a'), finish],
    async function* () {
      await reply.opened
      yield words('Done.')
      yield stop
    },
  )
  const one = page('one')
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  one.leave()
  let isSlow = false
  const two = page('two', memoryPersistence(), async (request) => {
    if (request.method !== 'GET') return server.handle(request)
    if (isSlow) await loads.opened
    return server.handle(request)
  })
  await vi.waitUntil(() => call(two, 'a'))
  isSlow = true
  const retries = Promise.all([two.client.retry(), two.client.retry()])
  const before = two.requests.length
  await vi.waitUntil(() => two.requests.length > before)
  const sent = two.client.sendMessage('more')
  loads.open()
  await retries
  const { isLoading, error } = two.client.getSnapshot()
  expect([isLoading, error]).toEqual([true, undefined])
  reply.open()
  expect(await sent).toEqual({ status: 'sent' })
})

test('retry() that is called twice runs a client tool once, and reports no other page', async () => {
  const { ran, page } = start(
    Promise.resolve(),
    () => [calls('free', 'a'), finish],
    () => [words('Done.'), stop],
  )
  const one = page('one')
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  one.leave()
  const two = page('two')
  await vi.waitUntil(() => call(two, 'a'))
  await Promise.all([two.client.retry(), two.client.retry()])
  await vi.waitUntil(() => call(two, 'a')?.state === 'complete')
  expect([ran, two.errors]).toEqual([['a in two'], []])
})

test('retry() that had to give up the lock while it loaded starts no client tool: another tab may have run it', async () => {
  const { server, ran, page } = start(
    Promise.resolve(),
    () => [calls('free', 'a'), finish],
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  const one = page('one', local)
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  const done = gate()
  let loads = -Infinity
  const handle = async (request: Request) => {
    if (request.method === 'GET') loads++
    if (loads === 1) return new Promise<Response>(() => {})
    const response = await server.handle(request)
    if (loads === 2) await done.opened
    return response
  }
  const tools = [free.client(() => ran.push('a in two'))]
  const two = openPage({ handle }, { local, timeout: 1500, pollEvery: 600_000 }, { tools })
  await vi.waitUntil(() => call(two, 'a'))
  loads = 0
  const retries = [two.client.retry(), two.client.retry()]
  await vi.waitUntil(() => loads === 2)
  one.client.setOptions({ tools: [free.client(() => ran.push('a in one'))] })
  await vi.waitUntil(async () => {
    await one.client.retry()
    return call(one, 'a')?.state === 'complete'
  })
  done.open()
  await Promise.all(retries)
  await vi.waitUntil(() => call(two, 'a')?.state !== 'executing')
  expect(ran).toEqual(['a in one'])
})

test.each([
  ['with other arguments', 'one', { input: { to: 'one' } }],
  ['without a change', undefined, {}],
])('a page whose edit came after an approval %s tells what the call ran with', async (_, to, ran) => {
  const { open, opened } = gate()
  const send = tool({
    name: 'send',
    description: 'Sends.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    allowEdits: true,
    execute: ({ to }) => `sent to ${to}`,
  })
  const server = startServerWith({ tools: [send] }, () => [calls('send', 'a'), finish])
  let isLate = false
  const handle = async (request: Request) => {
    if (isLate && request.method === 'POST') await opened
    return server.handle(request)
  }
  const [one, two] = [openPage(server), openPage({ handle })]
  await one.client.sendMessage('go')
  await vi.waitUntil(() => asked(two).length === 1)
  isLate = true
  const edit = (page: typeof one, to: string | undefined) => {
    const id = call(page, 'a')?.approval?.id ?? ''
    return page.client.addToolApprovalResponse({ id, approved: true, ...(to && { input: { to } }) })
  }
  const late = edit(two, 'two')
  expect(await edit(one, to)).toEqual({ status: 'sent' })
  open()
  expect(await late).toMatchObject({ status: 'refused', code: 'approval-conflict' })
  for (const page of [one, two]) {
    const { messages } = page.client.getSnapshot()
    const part = call(page, 'a')
    const { decision, input } = { input: undefined, ...approvalHistory(messages)[0] }
    expect({ decision, input }).toEqual({ decision: 'approve', input: undefined, ...ran })
    expect(part && withRecord(part, messages).approval?.input).toEqual(input)
  }
})
