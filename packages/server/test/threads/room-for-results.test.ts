import { type AGUIEvent, getCountersignMetadata, type Message, type RunAgentInput } from '@countersign/core'
import {
  type Agent,
  createAgent,
  type ModelEvent,
  memoryLedger,
  memoryThreads,
  scriptedModel,
  type ThreadStore,
} from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { call, counted, SECRET, say, user } from '../support.js'

// No call runs whose result would not fit into its thread, in messages or in bytes.

/** Runs of one user in one conversation, each with an id of its own. */
function runsOf(agent: Agent) {
  let runs = 0
  return async (messages: Message[], more: Partial<RunAgentInput> = {}): Promise<AGUIEvent[]> => {
    const input = { threadId: 't', runId: `run-${++runs}`, messages, protocolVersion: '1.0', ...more }
    const events: AGUIEvent[] = []
    for await (const event of agent.run(input, { context: { subject: 'ann' } })) events.push(event)
    return events
  }
}

function setUp(
  maxMessages: number,
  ...calls: readonly (readonly [id: string, name: string, input: unknown])[]
) {
  const store = memoryThreads({ maxMessages })
  let refused = 0
  let end = () => {}
  // The result of a call that waits for the refusal comes while the store is asked for the second time.
  const waited = calls.some(([, , input]) => Object(input).waits)
    ? new Promise<void>((resolve) => (end = resolve))
    : undefined
  const threads: ThreadStore = {
    ...store,
    id: 'counting',
    async append(key, change) {
      if (refused > 0) await waited
      const result = await store.append(key, change)
      if (result.status === 'full') refused++
      return result
    },
  }
  const send = counted('send', { needsApproval: true })
  const look = counted('look', {
    execute: async ({ parts = [], waits }, { write }) => {
      for (const name of [parts].flat()) await write({ type: 'data', name: String(name), data: 1 })
      if (waits) {
        await vi.waitUntil(() => refused > 0)
        setTimeout(end, 20)
      }
      return 'seen'
    },
  })
  const agent = createAgent({
    model: scriptedModel([call(...calls), say('Done.'), say('Done.')]),
    tools: [send.tool, look.tool],
    threads,
    approvals: { secret: SECRET, ledger: memoryLedger() },
    warn: () => {},
    onError: () => {},
  })
  const run = runsOf(agent)
  const roles = async () =>
    (await threads.load({ owner: 'ann', threadId: 't' }))?.messages.map(
      ({ message }): string => JSON.parse(message).role,
    )
  return { run, roles, ran: () => send.runs.length + look.runs.length }
}

const full = { type: 'RUN_ERROR', code: 'thread-full' }

test('a call whose result would not fit into the thread is not asked about, and the run says that the thread is full', async () => {
  const { run, roles, ran } = setUp(2, ['c1', 'send', {}])
  const events = await run([user('Send it.')])
  expect(events.at(-1)).toMatchObject(full)
  expect(JSON.stringify(events)).not.toContain('approval-requested')
  expect(await roles()).toEqual(['user'])
  expect(ran()).toBe(0)
})

test('a call without approval whose result would not fit into the thread does not run', async () => {
  const { run, roles, ran } = setUp(2, ['c1', 'look', {}])
  expect((await run([user('Look.')])).at(-1)).toMatchObject(full)
  expect(await roles()).toEqual(['user'])
  expect(ran()).toBe(0)
})

test('of two calls of which only one result fits, the second is not asked about, and the run says that the thread is full', async () => {
  const { run, ran } = setUp(3, ['c1', 'send', {}], ['c2', 'send', {}])
  const events = await run([user('Send both.')])
  expect(events.at(-1)).toMatchObject(full)
  expect(JSON.stringify(events)).not.toContain('"toolCallId":"c2","toolName"')
  expect(ran()).toBe(0)
})

test('the room for the result of an approved call is kept until the answer: it is stored, although the reply does not fit', async () => {
  const { run, roles, ran } = setUp(3, ['c1', 'send', {}])
  const last = (await run([user('Send it.')])).at(-1)
  const outcome = last?.type === 'RUN_FINISHED' ? last.outcome : undefined
  const interruptId = (outcome?.type === 'interrupt' && outcome.interrupts[0]?.id) || ''
  const resume = [{ interruptId, status: 'resolved' as const, payload: { approved: true } }]
  expect((await run([], { resume })).at(-1)).toMatchObject(full)
  expect(await roles()).toEqual(['user', 'assistant', 'tool'])
  expect(ran()).toBe(1)
  expect((await run([], { resume })).at(-1)).toMatchObject(full)
  expect(ran()).toBe(1)
})

for (const waits of [false, true])
  test(`data parts take no room that was kept for the result of their call${waits ? ', also if they are to be stored before it' : ''}: it is stored without them, and the run says that the thread is full`, async () => {
    const { run, roles, ran } = setUp(3, ['c1', 'look', { parts: ['map', 'list'], waits }])
    expect((await run([user('Look.')])).at(-1)).toMatchObject(full)
    expect(await roles()).toEqual(['user', 'assistant', 'tool'])
    expect(JSON.stringify(await run([]))).not.toContain('interrupted')
    expect(ran()).toBe(1)
  })

test('a thread that is full of data parts takes the results of all calls that run', async () => {
  const { run, roles, ran } = setUp(4, ['c1', 'look', { parts: ['map'] }], ['c2', 'look', { waits: true }])
  expect((await run([user('Look twice.')])).at(-1)).toMatchObject(full)
  expect(await roles()).toEqual(['user', 'assistant', 'tool', 'tool'])
  expect(ran()).toBe(2)
})

const KB = 1000

/** `load` is a tool that returns as many characters as it is told; `save` does the same once it is approved. */
function setUpBytes(
  threads: ThreadStore,
  resultSize: number,
  turns: readonly ModelEvent[][],
  meanwhile = async () => '',
) {
  const seen: string[] = []
  const execute = async ({ size }: Readonly<Record<string, unknown>>) => {
    seen.push(await meanwhile())
    return 'x'.repeat(Number(size))
  }
  const load = counted('load', { execute })
  const save = counted('save', { execute, needsApproval: true })
  const agent = createAgent({
    model: scriptedModel([...turns, say('Done.'), say('Done.')]),
    tools: [load.tool, save.tool],
    threads,
    limits: { resultSize },
    approvals: { secret: SECRET, ledger: memoryLedger() },
    warn: () => {},
    onError: () => {},
  })
  const run = runsOf(agent)
  const results = async () =>
    (await threads.load({ owner: 'ann', threadId: 't' }))?.messages.flatMap(({ message }) => {
      const { role, content, metadata }: Message = JSON.parse(message)
      return role === 'tool' ? [getCountersignMetadata(metadata).code ?? String(content).length] : []
    })
  return { run, results, seen, ran: () => load.runs.length + save.runs.length }
}

const approving = (events: readonly AGUIEvent[]) => {
  const last = events.at(-1)
  const outcome = last?.type === 'RUN_FINISHED' ? last.outcome : undefined
  const interrupts = outcome?.type === 'interrupt' ? outcome.interrupts : []
  return interrupts.map(({ id }) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload: { approved: true },
  }))
}

for (const name of ['load', 'save'])
  test(`a call (${name}) does not run, and is not asked about, where the largest result that it may give would not fit into the bytes of the thread`, async () => {
    const threads = memoryThreads({ maxThreadBytes: 300 * KB })
    const turn = (id: string) => call([id, name, { size: 90 * KB }])
    const { run, ran, results } = setUpBytes(threads, 100 * KB, [turn('c1'), say('Done.'), turn('c2')])
    const asked = approving(await run([user('x'.repeat(100 * KB))]))
    if (asked.length > 0) await run([], { resume: asked })
    expect([ran(), await results()]).toEqual([1, [90 * KB]])
    const events = await run([user('Again.')])
    expect(events.at(-1)).toMatchObject(full)
    expect(JSON.stringify(events)).not.toContain('approval-requested')
    expect([ran(), await results()]).toEqual([1, [90 * KB]])
  })

test('a call of a later step does not run either where its largest result would not fit', async () => {
  const threads = memoryThreads({ maxThreadBytes: 200 * KB })
  const [first, second] = ['c1', 'c2'].map((id) => call([id, 'load', { size: 90 * KB }]))
  const { run, ran, results } = setUpBytes(threads, 100 * KB, [first ?? [], second ?? []])
  expect((await run([user('Load twice.')])).at(-1)).toMatchObject(full)
  expect([ran(), await results()]).toEqual([1, [90 * KB]])
})

test('an approved call does not run if its owner has filled the store meanwhile: the answer counts once there is room', async () => {
  const threads = memoryThreads({ maxBytesPerOwner: 400 * KB })
  const { run, ran, results } = setUpBytes(threads, 200 * KB, [call(['c1', 'save', { size: 190 * KB }])])
  const resume = approving(await run([user('Save.')]))
  const other = { owner: 'ann', threadId: 'other' }
  const large = JSON.stringify('x'.repeat(250 * KB))
  await threads.append(other, { version: 0, messages: [{ id: 'm', parent: null, message: large }] })
  expect((await run([], { resume })).at(-1)).toMatchObject(full)
  expect(ran()).toBe(0)
  await threads.remove(other)
  expect((await run([], { resume })).at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
  expect([ran(), await results()]).toEqual([1, [190 * KB]])
})

test('while a call runs, another conversation of its owner does not take the room for its result, and has it afterwards', async () => {
  const threads = memoryThreads({ maxBytesPerOwner: 600 * KB })
  const other = { owner: 'ann', threadId: 'other' }
  const large = [{ id: 'm', parent: null, message: JSON.stringify('x'.repeat(450 * KB)) }]
  const meanwhile = async () => (await threads.append(other, { version: 0, messages: large })).status
  const { run, results, seen } = setUpBytes(
    threads,
    200 * KB,
    [call(['c1', 'load', { size: 90 * KB }])],
    meanwhile,
  )
  expect((await run([user('Load.')])).at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
  expect(await results()).toEqual([90 * KB])
  expect(seen).toEqual(['full'])
  expect(await meanwhile()).toBe('appended')
})

test('text that arrives while a call runs may take of the room for its result, and does not end the run', async () => {
  const store = memoryThreads({ maxThreadBytes: 145 * KB })
  let refused = 0
  const threads: ThreadStore = {
    ...store,
    id: 'counting',
    async append(key, change) {
      const result = await store.append(key, change)
      if (result.status === 'full') refused++
      return result
    },
  }
  const meanwhile = async () => String(await vi.waitUntil(() => refused > 0))
  const [ended, ...begun] = call(['c1', 'load', { size: 90 * KB }]).toReversed()
  const text = { type: 'text-delta', delta: 'x'.repeat(20 * KB) } as const
  const turn = [...begun.toReversed(), text, ended].flatMap((event) => event ?? [])
  const { run, ran, results } = setUpBytes(threads, 100 * KB, [turn], meanwhile)
  expect((await run([user('Load.')])).at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
  expect([ran(), await results()]).toEqual([1, [90 * KB]])
})

test('of many calls at once, 16 get room for the largest result, the others for a small one', async () => {
  const calls = Array.from({ length: 24 }, (_, at) => [`c${at}`, 'load', { size: 90 * KB }] as const)
  const { run, ran, results } = setUpBytes(memoryThreads({ maxThreadBytes: 2500 * KB }), 100 * KB, [
    call(...calls),
  ])
  expect((await run([user('Load all.')])).at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
  expect([ran(), await results()]).toEqual([24, Array(24).fill(90 * KB)])
})

test('a result of more than half of maxMessageBytes is too large for its conversation, which goes on', async () => {
  const threads = memoryThreads({ maxMessageBytes: 64 * KB })
  const { run, results } = setUpBytes(threads, 2000 * KB, [call(['c1', 'load', { size: 100 * KB }])])
  expect((await run([user('Load.')])).at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
  expect(await results()).toEqual(['result-too-large'])
})
