import { createChatState, readMessages, type Step, step, toAGUIMessages } from '@countersign/core'
import { fromAGUIMessages, fullSteps } from '@countersign/core/ag-ui'
import { expect, test } from 'vitest'

const source = (value: unknown): Step => ({ type: 'CUSTOM', name: 'source', value })
const text = (delta: string): Step => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta })

function chatAfter(...steps: readonly Step[]) {
  const state = createChatState({ moreSteps: fullSteps })
  return { state, effects: steps.map((one) => step(state, one)) }
}

test('a source becomes a part of the message it belongs to, where it came, and once', () => {
  const page = { messageId: 'm', id: 's1', url: 'https://example.org/a', title: 'A' }
  const { state } = chatAfter(
    { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' },
    text('As written there, '),
    source(page),
    source(page),
    text('it is so.'),
    { type: 'TEXT_MESSAGE_END', messageId: 'm' },
  )
  const messages = readMessages(state)
  expect(messages).toEqual([
    {
      id: 'm',
      role: 'assistant',
      parts: [
        { type: 'text', text: 'As written there, ' },
        { type: 'source', id: 's1', url: 'https://example.org/a', title: 'A' },
        { type: 'text', text: 'it is so.' },
      ],
    },
  ])
  expect(fromAGUIMessages(toAGUIMessages(messages))).toEqual(messages)
})

test('a source that comes before any word begins its message', () => {
  const { state } = chatAfter(
    source({ messageId: 'm', id: 's1' }),
    {
      type: 'TEXT_MESSAGE_START',
      messageId: 'm',
      role: 'assistant',
    },
    text('Hello'),
    { type: 'TEXT_MESSAGE_END', messageId: 'm' },
  )
  expect(readMessages(state)).toMatchObject([
    { parts: [{ type: 'source' }, { type: 'text', text: 'Hello' }] },
  ])
})

test("an event of that name with another value is the application's own", () => {
  const { state, effects } = chatAfter(source('somewhere'))
  expect(effects).toMatchObject([[{ type: 'unhandled' }]])
  expect(readMessages(state)).toEqual([])
})

test('a source does not get into what the person said', () => {
  const { state, effects } = chatAfter(
    { type: 'user-message', message: { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hello' }] } },
    source({ messageId: 'm', id: 's1' }),
  )
  expect(effects[1]).toMatchObject([{ type: 'warning', code: 'illegal-step' }])
  expect(readMessages(state)).toMatchObject([{ parts: [{ type: 'text' }] }])
})

const dropped = (messageId: unknown): Step => ({
  type: 'CUSTOM',
  name: 'messages-dropped',
  value: { messageId },
})
const said = (messageId: string): Step[] => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: 'No.' },
  { type: 'TEXT_MESSAGE_END', messageId },
]

test('H26 messages that the server takes back are gone with their calls and requests, and their ids are free', () => {
  const { state } = chatAfter(
    ...said('m'),
    ...said('n'),
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'find', parentMessageId: 'n' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' },
    {
      type: 'CUSTOM',
      name: 'approval-requested',
      value: { toolCallId: 'c', approval: { id: 'a', needsApproval: true } },
    },
    { type: 'ACTIVITY_SNAPSHOT', messageId: 'd', activityType: 'x', content: {} },
  )
  expect(state.asked).toHaveLength(1)
  step(state, dropped('n'))
  expect(readMessages(state).map(({ id }) => id)).toEqual(['m'])
  expect([state.open.size, state.asked.length, state.approvals.size]).toEqual([0, 0, 0])
  for (const one of said('n')) step(state, one)
  expect(readMessages(state).map(({ id, parts }) => [id, parts])).toEqual([
    ['m', [{ type: 'text', text: 'No.' }]],
    ['n', [{ type: 'text', text: 'No.' }]],
  ])
})

test('H26 a server takes back nothing that is older than the reply it sends, and no message of the user', () => {
  const { state } = chatAfter(...said('m'))
  step(state, {
    type: 'user-message',
    message: { id: 'u', role: 'user', parts: [{ type: 'text', text: 'And?' }] },
  })
  for (const one of [...said('n'), dropped('m'), dropped('u'), dropped('unknown')]) step(state, one)
  expect(readMessages(state).map(({ id }) => id)).toEqual(['m', 'u', 'n'])
  const event = dropped(7)
  expect(step(state, event)).toEqual([{ type: 'unhandled', event }])
})
