import { expect, test } from 'vitest'
import { type Fixture, runFixture } from './ag-ui-driver.mjs'
import { judge, loadFixtures } from './judge.mjs'

const fixtures = loadFixtures(`${import.meta.dirname}/fixtures`)

/** What a fixture must be rejected for: our own words for the reason that its `errorContains` gives. */
const reasons: Record<string, RegExp> = {
  'chunk-conflicting-role-fatal': /TEXT_MESSAGE_CHUNK: role/,
  'chunk-conflicting-tool-name-fatal': /TOOL_CALL_CHUNK: toolCallName/,
  'custom-closes-chunk-stream-fatal': /TEXT_MESSAGE_CHUNK: the first chunk needs messageId/,
  'event-after-run-finished-fatal': /TEXT_MESSAGE_START: .*RUN_FINISHED/,
  'first-chunk-missing-id-fatal': /TEXT_MESSAGE_CHUNK: the first chunk needs messageId/,
  'first-tool-chunk-missing-name-fatal': /TOOL_CALL_CHUNK: the first chunk needs toolCallName/,
  'open-message-at-run-finished-fatal': /RUN_FINISHED: .*open-message-at-run-finished-m-1/,
  'reasoning-message-wrong-role-fatal': /REASONING_MESSAGE_START\/role: .*reasoning/,
  'run-finished-with-active-subagent-fatal': /RUN_FINISHED: .*s-run-finished-active-subagent-1/,
  'run-finished-wrong-run-id-fatal': /RUN_FINISHED: runId/,
  'second-run-on-another-thread-fatal': /RUN_STARTED: threadId/,
  'subagent-attribution-mismatch-fatal': /TOOL_CALL_END: .*tc-subagent-attribution-mismatch-1/,
  'subagent-finished-unstarted-fatal': /SUBAGENT_FINISHED: .*s-subagent-finished-unstarted-1/,
  // The corpus pins that its clients miss this; here the rule holds.
  'truncated-run-reported-as-completed': /end: RUN_FINISHED or RUN_ERROR is missing/,
}

/** Where the corpus lets us differ in more than the wording of a rejection. */
const differing: Record<string, readonly string[]> = {
  'era-0-0-39-flattens-content': ['warnings'],
  'state-delta-unappliable-warns-and-keeps': ['warnings'],
  'truncated-run-reported-as-completed': ['outcome'],
}

test('the corpus is complete and every exception names a fixture of it', () => {
  const names = new Set(fixtures.map(({ name }) => name))
  expect(names.size).toBe(50)
  for (const name of [reasons, differing].flatMap(Object.keys)) expect(names).toContain(name)
})

for (const fixture of fixtures) {
  const { name } = fixture
  const reason = reasons[name]

  test(`${name}: ${reason ? 'rejected' : 'completed'}`, async () => {
    const result = await runFixture(fixture)
    expect(result.verdict).toBe(reason ? 'failed' : 'completed')
    expect(result.error).toMatch(reason ?? /^$/)
    const differences = judge(fixture, result)
    expect(differences.filter(({ allowedBy }) => !allowedBy)).toEqual([])
    const found = differences.map(({ what }) => what).filter((what) => what !== 'errorContains')
    expect(found).toEqual(differing[name] ?? [])
  })
}

const threadId = 'thread-1'
const runId = 'run-1'
const started = { type: 'RUN_STARTED', threadId, runId }
const finished = { type: 'RUN_FINISHED', threadId, runId }
const interrupt = { id: 'i1', reason: 'confirmation' }
const outcome = { type: 'interrupt', interrupts: [interrupt, interrupt] }

/** What the reference client lets pass, and the corpus in this copy does not have. */
const unchecked: Record<string, readonly Fixture['stream'][number][]> = {
  'two interrupts of one id': [started, { ...finished, outcome }],
  'a thread that is not that of the run': [started, { ...finished, threadId: 'thread-2' }],
  'a stream without an event': [],
  'an end inside a message': [started, { type: 'TEXT_MESSAGE_START', messageId: 'm1' }],
}

for (const [what, stream] of Object.entries(unchecked)) {
  test(`rejected: ${what}`, async () => {
    const { verdict, error } = await runFixture({ name: 'unchecked', stream, expect: {} })
    expect(verdict).toBe('failed')
    expect(error).not.toBe('')
  })
}

const call = { id: 'c1', type: 'function', function: { name: 'read', arguments: '{}' } }

test('what a UI message has no field for is held and sent back: names, the developer role, who a result belongs to', async () => {
  const messages = [
    { id: 'h1', role: 'developer', content: 'Be brief.', name: 'ops' },
    { id: 'h2', role: 'user', content: 'Read it.', name: 'ada' },
    { id: 'h3', role: 'assistant', name: 'reader', subagentRunId: 's0', toolCalls: [call] },
    { id: 'h4', role: 'tool', toolCallId: 'c1', content: 'done', subagentRunId: 's0' },
  ]
  const said = (messageId: string, rest: object) => [
    { type: 'TEXT_MESSAGE_START', messageId, ...rest },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: messageId },
    { type: 'TEXT_MESSAGE_END', messageId },
  ]
  const told = [
    { id: 'm1', role: 'assistant', content: 'm1', name: 'writer' },
    { id: 'm2', role: 'developer', content: 'm2' },
  ]
  const stream = [started, ...said('m1', { name: 'writer' }), ...said('m2', { role: 'developer' }), finished]
  const fixture = {
    name: 'kept',
    stream,
    input: { messages },
    expect: { messages: [...messages, ...told], request: { messages }, noWarnings: true },
  }
  expect(judge(fixture, await runFixture(fixture))).toEqual([])
})

test('metadata on the deltas of a call and of reasoning merges like that of their start', async () => {
  const stream = [
    started,
    { type: 'REASONING_MESSAGE_START', messageId: 'm1', role: 'reasoning', metadata: { a: 1, b: 1 } },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'm1', delta: 'Hm.', metadata: { b: 2 } },
    { type: 'REASONING_MESSAGE_END', messageId: 'm1', metadata: { c: 3 } },
    {
      type: 'TOOL_CALL_START',
      toolCallId: 'c1',
      toolCallName: 'read',
      parentMessageId: 'm2',
      metadata: { a: 1, b: 1 },
    },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}', metadata: { b: 2 } },
    { type: 'TOOL_CALL_END', toolCallId: 'c1', metadata: { c: 3 } },
    finished,
  ]
  const metadata = { a: 1, b: 2, c: 3 }
  const messages = [
    { id: 'm1', role: 'reasoning', content: 'Hm.', metadata },
    { id: 'm2', role: 'assistant', toolCalls: [{ ...call, metadata }] },
  ]
  const fixture = { name: 'merged', stream, expect: { messages, noWarnings: true } }
  expect(judge(fixture, await runFixture(fixture))).toEqual([])
})

test('the judge finds what differs, and allows only what a clause allows', () => {
  const fixture: Fixture = {
    name: 'judged',
    stream: [started, finished],
    expect: {
      outcome: 'completed',
      warnings: ['a warning'],
      eventTypes: ['RUN_STARTED'],
      eventPaths: { '0.runId': 'run-2' },
      messageCount: 1,
      messages: [{ role: 'user' }],
      state: { a: 1 },
      request: { threadId },
      requestAbsentPaths: ['messages.0'],
    },
  }
  const result = {
    verdict: 'completed' as const,
    messages: [],
    state: { a: 2 },
    warnings: [],
    error: '',
    events: [started, finished],
    runErrors: [],
    request: { threadId, messages: [{ id: 'u1' }] },
  }
  const found = judge(fixture, result)
  expect(found.map(({ what }) => what)).toEqual([
    'warnings',
    'eventTypes',
    'event 0.runId',
    'messageCount',
    'messages',
    'state',
    'request messages.0',
  ])
  expect(found.filter(({ allowedBy }) => allowedBy)).toEqual([])
  const other = judge(fixture, { ...result, warnings: ['said otherwise'] })
  expect(other[0]?.allowedBy).toMatch(/wording/)
})
