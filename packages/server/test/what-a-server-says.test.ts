// What a server says, keeps and starts with (F22, F58, F61, F62).
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AGUIEvent, isCountersignError } from '@countersign/core'
import {
  type AgentOptions,
  handleChat,
  type Model,
  type ModelEvent,
  memoryLedger,
  scriptedModel,
  ToolError,
} from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import { planFromMap, runPlan } from '@countersign/server/plan'
import { afterAll, expect, test, vi } from 'vitest'
import * as z from 'zod'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  input,
  last,
  results,
  SECRET,
  say,
  testAgent,
  user,
} from './support.js'

const folder = mkdtempSync(join(tmpdir(), 'countersign-server-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const used = (inputTokens: number): ModelEvent => ({ type: 'usage', usage: { inputTokens } })

test('F22 a run that fails tells what it has used until then, in its last event and in the error of generate', async () => {
  const broken: readonly (readonly [name: string, turns: () => Parameters<typeof testAgent>[0]])[] = [
    ['the model breaks off in its second answer', () => [[used(5), ...call(['c1', 'look', {}])], [used(7)]]],
    [
      'the model throws',
      () => [
        [used(5), ...call(['c1', 'look', {}])],
        (async function* () {
          yield used(7)
          throw new Error('gone')
        })(),
      ],
    ],
    [
      'a tool ends the run',
      () => [
        [used(5), ...call(['c1', 'look', {}])],
        [used(7), ...call(['c2', 'end', {}])],
      ],
    ],
  ]
  for (const [name, turns] of broken) {
    const end = counted('end', {
      failureMode: 'throw',
      execute: () => {
        throw new Error('no')
      },
    })
    const tools = [counted('look').tool, end.tool]
    const events = await collect(testAgent(turns(), { tools }).agent, input([user('go')]))
    const usage = [{ inputTokens: 5 }, { inputTokens: 7 }]
    expect(last(events), name).toMatchObject({ type: 'RUN_ERROR', usage })
    const failed = testAgent(turns(), { tools }).agent.generate(input([user('go')]))
    await expect(failed, name).rejects.toMatchObject({ code: 'run-error', data: { usage } })
  }
})

test('F22 an agent made for each request warns of its secret and of its ledger once', async () => {
  vi.resetModules()
  const { createAgent, memoryLedger } = await import('@countersign/server')
  const warnings: string[] = []
  const make = (approvals: AgentOptions['approvals']) =>
    createAgent({ model: scriptedModel([]), approvals, warn: (message) => warnings.push(message) })
  vi.stubEnv('COUNTERSIGN_SECRET', undefined)
  for (let n = 0; n < 3; n++) {
    make({})
    make({ secret: SECRET })
    make({ secret: SECRET, ledger: memoryLedger() })
  }
  vi.unstubAllEnvs()
  expect(warnings.map((message) => message.slice(0, 40))).toEqual([
    'countersign: no approvals.secret (or COU',
    'countersign: the secret outlives this pr',
  ])
})

const SECRETS = 'postgres://admin:hunter2@10.0.0.7/orders'
const leak = () => {
  throw new Error(`connect ECONNREFUSED ${SECRETS}`)
}

/** Every way in which a tool's own code can throw. */
const throwing = {
  execute: { execute: leak },
  'execute, later': { execute: async () => leak() },
  'a thrown text': {
    execute: () => {
      throw SECRETS
    },
  },
  'a stream': {
    execute: async function* () {
      yield 1
      leak()
    },
  },
  output: { execute: () => 1, output: z.any().refine(leak) },
  'its input schema': { input: z.looseObject({}).refine(leak) },
  'a result that cannot be written': { execute: () => ({ toJSON: leak }) },
  'an error of ours from elsewhere': {
    execute: async () => void (await fileLedger(join(folder, 'no', '\0', SECRETS))),
  },
} satisfies Record<string, object>

test.each(Object.entries(throwing))(
  'F22 what %s throws reaches neither the client, the model nor the ledger; the log has it',
  async (what, more) => {
    for (const needsApproval of [false, true]) {
      const logged: unknown[] = []
      const pay = counted('pay', { needsApproval, ...(more as object) })
      const ledger = memoryLedger()
      const { agent, model } = testAgent([call(['c1', 'pay', {}]), say('so')], {
        tools: [pay.tool],
        approvals: { ledger },
        warn: (...said) => logged.push(said.map((one) => (one instanceof Error ? one.stack : one)).join(' ')),
      })
      const isAsked = needsApproval && !('input' in more)
      const asked = isAsked ? await ask(agent) : undefined
      const resume = asked && [answer(asked.first, { approved: true })]
      const events = await collect(agent, input(asked?.history ?? [user('go')], resume && { resume }))
      expect(results(events)).toMatchObject([{ id: 'c1', own: { outcome: 'error' } }])
      const rows =
        asked &&
        (await ledger.lookup({ owner: null, threadId: 'thread', approvalId: asked.first.approval.id }))
      for (const told of [events, model.requests, rows])
        expect(JSON.stringify(told ?? null)).not.toMatch(/hunter2|10\.0/)
      if (what !== 'a result that cannot be written') expect(logged.join('\n')).toMatch(/pay/)
    }
  },
)

test('F22 the text of a failure names the call under which the log has it', async () => {
  const logged: string[] = []
  const pay = counted('pay', { execute: leak })
  const { agent } = testAgent([call(['c1', 'pay', {}]), say('so')], {
    tools: [pay.tool],
    warn: (message, error) => logged.push(`${message} ${error}`),
  })
  const [result] = results(await collect(agent, input([user('go')])))
  expect(result?.content).toEqual({
    type: 'execution-error',
    reason: 'The tool pay failed. The log of the server has the cause, under c1.',
  })
  expect(logged.join()).toContain('c1')
  expect(logged.join()).toContain(SECRETS)
})

test('F22 a tool that wants its words told throws a ToolError', async () => {
  const cause = new Error(SECRETS)
  const pay = counted('pay', {
    execute: () => {
      throw new ToolError('There is no account of that name.', { cause })
    },
  })
  const { agent, model } = testAgent([call(['c1', 'pay', {}]), say('so')], { tools: [pay.tool] })
  const events = await collect(agent, input([user('go')]))
  const reason = 'There is no account of that name.'
  expect(results(events)).toMatchObject([{ content: { type: 'execution-error', reason } }])
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([{ outcome: { reason } }])
  expect(JSON.stringify([events, model.requests])).not.toContain('hunter2')
  const error = new ToolError('words', { data: { account: 1 } })
  expect([error.code, error.message, error.data, isCountersignError(error)]).toEqual([
    'tool-failed',
    'words',
    { account: 1 },
    true,
  ])
})

test('F22 a plan that is carried out without an agent says no more either', async () => {
  const logged: unknown[] = []
  const pay = counted('pay', { execute: leak })
  const calls = [{ toolCallId: 'c1', toolName: 'pay', arguments: '{}', input: {} }]
  const events: unknown[] = []
  const warn = (...said: unknown[]) => logged.push(said.join(' '))
  for await (const event of runPlan(planFromMap(() => false, {})(calls), { tools: [pay.tool], warn }))
    events.push(event)
  expect(JSON.stringify(events)).toContain('The tool pay failed.')
  expect(JSON.stringify(events)).not.toContain('hunter2')
  expect(logged.join()).toContain('hunter2')
})

test.skipIf(process.platform === 'win32')(
  'F22 a ledger file that others may read is closed to them, with its journals',
  async () => {
    const modeOf = (path: string) => statSync(path).mode & 0o777
    const path = join(folder, 'open.sqlite')
    for (const mode of [0o644, 0o666, 0o640]) {
      const before = await fileLedger(path)
      before.close()
      for (const file of [path, `${path}-wal`, `${path}-shm`])
        try {
          chmodSync(file, mode)
        } catch {
          // this journal is not there
        }
      const ledger = await fileLedger(path)
      await ledger.grant({ owner: 'a', threadId: 't', toolName: 'x', scopeKey: 'x', approved: true })
      for (const file of [path, `${path}-wal`, `${path}-shm`])
        try {
          expect([file, modeOf(file)]).toEqual([file, 0o600])
        } catch (error) {
          if (!String(error).includes('ENOENT')) throw error
        }
      ledger.close()
    }
    const empty = join(folder, 'empty.sqlite')
    writeFileSync(empty, '', { mode: 0o644 })
    ;(await fileLedger(empty)).close()
    expect(modeOf(empty)).toBe(0o600)
  },
)

/** Runs with what a platform forbids, or lacks, while a module is evaluated. */
async function inGlobalScope<Result>(work: () => Promise<Result>): Promise<Result> {
  const forbid = (name: string) => () => {
    throw new Error(`Disallowed operation called within global scope: ${name}`)
  }
  const spies = [
    vi.spyOn(crypto, 'getRandomValues').mockImplementation(forbid('getRandomValues')),
    vi.spyOn(crypto, 'randomUUID').mockImplementation(forbid('randomUUID')),
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(forbid('setTimeout') as never),
    vi.spyOn(globalThis, 'setInterval').mockImplementation(forbid('setInterval') as never),
    vi.spyOn(globalThis, 'fetch').mockImplementation(forbid('fetch')),
    vi.spyOn(Math, 'random').mockImplementation(forbid('Math.random')),
  ]
  try {
    return await work()
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

const body = JSON.stringify({ ...input([user('go')]), tools: undefined, context: undefined })
const chat = (agent: Parameters<typeof handleChat>[0]) =>
  handleChat(
    agent,
    new Request('http://localhost/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    }),
    { context: { subject: 'ann' } },
  ).then((response) => response.text())

test('F58 an agent can be made while a module is evaluated, where random values and timers are forbidden', async () => {
  vi.resetModules()
  vi.stubEnv('COUNTERSIGN_SECRET', undefined)
  const model: Model = scriptedModel([call(['c1', 'pay', {}])])
  const pay = counted('pay', { needsApproval: true })
  const made = await inGlobalScope(async () => {
    const server = await import('@countersign/server')
    return {
      server,
      agents: [
        server.createAgent({ model, tools: [pay.tool], warn: () => {} }),
        server.createAgent({ model, approvals: { ledger: server.memoryLedger() }, warn: () => {} }),
        server.createAgent({ model, runLog: server.memoryRunLog(), now: () => 0, warn: () => {} }),
        server.createAgent({ model, approvals: { secret: SECRET }, warn: () => {} }),
      ],
    }
  })
  vi.unstubAllEnvs()
  const [agent] = made.agents
  if (agent === undefined) throw new Error('no agent')
  const text = await made.server
    .handleChat(
      agent,
      new Request('http://localhost/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      }),
      { context: { subject: 'ann' } },
    )
    .then((response) => response.text())
  expect(text).toContain('approval-requested')
  const ledgers = [made.server.memoryLedger(), made.server.memoryLedger()]
  expect(ledgers[0]?.id).toBe(ledgers[0]?.id)
  expect(ledgers[0]?.id).not.toBe(ledgers[1]?.id)
})

test('F58 a runtime without AbortSignal.any is enough for asking, answering, running, a timeout and a stop', async () => {
  const any = AbortSignal.any
  // as on edge runtimes
  Reflect.deleteProperty(AbortSignal, 'any')
  try {
    const pay = counted('pay', { needsApproval: true, timeout: 60_000 })
    const look = counted('look')
    const hang = counted('hang', { timeout: 5, execute: () => new Promise(() => {}) })
    const { agent } = testAgent(
      [call(['c1', 'look', {}], ['c2', 'pay', {}], ['c3', 'hang', {}]), say('done')],
      { tools: [pay.tool, look.tool, hang.tool] },
    )
    const { history, first, events } = await ask(agent)
    expect(
      results(events)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(['c1', 'c3'])
    expect(results(events).find(({ id }) => id === 'c3')).toMatchObject({ own: { code: 'interrupted' } })
    const resume = [answer(first, { approved: true })]
    const done = await collect(agent, input(history, { resume }))
    expect([pay.runs.length, look.runs.length, last(done).type]).toEqual([1, 1, 'RUN_FINISHED'])

    const stop = new AbortController()
    const slow = testAgent(
      [
        (async function* (): AsyncGenerator<ModelEvent> {
          yield { type: 'text-delta', delta: 'a' }
          stop.abort()
          yield { type: 'text-delta', delta: 'b' }
        })(),
      ],
      {},
    )
    const stopped = await collect(slow.agent, input([user('go')]), { signal: stop.signal })
    expect(last(stopped)).toMatchObject({ outcome: { type: 'cancelled' } })
    expect(await chat(testAgent([say('hello')]).agent)).toContain('hello')
  } finally {
    AbortSignal.any = any
  }
})

test('F58 what goes wrong before a run has begun is told as its error, and does not drop the stream', async () => {
  const { agent } = testAgent([say('hello')])
  const timeout = vi.spyOn(AbortSignal, 'any').mockImplementation(() => {
    throw new TypeError('AbortSignal.any is not a function')
  })
  try {
    const events: AGUIEvent[] = []
    for await (const event of agent.run(input([user('go')]))) events.push(event)
    expect(events.map(({ type }) => type)).toEqual(['RUN_STARTED', 'RUN_ERROR'])
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'internal' })
  } finally {
    timeout.mockRestore()
  }
})

test('a run without a list of messages or tools is refused before it starts, like generate', async () => {
  const { agent } = testAgent([say('hello')])
  for (const wrong of [{ messages: null as never }, { tools: null as never }]) {
    const refusal = expect.objectContaining({ code: 'invalid-argument' })
    expect(() => agent.run(input([user('go')], wrong))).toThrow(refusal)
    await expect(agent.generate(input([user('go')], wrong))).rejects.toEqual(refusal)
  }
})

test('F62 a run and generate take what a job has: a thread, a run and messages', async () => {
  const job = { threadId: 'nightly', runId: 'run-1', messages: [user('Tidy up.')] }
  expect((await testAgent([say('Done.')]).agent.generate(job)).text).toBe('Done.')
  const events: AGUIEvent[] = []
  for await (const event of testAgent([say('Done.')]).agent.run(job)) events.push(event)
  expect(events.at(-1)?.type).toBe('RUN_FINISHED')
})

test('F61 a text that a tool answers with reaches the client, the ledger and the next model call as the same text', async () => {
  const texts = [
    'a plain string',
    '',
    '123',
    'true',
    'null',
    '"quoted"',
    '{"a":1}',
    'two\nlines',
    '{"kind":"denied"}',
  ]
  for (const text of texts) {
    const read = counted('read', { needsApproval: true, execute: () => text })
    const { agent, model } = testAgent([call(['c1', 'read', {}]), say('so'), say('on')], {
      tools: [read.tool],
    })
    const { history, first } = await ask(agent)
    const resume = [answer(first, { approved: true })]
    await collect(agent, input(history, { resume }))
    // the same answer again: the ledger's own copy
    await collect(agent, input(history, { resume }))
    for (const request of model.requests.slice(1))
      expect(request.messages.at(-1)?.content).toMatchObject([{ outcome: { kind: 'ok', value: text } }])
  }
})
