import {
  answerQueue,
  createAgent,
  type Delivery,
  type ModelEvent,
  memoryLedger,
  memoryRunLog,
  tool,
} from '@countersign/server'
import fc from 'fast-check'
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { full } from '../../../test/full.js'
import { answer, ask, input, SECRET, say, user } from './support.js'
import { context, endIn, type Peer, type Said, saidIn, type WayOut, waysOut } from './ways-out.js'

/**
 * Every way out of the server, with several writers at once and readers that are fast, slow, stalled or gone: every value arrives in
 * order or the run ends; nobody waits for ever; no buffer holds more than `docs/security.md` says; nothing is left afterwards.
 *
 * Nothing here measures time. The clock is the test's own, and who has not gone on after thousands of turns of the event loop, with
 * nothing outside to wait for, waits for ever.
 */
const seed = 1_11_22
const plans = full ? 600 : 25

const KIB = 1024
const PATIENCE = 64 * KIB
const REPORTED = 1024 * KIB
/** What a minute or two are for a reader that takes nothing. */
const STALL = 120_000
/** Turns of the event loop after which whoever has not gone on never will. */
const FOREVER = 3000

interface Writing {
  readonly count: number
  /** Characters of one value, about. */
  readonly pad: number
  /** Turns of the event loop before each value. */
  readonly pace: number
}

interface Plan {
  readonly model: Writing
  /** `reports` without waiting, or `streams` and waits for room. */
  readonly tools: readonly (Writing & { readonly kind: 'reports' | 'streams' })[]
  /** The tools were asked about: they are claimed, and run to their end without a reader. */
  readonly claimed: boolean
  readonly reader: readonly Step[]
  /** What the reader does after its steps. */
  readonly last: 'reads on' | 'stalls' | 'leaves'
}

type Step =
  | { readonly kind: 'reads'; readonly times: number }
  | { readonly kind: 'waits'; readonly turns: number }
  /** Long enough for a comment that keeps the connection alive. */
  | { readonly kind: 'is silent' }
  | { readonly kind: 'stalls' }

const writing = {
  count: fc.constantFrom(1, 5, 30, 100),
  pad: fc.constantFrom(0, 200, 5000, 40_000),
  pace: fc.nat(3),
}
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('reads' as const), times: fc.integer({ min: 1, max: 30 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('waits' as const), turns: fc.integer({ min: 1, max: 60 }) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'is silent' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'stalls' as const }) },
)
const plan: fc.Arbitrary<Plan> = fc.record({
  model: fc.record(writing),
  tools: fc.array(fc.record({ ...writing, kind: fc.constantFrom('reports' as const, 'streams' as const) }), {
    minLength: 1,
    maxLength: 3,
  }),
  claimed: fc.boolean(),
  reader: fc.array(step, { maxLength: 12 }),
  last: fc.constantFrom('reads on' as const, 'reads on' as const, 'stalls' as const, 'leaves' as const),
})

const figures = { plans: 0, values: 0, finished: 0, lost: 0, left: 0 }
afterAll(() => {
  const { plans, values, finished, lost, left } = figures
  console.info(
    `readers of any speed: ${plans} schedules over ${waysOut.length} ways out (seed ${seed}), ${values} values checked; ` +
      `${finished} runs read to their end, ${lost} ended for a reader that was too slow, ${left} left by theirs`,
  )
})

/** Signatures that are being made or checked: the one thing here that does not happen on the event loop. */
let signing = 0
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  for (const method of ['sign', 'verify', 'digest', 'importKey', 'deriveBits', 'deriveKey'] as const) {
    const original: (...given: never[]) => Promise<unknown> = crypto.subtle[method].bind(crypto.subtle)
    vi.spyOn(crypto.subtle, method).mockImplementation((async (...given: never[]) => {
      signing++
      return original(...given).finally(() => signing--)
    }) as never)
  }
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
async function turns(count: number): Promise<void> {
  for (let done = 0; done < count; done++) await turn()
}

/** Until it is so; fails where it never will be. Clocks go on a little meanwhile, for those who look again and again. */
async function until(what: string, isSo: () => boolean): Promise<void> {
  for (let waited = 0; !isSo(); waited++) {
    if (signing > 0) waited = 0
    if (waited === FOREVER) throw new Error(`waits for ever: ${what}`)
    await turn()
    if (waited % 8 === 7) vi.advanceTimersByTime(1)
  }
}

const sizeOf = (said: Said) => 256 + 2 * JSON.stringify(said).length

/** One run of a plan: its writers, and what they have said. */
class Writers {
  readonly plan: Plan
  /** How many values each writer has said. */
  readonly said = new Map<string, number>()
  /** Bytes on their way, of writers that wait and of those that do not. */
  readonly waiting = { streams: 0, reports: 0 }
  open = 0
  /** A tool was told that nobody reads any more: what it says is kept nowhere. */
  isLost = false

  constructor(plan: Plan) {
    this.plan = plan
  }

  get tools() {
    return this.plan.tools.map(({ kind, ...writing }, index) => {
      const name = `${kind}_${index}`
      const one = this
      const options = { name, description: name, input: z.looseObject({}), needsApproval: this.plan.claimed }
      return kind === 'streams'
        ? tool({
            ...options,
            execute: async function* () {
              yield* one.#say(name, writing, 'streams')
            },
          })
        : tool({
            ...options,
            execute: async (_, { progress, signal }) => {
              for await (const said of one.#say(name, writing, 'reports')) {
                progress(said)
                one.isLost ||= signal.aborted
              }
              return 'ok'
            },
          })
    })
  }

  get model() {
    const { plan } = this
    const one = this
    const calls = plan.tools.map(({ kind }, index): ModelEvent => {
      const name = `${kind}_${index}`
      return { type: 'tool-call', id: name, name, arguments: '{}' }
    })
    return {
      provider: 'test',
      id: 'test',
      async *stream({ messages }: { messages: readonly { role: string }[] }): AsyncGenerator<ModelEvent> {
        const isFirst = messages.at(-1)?.role === 'user'
        if (isFirst) yield* calls
        if (isFirst !== plan.claimed)
          for await (const said of one.#say('model', plan.model, 'streams'))
            yield { type: 'text-delta', delta: JSON.stringify(said) }
        else if (!isFirst) yield* say('done')
        yield { type: 'finish', reason: isFirst ? 'tool_calls' : 'stop' }
      },
    }
  }

  async *#say(
    writer: string,
    { count, pad, pace }: Writing,
    kind: 'streams' | 'reports',
  ): AsyncGenerator<Said, void> {
    this.open++
    try {
      for (let n = 0; n < count; n++) {
        for (let waited = 0; waited < pace; waited++) await turn()
        const said = { writer, n, pad: 'x'.repeat(pad) }
        this.said.set(writer, n + 1)
        this.waiting[kind] += sizeOf(said)
        yield said
      }
    } finally {
      this.open--
    }
  }

  /** The reader has it: it is the next one of its writer. */
  arrived(said: Said, read: Map<string, number>): void {
    const next = read.get(said.writer) ?? 0
    expect(said.n, `the next value of ${said.writer}`).toBe(next)
    read.set(said.writer, next + 1)
    this.waiting[said.writer.startsWith('reports') ? 'reports' : 'streams'] -= sizeOf(said)
    figures.values++
  }
}

async function drive(way: WayOut, plan: Plan): Promise<void> {
  vi.clearAllTimers()
  const writers = new Writers(plan)
  const { tools } = writers
  const agent = createAgent({
    model: writers.model,
    tools,
    runLog: memoryRunLog(),
    approvals: { secret: SECRET, ledger: memoryLedger() },
    warn: () => {},
    onError: () => {},
  })
  const claims = plan.claimed && way.hearsModel && way.name !== 'AI SDK'
  let given = input([user('go')])
  if (claims) {
    const { history, asked } = await ask(agent, {}, { context })
    given = input(history, { resume: asked.map((one) => answer(one, { approved: true })) })
  }
  const asksOnly = plan.claimed && !claims && way.hearsModel
  const peer = way.open(agent, given, tools)
  const read = new Map<string, number>()
  let ended: 'finished' | 'error' | 'closed' | undefined

  const readOnce = async () => {
    let settled = false
    const reading = peer.read().then(
      (events) => {
        settled = true
        if (events === 'end') ended ??= way.hearsModel ? 'closed' : 'finished'
        else
          for (const event of events) {
            const said = saidIn(event)
            if (said !== undefined) writers.arrived(said, read)
            ended ??= endIn(event)
          }
        return events === 'end'
      },
      (error: unknown) => {
        settled = true
        if (error instanceof Error && error.name === 'AssertionError') throw error
        ended ??= 'error'
        return true
      },
    )
    reading.catch(() => {})
    await until('the reader', () => settled)
    return reading
  }
  let over = false
  // what was not read of a run that lost its reader is kept nowhere
  let mayBeLost = plan.claimed && isFlood(plan)
  const check = () => {
    if (mayBeLost || writers.isLost) return
    const most = (kinds: readonly Writing[]) => Math.max(0, ...kinds.map(({ pad }) => 2 * pad + 1000))
    const streams = plan.tools.filter(({ kind }) => kind === 'streams')
    const reports = plan.tools.filter(({ kind }) => kind === 'reports')
    const beyond = way.buffers.reduce((sum, bytes) => sum + bytes + 2 * most([plan.model, ...plan.tools]), 0)
    const inHand = [plan.model, ...streams].reduce((sum, one) => sum + most([one]), 0)
    expect(writers.waiting.streams, 'bytes of those who wait').toBeLessThanOrEqual(PATIENCE + inHand + beyond)
    const reported = REPORTED + most(reports) + beyond
    expect(writers.waiting.reports, 'bytes of those who do not').toBeLessThanOrEqual(reported)
  }

  for (const step of plan.reader) {
    if (over) break
    switch (step.kind) {
      case 'reads':
        for (let times = 0; times < step.times && !over; times++) over = await readOnce()
        break
      case 'waits':
        await turns(step.turns)
        break
      case 'is silent':
        await vi.advanceTimersByTimeAsync(15_000)
        break
      case 'stalls':
        mayBeLost = true
        await vi.advanceTimersByTimeAsync(STALL)
        break
      default:
        step satisfies never
    }
    check()
  }
  await finish(way, plan, peer, writers, async () => {
    while (!over) {
      over = await readOnce()
      check()
    }
  })
  figures.plans++
  if (plan.last !== 'reads on') figures.left++
  else if (ended === 'finished') {
    figures.finished++
    const heard = (name: string) => (name === 'model' ? way.hearsModel : true)
    for (const [name, count] of asksOnly ? [] : countsOf(plan))
      if (heard(name)) expect(read.get(name), `values of ${name} in a run that finished`).toBe(count)
  } else {
    figures.lost++
    const mayEnd = plan.reader.some(({ kind }) => kind === 'stalls') || isFlood(plan) || isTooLong(way, plan)
    if (way.tellsLoss) expect(ended).toBe('error')
    expect(mayEnd, `the run ended (${ended}) for a reader that did nothing wrong`).toBe(true)
  }
}

async function finish(
  way: WayOut,
  { last }: Plan,
  peer: Peer,
  writers: Writers,
  readOn: () => Promise<void>,
): Promise<void> {
  switch (last) {
    case 'reads on':
      await readOn()
      break
    case 'leaves':
      peer.leave()
      break
    case 'stalls': {
      // first the served run loses its reader, and then whatever is behind it goes on
      const holds = () => writers.open + vi.getTimerCount() > 0 || peer.isHeld?.()
      for (let times = 0; times < 6 && (times < 2 || holds()); times++) {
        await turns(100)
        await until('a signature', () => signing === 0)
        await vi.advanceTimersByTimeAsync(STALL)
      }
      expect(writers.open, `writers that a stalled reader of ${way.name} holds`).toBe(0)
      expect(vi.getTimerCount(), `timers that a stalled reader of ${way.name} holds`).toBe(0)
      expect(peer.isHeld?.() ?? false, `whether the server waits for a stalled reader of ${way.name}`).toBe(
        false,
      )
      peer.leave()
      break
    }
    default:
      last satisfies never
  }
  await until('a writer', () => writers.open === 0)
  await turns(5)
  await vi.advanceTimersByTimeAsync(100)
  await until('a timer', () => vi.getTimerCount() === 0)
}

const countsOf = ({ model, tools }: Plan): readonly (readonly [string, number])[] => [
  ['model', model.count],
  ...tools.map(({ kind, count }, index) => [`${kind}_${index}`, count] as const),
]

/** Whether its tools report more than may be unread. */
function isFlood({ tools }: Plan): boolean {
  const reports = tools.filter(({ kind }) => kind === 'reports')
  return reports.reduce((sum, { count, pad }) => sum + count * (2 * pad + 1000), 0) > REPORTED
}

/** Whether a run says more than the run log keeps of one. */
function isTooLong({ name }: WayOut, { model, tools }: Plan): boolean {
  const length = [model, ...tools].reduce((sum, { count, pad }) => sum + count * (pad + 500), 0)
  return name === 'run log' && length > 4 * KIB * KIB
}

test.each(waysOut)(
  'F1 F11 $name: every value arrives in order or the run ends, nobody waits for ever, and nothing is left',
  { timeout: 1_800_000 },
  async (way) => {
    await fc.assert(
      fc.asyncProperty(plan, (one) => drive(way, one)),
      { seed, numRuns: plans },
    )
  },
)

type Act =
  | { readonly kind: 'answers'; readonly id: number; readonly approved: boolean }
  | { readonly kind: 'asks'; readonly id: number }
  | { readonly kind: 'withdraws'; readonly which: number }
  | { readonly kind: 'time goes by' }

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constant('answers' as const), id: fc.nat(3), approved: fc.boolean() }),
  fc.record({ kind: fc.constant('asks' as const), id: fc.nat(3) }),
  fc.record({ kind: fc.constant('withdraws' as const), which: fc.nat(5) }),
  fc.constant({ kind: 'time goes by' as const }),
)

test('F11 live answers: each gets one word, each question one answer or the end, and no answer is swallowed', async () => {
  const one = fc.asyncProperty(fc.array(act, { maxLength: 30 }), fc.boolean(), async (acts, forgets) => {
    const queue = answerQueue(forgets ? { keepEarly: 1000 } : {})
    const words: (Delivery | undefined)[] = []
    const questions: { told: number; withdrawn: boolean; answered: boolean; leave: () => void }[] = []
    for (const one of acts) {
      switch (one.kind) {
        case 'answers': {
          const index = words.push(undefined) - 1
          const payload = { approved: one.approved }
          const put = queue.put({ interruptId: String(one.id), status: 'resolved', payload })
          void put.then((word) => {
            words[index] = word
          })
          break
        }
        case 'asks': {
          const question = { told: 0, withdrawn: false, answered: false, leave: () => {} }
          questions.push(question)
          question.leave = queue.take(String(one.id), (entry) => {
            question.told++
            question.answered = entry !== undefined
          })
          break
        }
        case 'withdraws': {
          const question = questions[one.which]
          if (question !== undefined && question.told === 0) {
            question.withdrawn = true
            question.leave()
          }
          break
        }
        case 'time goes by':
          await vi.advanceTimersByTimeAsync(1000)
          // an answer that came early and has waited long enough was refused
          if (forgets) expect(words).not.toContain(undefined)
          break
        default:
          one satisfies never
      }
      await turn()
    }
    queue.close()
    await turn()
    expect(words).not.toContain(undefined)
    for (const { told, withdrawn } of questions) expect(told).toBe(withdrawn ? 0 : 1)
    // who is told that an answer was taken is told so of one that a question got: the same again counts with it
    const answered = questions.filter(({ answered }) => answered).length
    const taken = words.filter((word) => word?.status === 'taken').length
    expect(taken).toBeGreaterThanOrEqual(answered)
    if (answered === 0) expect(taken).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })
  await fc.assert(one, { seed, numRuns: full ? 20_000 : 500 })
})
