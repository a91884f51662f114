import { setTimeout as sleep } from 'node:timers/promises'
import {
  createAgent,
  loadThread,
  memoryLedger,
  memoryThreads,
  scriptedModel,
  type ThreadStore,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { answer, ask, call, collect, counted, input, SECRET, testAgent } from '../support.js'

// agent.recover(): what happens to several abandoned threads, of which some can't be recovered.

const secret = 'only for this test, 32 bytes long!'

/** Threads whose runs were abandoned with an open call. `changed`: what of the store the agent sees otherwise. */
async function abandon(
  ids: readonly string[],
  changed: (threads: ThreadStore) => Partial<ThreadStore> = () => ({}),
) {
  const threads = memoryThreads()
  const warnings: string[] = []
  const agent = createAgent({
    model: scriptedModel(() => [{ type: 'finish', reason: 'stop' }]),
    threads: { ...threads, id: 'changed', ...changed(threads) },
    approvals: { secret, ledger: memoryLedger() },
    warn: (message) => void (message.startsWith('The run of') && warnings.push(message)),
    onError: () => {},
  })
  for (const threadId of ids) {
    const key = { owner: 'ann', threadId }
    const run = { runId: 'dead', holder: 'dead process' }
    const call = { id: 'c1', type: 'function', function: { name: 'pay', arguments: '{}' } }
    const messages = [
      { id: 'u1', role: 'user', content: 'Hi' },
      { id: 'a1', role: 'assistant', toolCalls: [call] },
    ]
    await threads.hold(key, run, 1)
    await threads.append(key, {
      version: 0,
      run,
      messages: messages.map((message, at) => ({
        id: message.id,
        parent: messages[at - 1]?.id ?? null,
        message: JSON.stringify(message),
      })),
      head: 'a1',
    })
    // The oldest is recovered first.
    await sleep(5)
  }
  const states = () =>
    Promise.all(
      ids.map(async (threadId) => {
        const thread = await loadThread({ threads }, { subject: 'ann', threadId })
        const [call] = thread?.messages.at(-1)?.parts.filter((part) => part.type === 'tool-call') ?? []
        return thread && `${thread.run ? 'held' : 'free'} ${call?.state}`
      }),
    )
  return { agent, threads, warnings, states }
}

test('recover() goes on after a thread that cannot be read: it reports it, counts the others, and finds it again the next time', async () => {
  let isBroken = true
  const { agent, warnings, states } = await abandon(['one', 'broken', 'three'], (threads) => ({
    load: (key, after) =>
      isBroken && key.threadId === 'broken'
        ? Promise.reject(new SyntaxError('no JSON'))
        : threads.load(key, after),
  }))
  expect(await agent.recover()).toBe(2)
  expect(warnings).toEqual(['The run of the thread "broken" could not be recovered.'])
  expect(await states()).toEqual(['free error', expect.stringContaining('held'), 'free error'])
  isBroken = false
  await sleep(5)
  expect(await agent.recover()).toBe(1)
  expect(await states()).toEqual(['free error', 'free error', 'free error'])
})

test('recover() with a limit goes on behind the oldest threads, which cannot be recovered', async () => {
  const { agent, warnings, states } = await abandon(['broken', 'locked', 'three', 'four'], (threads) => ({
    load: (key, after) =>
      /broken|locked/.test(key.threadId)
        ? Promise.reject(new SyntaxError('no JSON'))
        : threads.load(key, after),
  }))
  expect(await agent.recover({ limit: 1 })).toBe(1)
  expect(warnings).toHaveLength(2)
  const held = expect.stringContaining('held')
  expect(await states()).toEqual([held, held, 'free error', held])
  expect(await agent.recover({ limit: 1 })).toBe(1)
  expect(await states()).toEqual([held, held, 'free error', 'free error'])
})

test('recover() ends the hold of a process that died before it had stored anything', async () => {
  const { agent, threads, warnings } = await abandon(['one'])
  await threads.hold({ owner: 'ann', threadId: 'never begun' }, { runId: 'r', holder: 'dead process' }, 1)
  await sleep(5)
  expect(await agent.recover()).toBe(1)
  await sleep(5)
  expect([await threads.abandoned(10), warnings]).toEqual([[], []])
})

test('recover() takes a limit from 1 to 1,000', async () => {
  const { agent } = await abandon([])
  expect(await agent.recover({ limit: 1000 })).toBe(0)
  for (const limit of [0, 1001, 1.5])
    await expect(agent.recover({ limit })).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringContaining('an integer from 1 to 1000'),
    })
})

test('recover() goes on after a thread whose calls cannot be closed', async () => {
  const { agent, warnings, states } = await abandon(['one', 'broken', 'three'], (threads) => ({
    append: (key, change) =>
      key.threadId === 'broken' ? Promise.reject(new Error('down')) : threads.append(key, change),
  }))
  expect(await agent.recover()).toBe(2)
  expect(warnings).toEqual(['The run of the thread "broken" could not be recovered.'])
  expect((await states()).filter((state) => state === 'free error')).toHaveLength(2)
})

test('recover() says nothing of a thread that another process takes, or its user removes, meanwhile', async () => {
  const { agent, warnings } = await abandon(['taken', 'removed', 'three'], (threads) => ({
    hold: async (key, ...rest) => {
      if (key.threadId === 'taken') await threads.hold(key, { runId: 'other', holder: 'other' }, 60_000)
      return threads.hold(key, ...rest)
    },
    load: async (key, after) => {
      if (key.threadId === 'removed') await threads.remove(key)
      return threads.load(key, after)
    },
  }))
  expect(await agent.recover()).toBe(1)
  expect(warnings).toEqual([])
})

test('recover() stops when the server shuts down', async () => {
  const { agent, warnings } = await abandon(['one', 'two'])
  await agent.drain()
  await expect(agent.recover()).rejects.toMatchObject({ code: 'shutting-down' })
  expect(warnings).toEqual([])
})

test('recover() leaves a thread abandoned while an approved call of it may still run, and closes the call as interrupted once its lease is over', async () => {
  let [isDead, leaseIsOver] = [false, 0]
  const threads = memoryThreads({ now: () => Date.now() + (isDead ? 60_000 : 0) })
  const ledger = memoryLedger({ now: () => Date.now() + leaseIsOver })
  const never = new Promise<never>(() => {})
  let started = () => {}
  const hasStarted = new Promise<void>((resolve) => {
    started = resolve
  })
  const pay = counted('pay', {
    needsApproval: true,
    execute: () => {
      started()
      return never
    },
  })
  const agentOf = (changed: Partial<ThreadStore>) =>
    testAgent([call(['c1', 'pay', {}])], {
      tools: [pay.tool],
      threads: { ...threads, id: 'changed', ...changed },
      approvals: { secret: SECRET, ledger },
    }).agent
  const context = { subject: 'ann' }
  // From its death on, the process changes nothing.
  const dying = agentOf({
    hold: (...args) => (isDead ? never : threads.hold(...args)),
    append: (...args) => (isDead ? never : threads.append(...args)),
    release: (...args) => (isDead ? never : threads.release(...args)),
  })
  const { first } = await ask(dying, {}, { context })
  void collect(dying, input([], { resume: [answer(first, { approved: true })] }), { context })
  await hasStarted
  isDead = true

  const agent = agentOf({})
  const stateOf = async () => {
    const thread = await loadThread({ threads }, { ...context, threadId: 'thread' })
    return thread?.messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-call'))[0]
  }
  expect(await agent.recover()).toBe(0)
  expect(await threads.abandoned(9)).toHaveLength(1)
  leaseIsOver = 60_000
  expect(await agent.recover()).toBe(1)
  expect(await stateOf()).toMatchObject({ state: 'error' })
  expect(JSON.stringify(await threads.load({ owner: 'ann', threadId: 'thread' }))).toContain('interrupted')
  expect(await agent.recover()).toBe(0)
  expect(pay.runs).toHaveLength(1)
})

test('recover() leaves an approval request open whose tool only another process has', async () => {
  const [threads, context] = [memoryThreads(), { subject: 'ann' }]
  const pay = counted('pay', { needsApproval: true })
  const approvals = { secret: SECRET, ledger: memoryLedger() }
  const { agent } = testAgent([call(['c1', 'pay', {}])], { tools: [pay.tool], threads, approvals })
  const { first } = await ask(agent, {}, { context })
  await threads.hold({ owner: 'ann', threadId: 'thread' }, { runId: 'dead', holder: 'dead process' }, 1)
  await sleep(5)
  expect(await testAgent([], { threads, approvals }).agent.recover()).toBe(1)
  expect(await threads.abandoned(9)).toEqual([])
  await collect(agent, input([], { resume: [answer(first, { approved: true })] }), { context })
  expect(pay.runs).toHaveLength(1)
})

test.each(['has its whole reply', 'waits for its reply'])(
  'recover() leaves a thread alone whose user goes on with it at any moment and then %s: nothing of theirs is marked or lost',
  async (state) => {
    let taken = 0
    for (let moment = 1; ; moment++) {
      let calls = 0
      let isOthers = false
      let letGo = () => {}
      const gate = new Promise<void>((resolve) => {
        letGo = resolve
      })
      let going: Promise<unknown> | undefined
      let rest: Promise<unknown> | undefined
      const { agent, threads } = await abandon(['one'], (store) => {
        const model = {
          id: 'test/m',
          async *stream() {
            yield { type: 'text-delta', delta: 'Sure.' } as const
            if (state === 'waits for its reply') await gate
            yield { type: 'finish', reason: 'stop' } as const
          },
        }
        const approvals = { secret, ledger: memoryLedger() }
        const other = createAgent({ model, threads: { ...store, id: 'other' }, approvals, warn: () => {} })
        const goOn = async () => {
          const input = {
            threadId: 'one',
            runId: 'next',
            messages: [{ id: 'u2', role: 'user', content: 'And?' } as const],
          }
          const run = other.run(input, { context: { subject: 'ann' } })
          let hasReply = false
          for (let next = await run.next(); !next.done; next = await run.next()) {
            if (next.value.type === 'RUN_ERROR') expect(next.value.code).toBe('thread-busy')
            hasReply ||= next.value.type === 'TEXT_MESSAGE_CONTENT'
            // The run is still open when the recovery goes on.
            if (hasReply && state === 'waits for its reply') {
              rest = readAll(run)
              break
            }
          }
          return hasReply
        }
        const interleaved =
          <Args extends readonly unknown[], Result>(method: (...args: Args) => Promise<Result>) =>
          async (...args: Args) => {
            if (!isOthers && ++calls === moment) {
              isOthers = true
              going = goOn()
              await going
            }
            return method(...args)
          }
        const { load, append, hold, release, abandoned } = store
        return {
          ...{ load: interleaved(load), append: interleaved(append), hold: interleaved(hold) },
          ...{ release: interleaved(release), abandoned: interleaved(abandoned) },
        }
      })
      await agent.recover()
      if (going === undefined) break
      const wasTaken = await going
      letGo()
      await rest
      const stored = await threads.load({ owner: 'ann', threadId: 'one' })
      const texts = stored?.messages.map(({ message }) => message) ?? []
      if (wasTaken) {
        taken++
        expect(texts.some((text) => text.includes('And?'))).toBe(true)
        expect(
          texts.filter((text) => text.includes('"cut"')),
          `moment ${moment}`,
        ).toEqual([])
      }
    }
    expect(taken).toBeGreaterThan(1)
  },
)

test('a thread without room for the mark of a cut reply is free after recover(), and is not found again', async () => {
  const threads = memoryThreads({ maxThreadBytes: 100 })
  const { agent } = testAgent([], { threads })
  const key = { owner: 'ann', threadId: 't' }
  const run = { runId: 'dead', holder: 'dead process' }
  const message = JSON.stringify({ id: 'u1', role: 'user', content: 'x'.repeat(30) })
  await threads.hold(key, run, 1)
  await threads.append(key, { version: 0, run, messages: [{ id: 'u1', parent: null, message }], head: 'u1' })
  await sleep(5)
  expect(await agent.recover()).toBe(1)
  expect((await threads.load(key))?.run).toBeUndefined()
  expect(await agent.recover()).toBe(0)
})

async function readAll(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}
