import type { RunAgentInput } from '@countersign/core'
import {
  ask,
  call,
  cancelled,
  custom,
  denied,
  type EventStep,
  error,
  failure,
  finish,
  reasoning,
  result,
  type ScriptedEvent,
  text,
} from '@countersign/testing'
import * as fc from 'fast-check'
import { createBook, createWriter } from '../../../packages/testing/src/writer.js'

/** The request that a generated run answers. Default: an empty one of thread `thread`, run `run`. */
type Answered = Pick<RunAgentInput, 'threadId' | 'runId'> & Partial<RunAgentInput>

const emptyRequest: RunAgentInput = {
  threadId: 'thread',
  runId: 'run',
  messages: [],
  tools: [],
  context: [],
}

/** The steps of a run: texts, reasoning, custom events, and tool calls that are asked about, left open or settled. */
function arbitrarySteps(): fc.Arbitrary<readonly EventStep[]> {
  const part = fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 })
        .map((words) => ['text', words] as const),
    },
    { weight: 1, arbitrary: fc.string({ minLength: 1 }).map((words) => ['reasoning', words] as const) },
    { weight: 1, arbitrary: fc.jsonValue().map((value) => ['custom', value] as const) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 3 }), arbitraryFate)
        .map((made) => ['call', made] as const),
    },
  )
  return fc.array(part, { maxLength: 8 }).map((parts) =>
    parts.flatMap((given, index): EventStep[] => {
      switch (given[0]) {
        case 'text':
          return [text(...given[1])]
        case 'reasoning':
          return [reasoning(given[1])]
        case 'custom':
          return [custom('note', given[1])]
        case 'call':
          return [call(`c${index}`, 'some_tool', given[1][0]), ...fateOf(given[1][1], index)]
        default:
          return given satisfies never
      }
    }),
  )
}

type Fate = 'open' | 'asked' | 'done' | 'denied' | 'cancelled' | 'failed'

const arbitraryFate: fc.Arbitrary<Fate> = fc.constantFrom(
  'open',
  'asked',
  'asked',
  'done',
  'denied',
  'cancelled',
  'failed',
)

function fateOf(fate: Fate, index: number): EventStep[] {
  const id = `c${index}`
  switch (fate) {
    case 'open':
      return []
    case 'asked':
      return [ask(`a${index}`, id)]
    case 'done':
      return [result(id)]
    case 'denied':
      return [denied(id)]
    case 'cancelled':
      return [cancelled(id)]
    case 'failed':
      return [failure(id)]
    default:
      return fate satisfies never
  }
}

/** The events of one valid run, RUN_STARTED to RUN_FINISHED or RUN_ERROR. */
export function arbitraryRun(request: Answered = emptyRequest): fc.Arbitrary<readonly ScriptedEvent[]> {
  const last = fc.oneof(
    { weight: 5, arbitrary: fc.constant(finish()) },
    { weight: 1, arbitrary: fc.constant(error()) },
  )
  return fc.tuple(arbitrarySteps(), last).map(([steps, end]) => {
    const write = createWriter({ ...emptyRequest, ...request }, createBook())
    return [...steps, end].flatMap(write)
  })
}

/**
 * A valid run with one to three faults in it: events that are lost, doubled or in the wrong order, that name something else, or that are
 * missing at the end. Most break a rule of AG-UI; some happen to be valid.
 */
export function arbitraryFaultyRun(request: Answered = emptyRequest): fc.Arbitrary<readonly ScriptedEvent[]> {
  const fault = fc.record({ kind: fc.constantFrom(...Object.values(faults)), at: fc.nat(), other: fc.nat() })
  return fc
    .tuple(arbitraryRun(request), fc.array(fault, { minLength: 1, maxLength: 3 }))
    .map(([run, given]) =>
      given.reduce((events, { kind, at, other }) => {
        const { length } = events
        return length === 0 ? events : kind(events, at % length, other % length)
      }, run),
    )
}

type Fault = (events: readonly ScriptedEvent[], at: number, other: number) => readonly ScriptedEvent[]

const faults: Readonly<Record<'lose' | 'double' | 'swap' | 'rename' | 'cutOff', Fault>> = {
  lose: (events, at) => events.toSpliced(at, 1),
  double: (events, at, other) => events.toSpliced(other, 0, ...events.slice(at, at + 1)),
  swap: (events, at) => [
    ...events.slice(0, at),
    ...events.slice(at, at + 2).reverse(),
    ...events.slice(at + 2),
  ],
  rename: (events, at) => events.map((event, index) => (index === at ? renamed(event) : event)),
  cutOff: (events, at) => events.slice(0, at),
}

function renamed(event: ScriptedEvent): ScriptedEvent {
  const ids = ['messageId', 'toolCallId', 'runId', 'threadId']
  const changed = Object.entries(event).map(([key, value]) => [
    key,
    ids.includes(key) ? `other-${value}` : value,
  ])
  return { ...Object.fromEntries(changed), type: event.type }
}
