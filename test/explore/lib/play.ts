import { takeRejections } from '../../../packages/testing/src/suites/binding/rejections.js'
import { type Chooser, type Decisions, replaying } from './choices.js'
import { checkEnd, checkIdle } from './end-checks.js'
import { type Facts, isOpen, type ServedRun, violate } from './facts.js'
import { hash } from './hash.js'
import type { Violation } from './invariants.js'
import type { ClientModule, FaultName, Model } from './model.js'
import { type Moment, type Observed, trace } from './observed.js'
import { type Act, enabledActs, perform } from './user.js'
import { keyOf } from './view-checks.js'
import { type ToolRun, World } from './world.js'

/** One timeline, as it was. */
export interface Played {
  readonly log: readonly Observed[]
  readonly violations: readonly Violation[]
  readonly decisions: Chooser['taken']
  readonly trace: number
}

/** What may happen next. */
type Step =
  | { readonly step: 'piece'; readonly run: ServedRun }
  | { readonly step: 'end'; readonly run: ServedRun }
  | { readonly step: 'fault'; readonly run: ServedRun; readonly fault: FaultName }
  | { readonly step: 'return'; readonly tool: ToolRun }
  | { readonly step: 'act'; readonly act: Act }

/** When the events of a stopped stream still come. */
type Lateness = 'at once' | 'in the next run' | 'at the end' | 'never: it breaks off'
const latenesses: readonly Lateness[] = ['at once', 'in the next run', 'at the end', 'never: it breaks off']

/** A timeline has at most so many steps; a client that needs more does not settle. */
const maxSteps = 600

/** Plays one timeline of a model: whenever more than one thing may happen next, `chooser` says which. Never rejects. */
export async function play(
  module: ClientModule,
  model: Model,
  chooser: Chooser,
  onState: (state: number) => void = () => {},
): Promise<Played> {
  const player = new Player(module, model, chooser, onState)
  await player.play()
  const { log, violations } = player.facts
  return { log, violations, decisions: chooser.taken, trace: hash(`${model.mode}\n${trace(log)}`) }
}

class Player {
  readonly #world: World
  readonly #model: Model
  readonly #chooser: Chooser
  readonly #onState: (state: number) => void
  readonly #told: Promise<void>[] = []
  readonly #late = new Map<ServedRun, Lateness>()
  #deviations: number
  #faults: number
  #resumed = 0

  constructor(module: ClientModule, model: Model, chooser: Chooser, onState: (state: number) => void) {
    this.#model = model
    this.#chooser = chooser
    this.#onState = onState
    this.#deviations = model.deviations
    this.#faults = model.faults ? (model.maxFaults ?? 1) : 0
    this.#world = new World(module, model, (moment) => this.#mayAct(moment))
  }

  get facts(): Facts {
    return this.#world.facts
  }

  async play(): Promise<void> {
    this.#do({ act: 'send', text: 'u1' }, { at: 'between' })
    for (let steps = 0; ; steps++) {
      await this.#settle()
      if (this.facts.violations.length > 0) break
      const step = this.#choose()
      if (!step || this.facts.violations.length > 0) break
      if (steps === maxSteps) {
        violate(this.facts, 'settles', `It has not come to an end after ${maxSteps} steps.`)
        break
      }
      await this.#take(step)
      this.#noteState()
    }
    if (this.facts.violations.length === 0) checkEnd(this.facts)
    this.facts.client.dispose()
    for (const run of this.facts.runs) if (!run.stream.over) run.stream.end()
    for (const reason of await takeRejections()) violate(this.facts, 'rejection', String(reason))
  }

  /** Lets everything happen that happens by itself. */
  async #settle(): Promise<void> {
    const calm = 16
    for (let i = 0; i < calm; i++) await undefined
    this.#world.checkView()
  }

  /** The planned step, or one out of turn. */
  #choose(): Step | undefined {
    const planned = this.#planned()
    const others = this.#deviations > 0 ? this.#others(planned) : []
    const options = planned ? [planned, ...others] : others
    const choice = this.#chooser.choose(planned ? options.length : options.length + 1)
    if (!planned) {
      if (choice === 0) return undefined
      this.#deviations--
      return options[choice - 1]
    }
    if (choice > 0) this.#deviations--
    return options[choice]
  }

  #planned(): Step | undefined {
    const late = this.#lateRun()
    if (late) return stepOf(late)
    const open = this.facts.runs.find(isOpen)
    if (open) return stepOf(open)
    const tool = this.#world.tools.find((tool) => !tool.returned)
    if (tool) return { step: 'return', tool }
    const act = this.#plannedAct()
    if (act) return { step: 'act', act }
    const left = this.facts.runs.find((run) => this.#late.get(run) === 'at the end' && !run.stream.over)
    return left && stepOf(left)
  }

  #lateRun(): ServedRun | undefined {
    const last = this.facts.runs.at(-1)
    return this.facts.runs.find((run) => {
      if (run.stream.over || !run.stream.signal.aborted) return false
      const when = this.#late.get(run)
      return when === 'at once' || (when === 'in the next run' && last !== run && last?.acknowledged === true)
    })
  }

  /** What the user does where nothing moves any more: answer, retry, say something that takes the queue along. */
  #plannedAct(): Act | undefined {
    const { pendingApprovals, error, queue } = this.facts.client.getSnapshot()
    const [first] = pendingApprovals
    if (first?.approval) return { act: 'approve', id: first.approval.id }
    if (error) return { act: 'retry' }
    checkIdle(this.facts)
    if (this.#resumed < this.facts.runs.length) return { act: 'retry' }
    if (queue.length > 0) return { act: 'send', text: `u${this.facts.said.length + 1}` }
    return undefined
  }

  #others(planned: Step | undefined): Step[] {
    const acts = enabledActs(this.#model, this.facts).map((act): Step => ({ step: 'act', act }))
    const fresh = acts.filter((step) => !(planned?.step === 'act' && isSame(step, planned)))
    const run = this.facts.runs.find(isOpen)
    if (!run || this.#faults === 0 || run.sent >= run.pieces.length) return fresh
    const faults = (this.#model.faults ?? []).map((fault): Step => ({ step: 'fault', run, fault }))
    return [...fresh, ...faults]
  }

  async #take(step: Step): Promise<void> {
    const { microtasks = 0, early = false } = this.#model
    switch (step.step) {
      case 'piece':
        this.#send(step.run)
        if (isLast(step.run)) return this.#mayActAfter(microtasks)
        return this.#mayActAfter(early ? 1 : 0)
      case 'end':
        this.facts.log.push({ kind: 'ended', run: step.run.number, how: 'end' })
        step.run.stream.end()
        return this.#mayActAfter(microtasks)
      case 'fault':
        this.#faults--
        this.#break(step.run, step.fault)
        return this.#mayActAfter(microtasks)
      case 'return':
        step.tool.returned = true
        this.facts.log.push({ kind: 'tool', id: step.tool.id, what: 'returns' })
        step.tool.finish()
        return this.#mayActAfter(microtasks)
      case 'act':
        this.#do(step.act, { at: 'between' })
        this.#mayAct({ at: 'same-tick' })
        return
      default:
        return step satisfies never
    }
  }

  #send(run: ServedRun): void {
    const piece = run.pieces[run.sent++] ?? []
    this.facts.log.push({ kind: 'sent', run: run.number, piece })
    run.stream.push(piece)
  }

  #break(run: ServedRun, fault: FaultName): void {
    this.facts.log.push({ kind: 'ended', run: run.number, how: fault })
    if (fault === 'cut') {
      run.stream.fail(new TypeError('The connection was reset.'))
      return
    }
    if (fault === 'error') run.stream.push({ type: 'RUN_ERROR', message: 'The model is not available.' })
    run.stream.end()
  }

  /** Before each of so many microtasks the user may act. */
  async #mayActAfter(count: number): Promise<void> {
    let before = -1
    for (let i = 0; i < count; i++) {
      const now = this.facts.log.length
      if (now !== before || !this.#model.sparse) this.#mayAct({ at: 'microtask', count: i })
      before = now
      await undefined
    }
  }

  #mayAct(moment: Moment): void {
    if (this.#deviations === 0 || this.facts.violations.length > 0) return
    const acts = enabledActs(this.#model, this.facts)
    const act = acts[this.#chooser.choose(acts.length + 1) - 1]
    if (!act) return
    this.#deviations--
    this.#do(act, moment)
  }

  #do(act: Act, moment: Moment): void {
    const open = this.facts.runs.find(isOpen)
    if (act.act === 'retry' && !open) this.#resumed = this.facts.runs.length
    if (act.act === 'stop') this.#resumed = 0
    this.#told.push(perform(this.facts, this.#model, act, moment))
    this.#world.checkView()
    if (act.act === 'stop' && open?.stream.signal.aborted) this.#leave(open)
  }

  /** A stream was stopped: what becomes of what was on its way. */
  #leave(run: ServedRun): void {
    if (run.stream.over) return
    const choice = this.#model.late ? this.#chooser.choose(latenesses.length) : 0
    const when = latenesses[choice] ?? 'at once'
    this.#late.set(run, when)
    if (when !== 'never: it breaks off') return
    this.facts.log.push({ kind: 'ended', run: run.number, how: 'aborted' })
    run.stream.fail(new DOMException('The request was aborted.', 'AbortError'))
  }

  #noteState(): void {
    const { client, runs, answers } = this.facts
    const { messages, status, queue } = client.getSnapshot()
    const { continuationPending, continuationSkipped } = client.inspect()
    const view = messages.map(keyOf).join()
    const server = runs.map(({ sent, acknowledged, end }) => `${sent}${acknowledged}${end}`).join()
    const given = [...answers].map(([id, { approved }]) => `${id}${approved}`).join()
    this.#onState(
      hash([view, status, queue.length, continuationPending, continuationSkipped, server, given].join('|')),
    )
  }
}

function stepOf(run: ServedRun): Step {
  return run.sent < run.pieces.length ? { step: 'piece', run } : { step: 'end', run }
}

function isLast({ sent, pieces }: ServedRun): boolean {
  return sent === pieces.length
}

function isSame(a: Step, b: Step): boolean {
  return a.step === 'act' && b.step === 'act' && JSON.stringify(a.act) === JSON.stringify(b.act)
}

/** Plays a timeline again. */
export function replay(module: ClientModule, model: Model, decisions: Decisions): Promise<Played> {
  return play(module, model, replaying(decisions))
}
