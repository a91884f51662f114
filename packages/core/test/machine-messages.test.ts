import { type Message, readMirror, toAGUIMessages } from '@countersign/core'
import { expect, test } from 'vitest'
import {
  args,
  Chat,
  call,
  custom,
  own,
  result,
  type Step,
  says,
  start,
  text,
  textDelta,
  textEnd,
  textStart,
  warnings,
} from './support.js'

const thinks = (messageId: string, delta = 'Hm.', metadata?: Record<string, unknown>): Step[] => [
  { type: 'REASONING_START', messageId },
  { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', ...(metadata && { metadata }) },
  { type: 'REASONING_MESSAGE_CONTENT', messageId, delta },
  { type: 'REASONING_MESSAGE_END', messageId },
  { type: 'REASONING_END', messageId },
]

const applyPatch = (document: unknown, patch: readonly { op: string; path: string; value?: unknown }[]) => {
  const next: Record<string, unknown> = { ...(document as Record<string, unknown>) }
  for (const { op, path, value } of patch) {
    if (op !== 'add') throw new Error(`cannot ${op}`)
    next[path.slice(1)] = value
  }
  return next
}

test('text grows in its message; metadata of START and END is merged key by key', () => {
  const chat = new Chat()
  chat.do(textStart('a1', { metadata: { a: 1, b: { x: 1 } } }), textDelta('a1', 'Hel'), textDelta('a1', ''))
  chat.do(textDelta('a1', 'lo'), textEnd('a1', { b: { y: 2 } }))
  expect(chat.messages).toEqual([
    {
      id: 'a1',
      role: 'assistant',
      parts: [{ type: 'text', text: 'Hello' }],
      metadata: { a: 1, b: { y: 2 } },
    },
  ])
})

test('roles: developer is shown as system', () => {
  const chat = new Chat()
  chat.do(
    textStart('s1', { role: 'system' }),
    textStart('d1', { role: 'developer' }),
    textStart('u1', { role: 'user' }),
  )
  expect(chat.messages.map(({ role }) => role)).toEqual(['system', 'system', 'user'])
})

test('reasoning becomes the beginning of the assistant message that follows, under that message’s id', () => {
  const chat = new Chat()
  chat.do(...thinks('r1', 'First'), ...thinks('r2', 'Second'))
  expect(chat.messages.map(({ id }) => id)).toEqual(['r1'])
  chat.do(...text('a1', 'So:'))
  expect(chat.messages).toEqual([
    {
      id: 'a1',
      role: 'assistant',
      parts: [
        { type: 'reasoning', id: 'r1', text: 'First' },
        { type: 'reasoning', id: 'r2', text: 'Second' },
        { type: 'text', text: 'So:' },
      ],
    },
  ])
})

test('reasoning before a tool call belongs to the message of the call; late deltas still reach it', () => {
  const chat = new Chat()
  chat.do({ type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning' }, ...call('c1'))
  chat.do({ type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: 'late' })
  expect(chat.parts('a1')).toMatchObject([{ type: 'reasoning', text: 'late' }, { type: 'tool-call' }])
})

test('reasoning that names its message joins it, wherever it comes', () => {
  const chat = new Chat()
  chat.do(...text('a1', 'x'), ...thinks('r1', 'named', own({ messageId: 'a1' }).metadata), ...text('a1', 'y'))
  expect(chat.parts('a1').map((part) => (part.type === 'text' ? part.text : part.type))).toEqual([
    'x',
    'reasoning',
    'y',
  ])
})

test('reasoning that nobody follows stays a message; what the person says next does not join it', () => {
  const chat = new Chat()
  chat.do(...thinks('r1'), says('u1'), ...text('a1', 'x'))
  expect(chat.messages.map(({ id }) => id)).toEqual(['r1', 'u1', 'a1'])
})

test('encrypted values are kept with what they belong to; unknown entities are ignored', () => {
  const chat = new Chat()
  chat.do(...thinks('r1'), ...text('a1', 'x'), ...call('c1'))
  const sealed = (subtype: 'message' | 'tool-call', entityId: string): Step => ({
    type: 'REASONING_ENCRYPTED_VALUE',
    subtype,
    entityId,
    encryptedValue: `sealed ${entityId}`,
  })
  chat.do(
    sealed('message', 'r1'),
    sealed('message', 'a1'),
    sealed('tool-call', 'c1'),
    sealed('message', 'nobody'),
  )
  expect(chat.message('a1')).toMatchObject({
    metadata: { countersign: { encryptedValue: 'sealed a1' } },
    parts: [
      { encryptedValue: 'sealed r1' },
      { type: 'text' },
      { metadata: { countersign: { encryptedValue: 'sealed c1' } } },
    ],
  })
})

test('what a subagent says is marked with its id and name', () => {
  const chat = new Chat()
  const subagentRunId = 'sub-1'
  chat.do({ type: 'SUBAGENT_STARTED', subagentRunId, name: 'researcher' })
  chat.do(
    { ...textStart('a1'), subagentRunId } as Step,
    start('c1', { parentMessageId: 'a1', subagentRunId }),
  )
  expect(chat.message('a1').metadata).toEqual({ subagent: { id: 'sub-1', name: 'researcher' } })
  expect(chat.call('c1').metadata).toEqual({ subagent: { id: 'sub-1', name: 'researcher' } })
})

const activity = (content: Record<string, unknown>, replace?: boolean): Step => ({
  type: 'ACTIVITY_SNAPSHOT',
  messageId: 'act',
  activityType: 'plan',
  content,
  ...(replace !== undefined && { replace }),
})
const delta: Step = {
  type: 'ACTIVITY_DELTA',
  messageId: 'act',
  activityType: 'plan',
  patch: [{ op: 'add', path: '/n', value: 2 }],
}

test('an activity is a data part; replace: false keeps what is there', () => {
  const chat = new Chat({ applyPatch })
  chat.do(activity({ a: 1 }), activity({ a: 2 }, false))
  expect(chat.parts('act')).toEqual([{ type: 'data', name: 'plan', data: { a: 1 } }])
  chat.do(delta)
  expect(chat.parts('act')).toEqual([{ type: 'data', name: 'plan', data: { a: 1, n: 2 } }])
  chat.do(activity({ b: 1 }))
  expect(chat.parts('act')).toEqual([{ type: 'data', name: 'plan', data: { b: 1 } }])
})

test('without statePatch, or where it does not apply, a delta changes nothing and warns', () => {
  const without = new Chat()
  without.do(activity({ a: 1 }))
  const before = without.messages
  expect(warnings(without.do(delta))).toEqual(['patch-failed'])
  expect(warnings(without.do({ type: 'STATE_DELTA', delta: [{ op: 'add', path: '/n', value: 1 }] }))).toEqual(
    ['patch-failed'],
  )
  expect(without.messages).toBe(before)
  const chat = new Chat({ applyPatch })
  chat.do(activity({ a: 1 }), { type: 'STATE_SNAPSHOT', snapshot: { a: 1 } })
  const shown = chat.messages
  const bad: Step = { type: 'STATE_DELTA', delta: [{ op: 'remove', path: '/x' }] }
  expect(warnings(chat.do(bad))).toEqual(['patch-failed'])
  expect(warnings(chat.do({ ...delta, patch: [{ op: 'remove', path: '/x' }] } as Step))).toEqual([
    'patch-failed',
  ])
  expect([chat.messages === shown, chat.state.shared]).toEqual([true, { a: 1 }])
  chat.do({ type: 'STATE_DELTA', delta: [{ op: 'add', path: '/n', value: 1 }] })
  expect(chat.state.shared).toEqual({ a: 1, n: 1 })
})

test('a delta for an unknown activity is tolerated; an activity does not overwrite a message with its id', () => {
  const chat = new Chat({ applyPatch })
  expect(warnings(chat.do(delta))).toEqual(['unknown-id'])
  expect(chat.messages).toEqual([])
  const file = {
    type: 'file',
    media: 'image',
    source: { type: 'url', value: 'https://a.example/x.png' },
  } as const
  chat.do({ type: 'user-message', message: { id: 'act', role: 'user', parts: [file] } })
  const before = chat.messages
  expect(warnings(chat.do(activity({ a: 1 })))).toEqual(['illegal-step'])
  chat.do(delta)
  expect(chat.messages).toBe(before)
})

test('events the machine does not consume are handed on; approval events never are', () => {
  const chat = new Chat()
  const mine = [
    custom('mine', { n: 1 }),
    { type: 'RAW', event: 1 } as const,
    { type: 'STEP_STARTED', stepName: 's' } as const,
    { type: 'STEP_FINISHED', stepName: 's' } as const,
    { type: 'SUBAGENT_FINISHED', subagentRunId: 's' } as const,
    { type: 'SUBAGENT_ERROR', subagentRunId: 's', message: 'x' } as const,
  ]
  for (const event of mine) expect(chat.do(event)).toEqual([{ type: 'unhandled', event }])
  for (const name of ['approval-requested', 'approval-refused', 'client-tool-ready'])
    expect(chat.do(custom(name, null)).map(({ type }) => type)).toEqual(['warning'])
  expect(chat.messages).toEqual([])
})

test('chunks do not reach the machine', () => {
  const chat = new Chat()
  expect(warnings(chat.do({ type: 'TEXT_MESSAGE_CHUNK', messageId: 'a1', delta: 'x' }))).toEqual([
    'illegal-step',
  ])
})

const assistant = (id: string, content: string, ...callIds: string[]): Message => ({
  id,
  role: 'assistant',
  content,
  ...(callIds.length > 0 && {
    toolCalls: callIds.map((callId) => ({
      id: callId,
      type: 'function' as const,
      function: { name: 'remove', arguments: '{"path":"/a"}' },
    })),
  }),
})

test('a snapshot replaces what differs where it stands, drops, and adds at the end; what is the same keeps its identity', () => {
  const chat = new Chat()
  chat.do(says('u1'), ...text('a1', 'one'), says('u2'), ...text('a2', 'two'))
  const before = chat.messages
  chat.do({
    type: 'MESSAGES_SNAPSHOT',
    messages: [
      { id: 'u2', role: 'user', content: 'Hello' },
      { id: 'u1', role: 'user', content: 'Hello' },
      assistant('a1', 'one and more'),
      assistant('a3', 'new'),
    ],
  })
  expect(chat.messages.map(({ id }) => id)).toEqual(['u1', 'a1', 'u2', 'a3'])
  expect([chat.messages[0] === before[0], chat.messages[2] === before[2]]).toEqual([true, true])
  expect(chat.parts('a1')).toEqual([{ type: 'text', text: 'one and more' }])
})

test('the kind of an encrypted value is stored with it, and goes with it', () => {
  const seal = (entityId: string, encryptedValue: string, type?: string): Step => {
    const subtype = entityId === 'c1' ? 'tool-call' : 'message'
    const event = { type: 'REASONING_ENCRYPTED_VALUE', subtype, entityId, encryptedValue } as const
    return Object.assign(event, type && { encryptedValueType: type })
  }
  const chat = new Chat()
  chat.do(...thinks('r1'), ...text('a1', 'one'), ...call('c1'), result('c1'))
  const ids = ['r1', 'a1', 'c1', 'result-c1']
  const sealsOf = (value: unknown): unknown[] =>
    [...JSON.stringify(value).matchAll(/"encryptedValue(?:Type)?":"(\w+)"/g)].map(([, found]) => found).sort()
  chat.do(...ids.map((id) => seal(id, 'old', 'kind')))
  expect(sealsOf(toAGUIMessages(chat.messages))).toEqual([...ids.map(() => 'kind'), ...ids.map(() => 'old')])
  chat.do(...ids.map((id) => seal(id, 'new')))
  expect(sealsOf(toAGUIMessages(chat.messages))).toEqual(ids.map(() => 'new'))
})

test('a snapshot that changes nothing changes no object at all', () => {
  const chat = new Chat()
  chat.do(says('u1'), ...thinks('r1'), ...text('a1', 'one'), ...call('c1'), result('c1'))
  const before = chat.messages
  chat.do({
    type: 'MESSAGES_SNAPSHOT',
    messages: [
      { id: 'u1', role: 'user', content: 'Hello' },
      { id: 'r1', role: 'reasoning', content: 'Hm.' },
      assistant('a1', 'one', 'c1'),
      { id: 'result-c1', role: 'tool', toolCallId: 'c1', content: '"done"' },
    ],
  })
  expect(chat.messages).toBe(before)
})

test('in a message that a snapshot changes, parts that stay the same keep their identity', () => {
  const chat = new Chat()
  chat.do(...text('a1', 'one'), ...call('c1'), ...call('c2'))
  const before = chat.parts('a1')
  chat.do({
    type: 'MESSAGES_SNAPSHOT',
    messages: [assistant('a1', 'one', 'c1', 'c2'), { id: 'r', role: 'tool', toolCallId: 'c2', content: '1' }],
  })
  expect(chat.parts('a1').map((part, i) => part === before[i])).toEqual([true, true, false, false])
})

test('a snapshot in the middle of a text: what follows continues the same text', () => {
  const chat = new Chat()
  chat.do(textStart('a1'), textDelta('a1', 'Hel'), {
    type: 'MESSAGES_SNAPSHOT',
    messages: [assistant('a1', 'Hell')],
  })
  chat.do(textDelta('a1', 'o'))
  expect(chat.parts('a1')).toEqual([{ type: 'text', text: 'Hello' }])
})

test('reasoning and calls that a snapshot took away take no more deltas', () => {
  const chat = new Chat()
  chat.do(
    { type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning' },
    start('c1'),
    textStart('a1'),
  )
  const other: Message = { id: 'r2', role: 'reasoning', content: 'Hm.' }
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [other, assistant('a1', 'only')] })
  const before = chat.messages
  expect(warnings(chat.do({ type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: 'x' }))).toEqual([
    'unknown-id',
  ])
  expect(warnings(chat.do(args('c1', 'x')))).toEqual(['unknown-id'])
  expect(chat.messages).toBe(before)
  expect(chat.parts('a1')).toEqual([
    { type: 'reasoning', id: 'r2', text: 'Hm.' },
    { type: 'text', text: 'only' },
  ])
})

test('reasoning stays where a snapshot tells of none, with its message and without it, and takes more deltas', () => {
  const chat = new Chat()
  chat.do(...thinks('r1'), ...text('a1', 'one'), ...thinks('r2'), ...text('a2', 'two'))
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [assistant('a2', 'changed')] })
  expect(chat.messages.map(({ id }) => id)).toEqual(['r1', 'a2'])
  chat.do(
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: ' So.' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r2', delta: ' Well.' },
  )
  expect(chat.parts('r1')).toEqual([{ type: 'reasoning', id: 'r1', text: 'Hm. So.' }])
  expect(chat.parts('a2')).toEqual([
    { type: 'reasoning', id: 'r2', text: 'Hm. Well.' },
    { type: 'text', text: 'changed' },
  ])
})

test('activities stay where a snapshot tells of none, and go where it tells of others', () => {
  const chat = new Chat()
  chat.do(activity({ a: 1 }), ...text('a1', 'x'), {
    type: 'MESSAGES_SNAPSHOT',
    messages: [assistant('a1', 'x')],
  })
  expect(chat.messages.map(({ id }) => id)).toEqual(['act', 'a1'])
  const other: Message = { id: 'act2', role: 'activity', activityType: 'plan', content: {} }
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [assistant('a1', 'x'), other] })
  expect(chat.messages.map(({ id }) => id)).toEqual(['a1', 'act2'])
})

test('several calls of one id in one message survive a snapshot', () => {
  const chat = new Chat()
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [assistant('a1', '', 'c', 'c')] })
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [assistant('a1', 'x', 'c', 'c')] })
  expect(chat.calls('c')).toHaveLength(2)
  expect(chat.state.open.size).toBe(2)
})

test('a tab that comes while a message with a repeated id streams hears the rest of it in its own place', () => {
  const [chat, other] = [new Chat(), new Chat()]
  chat.do(says('u1'), ...text('m1', 'one'), says('u2'), textStart('m1'), textDelta('m1', 'tw'))
  other.do({ type: 'mirror', state: readMirror(chat.state) }, textDelta('m1', 'o'), textEnd('m1'))
  expect(other.messages.map(({ id }) => id)).toEqual(['u1', 'm1', 'u2', 'm1-2'])
  expect(other.message('m1-2').parts).toEqual([{ type: 'text', text: 'two' }])
})
