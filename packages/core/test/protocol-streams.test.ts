import { type AGUIEvent, type EventType, isCountersignError } from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import fc from 'fast-check'
import { expect, expectTypeOf, test } from 'vitest'

const seed = Number(process.env.SEED ?? 20_261_121)
const numRuns = Number(process.env.RUNS ?? 400)

/** What can be open in a run: how it is opened, continued and closed. */
const things = [
  {
    start: (messageId: string) => ({ type: 'TEXT_MESSAGE_START', messageId }),
    grow: (messageId: string) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: 'x' }),
    end: (messageId: string) => ({ type: 'TEXT_MESSAGE_END', messageId }),
  },
  {
    start: (toolCallId: string) => ({ type: 'TOOL_CALL_START', toolCallId, toolCallName: 'remove' }),
    grow: (toolCallId: string) => ({ type: 'TOOL_CALL_ARGS', toolCallId, delta: '{' }),
    end: (toolCallId: string) => ({ type: 'TOOL_CALL_END', toolCallId }),
  },
  {
    start: (messageId: string) => ({ type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' }),
    grow: (messageId: string) => ({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta: 'x' }),
    end: (messageId: string) => ({ type: 'REASONING_MESSAGE_END', messageId }),
  },
  {
    start: (messageId: string) => ({ type: 'REASONING_START', messageId }),
    end: (messageId: string) => ({ type: 'REASONING_END', messageId }),
  },
  {
    start: (stepName: string) => ({ type: 'STEP_STARTED', stepName }),
    end: (stepName: string) => ({ type: 'STEP_FINISHED', stepName }),
  },
  {
    start: (subagentRunId: string) => ({ type: 'SUBAGENT_STARTED', subagentRunId, name: 'n' }),
    end: (subagentRunId: string) => ({ type: 'SUBAGENT_FINISHED', subagentRunId }),
  },
] satisfies Record<string, (id: string) => AGUIEvent>[]

const asides: AGUIEvent[] = [
  { type: 'RAW', event: null },
  { type: 'CUSTOM', name: 'n', value: 1 },
  { type: 'STATE_SNAPSHOT', snapshot: {} },
  { type: 'TOOL_CALL_RESULT', messageId: 'result', toolCallId: 'of another run', content: '' },
]

/** The body of one run: `plan` says at each turn which thing moves; all that is open at the end is closed. */
function body(plan: readonly (readonly [number, number])[]): AGUIEvent[] {
  const open = new Map<string, AGUIEvent>()
  const events = plan.flatMap(([turn, which], index): AGUIEvent[] => {
    const thing = things[which % things.length]
    const aside = asides[which % asides.length]
    const [oldest] = open
    if (turn === 0 && oldest) {
      open.delete(oldest[0])
      return [oldest[1]]
    }
    if (turn === 1 && aside) return [aside]
    if (!thing) return []
    const id = `${which}-${index}`
    open.set(id, thing.end(id))
    const grow = 'grow' in thing ? [thing.grow(id), thing.grow(id)] : []
    return [thing.start(id), ...grow]
  })
  return [...events, ...open.values()]
}

const started = (run: number): AGUIEvent => ({ type: 'RUN_STARTED', threadId: 't', runId: `r${run}` })
const finished = (run: number): AGUIEvent => ({ type: 'RUN_FINISHED', threadId: 't', runId: `r${run}` })

const plan = fc.array(fc.tuple(fc.nat(3), fc.nat(5)), { minLength: 1, maxLength: 20 })
const legal = fc
  .array(plan, { minLength: 1, maxLength: 3 })
  .map((plans) => plans.flatMap((one, run) => [started(run), ...body(one), finished(run)]))

function verdict(events: readonly unknown[]): { delivered: AGUIEvent[]; code?: string } {
  const delivered: AGUIEvent[] = []
  const reader = createEventReader({ threadId: 't' })
  try {
    for (const event of events) reader.push(event, (next) => delivered.push(next))
    reader.end()
    return { delivered }
  } catch (error) {
    if (!isCountersignError(error)) throw error
    return { delivered, code: error.code }
  }
}

test('a random legal stream passes, every event as the very same object', () => {
  const property = fc.property(legal, (events) => {
    const { delivered, code } = verdict(events)
    expect(code).toBeUndefined()
    expect(delivered).toHaveLength(events.length)
    for (const [index, event] of events.entries()) expect(delivered[index]).toBe(event)
  })
  fc.assert(property, { seed, numRuns })
})

type Mutation = (events: AGUIEvent[], at: number) => unknown[]

const without: Mutation = (events, at) => events.toSpliced(at, 1)
const twice: Mutation = (events, at) => events.toSpliced(at, 0, events[at] ?? started(0))
const change =
  (fields: object): Mutation =>
  (events, at) =>
    events.toSpliced(at, 1, { ...events[at], ...fields } as AGUIEvent)

const opener = /_(START|STARTED)$/
const closer = /_(END|FINISHED)$/
const growth = /_(CONTENT|ARGS)$/
const bracketed = /^(TEXT|TOOL|REASONING|STEP|SUBAGENT)/

const mutations: Record<string, { at: (type: EventType) => boolean; mutate: Mutation; code?: string }> = {
  'drop an opener': { at: (type) => bracketed.test(type) && opener.test(type), mutate: without },
  'repeat an opener': { at: (type) => opener.test(type), mutate: twice },
  'drop a closer': { at: (type) => bracketed.test(type) && closer.test(type), mutate: without },
  'repeat a closer': { at: (type) => closer.test(type), mutate: twice },
  'rename the id of a delta': {
    at: (type) => growth.test(type),
    mutate: change({ messageId: 'other', toolCallId: 'other' }),
  },
  'give a delta to a subagent': {
    at: (type) => growth.test(type),
    mutate: change({ subagentRunId: 'other' }),
  },
  'drop RUN_STARTED': { at: (type) => type === 'RUN_STARTED', mutate: without },
  'drop RUN_FINISHED': { at: (type) => type === 'RUN_FINISHED', mutate: without },
  'finish another run': { at: (type) => type === 'RUN_FINISHED', mutate: change({ runId: 'other' }) },
  'finish on another thread': {
    at: (type) => type === 'RUN_FINISHED',
    mutate: change({ threadId: 'other' }),
  },
  'start on another thread': { at: (type) => type === 'RUN_STARTED', mutate: change({ threadId: 'other' }) },
  'go on after the end': {
    at: (type) => type === 'RUN_FINISHED',
    mutate: (events, at) => events.toSpliced(at + 1, 0, { type: 'CUSTOM', name: 'late', value: 1 }),
  },
  'fail and go on': {
    at: (type) => type === 'RUN_FINISHED',
    mutate: (events, at) => events.toSpliced(at, 0, { type: 'RUN_ERROR', message: 'no' }),
  },
  'cut the stream': { at: () => true, mutate: (events, at) => events.slice(0, at), code: 'truncated-stream' },
  'null an id': {
    at: (type) => growth.test(type),
    mutate: change({ messageId: null, toolCallId: null }),
    code: 'malformed-event',
  },
}

/** Where a mutation with this effect leaves a legal stream behind after all. */
function harmless(name: string, events: AGUIEvent[], at: number): boolean {
  // Cut right after a run, what is left is a whole stream.
  return name === 'cut the stream' && events[at - 1]?.type === 'RUN_FINISHED'
}

for (const [name, { at, mutate, code }] of Object.entries(mutations)) {
  test(`${name}: no legal stream survives it`, () => {
    const property = fc.property(legal, fc.nat(), (events, pick) => {
      const places = [...events.keys()].filter((index) => {
        const event = events[index]
        return event !== undefined && at(event.type) && !harmless(name, events, index)
      })
      const place = places[pick % places.length]
      fc.pre(place !== undefined)
      const found = verdict(mutate(events, place)).code
      if (code) expect(found).toBe(code)
      else expect(['protocol-violation', 'truncated-stream', 'malformed-event']).toContain(found)
    })
    fc.assert(property, { seed, numRuns: numRuns / 4 })
  })
}

test('an event is written and narrowed with plain string literals', () => {
  const event: AGUIEvent = { type: 'TEXT_MESSAGE_START', messageId: 'm1' }
  const id = (next: AGUIEvent): string | undefined => {
    switch (next.type) {
      case 'TEXT_MESSAGE_START':
        expectTypeOf(next.role).toEqualTypeOf<'developer' | 'system' | 'assistant' | 'user' | undefined>()
        return next.messageId
      case 'TOOL_CALL_START':
        return next.toolCallId
      case 'RUN_FINISHED':
        return next.outcome?.type === 'interrupt' ? next.outcome.interrupts[0]?.id : next.runId
      default:
        return undefined
    }
  }
  expect(id(event)).toBe('m1')
  // @ts-expect-error: a delta without its message
  const wrong: AGUIEvent = { type: 'TEXT_MESSAGE_CONTENT', delta: 'x' }
  expect(wrong.type).toBe('TEXT_MESSAGE_CONTENT')
})

test('a delta that follows its like is checked as the first one was', () => {
  const delta = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'a' }
  const open = () => {
    const events: AGUIEvent[] = []
    const warnings: string[] = []
    const reader = createEventReader({ onWarning: ({ code }) => warnings.push(code) })
    const push = (event: unknown) => reader.push(event, (next) => events.push(next))
    push({ type: 'RUN_STARTED', threadId: 't', runId: 'r' })
    push({ type: 'TEXT_MESSAGE_START', messageId: 'm' })
    push(delta)
    push({ ...delta, delta: 'b' })
    return { events, warnings, push }
  }
  const faults: readonly (readonly [object, string])[] = [
    [{ ...delta, delta: 1 }, 'malformed-event'],
    [{ ...delta, delta: null }, 'malformed-event'],
    [{ type: delta.type, messageId: 'm' }, 'malformed-event'],
    [{ ...delta, metadata: 1 }, 'malformed-event'],
    [{ ...delta, messageId: 'other' }, 'protocol-violation'],
    [{ ...delta, subagentRunId: 's' }, 'protocol-violation'],
    [{ ...delta, type: 'REASONING_MESSAGE_CONTENT' }, 'protocol-violation'],
  ]
  for (const [event, code] of faults) {
    const { push, events } = open()
    expect(() => push(event), JSON.stringify(event)).toThrow(expect.objectContaining({ code }))
    expect(events).toHaveLength(4)
  }
  const { push, events, warnings } = open()
  push({ ...delta, delta: 'c', colour: 'red' })
  expect(events.at(-1)).toEqual({ ...delta, delta: 'c' })
  expect(warnings).toEqual(['unknown-field'])
  push({ type: 'TEXT_MESSAGE_END', messageId: 'm' })
  expect(() => push(delta)).toThrow(expect.objectContaining({ code: 'protocol-violation' }))
})

test('an event object that is used again, with other fields, is checked again', () => {
  const reader = createEventReader()
  const push = (event: unknown) => reader.push(event, () => {})
  push({ type: 'RUN_STARTED', threadId: 't', runId: 'r' })
  push({ type: 'TEXT_MESSAGE_START', messageId: 'm' })
  const event = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'a' }
  push(event)
  event.messageId = 'other'
  expect(() => push(event)).toThrow(expect.objectContaining({ code: 'protocol-violation' }))
})
