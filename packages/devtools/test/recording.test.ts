import {
  maskRecording,
  type Recording,
  readRecording,
  sourceOf,
  type TimelineEntry,
} from '@countersign/devtools'
import { expect, test } from 'vitest'

const start: Recording['start'] = {
  version: 1,
  messages: [],
  unsentOutputs: [],
  ready: [],
  interrupts: [],
  queue: [],
}

const recordingOf = (entries: readonly TimelineEntry[]): Recording => ({
  version: 1,
  threadId: 't',
  start,
  cut: 0,
  masked: false,
  entries,
})

const eventEntry = (type: string, rest: Record<string, unknown> = {}): TimelineEntry => ({
  kind: 'event',
  run: 1,
  event: { type, ...rest },
})

test.each([
  ['', 'no JSON object'],
  ['[]', 'no JSON object'],
  ['{"version":2}', '`version` is not 1'],
  ['{"version":1}', 'no `threadId`'],
  ['{"version":1,"threadId":"t"}', '`start` is no conversation'],
  [JSON.stringify({ version: 1, threadId: 't', start }), 'no list of `entries`'],
  [
    JSON.stringify({ ...recordingOf([]), entries: [{ kind: 'action', text: 'a' }, { kind: 'odd' }] }),
    'entry 1',
  ],
])('what is no recording (%s) is refused and told why', (text, why) => {
  expect(() => readRecording(text)).toThrow(
    expect.objectContaining({ code: 'invalid-argument', message: expect.stringContaining(why) }),
  )
})

test('a recording comes back out of its JSON', () => {
  const recording = recordingOf([{ kind: 'action', text: 'stop', action: { name: 'stop' }, at: 5 }])
  expect(readRecording(JSON.stringify(recording))).toEqual(recording)
})

test('secrets are masked in pieces of arguments, in texts that are JSON, in patches and in actions, consistently', () => {
  const args = '{"to":"team", "apiKey":"hunter2"}'
  const masked = maskRecording(
    recordingOf([
      eventEntry('TOOL_CALL_ARGS', { toolCallId: 'c', delta: args.slice(0, 25) }),
      eventEntry('TOOL_CALL_ARGS', { toolCallId: 'c', delta: args.slice(25) }),
      eventEntry('TOOL_CALL_ARGS', { toolCallId: 'd', delta: '{"to":"me"}' }),
      eventEntry('TOOL_CALL_ARGS', { toolCallId: 'e', delta: '{"password":"hun' }),
      eventEntry('TOOL_CALL_RESULT', { toolCallId: 'c', content: '{"token":"hunter2","n":1}' }),
      eventEntry('STATE_DELTA', { delta: [{ op: 'add', path: '/apiKey', value: 'hunter2' }] }),
      eventEntry('RUN_FINISHED', { metadata: { usage: { inputTokens: 7 } } }),
      {
        kind: 'action',
        text: 'addToolApprovalResponse {"id":"a","input":{"apiKey":"hunter2"}}',
        action: { name: 'addToolApprovalResponse', value: { id: 'a', input: { apiKey: 'hunter2' } } },
      },
      {
        kind: 'note',
        run: 1,
        text: 'answer hunter2',
        step: { type: 'answer', approvalId: 'a', approved: true, input: { apiKey: 'hunter2' } },
      },
    ]),
  )
  expect(JSON.stringify(masked)).not.toContain('hunter2')
  expect(JSON.stringify(masked)).not.toContain('hun')
  const deltas = masked.entries.flatMap((entry) =>
    'event' in entry && 'delta' in entry.event ? [entry.event.delta] : [],
  )
  expect(deltas.slice(0, 4)).toEqual([
    '{"to":"team","apiKey":"[REDACTED]"}',
    '',
    '{"to":"me"}',
    '"[REDACTED]"',
  ])
  expect(masked.entries[6]).toMatchObject({ event: { metadata: { usage: { inputTokens: 7 } } } })
  expect(maskRecording(masked)).toEqual(masked)
})

test('the state of a recording is that after the entry, with the flags that were noted', () => {
  const source = sourceOf(
    recordingOf([
      {
        kind: 'note',
        run: 0,
        text: 'user-message',
        step: {
          type: 'user-message',
          message: { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
        },
      },
      { kind: 'note', run: 1, text: 'run-opened', step: { type: 'run-opened', runId: 'r' } },
      { kind: 'state', text: 'submitted', flags: { continuationPending: true, continuationSkipped: false } },
      eventEntry('RUN_STARTED', { threadId: 't', runId: 'r' }),
      {
        kind: 'closed',
        run: 1,
        how: 'failed',
        step: {
          type: 'run-closed',
          end: { type: 'failed', error: { code: 'connection-failed', message: 'gone' } },
        },
      },
    ]),
  )
  expect(source.stateAt(0)).toMatchObject({ snapshot: { status: 'ready', messages: [{ id: 'u' }] } })
  expect(source.stateAt(1)).toMatchObject({
    snapshot: { status: 'submitted' },
    flags: { continuationPending: true },
  })
  expect(source.stateAt(4)).toMatchObject({
    snapshot: { status: 'error', error: { code: 'connection-failed' } },
  })
})
