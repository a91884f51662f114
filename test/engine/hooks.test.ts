// Every function that an application gives to a tool or an agent may never settle. Whatever it is and whenever it hangs, the run ends when it
// must, nothing starts afterwards, and the conversation goes on. The names of the options are read from the declarations, so a hook that is
// not listed here fails.
import { type AGUIEvent, type Message, toolDefinition } from '@countersign/core'
import {
  type Agent,
  type AgentOptions,
  answerQueue,
  createAgent,
  type Model,
  memoryLedger,
  memoryThreads,
  type RunOptions,
  tool,
} from '@countersign/server'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import {
  answer,
  call,
  fold,
  input,
  last,
  requests,
  SECRET,
  say,
  user,
} from '../../packages/server/test/support.js'
import { declaredOptions } from '../declared-options.js'
import { full } from '../full.js'

type Hook = (...args: never[]) => unknown
type Wrap = <H extends Hook>(hook: H) => H
type ToolHooks = Partial<Parameters<typeof tool<'send', z.ZodType<Record<string, unknown>>, unknown>>[0]>
interface Hooks {
  readonly tool?: ToolHooks
  readonly agent?: Partial<AgentOptions>
}

const schema = (wrap: Wrap) => ({
  '~standard': { version: 1 as const, vendor: 'test', validate: wrap(async (value: unknown) => ({ value })) },
})

/** How each hook is given. `wrap` makes it one that hangs in a certain call. */
const hooks: Readonly<Record<string, (wrap: Wrap, isAsked: boolean) => Hooks>> = {
  'tool.needsApproval': (wrap, isAsked) => ({ tool: { needsApproval: wrap(async () => isAsked) } }),
  'tool.mandates': (wrap) => ({
    tool: { mandates: wrap(async () => [{ id: 'all', label: 'All of them', where: [] }]) },
  }),
  'tool.bind': (wrap) => ({ tool: { bind: wrap(async () => 'v1') } }),
  'tool.preview': (wrap) => ({
    tool: { preview: wrap(async () => ({ kind: 'text' as const, text: 'It sends.' })), previewUnasked: true },
  }),
  'tool.input': (wrap) => ({ tool: { input: schema(wrap) as never, parameters: { type: 'object' } } }),
  'tool.output': (wrap) => ({ tool: { output: schema(wrap) as never } }),
  'tool.execute': (wrap) => ({ tool: { execute: wrap(async () => 'sent') } }),
  'tool.finalize': (wrap) => ({
    tool: {
      finalize: wrap(async () => 'sent') as never,
      execute: async function* () {
        yield 'sent'
      } as never,
    },
  }),
  'agent.prepareStep': (wrap) => ({ agent: { prepareStep: wrap(async () => undefined) } }),
  'agent.output': (wrap) => ({ agent: { output: schema(wrap), outputSchema: { type: 'object' } } }),
  'approvals.policy': (wrap) => ({ agent: { approvals: { policy: wrap(async () => undefined) } } }),
  'approvals.shadow': (wrap) => ({ agent: { approvals: { shadow: wrap(async () => undefined) } } }),
  'approvals.confirm': (wrap) => ({ agent: { approvals: { confirm: wrap(async () => true) } } }),
  'approvals.onAudit': (wrap) => ({ agent: { approvals: { onAudit: wrap(async () => {}) } } }),
}

/** Hooks that the run does not wait for, as each must return at once. A promise is a value of a wrong type, or is ignored. */
const atOnce: Readonly<Record<string, (wrap: Wrap) => Hooks>> = {
  'tool.redact': (wrap) => ({ tool: { redact: wrap(() => ({})) } }),
  'tool.message': (wrap) => ({ tool: { message: wrap(() => 'Send it?') } }),
  'tool.scopeKey': (wrap) => ({ tool: { scopes: ['once', 'session'], scopeKey: wrap(() => 'key') } }),
  'approvals.redact': (wrap) => ({ agent: { approvals: { redact: wrap(() => ({})) } } }),
  'agent.warn': (wrap) => ({ agent: { warn: wrap(() => {}) } }),
  'agent.onError': (wrap) => ({ agent: { onError: wrap(() => {}) } }),
  'agent.observe': (wrap) => ({ agent: { observe: wrap(() => {}) } }),
  'agent.now': () => ({}),
  'agent.generateId': () => ({}),
  'approvals.generateId': () => ({}),
}

/** Options that hold no function. */
const plain = [
  ...[
    'tool.name',
    'tool.description',
    'tool.toolServer',
    'tool.parameters',
    'tool.metadata',
    'tool.approval',
  ],
  ...['tool.annotations', 'tool.allowEdits', 'tool.scopes', 'tool.version', 'tool.previewUnasked'],
  ...['tool.expiresIn', 'tool.failureMode', 'tool.idempotent', 'tool.timeout', 'tool.location'],
  ...[
    'agent.tools',
    'agent.system',
    'agent.maxSteps',
    'agent.concurrency',
    'agent.approvals',
    'agent.limits',
  ],
  ...['agent.acceptUploads', 'agent.timeouts', 'agent.runTools', 'agent.trustSystemMessages'],
  ...[
    'agent.outputSchema',
    'approvals.secret',
    'approvals.epoch',
    'approvals.expiresIn',
    'approvals.permission',
  ],
  ...['approvals.askAsTool', 'approvals.requireToken', 'approvals.lease', 'approvals.wait'],
  'approvals.previewTimeout',
]

/** Models have a deadline of their own (`timeouts.model`), and stores are bounded by `drain` alone. */
const elsewhere = ['agent.model', 'agent.runLog', 'agent.threads', 'agent.answerChannel', 'approvals.ledger']

test('every option of a tool and of an agent is listed here, with what happens if it never settles', () => {
  const { optionsOf, declarations } = declaredOptions('core', 'server')
  const named = (prefix: string, name: string) => optionsOf(name).map((option) => `${prefix}.${option.name}`)
  const placed = declarations.get('ServerTool')?.members ?? []
  const declared = [
    ...named('tool', 'ToolOptions'),
    ...placed.map((member) => `tool.${member.name?.getText()}`),
    ...named('agent', 'AgentOptions'),
    ...named('approvals', 'ApprovalOptions'),
  ]
  const listed = [...Object.keys(hooks), ...Object.keys(atOnce), ...plain, ...elsewhere]
  expect([...new Set(declared)].sort()).toEqual([...new Set(listed)].sort())
  expect(new Set(listed).size).toBe(listed.length)
})

const context = { subject: 'ann' }
const key = { owner: 'ann', threadId: 'thread' }

/** Counts the calls of a hook; from the given one on, it never settles. */
function hanging(from: number) {
  let calls = 0
  let isHealed = false
  let enter = () => {}
  const entered = new Promise<void>((resolve) => {
    enter = resolve
  })
  const wrap = <H extends Hook>(hook: H): H =>
    ((...args: never[]) => {
      if (isHealed || ++calls < from) return hook(...args)
      enter()
      return new Promise<never>(() => {})
    }) as H
  const heal = () => {
    isHealed = true
  }
  return { wrap, entered, heal, calls: () => calls }
}

/** A world in which the model calls `send` once for each message of the user. */
function world(given: Hooks, { threads, ledger } = { threads: memoryThreads(), ledger: memoryLedger() }) {
  const ran: string[] = []
  const model: Model = {
    id: 'test/m',
    async *stream({ messages }) {
      const { role, content } = messages.at(-1) ?? {}
      const isBye = JSON.stringify(content ?? '').includes('bye')
      yield* role === 'user' && !isBye ? call([`c${messages.length}`, 'send', {}]) : say('{}')
    },
  }
  const { execute = async () => 'sent', ...rest }: ToolHooks = given.tool ?? {}
  const send = tool({
    name: 'send',
    description: 'Sends.',
    input: z.looseObject({}),
    ...rest,
    execute: ((...args: Parameters<typeof execute>) => {
      ran.push(args[1].idempotencyKey)
      return execute(...args)
    }) as never,
  })
  const agent = createAgent({
    ...{ model, tools: [send], threads, warn: () => {}, onError: () => {}, timeouts: { run: 60_000 } },
    ...given.agent,
    approvals: { secret: SECRET, ledger, previewTimeout: 600_000, ...given.agent?.approvals },
  })
  return { agent, ran, threads, ledger }
}

type World = ReturnType<typeof world>

async function read(agent: Agent, messages: readonly Message[], more: object, options: RunOptions) {
  const events: AGUIEvent[] = []
  for await (const event of agent.run(input(messages, more), options)) events.push(event)
  return events
}

/** The ways to one executed call. Each yields the events of its runs. */
const scenarios: Readonly<
  Record<
    string,
    { readonly needsApproval: boolean; readonly play: (w: World, o: RunOptions) => Promise<AGUIEvent[][]> }
  >
> = {
  'asked, and answered with a second request': {
    needsApproval: true,
    async play({ agent }, options) {
      const question = [user('go')]
      const first = await read(agent, question, {}, options)
      const resume = requests(first).map((asked) => answer(asked, { approved: true }))
      if (resume.length === 0 || last(first).type === 'RUN_ERROR') return [first]
      return [first, await read(agent, fold(question, first), { resume }, options)]
    },
  },
  'asked, and answered live': {
    needsApproval: true,
    async play({ agent }, options) {
      const answers = answerQueue()
      const events: AGUIEvent[] = []
      for await (const event of agent.run(input([user('go')]), { ...options, answers })) {
        events.push(event)
        for (const asked of requests([event])) answers.put(answer(asked, { approved: true }), context)
      }
      return [events]
    },
  },
  'run at once': {
    needsApproval: false,
    play: async ({ agent }, options) => [await read(agent, [user('go')], {}, options)],
  },
}

interface Way {
  readonly leave: (controls: Controls) => unknown
  readonly end: object
  /** The caller has stopped the run: a claimed call does not start either. Otherwise, it has `approvals.wait`. */
  readonly isAtOnce?: boolean
}

interface Controls {
  readonly agent: Agent
  readonly stop: AbortController
  readonly gone: AbortController
}

/** The ways in which a run must end. */
const ways: Readonly<Record<string, Way>> = {
  'at timeouts.run': {
    leave: () => vi.advanceTimersByTimeAsync(60_000),
    end: { type: 'RUN_ERROR', code: 'run-timeout' },
  },
  'when it is stopped': {
    leave: ({ stop }) => stop.abort(),
    end: { outcome: { type: 'cancelled' } },
    isAtOnce: true,
  },
  'when the server drains': {
    leave: ({ agent }) => agent.drain({ within: 0 }),
    end: { type: 'RUN_ERROR', code: 'shutting-down' },
  },
  'when its reader has gone': {
    leave: ({ gone }) => gone.abort(),
    end: { outcome: { type: 'cancelled' } },
  },
}

const { setTimeout: realTimeout } = globalThis

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Lets the clock run until something is so, and the event loop in between: hashes and signatures are made outside of it. */
async function until(isSo: () => boolean, step: number): Promise<void> {
  for (let turn = 0; turn < 3000 && !isSo(); turn++) {
    await new Promise((resolve) => realTimeout(resolve, 1))
    await vi.advanceTimersByTimeAsync(step)
  }
}

/** Plays a scenario with a hook that hangs from a certain call on. Returns whether it was called that often. */
async function playHanging(
  make: (wrap: Wrap, isAsked: boolean) => Hooks,
  from: number,
  { needsApproval, play }: (typeof scenarios)[string],
  { leave, end, isAtOnce = false }: Way,
  isTool: boolean,
): Promise<boolean> {
  const hook = hanging(from)
  const { tool: own, agent: options } = make(hook.wrap, needsApproval)
  const made = { tool: { needsApproval, ...own }, ...(options && { agent: options }) }
  const w = world(made)
  const [stop, gone] = [new AbortController(), new AbortController()]
  let runs: AGUIEvent[][] | undefined
  const playing = play(w, { context, signal: stop.signal, disconnected: gone.signal }).then((events) => {
    runs = events
  })
  await Promise.race([hook.entered, playing])
  if (runs !== undefined) {
    expect(last(runs.at(-1) ?? [])).toMatchObject({ outcome: { type: 'success' } })
    return false
  }
  const before = [...w.ran]
  // A tool that has started has `approvals.wait`, and so has a claimed call before its start.
  const isClaimed = (await w.ledger.unsettled('ann', 'thread')).some(({ state }) => state.phase === 'claimed')
  let isLeft = false
  void Promise.resolve(leave({ agent: w.agent, stop, gone })).then(() => {
    isLeft = true
  })
  await until(() => runs !== undefined, isTool || (isClaimed && !isAtOnce) ? 1000 : 1)
  await until(() => isLeft, 1)
  expect([runs !== undefined, isLeft], 'the run and what ended it have ended').toEqual([true, true])
  const played: readonly AGUIEvent[][] = runs ?? []
  const ended = played.at(-1) ?? []
  const answered = [...new Map(requests(played.flat()).map((asked) => [asked.approval.id, asked])).values()]
  expect(w.ran, 'nothing has started since').toEqual(before)
  expect((await w.threads.load(key))?.run, 'the thread is free').toBeUndefined()
  // A run that has asked, and could not do more, ends as one that waits for its user.
  const isAsked = last(ended).type === 'RUN_FINISHED' && requests(ended).length > 0
  if (!isAsked) expect(last(ended)).toMatchObject(end)
  const phases: (string | undefined)[] = []
  for (const { approval } of answered) {
    const entry = await w.ledger.lookup({ ...key, approvalId: approval.id })
    phases.push(entry?.state.phase)
  }
  expect(phases, 'no claim is left open').not.toContain('claimed')

  // With a hook that is well again, another process goes on: an answer that was not used can be given, and runs its call once.
  hook.heal()
  const next = world(made, w)
  const open = answered.filter((_, index) => phases[index] === 'issued')
  const resume = open.map((asked) => answer(asked, { approved: true }))
  const more = resume.length > 0 ? [] : [user('bye')]
  const goingOn = read(next.agent, more, { resume }, { context })
  let further: AGUIEvent[] | undefined
  void goingOn.then((events) => {
    further = events
  })
  await until(() => further !== undefined, 1)
  expect(last(further ?? [])).toMatchObject({ outcome: { type: 'success' } })
  expect(next.ran).toEqual(open.map(({ approval }) => approval.id))
  return true
}

/** `npm test` plays each hook in each scenario, and each way with every third of them. */
const waysOf = (hook: string, scenario: string) => {
  const turn = Object.keys(hooks).indexOf(hook) + Object.keys(scenarios).indexOf(scenario)
  return Object.entries(ways).filter((_, index, all) => full || index === turn % all.length)
}

describe.each(Object.entries(hooks))('%s that never settles', (name, make) => {
  describe.each(Object.entries(scenarios))('in a call that is %s', (called, scenario) => {
    test.each(waysOf(name, called))('holds no run %s', async (_, way) => {
      const isTool = ['tool.execute', 'tool.finalize', 'tool.output'].includes(name)
      let from = 1
      while (await playHanging(make, from, scenario, way, isTool)) from++
    })
  })
})

test.each(Object.entries(atOnce))('%s that returns a promise holds no run', async (_, make) => {
  const { tool: own, agent: options } = make(hanging(1).wrap)
  for (const { needsApproval, play } of Object.values(scenarios)) {
    const w = world({ tool: { needsApproval, ...own }, ...(options && { agent: options }) })
    const runs = await play(w, { context })
    expect(last(runs.at(-1) ?? [])).toMatchObject({ type: 'RUN_FINISHED' })
  }
})

test.each(['at timeouts.run', 'when the server drains'])(
  'a schema that never settles holds no thread of a run that leaves a branch with an open call, %s',
  async (way) => {
    const hook = hanging(2)
    const client = toolDefinition({
      ...{ name: 'send', description: 'Sends.', parameters: { type: 'object' } },
      input: schema(hook.wrap),
    }).client(() => 'sent')
    const w = world({ agent: { tools: [client] } })
    const question = user('go')
    await read(w.agent, [question], {}, { context })
    const again = { countersign: { edit: question.id } }
    const opening = w.agent
      .openThread(
        { threadId: 'thread', runId: 'r2', messages: [user('bye')], forwardedProps: again },
        context,
      )
      .catch((error: unknown) => error)
    await hook.entered
    let drained = Promise.resolve()
    if (way === 'at timeouts.run') await vi.advanceTimersByTimeAsync(60_000)
    else drained = w.agent.drain({ within: 0 })
    await vi.advanceTimersByTimeAsync(1)
    expect(await opening).toMatchObject({ code: way === 'at timeouts.run' ? 'run-timeout' : 'shutting-down' })
    await drained
    expect((await w.threads.load(key))?.run).toBeUndefined()
  },
)

test('drain returns although a ledger never replies', async () => {
  const ledger = { ...memoryLedger(), issue: () => new Promise<never>(() => {}) }
  const warn = vi.fn()
  const w = world({
    tool: { needsApproval: true },
    agent: { approvals: { ledger, secret: SECRET, wait: 1000 }, warn },
  })
  void read(w.agent, [user('go')], {}, { context })
  let isDrained = false
  void w.agent.drain({ within: 1000 }).then(() => {
    isDrained = true
  })
  await vi.advanceTimersByTimeAsync(6999)
  expect(isDrained).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(isDrained).toBe(true)
  expect(warn).toHaveBeenCalledWith(expect.stringContaining('1 stopped run'))
})
