import { expect, onTestFinished, test, vi } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import { FakeLocks } from './fake-locks.js'
import { openPage, stop, words } from './threads-server.js'
import { approve, asked, call, calls, finish, free, gate, late, start } from './tools-in-pages.js'

// Several pages of one conversation that the server keeps: a client tool runs in one of them, once, and only when it is approved.

test('an approved client tool is handed to one page, also where another one has approved it and follows the run', async () => {
  const { open, opened } = gate()
  const reply = () => [calls('sign', 'a'), calls('send', 'b'), finish]
  const { ran, page } = start(opened, reply, () => [words('Done.'), stop])
  const [one, two] = [page('one'), page('two')]
  await two.client.restore()
  void one.client.sendMessage('go')
  await vi.waitUntil(() => [one, two].every((page) => asked(page).length === 2))
  void approve(two, 'a')
  void approve(one, 'a')
  void approve(one, 'b')
  await vi.waitUntil(() => ran.length > 0 && call(two, 'b')?.state === 'complete')
  await two.client.retry()
  open()
  await vi.waitUntil(() => [one, two].every((page) => page.client.getSnapshot().status === 'ready'))
  expect(ran).toEqual(['a in one'])
})

test('retry() on a page that does not follow the open run starts none of its client tools: the server may still ask about them', async () => {
  const { open, opened } = gate()
  const { server, ran, page } = start(Promise.resolve(), async function* () {
    yield calls('sign', 'a')
    await opened
    yield finish
  })
  const one = page('one')
  // The log of the run is in another process.
  const two = page('two', memoryPersistence(), async (request) => {
    const isRejoin = request.method === 'GET' && new URL(request.url).searchParams.has('runId')
    return isRejoin ? new Response(null, { status: 204 }) : server.handle(request)
  })
  await two.client.restore()
  void one.client.sendMessage('go')
  await vi.waitUntil(() => call(two, 'a')?.state === 'input-complete' && !two.client.getSnapshot().isLoading)
  await two.client.retry()
  expect([ran, two.errors]).toEqual([[], ['thread-busy']])
  open()
  await vi.waitUntil(() => asked(two).length === 1)
  await approve(two, 'a')
  await vi.waitUntil(() => ran.length > 0)
  expect(ran).toEqual(['a in two'])
})

test('a client tool whose result waits for another request is not run again by retry() in another tab, which sends that result', async () => {
  const reply = () => [calls('free', 'a'), calls('send', 'b'), finish]
  const { ran, page } = start(Promise.resolve(), reply, () => [words('Done.'), stop])
  const local = memoryPersistence()
  const [one, two] = [page('one', local), page('two', local)]
  await two.client.restore()
  void one.client.sendMessage('go')
  await vi.waitUntil(() => call(one, 'a')?.state === 'complete' && asked(two).length === 1)
  await approve(two, 'b')
  await two.client.retry()
  await vi.waitUntil(() => [one, two].every((page) => call(page, 'b')?.state === 'complete'))
  expect([ran, call(two, 'a')?.state]).toEqual([['a in one'], 'complete'])
})

test('a client tool that had started in a tab that is gone is not repeated by retry() in another one', async () => {
  const { ran, page } = start(gate().opened, () => [calls('free', 'a'), finish])
  const local = memoryPersistence()
  const [one, two] = [page('one', local), page('two', local)]
  await two.client.restore()
  void one.client.sendMessage('go')
  await vi.waitUntil(() => ran.length > 0 && call(two, 'a')?.state === 'input-complete')
  one.leave()
  await two.client.retry()
  expect([ran, call(two, 'a')?.error?.code]).toEqual([['a in one'], 'interrupted'])
})

test('without the conversation of the server, retry() starts no client tool, and says so', async () => {
  const { ran, page } = start(Promise.resolve(), () => [calls('free', 'a'), finish])
  const [one, two] = [page('one'), page('two')]
  await two.client.restore()
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  await vi.waitUntil(() => call(two, 'a')?.state === 'input-complete' && !two.client.getSnapshot().isLoading)
  two.network.isUp = false
  await two.client.retry()
  expect([ran, two.errors]).toEqual([[], ['persistence-unavailable']])
  two.network.isUp = true
  await two.client.retry()
  await vi.waitUntil(() => ran.length > 0)
  expect(ran).toEqual(['a in two'])
})

test('a client tool of the reply to an approval runs on the page whose approval came first, not on one whose approval came late', async () => {
  const { open, opened } = gate()
  const { ran, page } = start(
    opened,
    () => [calls('send', 'a'), finish],
    () => [calls('free', 'b'), finish],
    () => [words('Done.'), stop],
  )
  const [one, two] = [page('one'), page('two')]
  await two.client.restore()
  void one.client.sendMessage('go')
  await vi.waitUntil(() => [one, two].every((page) => asked(page).length === 1))
  void approve(one, 'a')
  await vi.waitUntil(() => one.requests.filter(({ method }) => method === 'POST').length === 2)
  // Its request waits for the end of the other page's run.
  await approve(two, 'a')
  await vi.waitUntil(() => call(two, 'b')?.state === 'input-complete' && !two.client.getSnapshot().isLoading)
  open()
  await vi.waitUntil(() => [one, two].every((page) => call(page, 'b')?.state === 'complete'))
  expect(ran).toEqual(['b in one'])
})

test('a tab that has a message queued does not take an answer that another tab has under way: its client tool runs once', async () => {
  const { open, opened } = gate()
  const { ran, page } = start(
    opened,
    () => [calls('sign', 'a'), calls('send', 'b'), finish],
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  const [one, two] = [page('one', local), page('two', local)]
  await two.client.restore()
  void one.client.sendMessage('go')
  await one.client.sendMessage('and then')
  await vi.waitUntil(() => asked(two).length === 2)
  void approve(two, 'a')
  void approve(two, 'b')
  await vi.waitUntil(() => ran.length > 0)
  await one.client.retry()
  await one.client.retry()
  expect(one.errors).toEqual([])
  open()
  await vi.waitUntil(() => [one, two].every((page) => call(page, 'a')?.state === 'complete'))
  expect(ran).toEqual(['a in two'])
})

test('a page that finds the run it was to follow ended shows its reply, whatever its user does meanwhile', async () => {
  const { open, opened } = gate()
  const { server, page } = start(Promise.resolve(), async function* () {
    yield words('Hm.')
    yield calls('free', 'a')
    await opened
    throw new Error('The model has failed.')
  })
  const one = page('one')
  void one.client.sendMessage('go')
  const stored = () => server.agent.threads?.load({ owner: 'ada', threadId: 't' })
  await vi.waitUntil(async () => (await stored())?.messages.length === 2)
  let isEnded = false
  const two = page('two', memoryPersistence(), async (request) => {
    const isRejoin = request.method === 'GET' && new URL(request.url).searchParams.has('runId')
    const response = isRejoin ? new Response(null, { status: 204 }) : await server.handle(request)
    if (isEnded) two.client.clearError()
    isEnded = isRejoin
    if (isRejoin) {
      open()
      await vi.waitUntil(async () => (await stored())?.run === undefined)
    }
    return response
  })
  await vi.waitUntil(() => call(two, 'a') !== undefined)
})

test('a client tool that was closed as interrupted while it ran, because another page approved it too, is shown as it is stored on both', async () => {
  const { open, opened } = gate()
  const { ran, page } = start(
    opened,
    () => [calls('sign', 'a'), finish],
    () => [words('Done.'), stop],
  )
  const [one, two] = [page('one'), page('two')]
  await two.client.restore()
  void one.client.sendMessage('go')
  await vi.waitUntil(() => [one, two].every((page) => asked(page).length === 1))
  void approve(one, 'a')
  await vi.waitUntil(() => ran.length > 0)
  expect(await approve(two, 'a')).toMatchObject({ status: 'refused', code: 'approval-conflict' })
  await two.client.sendMessage('Go on.')
  open()
  await vi.waitUntil(() => JSON.stringify(one.client.getSnapshot().messages).includes('Go on.'))
  await vi.waitUntil(() => call(one, 'a')?.state === 'error')
  expect([ran, call(two, 'a')?.state]).toEqual([['a in one'], 'error'])
})

test('a client tool that runs in another tab of the browser is not run again by retry() of a message that could not be sent, which learns of it', async () => {
  const { open, opened } = gate()
  const { ran, page } = start(
    opened,
    () => [calls('free', 'a'), finish],
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  const one = page('one', local)
  await one.client.restore()
  one.network.isUp = false
  await one.client.sendMessage('go')
  await vi.waitUntil(() => local.texts.get('t')?.includes('connection-failed'))
  // The tab shows the message too, and its user sends it.
  const two = page('two', local)
  await two.client.restore()
  void two.client.retry()
  await vi.waitUntil(() => ran.length > 0)
  one.network.isUp = true
  await one.client.retry()
  expect([ran, one.errors]).toEqual([['a in two'], ['connection-failed', 'thread-busy']])
  open()
  await vi.waitUntil(() => [one, two].every((page) => call(page, 'a')?.state === 'complete'))
  expect(ran).toEqual(['a in two'])
})

test('a client tool whose call retry() learns of is run by it, where no other page works', async () => {
  const { ran, page } = start(
    Promise.resolve(),
    () => [calls('free', 'a'), finish],
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  const one = page('one', local)
  await one.client.restore()
  one.network.isUp = false
  await one.client.sendMessage('go')
  await vi.waitUntil(() => local.texts.get('t')?.includes('connection-failed'))
  const two = page('two', local)
  await two.client.restore()
  two.client.setOptions({ tools: [] })
  await two.client.retry()
  expect(call(two, 'a')?.state).toBe('input-complete')
  two.leave()
  one.network.isUp = true
  await one.client.retry()
  await vi.waitUntil(() => call(one, 'a')?.state === 'complete')
  expect([ran, one.errors]).toEqual([['a in one'], ['connection-failed']])
})

test('a client tool of a run whose stream was lost runs once, also where another tab has begun it when retry() takes the run up again', async () => {
  const [reply, tool] = [gate(), gate()]
  const { ran, page } = start(
    tool.opened,
    async function* () {
      yield calls('free', 'a')
      await reply.opened
      yield finish
    },
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  const [one, two] = [page('one', local), page('two', local)]
  await two.client.restore()
  void one.client.sendMessage('go')
  await vi.waitUntil(() => call(one, 'a'))
  one.network.isUp = false
  reply.open()
  await vi.waitUntil(() => one.client.getSnapshot().status === 'error')
  await vi.waitUntil(() => call(two, 'a')?.state === 'input-complete' && !two.client.getSnapshot().isLoading)
  await two.client.retry()
  await vi.waitUntil(() => ran.length > 0)
  one.network.isUp = true
  await one.client.retry()
  tool.open()
  await vi.waitUntil(() => [one, two].every((page) => call(page, 'a')?.state === 'complete'))
  expect(ran).toEqual(['a in two'])
})

test('a client tool of a run whose stream was lost runs at its end, once retry() has taken the run up again', async () => {
  const { open, opened } = gate()
  const { ran, page } = start(
    Promise.resolve(),
    async function* () {
      yield calls('free', 'a')
      await opened
      yield calls('free', 'b')
      yield finish
    },
    () => [words('Done.'), stop],
  )
  const one = page('one')
  void one.client.sendMessage('go')
  await vi.waitUntil(() => call(one, 'a'))
  one.network.isUp = false
  open()
  await vi.waitUntil(() => one.client.getSnapshot().status === 'error')
  one.network.isUp = true
  await one.client.retry()
  await vi.waitUntil(
    () => call(one, 'b')?.state === 'complete' && one.client.getSnapshot().status === 'ready',
  )
  expect([[...ran].sort(), one.errors]).toEqual([['a in one', 'b in one'], ['connection-failed']])
})

test('retry() while a client tool runs leaves it alone, and starts no other', async () => {
  const { open, opened } = gate()
  const { ran, page } = start(
    opened,
    () => [calls('free', 'a'), calls('late', 'b'), finish],
    () => [words('Done.'), stop],
  )
  const one = page('one')
  void one.client.sendMessage('go')
  await vi.waitUntil(() => ran.length > 0)
  one.client.setOptions({ tools: [late.client(() => ran.push('b in one'))] })
  await one.client.retry()
  expect([ran, call(one, 'a')?.state]).toEqual([['a in one'], 'executing'])
  open()
  await vi.waitUntil(() => call(one, 'a')?.state === 'complete')
  await one.client.retry()
  await vi.waitUntil(() => call(one, 'b')?.state === 'complete')
  expect([ran, one.errors]).toEqual([['a in one', 'b in one'], []])
})

test('clearError() starts no client tool of a run whose process has died, not even while retry() loads the conversation', async () => {
  const { opened } = gate()
  const { server, ran, page } = start(Promise.resolve(), async function* () {
    yield words('Hm.')
    yield calls('sign', 'a')
    await opened
  })
  const one = page('one')
  void one.client.sendMessage('go')
  const stored = () => server.agent.threads?.load({ owner: 'ada', threadId: 't' })
  await vi.waitUntil(async () => JSON.stringify((await stored())?.messages[1] ?? '').includes('call-a'))
  one.leave()
  let isRetry = false
  const two = page('two', memoryPersistence(), async (request) => {
    const response = await server.handle(request)
    if (request.method !== 'GET') return response
    if (isRetry) two.client.clearError()
    const thread = await response.json()
    return Response.json({ ...thread, run: { ...thread.run, lapsed: true } })
  })
  await two.client.restore()
  expect([call(two, 'a')?.state, two.client.getSnapshot().status]).toEqual(['input-complete', 'error'])
  two.client.clearError()
  isRetry = true
  await two.client.retry()
  await vi.waitUntil(() => two.client.getSnapshot().status !== 'executing')
  expect([ran, two.errors]).toEqual([[], ['persistence-unavailable']])
})

test('stop() while retry() finds out whether it may start client tools leaves them as they are', async () => {
  const { server, ran, page } = start(Promise.resolve(), () => [calls('free', 'a'), finish])
  const one = page('one')
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  let isRetry = false
  const two = page('two', memoryPersistence(), async (request) => {
    if (isRetry) two.client.stop()
    return server.handle(request)
  })
  await vi.waitUntil(() => call(two, 'a')?.state === 'input-complete' && !two.client.getSnapshot().isLoading)
  isRetry = true
  await two.client.retry()
  await vi.waitUntil(() => two.client.getSnapshot().status !== 'executing')
  expect(ran).toEqual([])
})

test('a client tool that another tab begins and ends while retry() loads the conversation runs once', async () => {
  const { server, ran, page } = start(
    Promise.resolve(),
    () => [calls('free', 'a'), finish],
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  const one = page('one', local)
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  let isRetry = false
  const two = page('two', local, async (request) => {
    const response = await server.handle(request)
    if (isRetry && request.method === 'GET') {
      isRetry = false
      one.client.setOptions({ tools: [free.client(() => ran.push('a in one'))] })
      await one.client.retry()
    }
    return response
  })
  await vi.waitUntil(() => call(two, 'a')?.state === 'input-complete' && !two.client.getSnapshot().isLoading)
  isRetry = true
  await two.client.retry()
  await vi.waitUntil(() => [one, two].every((page) => call(page, 'a')?.state === 'complete'))
  expect([ran, one.errors]).toEqual([['a in two'], ['thread-busy']])
})

test('a client tool of a run that ends while another tab is opened runs once', async () => {
  const { open, opened } = gate()
  const { server, ran, page } = start(
    Promise.resolve(),
    async function* () {
      yield calls('free', 'a')
      await opened
      yield finish
    },
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  const one = page('one', local)
  void one.client.sendMessage('go')
  await vi.waitUntil(() => call(one, 'a') && local.texts.get('t')?.includes('openRun'))
  let isOpened = false
  const two = page('two', local, async (request) => {
    const response = await server.handle(request)
    if (isOpened) return response
    isOpened = true
    open()
    await vi.waitUntil(
      () => call(one, 'a')?.state === 'complete' && one.client.getSnapshot().status === 'ready',
    )
    return response
  })
  await vi.waitUntil(() => [one, two].every((page) => call(page, 'a')?.state === 'complete'))
  expect(ran).toEqual(['a in one'])
})

test('a tab whose server never answers does not keep another one from starting client tools', async () => {
  const { ran, page } = start(
    Promise.resolve(),
    () => [calls('free', 'a'), finish],
    () => [words('Done.'), stop],
  )
  const local = memoryPersistence()
  const one = page('one', local)
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  const never = () => new Promise<Response>(() => {})
  const two = openPage({ handle: never }, { local, timeout: 20 })
  await vi.waitUntil(() => two.errors.length > 0)
  one.client.setOptions({ tools: [free.client(() => ran.push('a in one'))] })
  await vi.waitUntil(async () => {
    await one.client.retry()
    return call(one, 'a')?.state === 'complete'
  })
  expect(ran).toEqual(['a in one'])
})

test('a tab does not take its own lock, which it has just released, for that of another tab', async () => {
  FakeLocks.lingers = 20
  onTestFinished(() => {
    FakeLocks.lingers = 0
  })
  const { ran, page } = start(
    Promise.resolve(),
    () => [calls('free', 'a'), finish],
    () => [words('Done.'), stop],
  )
  const one = page('one')
  one.client.setOptions({ tools: [] })
  await one.client.sendMessage('go')
  one.client.setOptions({ tools: [free.client(() => ran.push('a in one'))] })
  await one.client.retry()
  await vi.waitUntil(() => call(one, 'a')?.state === 'complete')
  expect([ran, one.errors]).toEqual([['a in one'], []])
})
