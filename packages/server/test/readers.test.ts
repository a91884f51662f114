import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import type { AGUIEvent, ResumeEntry } from '@countersign/core'
import {
  answerQueue,
  answerResponse,
  createAgent,
  handleChat,
  type ModelEvent,
  memoryLedger,
  scriptedModel,
  tool,
} from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  requests,
  results,
  SECRET,
  say,
  testAgent,
  types,
  user,
} from './support.js'

const progress = (events: readonly AGUIEvent[]) =>
  events.flatMap((event) =>
    event.type === 'CUSTOM' && event.name === 'tool-progress' ? [event.value.data] : [],
  )
const words = (events: readonly AGUIEvent[]) =>
  events.flatMap((event) => (event.type === 'TEXT_MESSAGE_CONTENT' ? [event.delta] : []))
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** The value of `work`, or `stuck` once the event loop has turned a thousand times without it. Only for what waits for nothing outside. */
async function orStuck<T>(work: Promise<T>): Promise<T | 'stuck'> {
  let settled = false
  const done = work.finally(() => {
    settled = true
  })
  done.catch(() => {})
  for (let turns = 0; turns < 1000 && !settled; turns++) await turn()
  return settled ? done : 'stuck'
}

/** A model that says `texts` beside a call of the tool `busy`, and then says `done`. */
function besides(texts: readonly string[]) {
  return scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'user'
      ? [
          { type: 'tool-call', id: 'c1', name: 'busy', arguments: '{}' },
          ...texts.map((delta): ModelEvent => ({ type: 'text-delta', delta })),
          { type: 'finish', reason: 'tool_calls' },
        ]
      : say('done'),
  )
}

test('F1 a reader that is a little slow gets every word and every report of a tool that reports beside them', async () => {
  const texts = Array.from({ length: 800 }, (_, index) => `word ${index} `)
  const busy = counted('busy', {
    execute: async (_, context) => {
      for (let n = 0; n < 800; n++) {
        context.progress(n)
        for (let turns = 0; turns < 3; turns++) await turn()
      }
      return 'ok'
    },
  })
  const { agent } = testAgent([], { model: besides(texts), tools: [busy.tool] })
  const events: AGUIEvent[] = []
  const run = agent.run(input([user('go')]))
  for (;;) {
    const read = await orStuck(run.next())
    if (read === 'stuck') expect.fail(`stuck after ${words(events).length} of 800 words`)
    if (read.done) break
    events.push(read.value)
    await turn()
  }
  expect(words(events).slice(0, 800)).toEqual(texts)
  expect(progress(events)).toEqual(Array.from({ length: 800 }, (_, n) => n))
  expect(last(events).type).toBe('RUN_FINISHED')
})

test('F1 a reader that leaves releases every writer that waits for it, not the last one alone', async () => {
  const began: string[] = []
  const ended: string[] = []
  let report = () => {}
  const stream = (name: string) =>
    tool({
      name,
      description: 'streams',
      input: z.looseObject({}),
      execute: async function* () {
        began.push(name)
        try {
          for (;;) yield 'x'.repeat(400)
        } finally {
          ended.push(name)
        }
      },
    })
  const reports = counted('reports', {
    execute: (_, { progress }) => {
      report = () => progress('x'.repeat(400))
      return new Promise(() => {})
    },
  })
  const tools = [stream('a'), stream('b'), reports.tool]
  const turns = [call(['c1', 'a', {}], ['c2', 'b', {}], ['c3', 'reports', {}]), say('ok')]
  const run = testAgent(turns, { tools }).agent.run(input([user('go')]))
  const idle = async () => {
    for (let turns = 0; turns < 20; turns++) await turn()
  }
  await run.next()
  await expect.poll(() => began.toSorted()).toEqual(['a', 'b'])
  // a and b wait for room; the reports take, one by one, what the reader makes of it
  for (const reads of [1, 2, 1, 1, 2, 1, 3, 1]) {
    await idle()
    for (let read = 0; read < reads; read++) await run.next()
    report()
  }
  await idle()
  await run.return?.()
  expect(await orStuck(run.next())).toEqual({ done: true, value: undefined })
  await expect.poll(() => ended.toSorted()).toEqual(['a', 'b'])
})

test.each<[string, () => unknown]>([
  ['a BigInt', () => ({ n: 1n })],
  [
    'a cycle',
    () => {
      const self: Record<string, unknown> = {}
      self.self = self
      return self
    },
  ],
  ['a function', () => () => {}],
])('F11 %s, which is no JSON, is an error of the tool that reported it; the run goes on', async (_, bad) => {
  const report = counted('report', {
    execute: (_, context) => {
      context.progress(bad())
      return 'ok'
    },
  })
  const stream = tool({
    name: 'stream',
    description: 'streams',
    input: z.looseObject({}),
    execute: async function* () {
      yield bad()
    },
  })
  const newAgent = () =>
    testAgent([call(['c1', 'report', {}], ['c2', 'stream', {}]), say('ok')], {
      tools: [report.tool, stream],
    }).agent
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input([user('go')])),
  })
  const text = await (await handleChat(newAgent(), request)).text()
  expect(text).toContain('RUN_FINISHED')
  const events = await collect(newAgent(), input([user('go')]))
  for (const result of results(events))
    expect(result).toMatchObject({
      content: { type: 'execution-error', reason: expect.stringContaining('is no JSON') },
      own: { outcome: 'error' },
    })
  expect(results(events)).toHaveLength(2)
  expect(last(events).type).toBe('RUN_FINISHED')
})

test('F11 what a tool changes after it was reported is not changed in the report', async () => {
  const state = { step: 0 }
  const { tool: reports } = counted('reports', {
    execute: (_, context) => {
      for (state.step = 1; state.step <= 3; state.step++) context.progress(state)
      return 'ok'
    },
  })
  const { agent } = testAgent([call(['c1', 'reports', {}]), say('ok')], { tools: [reports] })
  expect(progress(await collect(agent, input([user('go')])))).toEqual([{ step: 1 }, { step: 2 }, { step: 3 }])
})

test('F11 what a model says that is no JSON ends the run with RUN_ERROR, not with a broken stream', async () => {
  const failures: unknown[] = []
  const model = scriptedModel([
    [
      { type: 'text-delta', delta: 'a' },
      { type: 'text-end', metadata: { n: 1n } as never },
      { type: 'finish', reason: 'stop' },
    ],
  ])
  const agent = createAgent({ model, warn: () => {}, onError: (error) => void failures.push(error) })
  const request = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input([user('go')])),
  })
  const text = await (await handleChat(agent, request)).text()
  expect(text).toContain('RUN_ERROR')
  expect(String(failures[0])).toContain('BigInt')
})

test('F11 a reader that stalls holds a claimed tool for two minutes at most; its outcome is recorded', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    let ended = false
    const stream = tool({
      name: 'stream',
      description: 'streams',
      input: z.looseObject({}),
      needsApproval: true,
      execute: async function* () {
        for (let n = 0; n < 2000; n++) yield `${n} ${'x'.repeat(200)}`
        yield 'paid'
        ended = true
      },
    })
    const { agent } = testAgent([call(['c1', 'stream', {}]), say('ok')], { tools: [stream] })
    const { history, first } = await ask(agent)
    const resume = [answer(first, { approved: true })]
    const run = agent.run(input(history, { resume }))
    await run.next()
    const started = run.next()
    while ((await orStuck(started)) === 'stuck') await turn()
    for (let turns = 0; turns < 100; turns++) await turn()
    expect(ended).toBe(false)
    await vi.advanceTimersByTimeAsync(120_000)
    await vi.waitFor(() => expect(ended).toBe(true))
    const rest: AGUIEvent[] = []
    for await (const event of run) rest.push(event)
    expect(last(rest)).toMatchObject({ type: 'RUN_ERROR', code: 'reader-too-slow' })
    const again = await collect(agent, input(history, { resume }))
    expect(results(again)).toMatchObject([{ content: 'paid' }])
  } finally {
    vi.useRealTimers()
  }
})

const verdict = (interruptId: string): ResumeEntry => ({
  interruptId,
  status: 'resolved',
  payload: { approved: true },
})

test('F11 an answer to an id that nobody asked about is refused while the run is still open, and can be sent again', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const send = counted('send', { needsApproval: true })
    const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], { tools: [send.tool] })
    const given = input([user('go')])
    const context = { subject: 'ann' }
    const chat = new Request('http://localhost/', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(given),
    })
    const response = await handleChat(agent, chat, { context, live: true })
    const reader = (response.body ?? expect.fail()).getReader()
    const events: AGUIEvent[] = []
    const read = async () => {
      const { done, value } = await reader.read()
      for (const line of new TextDecoder().decode(value).split('\n'))
        if (line.startsWith('data: ')) events.push(JSON.parse(line.slice(6)))
      return done
    }
    while (requests(events).length === 0) await read()
    const post = async (entry: ResumeEntry) => {
      const { threadId, runId } = given
      const request = new Request('http://localhost/', {
        method: 'POST',
        headers: { 'content-type': 'application/json', host: 'localhost' },
        body: JSON.stringify({ threadId, runId, resume: [entry] }),
      })
      const answered = await answerResponse(agent, request, { context })
      return { status: answered.status, body: await answered.json() }
    }
    const unknown = post(verdict('approval_nobody'))
    for (let turns = 0; turns < 50; turns++) await turn()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(await orStuck(unknown)).toMatchObject({ status: 409, body: { error: { code: 'not-asked' } } })
    const [asked] = requests(events)
    expect(await post(verdict(asked?.approval.id ?? ''))).toMatchObject({ status: 200 })
    while (!(await read()));
    expect(types(events)).toContain('RUN_FINISHED')
    expect(send.runs).toHaveLength(1)
    // the run puts its timers away behind what it said last
    for (let turns = 0; turns < 50 && vi.getTimerCount() > 0; turns++) await turn()
    expect(vi.getTimerCount()).toBe(0)
  } finally {
    vi.useRealTimers()
  }
})

test('F11 a question whose time is over as it is asked takes no answer: a later one is refused, not swallowed', async () => {
  let now = Date.now()
  let asked = ''
  const ledger = memoryLedger({ now: () => now })
  const send = counted('send', { needsApproval: true })
  const answers = answerQueue()
  const model = {
    provider: 'test',
    id: 'test',
    async *stream({ messages }: { messages: readonly { role: string }[] }): AsyncGenerator<ModelEvent> {
      if (messages.at(-1)?.role === 'user') return yield* call(['c1', 'send', {}])
      // the run is still open when the answer comes
      late = answers.put(verdict(asked))
      for (let turns = 0; turns < 10; turns++) await turn()
      yield* say('ok')
    },
  }
  let late: Promise<unknown> | undefined
  const agent = createAgent({
    model,
    tools: [send.tool],
    now: () => now,
    warn: () => {},
    approvals: {
      secret: SECRET,
      expiresIn: 1,
      ledger: {
        ...ledger,
        issue: async (record: Parameters<typeof ledger.issue>[0]) => {
          const issued = await ledger.issue(record)
          asked = record.approvalId
          now += 10_000
          return issued
        },
      },
    },
  })
  await collect(agent, input([user('go')]), { answers })
  expect(await late).toMatchObject({ status: 'refused' })
  expect(send.runs).toEqual([])
})

test('F22 no more tools run at once than the limit says, whenever another one arrives', async () => {
  /** How many ran at once at most: one that runs, one that waits for it, and one that arrives after so many steps of the event loop. */
  const atOnce = async (steps: number) => {
    let running = 0
    let most = 0
    const busy = counted('busy', {
      execute: async () => {
        most = Math.max(most, ++running)
        for (let step = 0; step < 100; step++) await null
        running--
        return 'ok'
      },
    })
    const model = {
      provider: 'test',
      id: 'test',
      async *stream({ messages }: { messages: readonly { role: string }[] }): AsyncGenerator<ModelEvent> {
        if (messages.at(-1)?.role !== 'user') return yield* say('ok')
        for (const id of ['c1', 'c2', 'c3']) {
          for (let step = 0; id === 'c3' && step < steps; step++) await null
          yield { type: 'tool-call', id, name: 'busy', arguments: '{}' }
        }
        yield { type: 'finish', reason: 'tool_calls' }
      },
    }
    const agent = createAgent({ model, tools: [busy.tool], concurrency: 1, warn: () => {} })
    const events = await collect(agent, input([user('go')]))
    expect(results(events)).toHaveLength(3)
    return most
  }
  const most: number[] = []
  for (let steps = 0; steps < 200; steps++) most.push(await atOnce(steps))
  expect(most).toEqual(Array(200).fill(1))
})

test('F22 an event stream says that nobody may transform it', async () => {
  const body = JSON.stringify(input([user('go')]))
  const headers = { 'content-type': 'application/json' }
  const chat = await handleChat(
    testAgent([say('hi')]).agent,
    new Request('http://localhost/', { method: 'POST', headers, body }),
  )
  const sdk = await handleAiSdkChat(
    testAgent([say('hi')]).agent,
    new Request('http://localhost/', {
      method: 'POST',
      headers,
      body: JSON.stringify({
        id: 't',
        messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
      }),
    }),
  )
  for (const response of [chat, sdk]) {
    expect(response.status).toBe(200)
    expect(response.headers.get('cache-control')).toBe('no-store, no-transform')
    await response.text()
  }
})

/** A response over a connection that takes so many bytes in a second, and no more at once. */
class SlowResponse extends ServerResponse {
  text = ''
  over: 'ended' | 'cut' | undefined

  override write(chunk: string | Uint8Array) {
    const bytes = Buffer.from(chunk)
    this.text += bytes.toString('latin1')
    setTimeout(() => this.emit('drain'), (bytes.length / 50_000) * 1000)
    return false
  }

  override end() {
    this.over ??= 'ended'
    return this
  }

  override destroy() {
    this.over ??= 'cut'
    return this
  }
}

test('a reader of node:http whose connection is slow gets a frame that takes longer than stallTime', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const said = 'ü€😀'.repeat(500_000)
    const handler = toNodeHandler(testAgent([say(said)]).agent)
    const body = input([user('go')])
    const headers = { 'content-type': 'application/json' }
    const request = Object.assign(new IncomingMessage(new Socket()), {
      method: 'POST',
      url: '/',
      headers,
      body,
    })
    const response = new SlowResponse(request)
    void handler(request, response)
    while (response.over === undefined) {
      await turn()
      await vi.advanceTimersByTimeAsync(1000)
    }
    expect(response.over).toBe('ended')
    expect(Buffer.from(response.text, 'latin1').toString()).toContain(JSON.stringify(said))
  } finally {
    vi.useRealTimers()
  }
})

/** Its connection takes nothing, and what waits in it is too little for a `drain`. */
class StalledResponse extends ServerResponse {
  isCut = false

  override flushHeaders() {}

  override write() {
    return true
  }

  override end() {
    return this
  }

  override destroy() {
    this.isCut = true
    return this
  }
}

test.each([
  ['the end of a stream', 'POST'],
  ['a short reply', 'PUT'],
])('a reader of node:http that does not take %s is disconnected after stallTime', async (_, method) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const { agent } = testAgent([say('Well.')], { limits: { stallTime: 2000 } })
    const headers = { 'content-type': 'application/json' }
    const request = Object.assign(new IncomingMessage(new Socket()), {
      ...{ method, url: '/', headers },
      body: input([user('go')]),
    })
    const response = new StalledResponse(request)
    response.assignSocket(request.socket)
    const handled = toNodeHandler(agent)(request, response)
    for (let second = 0; second < 5 && !response.isCut; second++) {
      await turn()
      await vi.advanceTimersByTimeAsync(1000)
    }
    expect(response.isCut).toBe(true)
    await handled
  } finally {
    vi.useRealTimers()
  }
})
