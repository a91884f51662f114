import { type AGUIEvent, isCountersignError } from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import { expect, test } from 'vitest'

type Loose = { type: string; [field: string]: unknown }

const started = { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' }
const finished = { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1' }
const text = (more: object) => ({ type: 'TEXT_MESSAGE_CHUNK', ...more })
const call = (more: object) => ({ type: 'TOOL_CALL_CHUNK', ...more })
const thought = (more: object) => ({ type: 'REASONING_MESSAGE_CHUNK', ...more })
const custom = { type: 'CUSTOM', name: 'n', value: 1 }
const s1 = { subagentRunId: 's1' }
const s2 = { subagentRunId: 's2' }

/** What reaches the application between the start and the end of a run. */
function expand(...events: Loose[]): AGUIEvent[] {
  const delivered: AGUIEvent[] = []
  const reader = createEventReader()
  for (const event of [started, ...events, finished]) reader.push(event, (next) => delivered.push(next))
  reader.end()
  return delivered.slice(1, -1)
}

const types = (...events: Loose[]) => expand(...events).map(({ type }) => type)

function reason(...events: Loose[]): string {
  try {
    expand(...events)
  } catch (error) {
    if (isCountersignError(error)) return `${error.code}: ${error.message}`
    throw error
  }
  return 'none'
}

test('a text chunk becomes START, CONTENT and, at the end, END', () => {
  expect(expand(text({ messageId: 'm1', delta: 'a' }), text({ delta: 'b' }))).toEqual([
    { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'a' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'b' },
    { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
  ])
})

test('role, name and owner of the first chunk go to START, the owner to all', () => {
  expect(
    expand(text({ messageId: 'm1', role: 'user', name: 'Ada', ...s1 }), text({ delta: 'b', ...s1 })),
  ).toEqual([
    { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'user', name: 'Ada', ...s1 },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'b', ...s1 },
    { type: 'TEXT_MESSAGE_END', messageId: 'm1', ...s1 },
  ])
})

test('a tool call chunk becomes START, ARGS and END', () => {
  const first = call({ toolCallId: 'c1', toolCallName: 'remove', parentMessageId: 'm1', delta: '{' })
  expect(
    expand(first, call({ toolCallId: 'c1', toolCallName: 'remove', parentMessageId: 'm1', delta: '}' })),
  ).toEqual([
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'remove', parentMessageId: 'm1' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
  ])
})

test('a reasoning chunk becomes START with its role, CONTENT and END', () => {
  expect(expand(thought({ messageId: 'm1', delta: 'hm' }))).toEqual([
    { type: 'REASONING_MESSAGE_START', messageId: 'm1', role: 'reasoning' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'm1', delta: 'hm' },
    { type: 'REASONING_MESSAGE_END', messageId: 'm1' },
  ])
})

test('metadata, timestamp and the raw event of a chunk are kept', () => {
  const metadata = { k: 1 }
  expect(
    expand(text({ messageId: 'm1', metadata, timestamp: 5 }), text({ metadata }), text({ rawEvent: 7 })),
  ).toEqual([
    { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant', metadata, timestamp: 5 },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '', metadata },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: '', rawEvent: 7 },
    { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
  ])
})

test('a chunk that says nothing new becomes nothing', () => {
  expect(types(text({ messageId: 'm1' }), text({}), text({ messageId: 'm1' }))).toEqual([
    'TEXT_MESSAGE_START',
    'TEXT_MESSAGE_END',
  ])
})

test('a first chunk needs its id, a first tool call chunk its name too', () => {
  expect(reason(text({ delta: 'a' }))).toMatch(/^protocol-violation: .*TEXT_MESSAGE_CHUNK: .*messageId/)
  expect(reason(thought({ delta: 'a' }))).toMatch(/REASONING_MESSAGE_CHUNK: .*messageId/)
  expect(reason(call({ toolCallName: 'remove' }))).toMatch(/TOOL_CALL_CHUNK: .*toolCallId/)
  expect(reason(call({ toolCallId: 'c1' }))).toMatch(/TOOL_CALL_CHUNK: .*toolCallName/)
})

test('a later chunk may not contradict the first', () => {
  const m1 = text({ messageId: 'm1', role: 'user', name: 'Ada' })
  const c1 = call({ toolCallId: 'c1', toolCallName: 'remove', parentMessageId: 'm1' })
  expect(reason(m1, text({ role: 'user', name: 'Ada' }))).toBe('none')
  expect(reason(text({ messageId: 'm1' }), text({ role: 'assistant' }))).toBe('none')
  expect(reason(m1, text({ role: 'assistant' }))).toMatch(/TEXT_MESSAGE_CHUNK: role/)
  expect(reason(m1, text({ name: 'Bob' }))).toMatch(/TEXT_MESSAGE_CHUNK: name/)
  expect(reason(text({ messageId: 'm1' }), text({ name: 'Bob' }))).toMatch(/TEXT_MESSAGE_CHUNK: name/)
  expect(reason(c1, call({ toolCallName: 'list' }))).toMatch(/TOOL_CALL_CHUNK: toolCallName/)
  expect(reason(c1, call({ parentMessageId: 'm2' }))).toMatch(/TOOL_CALL_CHUNK: parentMessageId/)
})

test('another id, another kind and most events close the open stream of their lane', () => {
  const open = text({ messageId: 'm1' })
  const end = 'TEXT_MESSAGE_END'
  expect(types(open, text({ messageId: 'm2' })).slice(1, 3)).toEqual([end, 'TEXT_MESSAGE_START'])
  expect(types(open, thought({ messageId: 'm2' })).slice(1, 3)).toEqual([end, 'REASONING_MESSAGE_START'])
  expect(types(open, custom).slice(1)).toEqual([end, 'CUSTOM'])
  expect(types(open, { type: 'STATE_SNAPSHOT', snapshot: 1 }).slice(1)).toEqual([end, 'STATE_SNAPSHOT'])
  expect(types(open, { type: 'MESSAGES_SNAPSHOT', messages: [] }).slice(1)).toEqual([
    end,
    'MESSAGES_SNAPSHOT',
  ])
  expect(reason(open, custom, text({ delta: 'b' }))).toMatch(/the first chunk needs messageId/)
})

test('RAW, activities, encrypted values, starting subagents and unknown events leave it open', () => {
  const activity = { messageId: 'a1', activityType: 'search' }
  for (const aside of [
    { type: 'RAW', event: 1 },
    { type: 'ACTIVITY_SNAPSHOT', ...activity, content: {} },
    { type: 'ACTIVITY_DELTA', ...activity, patch: [] },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'm1', encryptedValue: 'e' },
    { type: 'FUTURE_EVENT' },
  ]) {
    expect(types(text({ messageId: 'm1' }), aside, text({ delta: 'b' })).at(-2)).toBe('TEXT_MESSAGE_CONTENT')
  }
  const subagent = (type: string) => ({ type, name: 'n', ...s1 })
  expect(
    types(text({ messageId: 'm1', ...s1 }), subagent('SUBAGENT_STARTED'), text({ delta: 'b' }), {
      type: 'SUBAGENT_FINISHED',
      ...s1,
    }),
  ).toEqual([
    'TEXT_MESSAGE_START',
    'SUBAGENT_STARTED',
    'TEXT_MESSAGE_CONTENT',
    'TEXT_MESSAGE_END',
    'SUBAGENT_FINISHED',
  ])
})

test('each subagent has a lane of its own, closed by its own events only', () => {
  const parts = expand(
    text({ messageId: 'm0', delta: 'a' }),
    text({ messageId: 'm1', delta: 'b', ...s1 }),
    text({ delta: 'c' }),
    { ...custom, ...s2 },
    text({ delta: 'd', ...s1 }),
    { ...custom, ...s1 },
    text({ messageId: 'm0', delta: 'e' }),
  )
  const contents = parts.flatMap((event) =>
    event.type === 'TEXT_MESSAGE_CONTENT' ? `${event.messageId}${event.delta}` : [],
  )
  expect(contents).toEqual(['m0a', 'm1b', 'm0c', 'm1d', 'm0e'])
})

test('an untagged chunk continues the only stream it fits, by id or by kind', () => {
  const contents = (...events: Loose[]) =>
    expand(...events).flatMap((event) =>
      event.type === 'TEXT_MESSAGE_CONTENT' ? [event.messageId, event.subagentRunId] : [],
    )
  const m1 = text({ messageId: 'm1', ...s1 })
  const m2 = text({ messageId: 'm2', ...s2 })
  expect(contents(m1, text({ delta: 'b' }))).toEqual(['m1', 's1'])
  expect(contents(m1, m2, text({ messageId: 'm2', delta: 'b' }))).toEqual(['m2', 's2'])
  expect(contents(m1, thought({ messageId: 'm3', ...s2 }), text({ delta: 'b' }))).toEqual(['m1', 's1'])
})

test('an untagged chunk that fits several subagents, or a tag that disagrees with the id, is a violation', () => {
  const m1 = text({ messageId: 'm1', ...s1 })
  const m2 = text({ messageId: 'm2', ...s2 })
  expect(reason(m1, m2, text({ delta: 'b' }))).toMatch(/^protocol-violation: .*TEXT_MESSAGE_CHUNK: .*several/)
  expect(reason(m1, text({ messageId: 'm1', ...s2 }))).toMatch(
    /^protocol-violation: .*TEXT_MESSAGE_CHUNK: .*m1/,
  )
})

test('RUN_ERROR closes what chunks have opened, in every lane, before it is delivered', () => {
  const delivered: string[] = []
  const reader = createEventReader()
  for (const event of [
    started,
    text({ messageId: 'm1' }),
    call({ toolCallId: 'c1', toolCallName: 'n', ...s1 }),
    { type: 'RUN_ERROR', message: '' },
  ]) {
    reader.push(event, ({ type }) => delivered.push(type))
  }
  expect(delivered.slice(3)).toEqual(['TEXT_MESSAGE_END', 'TOOL_CALL_END', 'RUN_ERROR'])
})

test('a truncated stream never closes an open tool call: its arguments are not complete', () => {
  const delivered: string[] = []
  const reader = createEventReader()
  for (const event of [started, call({ toolCallId: 'c1', toolCallName: 'n', delta: '{"a":' })])
    reader.push(event, ({ type }) => delivered.push(type))
  expect(() => reader.end()).toThrow(/RUN_FINISHED or RUN_ERROR/)
  expect(delivered).not.toContain('TOOL_CALL_END')
})
