import type { RunAgentInput } from '@countersign/core'
import { ScriptError } from './script-error.js'
import { endOf, printStep, type Step, type StreamEnd } from './steps.js'
import { createTimeline, type Timeline } from './timeline.js'
import { createGate, type Gate, macrotasks, microtasks, within } from './waiting.js'
import { createBook, createWriter, type ScriptedEvent } from './writer.js'

/**
 * What the server does with one request: steps (nested, as helpers return them), a generator of steps that
 * may inspect the request, or `byHand`: nothing until the test drives it through {@link ScriptedRun}.
 */
export type RunScript =
  | Steps
  | typeof byHand
  | ((input: RunAgentInput, run: number) => Steps | Iterable<Step> | AsyncIterable<Step>)

export type Steps = readonly (Step | Steps)[]

/** The run is driven by the test. */
export const byHand = 'by hand'

export interface ScriptOptions {
  /** Where events are recorded. Default: a new timeline. */
  timeline?: Timeline
  /** The script for requests beyond `runs`. Default: fail the request. */
  otherwise?: RunScript
  /** The server continues after the client has disconnected, like a transport that cannot be cancelled. Default: it stops. */
  deaf?: boolean
}

/** A scripted server, over any transport. */
export interface Script {
  /** Every request that arrived. */
  readonly requests: readonly RunAgentInput[]
  readonly timeline: Timeline
  /** How many streams are open now, and the maximum so far. A stream whose client has disconnected is not open. */
  readonly openStreams: number
  readonly mostStreams: number
  /** The open stream; the latest if there are several. */
  openRun(): ScriptedRun | undefined
  /** The run of request `number` (from 1), once it has arrived. Fails after 5 s. */
  request(number: number): Promise<ScriptedRun>
  /** Lets a script continue past `hold(name)`, even if it has not reached it yet. */
  release(name?: string): void
  /** Resolves when a script waits at `hold(name)`. Fails when the last run has ended without it, or after 5 s. */
  held(name?: string): Promise<void>
}

/** One request and its stream. */
export interface ScriptedRun {
  readonly number: number
  readonly input: RunAgentInput
  /** Resolves when the stream has ended, to how: as scripted, or because the client disconnected. */
  readonly closed: Promise<StreamEnd>
  /** Drives a run that is scripted `byHand`. */
  emit(...steps: Steps): void
}

/** What a transport must carry. */
export type Frame =
  | { readonly kind: 'event'; readonly event: ScriptedEvent }
  | { readonly kind: 'cut'; readonly message: string }
  | { readonly kind: 'respond'; readonly status: number; readonly contentType: string; readonly body: string }
  | { readonly kind: 'bytes'; readonly text: string }

/** A script and its interface to a transport. */
export interface ScriptHost {
  readonly script: Script
  /** Called for a request: its frames, each produced when the transport asks for it. */
  answer(input: RunAgentInput, signal: AbortSignal): AsyncGenerator<Frame, void, undefined>
}

export function createScript(runs: readonly RunScript[], options: ScriptOptions = {}): ScriptHost {
  const { timeline = createTimeline(), deaf = false } = options
  const book = createBook()
  const requests: RunAgentInput[] = []
  const opened: OpenedRun[] = []
  /** Open streams, until their client disconnects. */
  const streaming = new Map<OpenedRun, AbortSignal>()
  const open = () => [...streaming].filter(([, signal]) => !signal.aborted).map(([run]) => run)
  const arrivals = named()
  const released = named()
  const reached = named()
  let mostStreams = 0

  const endedTooEarly = (reason: string) => new ScriptError(reason, timeline.print())
  /** Opened when every run has been played and closed. Another request may still arrive, but only to fail. */
  const over = createGate()

  async function* answer(input: RunAgentInput, signal: AbortSignal): AsyncGenerator<Frame, void, undefined> {
    const run = openRun(opened.length + 1, input)
    requests.push(input)
    opened.push(run)
    streaming.set(run, signal)
    mostStreams = Math.max(mostStreams, open().length)
    timeline.add({ kind: 'request', run: run.number, input })
    arrivals(`${run.number}`).open()
    let how: StreamEnd = 'aborted'
    const note = (end: StreamEnd) => {
      how = end
    }
    try {
      yield* play(run, note, deaf ? new AbortController().signal : signal)
    } finally {
      streaming.delete(run)
      if (opened.length >= runs.length && streaming.size === 0 && options.otherwise === undefined) over.open()
      timeline.add({ kind: 'closed', run: run.number, how })
      run.close(how)
    }
  }

  async function* play(
    run: OpenedRun,
    note: (how: StreamEnd) => void,
    signal: AbortSignal,
  ): AsyncGenerator<Frame, void, undefined> {
    const write = createWriter(run.input, book)
    let end: StreamEnd | undefined
    for await (const step of stepsOf(run, signal)) {
      if (signal.aborted) return
      end = endOf(step) ?? end
      switch (step.step) {
        case 'end':
          return note('ended')
        case 'cut':
          // Noted before the yield, because the transport does not resume the generator after a cut.
          note('cut')
          yield { kind: 'cut', message: step.message }
          return
        case 'respond':
          note('ended')
          yield { kind: 'respond', status: step.status, contentType: step.contentType, body: step.body }
          return
        case 'bytes':
          yield { kind: 'bytes', text: step.text }
          break
        case 'hold':
        case 'microtasks':
        case 'macrotasks':
        case 'action':
          timeline.add({ kind: 'note', run: run.number, text: printStep(step) })
          await Promise.race([pause(step), gone(signal)])
          break
        default:
          yield* send(run, write(step), signal)
      }
    }
    if (signal.aborted) return
    if (end === undefined) yield* send(run, write({ step: 'finish', options: {} }), signal)
    note(end ?? 'finished')
  }

  async function pause(step: Step): Promise<unknown> {
    switch (step.step) {
      case 'hold':
        reached(step.name).open()
        return released(step.name).opened
      case 'microtasks':
        return microtasks(step.count)
      case 'macrotasks':
        return macrotasks(step.count)
      case 'action':
        // Not awaited: the stream must not wait for the consequences of an answer.
        step.action()
        return undefined
      default:
        return undefined
    }
  }

  function* send(
    run: OpenedRun,
    events: readonly ScriptedEvent[],
    signal: AbortSignal,
  ): Generator<Frame, void, undefined> {
    for (const event of events) {
      if (signal.aborted) return
      timeline.add({ kind: 'event', run: run.number, event })
      yield { kind: 'event', event }
    }
  }

  async function* stepsOf(run: OpenedRun, signal: AbortSignal): AsyncGenerator<Step, void, undefined> {
    const script = runs[run.number - 1] ?? options.otherwise
    if (script === undefined) {
      const reason = `request ${run.number} arrived, and the script has ${runs.length === 1 ? '1 run' : `${runs.length} runs`}`
      throw endedTooEarly(`${reason}. Add a run, or pass { otherwise }`)
    }
    if (script === byHand) yield* run.steps(signal)
    else {
      const steps: Iterable<Step | Steps> | AsyncIterable<Step> =
        typeof script === 'function' ? script(run.input, run.number) : script
      for await (const step of steps) yield* flat(step)
    }
  }

  const missed = (name: string) => endedTooEarly(`it did not come to hold("${name}")`)

  const script: Script = {
    timeline,
    requests,
    get openStreams() {
      return open().length
    },
    get mostStreams() {
      return mostStreams
    },
    openRun: () => open().at(-1),
    async request(number) {
      await within(
        5000,
        arrivals(`${number}`).opened,
        () => `Request ${number} did not arrive.\n${timeline.print()}`,
      )
      const run = opened[number - 1]
      if (!run) throw new RangeError(`Requests are counted from 1, not from ${number}.`)
      return run
    },
    release: (name = 'hold') => released(name).open(),
    held: (name = 'hold') =>
      within(
        5000,
        Promise.race([reached(name).opened, over.opened.then(() => Promise.reject(missed(name)))]),
        () => `No script came to hold("${name}").\n${timeline.print()}`,
      ),
  }
  return { script, answer }
}

/** Gates by name, created on demand. */
function named(): (name: string) => Gate {
  const gates = new Map<string, Gate>()
  return (name) => {
    const gate = gates.get(name) ?? createGate()
    gates.set(name, gate)
    return gate
  }
}

interface OpenedRun extends ScriptedRun {
  /** The steps that the test emits, until one ends the run. */
  steps(signal: AbortSignal): AsyncGenerator<Step, void, undefined>
  close(how: StreamEnd): void
}

function openRun(number: number, input: RunAgentInput): OpenedRun {
  const waiting: Step[] = []
  let more = createGate()
  let close: (how: StreamEnd) => void = () => {}
  const closed = new Promise<StreamEnd>((resolve) => {
    close = resolve
  })

  async function* steps(signal: AbortSignal): AsyncGenerator<Step, void, undefined> {
    while (!signal.aborted) {
      const step = waiting.shift()
      if (step) {
        yield step
        if (endOf(step)) return
      } else {
        more = createGate()
        await Promise.race([more.opened, gone(signal)])
      }
    }
  }

  return {
    number,
    input,
    closed,
    close: (how) => close(how),
    steps,
    emit(...given) {
      for (const step of given) waiting.push(...flat(step))
      more.open()
    },
  }
}

function* flat(step: Step | Steps): Generator<Step, void, undefined> {
  if ('step' in step) yield step
  else for (const inner of step) yield* flat(inner)
}

/** Resolved when the client has disconnected, by signal. */
const departures = new WeakMap<AbortSignal, Promise<void>>()

/** Resolves when the client has disconnected. Adds one listener per signal, however often it is called. */
function gone(signal: AbortSignal): Promise<void> {
  const known = departures.get(signal)
  if (known) return known
  const departure = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
  departures.set(signal, departure)
  return departure
}
