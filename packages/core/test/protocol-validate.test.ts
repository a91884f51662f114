import { EventType } from '@ag-ui/core'
import { EventSchema } from '@ag-ui/core/schemas'
import { type AGUIEvent, isCountersignError } from '@countersign/core'
import { createEventReader, type ReaderWarning } from '@countersign/core/ag-ui'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { validateEvent } from '../src/protocol/validate.js'
import { events } from './protocol-samples.js'

const seed = Number(process.env.SEED ?? 20_261_121)
const numRuns = Number(process.env.RUNS ?? 5000)
const started = { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' }
const message = { id: 'm1', role: 'user', content: 'c' }
const snapshot = (...messages: unknown[]) => ({ type: 'MESSAGES_SNAPSHOT', messages })

/** What becomes of the fields of one event: the event, the paths left out, or the text of the error. */
function check(raw: unknown): { event?: AGUIEvent | undefined; removed: string[]; error?: string } {
  const removed: string[] = []
  try {
    return { event: validateEvent(raw, removed), removed }
  } catch (error) {
    if (isCountersignError(error) && error.code === 'malformed-event')
      return { removed, error: error.message }
    throw error
  }
}

test('every event type of AG-UI 1.0 is described', () => {
  expect(new Set(events.map(({ type }) => type))).toEqual(new Set<string>(Object.values(EventType)))
})

test('every described field of every event passes, and the event is the very same object', () => {
  for (const sample of events) {
    expect(check(sample)).toEqual({ event: sample, removed: [] })
    expect(check(sample).event).toBe(sample)
  }
})

test('every described field but the type may not be a wrong value, and the error names event and field', () => {
  const free = ['rawEvent', 'snapshot', 'event', 'value', 'result', 'finishReason']
  for (const sample of events) {
    for (const field of Object.keys(sample).filter((name) => name !== 'type' && !free.includes(name))) {
      expect(check({ ...sample, [field]: Symbol() }).error).toContain(`${sample.type}/${field}: `)
    }
  }
})

test('a missing required field is an error that names event and field', () => {
  expect(check({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1' }).error).toContain(
    'TEXT_MESSAGE_CONTENT/delta: ',
  )
  expect(check({ type: 'CUSTOM', name: 'n' }).error).toContain('CUSTOM/value: ')
  expect(check({ type: 'CUSTOM', name: 'n', value: undefined }).error).toContain('CUSTOM/value: ')
  expect(check(snapshot({ role: 'user', content: 'c' })).error).toContain('MESSAGES_SNAPSHOT/messages/0/id: ')
})

test('null in an optional field is an error', () => {
  expect(check({ type: 'TEXT_MESSAGE_START', messageId: 'm1', name: null }).error).toContain(
    'TEXT_MESSAGE_START/name: ',
  )
  expect(check({ ...started, input: null }).error).toContain('RUN_STARTED/input: ')
  expect(check({ type: 'TEXT_MESSAGE_END', messageId: 'm1', metadata: null }).error).toContain('/metadata: ')
})

test('the nulls of peers before 1.0 are left out where they were legal', () => {
  const input = {
    ...started,
    messages: [
      { ...message, content: [{ type: 'image', source: { type: 'url', value: 'u' }, metadata: null }] },
    ],
    tools: [{ name: 'n', description: 'd', parameters: null }],
    resume: [{ interruptId: 'i', status: 'cancelled', payload: null }],
    forwardedProps: null,
  }
  const { type, ...run } = input
  expect(check({ ...started, input: run }).removed).toEqual([
    'RUN_STARTED/input/messages/0/content/0/metadata',
    'RUN_STARTED/input/tools/0/parameters',
    'RUN_STARTED/input/resume/0/payload',
    'RUN_STARTED/input/forwardedProps',
  ])
  expect(
    check({ type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'n', parentMessageId: null }).event,
  ).toEqual({
    type: 'TOOL_CALL_START',
    toolCallId: 'c',
    toolCallName: 'n',
  })
  expect(
    check({ ...started, type: 'RUN_FINISHED', outcome: null, result: null, rawEvent: null }).removed,
  ).toHaveLength(3)
  expect(check({ type: 'SUBAGENT_FINISHED', subagentRunId: 's', result: null }).removed).toHaveLength(1)
})

test('an unknown property is left out of a copy, at any depth, and the original is untouched', () => {
  const raw = snapshot({ ...message, future: 1 }, { ...message, id: 'm2' })
  const before = structuredClone(raw)
  const { event, removed } = check(raw)
  expect(event).toEqual(snapshot(message, { ...message, id: 'm2' }))
  expect(removed).toEqual(['MESSAGES_SNAPSHOT/messages/0/future'])
  expect(raw).toEqual(before)
  expect(event?.type === 'MESSAGES_SNAPSHOT' && event.messages[1]).toBe(raw.messages[1])
})

test('an unknown member of a union is left out, and takes along whatever requires it', () => {
  const part = (source: object) => ({ type: 'image', source })
  const content = [
    { type: 'text', text: 'a' },
    { type: 'hologram' },
    part({ type: 'warp', value: 'v' }),
    { type: 'text', text: 'b' },
  ]
  expect(check(snapshot({ ...message, content }))).toEqual({
    event: snapshot({ ...message, content: [content[0], content[3]] }),
    removed: ['MESSAGES_SNAPSHOT/messages/0/content/1', 'MESSAGES_SNAPSHOT/messages/0/content/2'],
  })
  expect(check(snapshot({ id: 'm0', role: 'oracle' }, message)).event).toEqual(snapshot(message))
  expect(check({ ...started, type: 'RUN_FINISHED', outcome: { type: 'paused', more: 1 } })).toEqual({
    event: { ...started, type: 'RUN_FINISHED' },
    removed: ['RUN_FINISHED/outcome'],
  })
  expect(
    check({ type: 'SUBAGENT_FINISHED', subagentRunId: 's', outcome: { type: 'paused' } }).removed,
  ).toEqual(['SUBAGENT_FINISHED/outcome'])
  expect(check({ type: 'STATE_DELTA', delta: [{ op: 'increment', path: '/a' }] }).event).toEqual({
    type: 'STATE_DELTA',
    delta: [],
  })
})

test('an unknown value of a plain enumeration is an error', () => {
  expect(check({ type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'oracle' }).error).toContain(
    'developer|system|assistant|user',
  )
  expect(check({ ...started, type: 'RUN_FINISHED', outcome: [] }).error).toContain('RUN_FINISHED/outcome: ')
})

test('an interrupt outcome has at least one interrupt', () => {
  expect(
    check({ ...started, type: 'RUN_FINISHED', outcome: { type: 'interrupt', interrupts: [] } }).error,
  ).toContain('/outcome/interrupts: ')
})

test('an event of unknown type is no event; what has no type is malformed', () => {
  expect(check({ type: 'FUTURE_EVENT', x: 1 })).toEqual({ event: undefined, removed: [] })
  expect(check({ type: 'constructor' })).toEqual({ event: undefined, removed: [] })
  for (const raw of [null, undefined, 1, 'RUN_STARTED', [], {}, { type: 1 }, { type: null }])
    expect(check(raw).error).toBeDefined()
})

test('names of object members are unknown properties like any other', () => {
  const raw: unknown = JSON.parse(
    '{"type":"TEXT_MESSAGE_END","messageId":"m1","__proto__":{"delta":1},"constructor":1}',
  )
  const { event, removed } = check(raw)
  expect(removed.sort()).toEqual(['TEXT_MESSAGE_END/__proto__', 'TEXT_MESSAGE_END/constructor'])
  expect(Object.getPrototypeOf(event)).toBe(Object.prototype)
  expect(Object.keys(event ?? {})).toEqual(['type', 'messageId'])
})

test('finishReason at the root of RUN_FINISHED is let through', () => {
  expect(check({ ...started, type: 'RUN_FINISHED', finishReason: 'stop' }).removed).toEqual([])
  expect(check({ ...started, type: 'RUN_FINISHED', finishReason: null }).removed).toEqual([])
})

test('unknown material is warned about once per event, and an unknown event goes to onUnknown instead of the sink', () => {
  const warnings: ReaderWarning[] = []
  const unknown: unknown[] = []
  const sunk: AGUIEvent[] = []
  const reader = createEventReader({
    onWarning: (warning) => warnings.push(warning),
    onUnknown: (event) => unknown.push(event),
  })
  const future = { type: 'FUTURE_EVENT', x: 1 }
  const raw = { ...started, protocolVersion: '1.2', a: 1, b: 2 }
  for (const event of [raw, future]) reader.push(event, (next) => sunk.push(next))
  expect(sunk).toEqual([{ ...started, protocolVersion: '1.2' }])
  expect(unknown).toEqual([future])
  expect(warnings.map(({ code, event }) => [code, event])).toEqual([
    ['unknown-field', raw],
    ['protocol-version', raw],
    ['unknown-event', future],
  ])
  expect(warnings[0]?.message).toContain('RUN_STARTED/a, RUN_STARTED/b')
})

test('a version that is newer or makes no sense is warned about, this one and older ones are not', () => {
  const codes = (protocolVersion: string) => {
    const found: string[] = []
    createEventReader({ onWarning: ({ code }) => found.push(code) }).push(
      { ...started, protocolVersion },
      () => {},
    )
    return found
  }
  expect(codes('1.0')).toEqual([])
  expect(codes('0.9')).toEqual([])
  for (const version of ['1.1', '1.10', '2.0', 'newest', ''])
    expect(codes(version)).toEqual(['protocol-version'])
})

test('deltas come out as the very same objects', () => {
  const sunk: AGUIEvent[] = []
  const reader = createEventReader()
  const stream = [
    started,
    { type: 'TEXT_MESSAGE_START', messageId: 'm1' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'a' },
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'n' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{' },
  ]
  for (const event of stream) reader.push(event, (next) => sunk.push(next))
  for (const [index, event] of stream.entries()) expect(sunk[index]).toBe(event)
})

/** Every place inside a JSON value, as the keys that lead to it. */
function places(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, child]) => places(child, [...path, key]))]
}

const gone = Symbol()

function replace(value: unknown, [key, ...rest]: string[], by: unknown): unknown {
  if (key === undefined) return by
  if (Array.isArray(value))
    return value.flatMap((child, i) =>
      String(i) === key ? [replace(child, rest, by)].filter((x) => x !== gone) : [child],
    )
  const copy: Record<string, unknown> = { ...(value as object) }
  copy[key] = replace(copy[key], rest, by)
  if (copy[key] === gone) delete copy[key]
  return copy
}

test('one wrong value anywhere in any event is judged as by the schemas of @ag-ui/core', () => {
  const wrong = fc.constantFrom<unknown>(
    gone,
    null,
    0,
    -1,
    1.5,
    1e300,
    'x',
    '',
    '/~2',
    true,
    [],
    ['tool'],
    {},
    [{}],
    ['x'],
    { type: 'x' },
    { type: 'text' },
    { future: 1 },
  )
  const cases = fc
    .constantFrom(...events)
    .chain((sample) => fc.tuple(fc.constant(sample), fc.constantFrom(...places(sample)), wrong))
  const property = fc.property(cases, ([sample, path, value]) => {
    if (path.length === 0 || (path.length === 1 && path[0] === 'type')) return
    const raw = replace(sample, path, value)
    const { event, error } = check(raw)
    if (error) expect(EventSchema.safeParse(raw).success, error).toBe(false)
    else if (event) expect(EventSchema.safeParse(event).error?.message).toBeUndefined()
  })
  fc.assert(property, { seed, numRuns })
})
