import { type AGUIEvent, isCountersignError, loadFullProtocol, StreamReader } from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { events as samples } from './protocol-samples.js'

const seed = Number(process.env.SEED ?? 20_261_123)
const run = { threadId: 't1', runId: 'r1' }
const started = { type: 'RUN_STARTED', ...run }
const finished = { type: 'RUN_FINISHED', ...run }

interface Reading {
  readonly events: readonly AGUIEvent[]
  readonly error?: string
}

function reading(read: (sink: (event: AGUIEvent) => void) => void): Reading {
  const events: AGUIEvent[] = []
  try {
    read((event) => events.push(event))
    return { events }
  } catch (error) {
    if (isCountersignError(error)) return { events, error: `${error.code} ${error.message}` }
    throw error
  }
}

const readStrictly = (stream: readonly unknown[]) =>
  reading((sink) => {
    const reader = createEventReader(run)
    for (const event of stream) reader.push(event, sink)
    reader.end()
  })

/** As a page in production does, everything loaded. */
const readPlainly = (stream: readonly unknown[], strict = false) =>
  reading((sink) => {
    const reader = new StreamReader({ ...run, strict, onFull: () => {} })
    for (const event of stream) expect(reader.push(event, sink)).toBe(undefined)
    reader.end()
  })

const plain: readonly unknown[] = [
  started,
  { type: 'REASONING_START', messageId: 'a' },
  { type: 'REASONING_MESSAGE_START', messageId: 'a', role: 'reasoning' },
  { type: 'REASONING_MESSAGE_CONTENT', messageId: 'a', delta: 'x' },
  { type: 'REASONING_MESSAGE_END', messageId: 'a' },
  { type: 'REASONING_END', messageId: 'a' },
  { type: 'TEXT_MESSAGE_START', messageId: 'b', role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'b', delta: 'x' },
  { type: 'TEXT_MESSAGE_END', messageId: 'b' },
  { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'remove', parentMessageId: 'b' },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{}' },
  { type: 'TOOL_CALL_END', toolCallId: 'c', metadata: { countersign: { token: 'x' } } },
  { type: 'CUSTOM', name: 'approval-requested', value: {} },
  { type: 'TOOL_CALL_RESULT', messageId: 'd', toolCallId: 'c', content: 'done', role: 'tool' },
  { type: 'STEP_STARTED', stepName: 's' },
  { type: 'STEP_FINISHED', stepName: 's' },
  { type: 'RAW', event: 1 },
]
const asked = {
  ...finished,
  outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'tool_call', toolCallId: 'c' }] },
}

test('a plain chat with an approval is read without the strict reader', async () => {
  const before = new StreamReader({ ...run, onFull: () => expect.unreachable() })
  for (const event of [...plain, asked]) expect(before.push(event, () => {})).toBe(undefined)
  before.end()
})

test('the first event that is not of a plain chat waits for the strict reader, and is then taken', async () => {
  const read: string[] = []
  let steps: object = {}
  const reader = new StreamReader({ ...run, onFull: (more) => (steps = more) })
  const sink = ({ type }: AGUIEvent) => void read.push(type)
  expect(reader.push(started, sink)).toBe(undefined)
  await reader.push({ type: 'STATE_SNAPSHOT', snapshot: 1 }, sink)
  expect(read).toEqual(['RUN_STARTED', 'STATE_SNAPSHOT'])
  expect(steps).toHaveProperty('STATE_SNAPSHOT')
})

describe.sequential('once all is loaded', () => {
  beforeAll(async () => void (await loadFullProtocol()))

  test('every event of AG-UI 1.0 is delivered as by the strict reader, alone and after a plain chat', () => {
    for (const sample of samples) {
      for (const stream of [
        [started, sample, finished],
        [...plain, sample, finished],
      ]) {
        expect(readPlainly(stream)).toEqual(readStrictly(stream))
        expect(readPlainly(stream, true)).toEqual(readStrictly(stream))
      }
    }
  })

  test('a field that is wrong has the strict error', () => {
    for (const sample of samples)
      for (const field of [...Object.keys(sample), '__proto__', 'constructor', 'unknown'])
        for (const wrong of [null, 1, -1, {}, [], [{}], true, 'x', undefined]) {
          const event = { ...sample }
          Object.defineProperty(event, field, { value: wrong, enumerable: true })
          const stream = [started, event, finished]
          expect(readPlainly(stream), JSON.stringify(stream)).toEqual(readStrictly(stream))
          // A delta that goes on after one of the same text.
          const twice = [...plain.slice(0, 8), sample, event, finished]
          expect(readPlainly(twice), JSON.stringify(twice)).toEqual(readStrictly(twice))
          const text = { type: 'TEXT_MESSAGE_CONTENT', messageId: 'b', delta: 'x' }
          Object.defineProperty(text, field, { value: wrong, enumerable: true })
          const more = [...plain.slice(0, 8), text, text, ...plain.slice(8), finished]
          expect(readPlainly(more), JSON.stringify(more)).toEqual(readStrictly(more))
        }
  })

  test('events of a plain chat have the order that the strict reader asks for', () => {
    const of = (messageId: string) => ({ messageId, toolCallId: messageId, delta: 'x', content: 'x' })
    const choices = [
      started,
      finished,
      asked,
      { ...started, threadId: 't2' },
      { ...started, runId: 'r2' },
      { ...finished, runId: 'r2' },
      { type: 'RUN_ERROR', message: 'x' },
      ...['a', 'b'].flatMap((id) =>
        plain.slice(1).map((event) => {
          const { messageId, toolCallId, delta, content } = of(id)
          const ids = Object.entries({ messageId, toolCallId, delta, content, parentMessageId: 'a' })
          return { ...Object(event), ...Object.fromEntries(ids.filter(([name]) => name in Object(event))) }
        }),
      ),
    ]
    const legal = fc.subarray(plain.slice(1)).map((events) => [started, ...events, finished])
    const any = fc.array(fc.constantFrom(...choices), { maxLength: 12 })
    fc.assert(
      fc.property(
        fc.oneof(
          any,
          any.map((events) => [started, ...events, finished]),
          legal,
        ),
        (stream) => {
          expect(readPlainly(stream)).toEqual(readStrictly(stream))
        },
      ),
      { seed, numRuns: 5000 },
    )
  })
})
