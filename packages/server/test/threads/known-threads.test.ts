import type { AGUIEvent, Message, RunAgentInput } from '@countersign/core'
import {
  type Agent,
  createAgent,
  loadThread,
  type Model,
  type ModelEvent,
  memoryLedger,
  memoryThreads,
  type PrepareStep,
  type ThreadStore,
  tool,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { full } from '../../../../test/full.js'
import { randomFrom } from '../../../../test/random.js'

// What an agent remembers of stored conversations between two requests.

const secret = 'only for this test, 32 bytes long!'
const context = { subject: 'ann' }
const key = { owner: 'ann', threadId: 't' }
const user = (id: string, content = `message ${id}`): Message => ({ id, role: 'user', content })
const text: readonly ModelEvent[] = [{ type: 'text-delta', delta: 'Yes.' }]

let runs = 0
const input = (messages: Message[], more: Partial<RunAgentInput> = {}): RunAgentInput => ({
  ...{ threadId: 't', runId: `run-${++runs}`, messages, tools: [], context: [], protocolVersion: '1.0' },
  ...more,
})

async function all(events: AsyncIterable<AGUIEvent>): Promise<AGUIEvent[]> {
  const list: AGUIEvent[] = []
  for await (const event of events) list.push(event)
  return list
}

const plan = tool({
  name: 'plan',
  description: 'Shows the plan.',
  input: z.object({ n: z.number() }),
  execute: async ({ n }, { write }) => {
    await write({ type: 'data', id: 'plan', name: 'plan', data: { n } })
    return n
  },
})

const remove = tool({
  name: 'remove',
  description: 'Removes a file.',
  input: z.object({ path: z.string() }),
  needsApproval: true,
  execute: ({ path }) => path,
})

/** A store as one more process has it, and how many messages were loaded from it. */
function processOf(threads: ThreadStore) {
  const loaded: number[] = []
  const own: ThreadStore = {
    ...threads,
    async load(of, after) {
      const thread = await threads.load(of, after)
      loaded.push(thread?.messages.length ?? 0)
      return thread
    },
  }
  return { threads: own, loaded }
}

interface Setup {
  readonly threads?: ThreadStore
  readonly cachedThreadBytes?: number
  readonly say?: (messages: readonly { readonly role: string }[]) => readonly ModelEvent[]
  readonly prepareStep?: PrepareStep
  readonly generateId?: () => string
}

function setUp({ threads = memoryThreads(), cachedThreadBytes, say = () => text, ...options }: Setup = {}) {
  const seen: string[] = []
  const model: Model = {
    id: 'test/model',
    async *stream({ messages }) {
      seen.push(JSON.stringify(messages))
      yield* say(messages)
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const { threads: own, loaded } = processOf(threads)
  const agent = createAgent({
    ...options,
    ...{ model, threads: own, tools: [plan, remove], approvals: { secret, ledger: memoryLedger() } },
    ...(cachedThreadBytes !== undefined && { limits: { cachedThreadBytes } }),
    warn: () => {},
  })
  const ask = (id: string, more: Partial<RunAgentInput> = {}) =>
    all(agent.run(input([user(id)], more), { context }))
  return { agent, ask, seen, loaded, threads }
}

test('T39 the second request of a conversation loads only what was stored since the first', async () => {
  const { ask, seen, loaded } = setUp()
  for (const id of ['u1', 'u2', 'u3', 'u4']) await ask(id)
  // Of each request: the message of the user and the reply of the one before.
  expect(loaded).toEqual([0, 2, 2, 2])
  expect(JSON.parse(seen[3] ?? '')).toHaveLength(7)
})

test('the least recently used conversations are dropped, and a larger one than the limit is never kept', async () => {
  // A message and its reply count as about 240 bytes.
  const { ask, loaded } = setUp({ cachedThreadBytes: 600 })
  for (const threadId of ['a', 'b', 'a', 'b']) await ask(`u${loaded.length}`, { threadId })
  expect(loaded, 'the first requests load nothing that could be kept').toEqual([0, 0, 2, 2])
  await ask('x', { threadId: 'c' })
  await ask('y', { threadId: 'c' })
  await ask('z', { threadId: 'a' })
  expect(loaded.slice(4), 'a was dropped for c').toEqual([0, 2, 4])
  for (const id of ['v', 'w']) await ask(id, { threadId: 'a' })
  expect(loaded.slice(7), 'a became too large').toEqual([2, 8])
  const none = setUp({ cachedThreadBytes: 0 })
  for (const id of ['u1', 'u2', 'u3']) await none.ask(id)
  expect(none.loaded).toEqual([0, 2, 4])
})

test('a conversation that was removed is not remembered, and one begun again has only its own messages', async () => {
  const { ask, agent, threads, seen } = setUp()
  for (const id of ['u1', 'u2']) await ask(id)
  await agent.threads?.remove(key)
  await new Promise((resolve) => setTimeout(resolve, 5))
  for (const id of ['u3', 'u3b']) await ask(id)
  // By another process.
  await threads.remove(key)
  await new Promise((resolve) => setTimeout(resolve, 5))
  const other = setUp({ threads })
  for (const id of ['u4', 'u5', 'u6']) await other.ask(id)
  await ask('u7')
  expect(JSON.parse(seen[2] ?? '')).toHaveLength(1)
  expect(seen[4]).toMatch(/u4.*u5.*u6.*u7/)
  expect(seen[4]).not.toMatch(/u[123]/)
})

test('what prepareStep and tools do with messages changes no later request', async () => {
  const spoil = (messages: readonly unknown[]) => {
    for (const message of messages as { content: unknown; toolCalls?: unknown[] }[]) {
      message.content = 'spoiled'
      message.toolCalls?.push('spoiled')
    }
  }
  const careless = tool({
    name: 'careless',
    description: 'Changes what it was given.',
    input: z.object({}),
    execute: (_, { messages }) => spoil(messages),
  })
  const seen: string[] = []
  const model: Model = {
    id: 'test/model',
    async *stream({ messages }) {
      seen.push(JSON.stringify(messages))
      if (messages.at(-1)?.role === 'user')
        yield { type: 'tool-call', id: `c${seen.length}`, name: 'careless', arguments: '{}' }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const agent = createAgent({
    ...{ model, tools: [careless], threads: memoryThreads(), warn: () => {} },
    approvals: { secret, ledger: memoryLedger() },
    prepareStep: ({ messages }) => {
      spoil(messages)
      return undefined
    },
  })
  for (const id of ['u1', 'u2', 'u3']) await all(agent.run(input([user(id)]), { context }))
  expect(seen).toHaveLength(6)
  const last = JSON.parse(seen[4] ?? '')
  expect(last.map(({ role }: Message) => role)).toEqual([
    ...['user', 'assistant', 'tool', 'user', 'assistant', 'tool', 'user'],
  ])
  expect(seen[4]).not.toContain('"spoiled"')
})

test('T32 a data part of an earlier turn is replaced in its place', async () => {
  let calls = 0
  const { ask, agent } = setUp({
    say: (messages) =>
      messages.at(-1)?.role === 'user' && calls++ !== 1
        ? [{ type: 'tool-call', id: `c${calls}`, name: 'plan', arguments: JSON.stringify({ n: calls }) }]
        : text,
  })
  const shown = async () => (await loadThread(agent, { subject: 'ann', threadId: 't' }))?.messages ?? []
  await ask('u1')
  const [before] = [(await shown()).map(({ id }) => id)]
  await ask('u2')
  await ask('u3')
  const after = await shown()
  expect(after.map(({ id }) => id).slice(0, before.length)).toEqual(before)
  const parts = after.flatMap(({ parts }) => parts).filter(({ type }) => type === 'data')
  expect(parts).toEqual([{ type: 'data', name: 'plan', data: { n: 3 } }])
  expect(after.filter(({ role }) => role === 'user')).toHaveLength(3)
})

test('no message gets the id of a stored one, even if the generator begins again', async () => {
  const threads = memoryThreads()
  const restarted = () => {
    let ids = 0
    return setUp({ threads, generateId: () => `m${++ids}` })
  }
  await restarted().ask('u1')
  await restarted().ask('u2')
  const { ask, seen } = restarted()
  await ask('u3')
  const stored = (await threads.load(key))?.messages ?? []
  expect(stored.map(({ id }) => id)).toEqual(['u1', 'm1', 'u2', 'm1-2', 'u3', 'm1-3'])
  expect(JSON.parse(seen[0] ?? '')).toHaveLength(5)
})

const first = Number(process.env.SEED ?? 20261125)
const rounds = Number(process.env.ROUNDS ?? (full ? 200 : 6))

/** Two processes with one store: what their models saw, how each run ended, and what is stored in the end. */
async function play(seed: number, cachedThreadBytes: number | undefined) {
  const random = randomFrom(seed)
  const below = (n: number) => Math.floor(random() * n)
  const pick = <T>(items: readonly T[]): T | undefined => items[below(items.length)]
  let clock = 0
  let ids = 0
  const threads = memoryThreads({ now: () => ++clock })
  const now = () => Date.UTC(2026, 10, 25)
  const ledger = memoryLedger({ now })
  const log: string[] = []
  const model: Model = {
    id: 'test/model',
    async *stream({ messages }) {
      log.push(JSON.stringify(messages))
      const call = { type: 'tool-call', id: `c${++ids}` } as const
      const kind = messages.at(-1)?.role === 'user' ? below(3) : 2
      if (kind === 0) yield { ...call, name: 'plan', arguments: JSON.stringify({ n: ids }) }
      else if (kind === 1) yield { ...call, name: 'remove', arguments: '{"path":"a"}' }
      else yield { type: 'text-delta', delta: `Reply ${ids}.` }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const processes = [processOf(threads), processOf(threads)]
  const agents = processes.map(
    ({ threads: own }): Agent =>
      createAgent({
        ...{ model, tools: [plan, remove], threads: own, now, warn: () => {} },
        ...(cachedThreadBytes !== undefined && { limits: { cachedThreadBytes } }),
        approvals: { secret, ledger, generateId: () => `approval_${String(++ids).padStart(32, '0')}` },
        generateId: () => `m${++ids}`,
        prepareStep: ({ messages }) => {
          log.push(JSON.stringify(messages))
          return undefined
        },
      }),
  )
  const keys = ['ann', 'bob'].flatMap((owner) => ['t', 'u'].map((threadId) => ({ owner, threadId })))
  const asked = new Map<unknown, string>()
  for (let step = 0; step < 40; step++) {
    const [at, agent] = [pick(keys), pick(agents)]
    if (at === undefined || agent === undefined) break
    const subject = { subject: at.owner }
    const known = (await threads.load(at))?.messages ?? []
    const users = known.filter(({ message }) => message.includes('"role":"user"'))
    const run = async (messages: Message[], more: Partial<RunAgentInput> = {}) => {
      const events = await all(
        agent.run({ ...input(messages), threadId: at.threadId, ...more }, { context: subject }),
      )
      const end = events.at(-1)
      log.push(end?.type === 'RUN_ERROR' ? `error ${end.code}` : `${end?.type}`)
      const outcome = end?.type === 'RUN_FINISHED' ? end.outcome : undefined
      if (outcome?.type === 'interrupt') asked.set(at, outcome.interrupts[0]?.id ?? '')
    }
    const page = (countersign: Record<string, unknown>) => ({ forwardedProps: { countersign } })
    const interruptId = asked.get(at)
    const chosen = below(12)
    if (chosen < 2 && interruptId !== undefined) {
      asked.delete(at)
      await run([], {
        resume: [{ interruptId, status: 'resolved', payload: { approved: random() < 0.7 } }],
      })
    } else if (chosen === 2) await run([user(`e${step}`)], page({ edit: pick(users)?.id }))
    else if (chosen === 3) await run([], page({ regenerate: pick(users)?.id }))
    else if (chosen === 4)
      await agent
        .showVersion({ threadId: at.threadId, messageId: pick(known)?.id ?? '' }, subject)
        .catch((error: Error) => log.push(error.message))
    else if (chosen === 5) await pick([agent.threads, threads])?.remove(at)
    else if (chosen === 6) await agent.threads?.rename(at, `title ${step}`)
    else await run([user(`u${step}`)])
  }
  const stored = await Promise.all(keys.map((at) => threads.load(at)))
  const kept = stored.map((thread) => thread && [thread.head, thread.title, thread.messages])
  const loaded = processes.flatMap((one) => one.loaded).reduce((sum, one) => sum + one, 0)
  const plain = JSON.stringify([log, kept]).replace(/(token\W+)[\w.-]+/g, '$1')
  return { plain, loaded, calls: log.length }
}

test('T39 on random requests, edits, versions, answers and removals of two processes, the model sees what it sees without a cache', async () => {
  let [kept, whole, calls] = [0, 0, 0]
  for (let seed = first; seed < first + rounds; seed++) {
    const without = await play(seed, 0)
    const cached = await play(seed, undefined)
    expect(cached.plain === without.plain, `SEED=${seed} ROUNDS=1`).toBe(true)
    const little = await play(seed, 3000)
    expect(little.plain === without.plain, `SEED=${seed} ROUNDS=1, little room`).toBe(true)
    kept += cached.loaded
    whole += without.loaded
    calls += cached.calls
  }
  console.info(`${calls} entries compared; ${kept} messages loaded instead of ${whole}`)
  expect(kept).toBeLessThan(whole / 2)
})
