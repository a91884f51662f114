import {
  type ChatOptions,
  createAgent,
  handleChat,
  loadThread,
  type Model,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  rejoinResponse,
  scriptedModel,
} from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { call, counted, input, SECRET, say, user } from '../support.js'

// A request under the runId of a known run joins that run, or is refused. Whatever becomes of it, it leaves nothing behind.

// Runs that other tests of this process have abandoned count for their own subjects.
const context = { subject: 'used-run-ids' }
const PER_OWNER = 3

/** A model that speaks once it is let go, and notices when it is stopped. */
function setUp() {
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  let stopped = false
  const model: Model = {
    id: 'test/m',
    async *stream(_, { signal }) {
      signal.addEventListener('abort', () => {
        stopped = true
        letGo()
      })
      yield { type: 'text-delta', delta: 'Hello.' }
      await gate
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const threads = memoryThreads()
  const agent = createAgent({
    model,
    threads,
    runLog: memoryRunLog(),
    approvals: { secret: SECRET, ledger: memoryLedger() },
    limits: { runs: { perOwner: PER_OWNER, total: 100 } },
    warn: () => {},
  })
  const post = (body: object, more: ChatOptions = {}) =>
    handleChat(
      agent,
      new Request('http://localhost/', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
      { context, ...more },
    )
  return { agent, threads, post, letGo, wasStopped: () => stopped }
}

const broken = () => Promise.reject(new Error('The store is down.'))

/** Each way in which a request to join can fail, by the name of what fails. */
const FAILURES: Record<string, (threads: ReturnType<typeof memoryThreads>) => ChatOptions> = {
  'the first read of the thread': (threads) => {
    vi.spyOn(threads, 'load').mockImplementation(broken)
    return {}
  },
  '`prepare`, which throws': () => ({
    prepare: () => {
      throw new Error('Refused by the application.')
    },
  }),
  'the read of the thread after `prepare`': (threads) => ({
    prepare: (given) => {
      vi.spyOn(threads, 'load').mockImplementation(broken)
      return given
    },
  }),
  'another request, which is refused': () => ({}),
}

for (const [what, fail] of Object.entries(FAILURES)) {
  test(`a request that fails to join an open run leaves no open run and no reader of it: ${what}`, async () => {
    const { threads, post, letGo, wasStopped } = setUp()
    const body = input([user('Hi')])
    const first = await post(body, { goOnFor: 1 })
    const reader = first.body?.getReader()
    await reader?.read()
    for (let n = 0; n < 2 * PER_OWNER; n++) {
      const other = { ...body, messages: [...body.messages, { id: `u${n}`, role: 'user', content: 'More' }] }
      const refused = await post(other, fail(threads))
      expect(refused.ok).toBe(false)
      expect(refused.status).not.toBe(429)
      vi.restoreAllMocks()
    }
    // The only reader goes: the run must not wait for one that never was.
    await reader?.cancel()
    await vi.waitUntil(wasStopped)
    letGo()
    await vi.waitUntil(
      async () => !(await threads.load({ owner: context.subject, threadId: body.threadId }))?.run,
    )
    const next = await post({ ...input([user('Again')]), threadId: 'another' })
    expect(next.status).toBe(200)
    await next.body?.cancel()
  })
}

test('a reader who cancels the body of a rejoined run is gone at once, although the request is never aborted', async () => {
  const { agent, post, letGo } = setUp()
  const { threadId, ...rest } = input([user('Hi')])
  const first = await post({ threadId, ...rest })
  const reader = first.body?.getReader()
  await reader?.read()
  const url = `http://localhost/?${new URLSearchParams({ threadId, runId: rest.runId })}`
  for (let n = 0; n < 2 * PER_OWNER; n++) {
    const rejoined = await rejoinResponse(agent, new Request(url), { context })
    expect(rejoined.status).toBe(200)
    await rejoined.body?.cancel()
  }
  letGo()
  while (!(await reader?.read())?.done);
})

/** A thread with a message, a reply, and an approval request that is open; `post` sends a request for it. */
async function withRequest() {
  const { tool, runs } = counted('send', { needsApproval: true })
  const model = scriptedModel([say('Hello.'), call(['c1', 'send', {}]), say('Sent.'), say('Again.')])
  const agent = createAgent({
    model,
    tools: [tool],
    threads: memoryThreads(),
    runLog: memoryRunLog(),
    approvals: { secret: SECRET, ledger: memoryLedger() },
    warn: () => {},
  })
  const post = async (body: object) => {
    const headers = { 'content-type': 'application/json' }
    const asked = { method: 'POST', headers, body: JSON.stringify(body) }
    const response = await handleChat(agent, new Request('http://localhost/', asked), { context })
    return { status: response.status, text: await response.text() }
  }
  await post(input([{ id: 'u1', role: 'user', content: 'Hi' }]))
  const sent = input([{ id: 'u2', role: 'user', content: 'Send it.' }])
  const [, interruptId = ''] = /"interrupts":\[\{"id":"([^"]+)"/.exec((await post(sent)).text) ?? []
  const resume = [{ interruptId, status: 'resolved', payload: { approved: true } }]
  return { post, sent, resume, runs, model }
}

test('an answer under the id of a run that did not bring it is refused, and is carried out with another id', async () => {
  const { post, sent, resume, runs } = await withRequest()
  const refused = await post({ ...sent, messages: [], resume })
  expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([409, 'run-id-used'])
  expect(runs).toHaveLength(0)
  expect((await post({ ...input([]), resume })).text).toContain('Sent.')
  expect(runs).toHaveLength(1)
})

test('an answer that is sent again under the same id joins its run, and another answer under that id is refused', async () => {
  const { post, resume, runs, model } = await withRequest()
  const answer = { ...input([]), resume }
  const first = await post(answer)
  expect(await post(answer)).toEqual({ status: 200, text: `: rejoined\n\n${first.text}` })
  const denied = resume.map((one) => ({ ...one, payload: { approved: false } }))
  expect((await post({ ...answer, resume: denied })).status).toBe(409)
  expect([runs.length, model.requests.length]).toEqual([1, 3])
})

test('a reply is asked for anew only under a new id, and a repeated request for it joins its run', async () => {
  const { post, sent } = await withRequest()
  const forwardedProps = { countersign: { regenerate: 'u1' } }
  expect((await post({ ...sent, messages: [], forwardedProps })).status).toBe(409)
  const anew = { ...input([]), forwardedProps }
  const first = await post(anew)
  expect(first.text).toContain('Sent.')
  expect(await post(anew)).toEqual({ status: 200, text: `: rejoined\n\n${first.text}` })
})

for (const [what, waitUntil] of Object.entries({
  throws: () => {
    throw new Error('There is no request any more.')
  },
  'returns a promise that rejects': async () => {
    throw new Error('There is no request any more.')
  },
}))
  test(`a waitUntil that ${what} does not end the run`, async () => {
    const { post, letGo } = setUp()
    letGo()
    const response = await post(input([user('Hi')]), { waitUntil })
    expect(await response.text()).toContain('RUN_FINISHED')
  })

test('the usage of runs with the same id adds up', async () => {
  const usage = { type: 'usage', usage: { inputTokens: 10, outputTokens: 1 } } as const
  // In a process that remembers the thread, and in one that does not.
  for (const cachedThreadBytes of [undefined, 1]) {
    const [subject, threadId] = ['used-run-ids', `t-${cachedThreadBytes}`]
    const agent = createAgent({
      model: scriptedModel(() => [usage, usage, ...say('Hello.')]),
      threads: memoryThreads(),
      approvals: { secret: SECRET, ledger: memoryLedger() },
      limits: { cachedThreadBytes },
      warn: () => {},
    })
    for (const text of ['Hi', 'Again', 'And again'])
      await agent.generate({ threadId, runId: 'run', messages: [user(text)] }, { context: { subject } })
    expect((await loadThread(agent, { subject, threadId }))?.usage).toMatchObject([
      { inputTokens: 60, outputTokens: 6 },
    ])
  }
})
