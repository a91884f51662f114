import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { CountersignError, isCountersignError, type Message } from '@countersign/core'
import {
  answerQueue,
  createAgent,
  handleChat,
  type Model,
  type ModelEvent,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  rejoinResponse,
  threadResponse,
} from '@countersign/server'
import { passMacrotasks } from '@countersign/testing'
import { expect, test, vi } from 'vitest'
import { collect, counted, input, last, say, testAgent, user } from './support.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const record = (owner: string | null, approvalId: string, more = {}) => ({
  ...{ owner, threadId: 'thread', approvalId, runId: 'r', toolCallId: 'c', toolName: 'remove' },
  ...{ arguments: '{}', scopes: ['once' as const], edits: false, idempotent: false, token: 't' },
  ...{ issuedAt: 0, expiresAt: 1_000_000_000_000 },
  ...more,
})

async function fill(ledger: ReturnType<typeof memoryLedger>, owner: string | null): Promise<number> {
  for (let at = 0; at < 1000; at++)
    if ((await ledger.issue(record(owner, `a${at}`))).status === 'full') return at
  return Number.POSITIVE_INFINITY
}

test('F7 one person gets a tenth of the memory ledger, and those without a name half of it', async () => {
  const ledger = memoryLedger({ maxRecords: 100, now: () => 0 })
  expect(await fill(ledger, 'mallory')).toBe(10)
  expect(await fill(ledger, null)).toBe(50)
  expect(await fill(ledger, 'ann')).toBe(10)
})

test('F7 outcomes of one person do not push out those of another', async () => {
  const ledger = memoryLedger({ maxSize: 100_000, maxSizePerOwner: 20_000, now: () => 0 })
  const run = async (owner: string, id: string) => {
    const asked = record(owner, id)
    await ledger.issue(asked)
    const answer = { decision: 'approve', scope: 'once' } as const
    await ledger.claim(asked, answer, 'h', 1000)
    await ledger.complete(asked, 'h', { type: 'result', content: 'x'.repeat(5000) })
    return async () => {
      const again = await ledger.claim(asked, answer, 'h2', 1000)
      return again.status === 'repeat' ? again.outcome.type : again.status
    }
  }
  const outcome = await run('ann', 'a')
  for (let at = 0; at < 50; at++) await run('mallory', `m${at}`)
  expect(await outcome()).toBe('result')
})

test('F7 a question that never expires is let go seven days after its answer, and not before', async () => {
  let now = 0
  const never = 8_640_000_000_000_000
  const ledger = memoryLedger({ maxRecords: 2, maxRecordsPerOwner: 2, now: () => now })
  await ledger.issue(record('ann', 'answered', { expiresAt: never }))
  await ledger.issue(record('ann', 'open', { expiresAt: never }))
  await ledger.claim(record('ann', 'answered'), { decision: 'deny', at: 0 }, 'h', 1000)
  const week = 7 * 24 * 60 * 60 * 1000
  now = week - 1
  expect((await ledger.issue(record('ann', 'next', { expiresAt: never }))).status).toBe('full')
  now = week
  expect((await ledger.issue(record('ann', 'next', { expiresAt: never }))).status).toBe('issued')
  const late = await ledger.claim(record('ann', 'answered'), { decision: 'deny', at: now }, 'h', 1000)
  expect(late.status).toBe('not-issued')
  expect((await ledger.lookup(record('ann', 'open')))?.state.phase).toBe('issued')
})

test('F7 the audit trail in memory keeps the lines of those who have few', async () => {
  const ledger = memoryLedger({ maxAuditEntries: 10 })
  const line = (ownerHash: string, at: number) =>
    ledger.audit({ at, event: 'issued' as const, ownerHash, threadId: 't' })
  for (let at = 0; at < 3; at++) await line('ann', at)
  for (let at = 3; at < 200; at++) await line('mallory', at)
  const owners: string[] = []
  for await (const { ownerHash } of ledger.auditTrail()) owners.push(ownerHash)
  expect(owners).toEqual([...Array(3).fill('ann'), ...Array(7).fill('mallory')])
})

test('F6 answers to questions not asked yet are kept up to 4 Mi characters a run', async () => {
  const queue = answerQueue()
  const entry = (id: string) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload: { approved: true, reason: 'x'.repeat(1024 * 1024) },
  })
  const kept = ['a', 'b', 'c'].map((id) => queue.put(entry(id)))
  expect(await queue.put(entry('d'))).toMatchObject({ status: 'refused', code: 'too-many-answers' })
  // what is taken makes room
  const took: unknown[] = []
  queue.take('a', (answer) => took.push(answer?.interruptId))
  expect([took, await kept[0]]).toEqual([['a'], { status: 'taken' }])
  const again = queue.put(entry('e'))
  queue.close()
  expect(await again).toMatchObject({ code: 'run-ended' })
})

test('F6 runs of one person are counted until they end, and given back however they end', async () => {
  const limits = { runs: { perOwner: 1 } }
  const release: (() => void)[] = []
  const model: Model = {
    id: 'waits',
    async *stream() {
      await new Promise<void>((resolve) => release.push(resolve))
      yield* say('done')
    },
  }
  const { agent } = testAgent([], { limits, model })
  const chat = (subject: string) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(input([user('go')]))
    const request = new Request('http://localhost/', { method: 'POST', headers, body })
    return handleChat(agent, request, { context: { subject } })
  }
  const first = await chat('limits-a')
  const second = await chat('limits-a')
  expect([first.status, second.status]).toEqual([200, 429])
  expect(await second.json()).toMatchObject({ error: { code: 'too-many-runs' } })
  expect((await chat('limits-b')).status).toBe(200)
  const reading = first.text()
  await expect.poll(() => release.length).toBe(2)
  for (const goOn of release) goOn()
  await reading
  expect((await chat('limits-a')).status).toBe(200)
  const rest = new Request('http://localhost/?threadId=t&runId=none')
  expect((await rejoinResponse(agent, rest, { context: { subject: 'limits-c' } })).status).toBe(204)
})

test.each(['runs', 'runBytes', 'arrivingBytes', 'earlyAnswers', 'earlyAnswerSize'] as const)(
  'F6 limits.%s that is not a positive number is refused',
  (name) => {
    const { agent } = testAgent([])
    expect(agent.limits[name].perOwner).toBeGreaterThan(0)
    const model = { id: 'm', stream: () => [] as never }
    let error: unknown
    try {
      createAgent({ model, limits: { [name]: { perOwner: 0 } } })
    } catch (thrown) {
      error = thrown
    }
    expect(isCountersignError(error) && (error as CountersignError).data.option).toBe(
      `limits.${name}.perOwner`,
    )
  },
)

// Shares count for the whole process, so each of these has a user of its own.
test('a request that waits for a store counts in the share of its user', async () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const log = memoryRunLog()
  const { agent } = testAgent(() => say('Hello'), {
    threads: memoryThreads(),
    runLog: {
      begin: log.begin,
      read: async (...given) => {
        await opened
        return log.read(...given)
      },
    },
    limits: { arrivingBytes: { perOwner: 1_000_000, total: 4_000_000 } },
  })
  const post = async (threadId: string, subject = 'waiting') => {
    const body = JSON.stringify({ ...input([user('x'.repeat(200_000))]), threadId, runId: threadId })
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost/', { method: 'POST', headers, body })
    const response = await handleChat(agent, request, { context: { subject } })
    await response.text()
    return response.status
  }
  const waiting = [post('a'), post('b')]
  expect(await post('c')).toBe(429)
  const another = post('d', 'another')
  open()
  expect(await Promise.all([...waiting, another])).toEqual([200, 200, 200])
  expect(await post('e')).toBe(200)
})

/** A model that stops after its first word if the message says `wait`, until `open` is called. */
function waitingModel() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const waiting: Model = {
    id: 'test/model',
    async *stream({ messages }) {
      yield { type: 'text-delta', delta: 'Hello' }
      if (JSON.stringify(messages.at(-1)).includes('wait')) await opened
      yield { type: 'finish', reason: 'stop' }
    },
  }
  return { waiting, open: () => open() }
}

test('a run counts the stored conversation that it continues, and the largest one can always be continued', async () => {
  const { waiting, open } = waitingModel()
  const limits = { runBytes: { perOwner: 1_000_000, total: 10_000_000 } }
  const { agent } = testAgent([], { model: waiting, threads: memoryThreads(), limits })
  let posts = 0
  const post = async (threadId: string, text: string) => {
    const body = JSON.stringify({
      ...input([{ ...user(text), id: `u${++posts}` }]),
      threadId,
      runId: `r${posts}`,
    })
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost/', { method: 'POST', headers, body })
    return handleChat(agent, request, { context: { subject: 'continuing' } })
  }
  for (const thread of ['small', 'large', 'other'])
    for (let at = 0; at < (thread === 'large' ? 4 : 2); at++)
      await (await post(thread, 'x'.repeat(150_000))).text()
  const alone = await post('large', 'wait')
  expect(alone.status).toBe(200)
  expect((await post('small', 'wait')).status).toBe(429)
  open()
  await alone.text()
  expect(await (await post('small', 'Hi')).text()).toContain('RUN_FINISHED')
})

test('a long reply counts in the share of its reader until it is read, and arrives as it is', async () => {
  const limits = { runBytes: { perOwner: 800_000, total: 10_000_000 } }
  const { agent } = testAgent(() => say('Hello'), { threads: memoryThreads(), limits })
  const said = `.${'\u{1f600}'.repeat(120_000)}`
  const body = JSON.stringify(input([user(said)]))
  const headers = { 'content-type': 'application/json' }
  const context = { subject: 'reading' }
  const posted = new Request('http://localhost/', { method: 'POST', headers, body })
  expect(await (await handleChat(agent, posted, { context })).text()).toContain('RUN_FINISHED')
  const load = (gone?: AbortSignal) =>
    threadResponse(agent, new Request('http://localhost/?threadId=thread', { signal: gone ?? null }), {
      context,
    })
  const gone = new AbortController()
  const unread = await load(gone.signal)
  expect([unread.status, (await load()).status]).toEqual([200, 429])
  gone.abort()
  await (await load()).body?.cancel()
  const read = await load()
  expect(read.headers.get('etag')).toMatch(/^"/)
  expect((await read.json()).messages[0].content).toBe(said)
  await (await load()).text()
})

test('F6 replies that wait unread count, however short: one user holds as many as runs, and others are served', async () => {
  const limits = { runs: { perOwner: 8, total: 100 } }
  const { agent } = testAgent(() => say('Hello'), { threads: memoryThreads(), limits })
  const headers = { 'content-type': 'application/json' }
  const ask = async (subject: string) => {
    const body = JSON.stringify(input([user('x'.repeat(2000))]))
    const posted = new Request('http://localhost/', { method: 'POST', headers, body })
    await (await handleChat(agent, posted, { context: { subject } })).text()
  }
  for (const subject of ['mallory', 'ann']) await ask(subject)
  const load = (subject: string) =>
    threadResponse(agent, new Request('http://localhost/?threadId=thread'), { context: { subject } })
  const unread = await Promise.all(Array.from({ length: 12 }, () => load('mallory')))
  expect(unread.map(({ status }) => status)).toEqual([...Array(8).fill(200), ...Array(4).fill(429)])
  expect((await load('ann')).status).toBe(200)
  await Promise.all(unread.map((reply) => reply.text()))
  expect((await load('mallory')).status).toBe(200)
})

test('a run whose tool returns more than its user has room for ends with a code, keeps the result, and goes on later', async () => {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const model: Model = {
    id: 'reading',
    async *stream({ messages }) {
      const isAsked = messages.at(-1)?.role === 'user'
      if (isAsked) yield { type: 'tool-call', id: `call_${messages.length}`, name: 'read', arguments: '{}' }
      else if (JSON.stringify(messages[0]).includes('wait')) await opened
      yield { type: 'finish', reason: isAsked ? 'tool_calls' : 'stop' }
    },
  }
  const read = counted('read', { execute: async () => 'x'.repeat(400_000) })
  const threads = memoryThreads()
  const limits = { runBytes: { perOwner: 2_000_000, total: 10_000_000 } }
  const { agent } = testAgent([], { model, tools: [read.tool], threads, limits })
  const post = async (threadId: string, messages: Message[]) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(input(messages, { threadId }))
    const request = new Request('http://localhost/', { method: 'POST', headers, body })
    return handleChat(agent, request, { context: { subject: 'reading files' } })
  }
  const first = (await post('first', [user('wait')])).body?.getReader()
  for (let text = ''; !text.includes('TOOL_CALL_RESULT'); )
    text = new TextDecoder().decode((await first?.read())?.value)
  const refused = await (await post('second', [user('Hi')])).text()
  expect(refused).not.toContain('TOOL_CALL_RESULT')
  expect(refused).toContain('"code":"too-many-runs"')
  open()
  await first?.cancel()
  // The share is free once the last change of the first run is stored.
  await vi.waitFor(async () => {
    expect(await (await post('second', [])).text()).toContain('RUN_FINISHED')
  })
  expect(read.runs).toHaveLength(2)
})

test('the results of one run take at most the share of its user, and the first one always fits', async () => {
  const read = counted('read', { execute: async () => 'x'.repeat(400_000) })
  const limits = { runBytes: { perOwner: 1_000_000, total: 10_000_000 } }
  const turn = ['a', 'b'].map((id): ModelEvent => ({ type: 'tool-call', id, name: 'read', arguments: '{}' }))
  const { agent } = testAgent([[...turn, { type: 'finish', reason: 'tool_calls' }], say('Hello')], {
    ...{ tools: [read.tool], threads: memoryThreads(), limits },
  })
  const post = (messages: Message[]) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(input(messages))
    const request = new Request('http://localhost/', { method: 'POST', headers, body })
    return handleChat(agent, request, { context: { subject: 'reading much' } })
  }
  const ended = await (await post([user('Hi')])).text()
  expect(ended.match(/TOOL_CALL_RESULT/g)).toHaveLength(1)
  expect(ended).toContain('"code":"too-many-runs"')
  expect(await (await post([])).text()).toContain('Hello')
  expect(read.runs).toHaveLength(2)
})

const unsent: Readonly<Record<string, ModelEvent[]>> = {
  'of the provider': [
    { type: 'tool-call', id: 'c', name: 'search', arguments: '{}', providerExecuted: true },
    { type: 'tool-result', toolCallId: 'c', outcome: { kind: 'ok', value: 'found' } },
  ],
  'of a call that is refused': [{ type: 'tool-call', id: 'c', name: 'unknown', arguments: '{}' }],
  'of a call without all of its arguments': [{ type: 'tool-call-start', id: 'c', name: 'unknown' }],
}

for (const [whose, events] of Object.entries(unsent))
  test(`a result ${whose} that finds no room ends the run with that code`, async () => {
    const { agent, model } = testAgent([[...events, { type: 'finish', reason: 'stop' }], say('Hello')])
    const hold = () => {
      throw new CountersignError('too-many-runs', 'Full.')
    }
    const ended = await collect(agent, input([user('Hi')]), { hold })
    expect(last(ended)).toMatchObject({ type: 'RUN_ERROR', code: 'too-many-runs', message: 'Full.' })
    expect(model.requests).toHaveLength(1)
  })

test('what readers of a run were sent and did not take counts in their share', async () => {
  const limits = { runBytes: { perOwner: 1_000_000, total: 10_000_000 } }
  const { agent } = testAgent(() => say('x'.repeat(400_000)), { threads: memoryThreads(), limits })
  const headers = { 'content-type': 'application/json' }
  const context = { subject: 'reading a run' }
  const body = JSON.stringify(input([user('Hi')]))
  const posted = new Request('http://localhost/', { method: 'POST', headers, body })
  await (await handleChat(agent, posted, { context })).text()
  const { runId } = JSON.parse(body)
  const rejoin = async () =>
    threadResponse(agent, new Request(`http://localhost/?threadId=thread&runId=${runId}`), { context })
  const unread = (await rejoin()).body?.getReader()
  await unread?.read()
  await unread?.read()
  await expect((await rejoin()).text()).rejects.toThrow('Too many runs are open')
  await unread?.cancel()
  expect(await (await rejoin()).text()).toContain('RUN_FINISHED')
})

test('a reader that leaves while it reads gives its share back', async () => {
  const model: Model = {
    id: 'in two batches',
    async *stream() {
      yield { type: 'text-delta', delta: 'a' }
      await passMacrotasks(5)
      yield* say('x'.repeat(300_000))
    },
  }
  const { agent } = testAgent([], { model, limits: { runBytes: { perOwner: 1_000_000, total: 10_000_000 } } })
  const post = () => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(input([user('Hi')]))
    const request = new Request('http://localhost/', { method: 'POST', headers, body })
    return handleChat(agent, request, { context: { subject: 'leaving' } })
  }
  for (let at = 0; at < 3; at++) {
    const reader = (await post()).body?.getReader()
    await passMacrotasks(30)
    const reading = reader?.read()
    await reader?.cancel()
    await reading
    await passMacrotasks(30)
  }
  expect(await (await post()).text()).toContain('RUN_FINISHED')
})

test('a client that goes away is noticed, also once its request has been collected', async () => {
  let isStopped = false
  const model: Model = {
    id: 'stopped',
    async *stream(_, { signal }) {
      yield { type: 'text-delta', delta: 'a' }
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      isStopped = true
    },
  }
  const limits = { runBytes: { perOwner: 800_000, total: 10_000_000 } }
  const { agent } = testAgent([], { model, threads: memoryThreads(), limits })
  const context = { subject: 'going away' }
  const body = JSON.stringify(input([user('x'.repeat(100_000))]))
  const send = (method: 'GET' | 'POST', signal: AbortSignal | null = null) => {
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://localhost/?threadId=thread', { method, headers, signal })
    return method === 'GET'
      ? threadResponse(agent, request, { context })
      : handleChat(agent, new Request(request, { body, signal }), { context })
  }
  const gone = new AbortController()
  const run = await send('POST', gone.signal)
  const reply = await send('GET', gone.signal)
  await run.body?.getReader().read()
  await passMacrotasks(5)
  collectGarbage()
  gone.abort()
  await passMacrotasks(20)
  expect(isStopped).toBe(true)
  // It would have no room beside the other.
  const replies = [await send('GET'), await send('GET'), await send('GET'), await send('GET'), reply]
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429, 200])
  for (const { body } of replies) await body?.cancel()
})

test('a person whose open runs take all of their share still loads conversations: runs and replies count apart', async () => {
  const { waiting, open } = waitingModel()
  const limits = { runBytes: { perOwner: 1_000_000, total: 2_000_000 } }
  const { agent } = testAgent([], { model: waiting, threads: memoryThreads(), limits })
  const post = (text: string, subject: string) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(input([user(text)], { threadId: subject }))
    const request = new Request('http://localhost/', { method: 'POST', headers, body })
    return handleChat(agent, request, { context: { subject } })
  }
  const load = (subject: string) =>
    threadResponse(agent, new Request(`http://localhost/?threadId=${subject}`), { context: { subject } })
  for (const subject of ['busy', 'idle'])
    for (let at = 0; at < 2; at++) await (await post('x'.repeat(200_000), subject)).text()
  const run = await post('wait', 'busy')
  const loaded = await load('busy')
  expect(loaded.status).toBe(200)
  // Together they have one total.
  expect((await load('idle')).status).toBe(429)
  expect((await loaded.json()).messages).toHaveLength(5)
  expect(await (await load('idle')).text()).toContain('Hello')
  open()
  await run.text()
})
