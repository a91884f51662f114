import type { AGUIEvent } from '@countersign/core'
import {
  createPartReader,
  fromPromptMessages,
  fromResponseParts,
  parseResponsePart,
  parseStreamPart,
  type StreamPart,
  toResponseParts,
} from '@countersign/server/prompt'
import { expect, test } from 'vitest'
import { args, end, pending, result, runFinished, runStarted, start, text } from '../../core/test/support.js'

function partsOf(events: readonly AGUIEvent[]): StreamPart[] {
  const read = createPartReader()
  return events.flatMap((event) => [...read(event)])
}

const progress = (toolCallId: string, data: unknown): AGUIEvent => ({
  type: 'CUSTOM',
  name: 'tool-progress',
  value: { toolCallId, toolName: 'remove', data },
})

const run: readonly AGUIEvent[] = [
  runStarted(),
  { type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning' },
  { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: 'Hm' },
  { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: '.' },
  ...text('a1', 'I will'),
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'a1', delta: '.' },
  start('safe'),
  args('safe', '{"n":'),
  args('safe', '1}'),
  end('safe'),
  ...pending('gated', { token: 'cs1.t' }),
  progress('safe', { percent: 50 }),
  result('safe'),
  runFinished({ metadata: { finishReason: 'tool_calls' } }),
]

test('S0.28 S0.29 a gated call is a call part, then its request; every part passes the check of streams', () => {
  const parts = partsOf(run)
  expect(parts.map((part) => parseStreamPart(part).type)).toEqual([
    'reasoning-delta',
    'reasoning-delta',
    'text-delta',
    'text-delta',
    'tool-call',
    'tool-call',
    'tool-approval-request',
    'tool-result',
    'tool-result',
    'finish',
  ])
  expect(parts.find(({ type }) => type === 'tool-approval-request')).toEqual({
    type: 'tool-approval-request',
    approvalId: 'approval_gated',
    toolCallId: 'gated',
    metadata: { countersign: { options: ['deny', 'once'], token: 'cs1.t' } },
  })
  expect(parts.at(-1)).toEqual({ type: 'finish', reason: 'tool_calls' })
})

test('S0.40 a run as history: calls and requests with the assistant, results in a tool message, in order, no preliminary result', () => {
  const parts = toResponseParts(partsOf(run))
  expect(parts.map((part) => parseResponsePart(part).type)).toEqual([
    'reasoning',
    'text',
    'tool-call',
    'tool-call',
    'tool-approval-request',
    'tool-result',
    'tool-result',
  ])
  const history = fromResponseParts(parts, () => 'a1')
  expect(history).toMatchObject([
    {
      id: 'a1',
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm.' },
        { type: 'text', text: 'I will.' },
        { type: 'tool-call', id: 'safe', arguments: '{"n":1}' },
        { type: 'tool-call', id: 'gated' },
        { type: 'tool-approval-request', toolCallId: 'gated' },
      ],
    },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'safe', isFailure: false }] },
  ])
  expect(JSON.stringify(history)).not.toContain('percent')
  expect(fromPromptMessages(history)[0]?.parts).toMatchObject([
    {},
    {},
    { id: 'safe', state: 'complete' },
    { id: 'gated', state: 'approval-requested', approval: { token: 'cs1.t' } },
    { type: 'tool-result' },
  ])
})

test('what is said after a result begins another message', () => {
  const parts = toResponseParts(partsOf([...run, ...text('a2', 'Done.')]))
  let count = 0
  expect(fromResponseParts(parts, () => `a${++count}`).map(({ role }) => role)).toEqual([
    'assistant',
    'tool',
    'assistant',
  ])
})
