import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AGUIEvent, ResumeEntry, RunAgentInput } from '@countersign/core'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  loadThread,
  type Model,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  tool,
} from '@countersign/server'
import { toNodeAnswerHandler, toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { full } from '../full.js'

const context = { subject: 'dora' }

/** Two processes over one set of stores, as far as they can be told apart in one. */
function setUp(more: Partial<AgentOptions> = {}) {
  const ran: string[] = []
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const send = tool({
    name: 'send',
    description: 'Sends a message.',
    input: z.object({ to: z.string() }),
    needsApproval: ({ to }) => to !== 'nobody',
    execute: ({ to }) => {
      ran.push(to)
      return 'sent'
    },
  })
  /** Replies in two parts, with the gate between them, or calls the tool for who is named in the message. */
  const model: Model = {
    id: 'test/m',
    async *stream({ messages }, { signal }) {
      const last = messages.at(-1)
      const text = last?.role === 'user' && last.content[0]?.type === 'text' ? last.content[0].text : ''
      const to = /^send to (\w+)$/.exec(text)?.[1]
      if (to !== undefined) {
        yield { type: 'tool-call', id: `call-${to}`, name: 'send', arguments: JSON.stringify({ to }) }
        yield { type: 'finish', reason: 'tool_calls' }
        return
      }
      yield { type: 'text-delta', delta: 'Once upon ' }
      await Promise.race([gate, once(signal, 'abort')])
      if (signal.aborted) return
      yield { type: 'text-delta', delta: 'a time.' }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const shared = { threads: memoryThreads(), runLog: memoryRunLog() }
  const approvals = { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger(), wait: 200 }
  const make = () =>
    createAgent({ model, tools: [send], ...shared, warn: () => {}, onError: () => {}, ...more, approvals })
  return { first: make(), second: make(), ran, letGo }
}

async function listen(agent: Agent): Promise<string> {
  const chat = toNodeHandler(agent, { context: () => context, live: true, goOnFor: 60_000 })
  const answers = toNodeAnswerHandler(agent, { context: () => context })
  const server: Server = createServer((request, response) => {
    void (request.url === '/answers' ? answers : chat)(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

let runs = 0
const input = (content: string | undefined, more: Partial<RunAgentInput> = {}): RunAgentInput => ({
  threadId: 't',
  runId: `run-${++runs}`,
  protocolVersion: '1.0',
  messages: content === undefined ? [] : [{ id: `u${runs}`, role: 'user', content }],
  tools: [],
  context: [],
  ...more,
})

const post = (url: string, body: unknown) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** The events of a response as they arrive. */
async function* eventsOf(response: Response): AsyncGenerator<AGUIEvent> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1]
      if (data !== undefined) yield JSON.parse(data)
    }
  }
}

async function read(
  events: AsyncIterable<AGUIEvent>,
  until?: (event: AGUIEvent) => boolean,
): Promise<AGUIEvent[]> {
  const list: AGUIEvent[] = []
  for await (const event of events) {
    list.push(event)
    if (until?.(event)) break
  }
  return list
}

/** An approval for each request among these events. */
function approve(events: readonly AGUIEvent[]): ResumeEntry[] {
  return events.flatMap((event) => {
    if (event.type !== 'CUSTOM' || event.name !== 'approval-requested') return []
    const { approval } = event.value as { approval: { id: string; token: string } }
    const metadata = { countersign: { token: approval.token } }
    return { interruptId: approval.id, status: 'resolved' as const, payload: { approved: true }, metadata }
  })
}

test('T35 after drain a new run gets 503 with Retry-After, the open one goes on to its end, then drain resolves', async () => {
  const { first, second, letGo } = setUp()
  const url = await listen(first)
  const open = await post(url, input('Tell me a story.'))
  let isDrained = false
  const drained = first.drain().then(() => {
    isDrained = true
  })
  const refused = await post(url, input('And another.', { threadId: 'other' }))
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5'])
  expect(await refused.json()).toMatchObject({ error: { code: 'shutting-down' } })
  expect(() => first.run(input('here'))).toThrow(expect.objectContaining({ code: 'shutting-down' }))
  await expect(first.generate(input('here'))).rejects.toMatchObject({ code: 'shutting-down' })
  await sleep(20)
  expect(isDrained).toBe(false)
  letGo()
  expect((await read(eventsOf(open))).at(-1)).toMatchObject({ outcome: { type: 'success' } })
  await drained
  await first.drain()
  const thread = await loadThread(second, { subject: 'dora', threadId: 't' })
  expect([thread?.run, thread?.messages.length]).toEqual([undefined, 2])
})

test.each([undefined, 0])(
  'T35 whoever closes all connections once drain resolves cuts off no reply (within %s)',
  async (within) => {
    const { first, letGo } = setUp()
    const chat = toNodeHandler(first, { context: () => context })
    const server = createServer((request, response) => void chat(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const replies = await Promise.all(
      Array.from({ length: 5 }, (_, i) => post(url, input('Tell me a story.', { threadId: `t${i}` }))),
    )
    // The code of docs/deploy.md.
    const closed = first.drain({ within }).then(() => {
      server.close()
      server.closeAllConnections()
    })
    if (within === undefined) letGo()
    for (const reply of replies)
      expect((await read(eventsOf(reply))).at(-1)).toMatchObject(
        within === undefined ? { outcome: { type: 'success' } } : { code: 'shutting-down' },
      )
    await closed
  },
)

test('T35 an answer for an open run is taken while the server drains', async () => {
  const { first, ran, letGo } = setUp()
  const url = await listen(first)
  letGo()
  const given = input('send to bob')
  const events = eventsOf(await post(url, given))
  const before: AGUIEvent[] = []
  while (approve(before).length === 0) {
    const next = await events.next()
    if (next.done) throw new Error('nothing was asked')
    before.push(next.value)
  }
  const drained = first.drain()
  const { threadId, runId } = given
  const answered = await post(`${url}/answers`, { threadId, runId, resume: approve(before) })
  expect(answered.status).toBe(200)
  expect((await read(events)).at(-1)).toMatchObject({ outcome: { type: 'success' } })
  await drained
  expect(ran).toEqual(['bob'])
})

test('T35 after `within`, a run is stopped with its text kept, and another process continues its thread at once', async () => {
  const { first, second, letGo } = setUp()
  let drained: Promise<void> | undefined
  const events = await read(first.run(input('Tell me a story.'), { context }), ({ type }) => {
    if (type === 'TEXT_MESSAGE_CONTENT') drained = first.drain({ within: 0 })
    return false
  })
  await drained
  expect(events.at(-1)).toMatchObject({
    ...{ type: 'RUN_ERROR', code: 'shutting-down' },
    metadata: { countersign: { retryable: true } },
  })
  const kept = await loadThread(second, { subject: 'dora', threadId: 't' })
  expect(kept?.run).toBeUndefined()
  expect(JSON.stringify(kept?.messages)).toContain('Once upon ')
  letGo()
  expect((await read(second.run(input(undefined), { context }))).at(-1)).toMatchObject({
    outcome: { type: 'success' },
  })
})

test('T35 a run that waits for its user ends with its open requests, and its answer runs the call once, in another process', async () => {
  const { first, second, ran, letGo } = setUp()
  const url = await listen(first)
  letGo()
  const response = await post(url, input('send to bob'))
  const events: AGUIEvent[] = []
  for await (const event of eventsOf(response)) {
    events.push(event)
    if (event.type === 'CUSTOM') void sleep(10).then(() => first.drain({ within: 0 }))
  }
  expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'interrupt' } })
  await first.drain()
  const resume = approve(events)
  await read(second.run(input(undefined, { resume }), { context }))
  await read(second.run(input(undefined, { resume }), { context }))
  expect(ran).toEqual(['bob'])
})

test('T35 a run that was created but not read when the server drains is refused, and its thread is free', async () => {
  const { first, second } = setUp()
  const given = input('Tell me a story.')
  const thread = await first.openThread(given, context)
  const run = first.run(given, { context, thread })
  await first.drain()
  expect((await read(run)).at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'shutting-down' })
  expect((await loadThread(second, { subject: 'dora', threadId: 't' }))?.run).toBeUndefined()
})

/** A small generator of random numbers below `n`. */
function random(seed: number): (n: number) => number {
  let state = seed
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state % n
  }
}

test.each(Array.from({ length: full ? 20 : 4 }, (_, i) => i + 1))(
  'T35 drain under load: every run finishes or is taken up by another process, and every approved call runs once, or says that it was stopped before it started (seed %i)',
  async (seed) => {
    const { first, second, ran, letGo } = setUp()
    const pick = random(seed)
    const url = await listen(first)
    const names = Array.from({ length: 40 }, (_, i) => `user${i}`)
    let begun = 0
    const lettingGo = 5 + pick(30)
    const draining = 10 + pick(30)
    /** One conversation: tells a story or sends a message; what the first process does not finish, the second does. */
    const converse = async (name: string) => {
      const isSending = pick(2) === 0
      const threadId = `thread-${name}`
      await sleep(pick(30))
      const given = input(isSending ? `send to ${name}` : 'Tell me a story.', { threadId })
      const response = await post(url, given)
      let resume: ResumeEntry[] = []
      let last: AGUIEvent | undefined
      if (++begun === lettingGo) letGo()
      if (begun === draining) void first.drain({ within: pick(40) })
      if (response.status === 200)
        for await (const event of eventsOf(response)) {
          last = event
          const [asked] = approve([event])
          if (asked === undefined) continue
          resume = [asked]
          const runId = given.runId
          // The answer may come too late for this run; then it goes to the other process.
          await sleep(pick(20))
          await post(`${url}/answers`, { threadId, runId, resume })
        }
      else expect(response.status).toBe(503)
      const isDone = last?.type === 'RUN_FINISHED' && last.outcome?.type === 'success'
      if (isDone) return 'finished'
      const messages = response.status === 200 ? [] : given.messages
      const again = await read(second.run(input(undefined, { threadId, messages, resume }), { context }))
      const end = again.at(-1)
      if (end?.type === 'RUN_FINISHED' && end.outcome?.type === 'interrupt')
        await read(second.run(input(undefined, { threadId, resume: approve(again) }), { context }))
      return 'taken up'
    }
    const work = Promise.all(names.map(converse))
    const ends = await work
    await first.drain()
    console.info(
      `seed ${seed}: ${ends.filter((end) => end === 'finished').length} of ${ends.length} finished in the first process`,
    )
    expect(new Set(ran).size).toBe(ran.length)
    for (const name of names) {
      const thread = await loadThread(second, { subject: 'dora', threadId: `thread-${name}` })
      expect(thread?.run).toBeUndefined()
      const isSending = JSON.stringify(thread?.messages[0]).includes('send to')
      // The process may be stopped between the claim of an approved call and its start: it never starts then.
      const isTold = JSON.stringify(thread?.messages).includes('It was not run: the run was stopped')
      expect(ran.includes(name) !== isTold, name).toBe(isSending)
      expect(JSON.stringify(thread?.messages.at(-1)), name).toContain('a time.')
    }
  },
)
