import { type AGUIEvent, isCountersignError } from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import { expect, test } from 'vitest'

type Loose = { type: string; [field: string]: unknown }

const started = { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' }
const finished = { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1' }
const failed = { type: 'RUN_ERROR', message: 'no' }
const text = (step: string, more: object = {}) => ({ type: `TEXT_MESSAGE_${step}`, messageId: 'm1', ...more })
const call = (step: string, more: object = {}) => ({ type: `TOOL_CALL_${step}`, toolCallId: 'c1', ...more })
const named = { toolCallName: 'remove' }
const delta = { delta: 'x' }
const as = (subagentRunId: string) => ({ subagentRunId })
const subagent = (step: string, subagentRunId = 's1', more: object = {}) => ({
  type: `SUBAGENT_${step}`,
  subagentRunId,
  ...more,
})

/** Reads the events to their end; answers the types delivered, or the code and message of the error. */
function read(events: Loose[], options = {}): string[] | string {
  const delivered: AGUIEvent[] = []
  try {
    const reader = createEventReader(options)
    for (const event of events) reader.push(event, (next) => delivered.push(next))
    reader.end()
    return delivered.map(({ type }) => type)
  } catch (error) {
    if (!isCountersignError(error)) throw error
    return `${error.code}: ${error.message}`
  }
}

const passes = (...events: Loose[]) => expect(read(events)).toEqual(events.map(({ type }) => type))
const run = (...events: Loose[]) => passes(started, ...events, finished)
const fails = (reason: RegExp, ...events: Loose[]) => expect(read(events)).toMatch(reason)
const runFails = (reason: RegExp, ...events: Loose[]) => fails(reason, started, ...events, finished)

test('rule 1: a stream begins with RUN_STARTED or RUN_ERROR', () => {
  run()
  passes(failed)
  fails(/^protocol-violation: .*TEXT_MESSAGE_START: the first event/, text('START'))
  fails(/^protocol-violation: .*RUN_FINISHED: the first event/, finished)
})

test('rule 2: a run starts only after the one before it has ended', () => {
  passes(started, finished, started, finished)
  passes(started, failed, started, finished)
  fails(/^protocol-violation: .*RUN_STARTED: run r1 is still open/, started, started)
})

test('rule 3: after RUN_ERROR only RUN_STARTED may come', () => {
  passes(started, failed)
  fails(/TEXT_MESSAGE_START: the run has ended with RUN_ERROR/, started, failed, text('START'))
  fails(/RUN_ERROR: the run has ended with RUN_ERROR/, started, failed, failed)
  fails(/RUN_FINISHED: the run has ended with RUN_ERROR/, started, failed, finished)
})

test('rule 4: after RUN_FINISHED only RUN_ERROR or RUN_STARTED may come', () => {
  passes(started, finished, failed)
  fails(/CUSTOM: the run has ended with RUN_FINISHED/, started, finished, {
    type: 'CUSTOM',
    name: 'n',
    value: 1,
  })
  fails(/RUN_FINISHED: the run has ended with RUN_FINISHED/, started, finished, finished)
})

test('rule 5: attribution is absent or a string, never null', () => {
  runFails(/^malformed-event: .*TEXT_MESSAGE_START\/subagentRunId/, text('START', { subagentRunId: null }))
  runFails(/SUBAGENT_STARTED\/description/, subagent('STARTED', 's1', { name: 'n', description: null }))
  runFails(
    /SUBAGENT_FINISHED\/outcome/,
    subagent('STARTED', 's1', { name: 'n' }),
    subagent('FINISHED', 's1', { outcome: null }),
  )
  const suspended = (interruptIds: unknown) => [
    subagent('STARTED', 's1', { name: 'n' }),
    subagent('FINISHED', 's1', { outcome: { type: 'suspended', interruptIds } }),
  ]
  run(...suspended(['i1']))
  runFails(/SUBAGENT_FINISHED\/outcome\/interruptIds: /, ...suspended(null))
  runFails(/SUBAGENT_FINISHED\/outcome\/interruptIds\/0: /, ...suspended([1]))
  const interrupt = { id: 'i1', reason: 'confirmation', subagentRunId: null }
  fails(/interrupts\/0\/subagentRunId/, started, {
    ...finished,
    outcome: { type: 'interrupt', interrupts: [interrupt] },
  })
})

test('rule 6: a text message is opened once, then continued, then closed', () => {
  run(text('START'), text('CONTENT', delta), text('END'))
  run(text('START'), text('END'), text('START'), text('END'))
  runFails(/TEXT_MESSAGE_START: .*m1 is already open/, text('START'), text('START'))
  runFails(/TEXT_MESSAGE_CONTENT: .*m1 is not open/, text('CONTENT', delta))
  runFails(/TEXT_MESSAGE_END: .*m1 is not open/, text('START'), text('END'), text('END'))
})

test('rule 7: a tool call is opened once, then continued, then closed', () => {
  run(call('START', named), call('ARGS', delta), call('END'))
  run(call('START', named), call('END'), call('START', named), call('END'))
  run(call('RESULT', { messageId: 'm2', content: 'done' }))
  runFails(/TOOL_CALL_START: .*c1 is already open/, call('START', named), call('START', named))
  runFails(/TOOL_CALL_ARGS: .*c1 is not open/, call('ARGS', delta))
  runFails(/TOOL_CALL_END: .*c1 is not open/, call('END'))
})

test('rule 8: reasoning spans and reasoning messages are bracketed apart', () => {
  const span = (step: string) => ({ type: `REASONING_${step}`, messageId: 'm1' })
  const message = (step: string, more: object = {}) => ({ ...span(`MESSAGE_${step}`), ...more })
  const role = { role: 'reasoning' }
  run(span('START'), message('START', role), message('CONTENT', delta), message('END'), span('END'))
  runFails(/REASONING_START: .*m1 is already open/, span('START'), span('START'))
  runFails(/REASONING_END: .*m1 is not open/, message('START', role), span('END'))
  runFails(/REASONING_MESSAGE_START: .*m1 is already open/, message('START', role), message('START', role))
  runFails(/REASONING_MESSAGE_CONTENT: .*m1 is not open/, span('START'), message('CONTENT', delta))
  runFails(/REASONING_MESSAGE_END: .*m1 is not open/, message('END'))
})

test('rule 9: a step is finished by whoever started it, and open once per owner', () => {
  const step = (what: string, more: object = {}) => ({ type: `STEP_${what}`, stepName: 'plan', ...more })
  run(step('STARTED'), step('STARTED', as('s1')), step('FINISHED', as('s1')), step('FINISHED'))
  runFails(/STEP_STARTED: .*already open/, step('STARTED'), step('STARTED'))
  runFails(/STEP_FINISHED: .*not open/, step('FINISHED'))
  runFails(/STEP_FINISHED: .*not open/, step('STARTED'), step('FINISHED', as('s1')))
  runFails(/STEP_FINISHED: .*not open/, step('STARTED', as('s1')), step('FINISHED'))
})

test('rule 10: what continues, closes or reopens a thing agrees with its owner or says nothing', () => {
  run(text('START', as('s1')), text('CONTENT', delta), text('END', as('s1')), text('START'), text('END'))
  runFails(/TEXT_MESSAGE_CONTENT: .*m1/, text('START', as('s1')), text('CONTENT', { ...delta, ...as('s2') }))
  runFails(/TEXT_MESSAGE_CONTENT: .*m1/, text('START'), text('CONTENT', { ...delta, ...as('s2') }))
  runFails(/TEXT_MESSAGE_START: .*m1/, text('START', as('s1')), text('END'), text('START', as('s2')))
  runFails(/TOOL_CALL_END: .*c1/, call('START', { ...named, ...as('s1') }), call('END', as('s2')))
  const activity = { messageId: 'a1', activityType: 'search' }
  const snapshot = { type: 'ACTIVITY_SNAPSHOT', ...activity, content: {} }
  const patch = { type: 'ACTIVITY_DELTA', ...activity, patch: [] }
  run({ ...snapshot, ...as('s1') }, { ...patch, ...as('s1') }, patch)
  run({ ...patch, ...as('s1') })
  run({ ...snapshot, ...as('s1') }, { ...snapshot, ...as('s2') }, { ...patch, ...as('s2') })
  runFails(
    /ACTIVITY_DELTA: .*a1/,
    { ...snapshot, ...as('s1') },
    { ...snapshot, ...as('s2'), replace: false },
    { ...patch, ...as('s2') },
  )
  runFails(/ACTIVITY_DELTA: .*a1/, snapshot, { ...patch, ...as('s2') })
})

test('rule 10: an encrypted value agrees with the owner of its message, reasoning or call, where that is known', () => {
  const sealed = (subtype: string, entityId: string) => ({
    type: 'REASONING_ENCRYPTED_VALUE',
    subtype,
    entityId,
    encryptedValue: 'e',
    ...as('s2'),
  })
  const reasoning = (step: string) => ({ type: `REASONING_${step}`, messageId: 'm1', ...as('s1') })
  run(sealed('message', 'nobody'), sealed('tool-call', 'nobody'))
  runFails(/REASONING_ENCRYPTED_VALUE: .*m1/, text('START', as('s1')), text('END'), sealed('message', 'm1'))
  runFails(/REASONING_ENCRYPTED_VALUE: .*m1/, reasoning('START'), reasoning('END'), sealed('message', 'm1'))
  runFails(
    /REASONING_ENCRYPTED_VALUE: .*c1/,
    call('START', { ...named, ...as('s1') }),
    call('END'),
    sealed('tool-call', 'c1'),
  )
})

test('rule 10: a tool call agrees with the owner of the message that carries it, and inherits it', () => {
  const parent = { ...named, parentMessageId: 'm1' }
  const message = (...owner: string[]) => [text('START', owner[0] ? as(owner[0]) : {}), text('END')]
  run(...message('s1'), call('START', parent), call('END', as('s1')))
  run(...message('s1'), call('START', { ...parent, ...as('s1') }), call('END'))
  run(call('START', { ...parent, ...as('s1') }), call('END'))
  runFails(/TOOL_CALL_START: .*m1/, ...message('s1'), call('START', { ...parent, ...as('s2') }))
  runFails(/TOOL_CALL_START: .*m1/, ...message(), call('START', { ...parent, ...as('s2') }))
  runFails(/TOOL_CALL_END: .*c1/, ...message('s1'), call('START', parent), call('END', as('s2')))
  runFails(
    /TOOL_CALL_START: .*c1/,
    ...message('s1'),
    call('START', named),
    call('END'),
    call('START', parent),
  )
  runFails(
    /TOOL_CALL_START: .*c1/,
    ...message(),
    call('START', { ...named, ...as('s1') }),
    call('END'),
    call('START', parent),
  )
})

test('rule 10: owners come from MESSAGES_SNAPSHOT, from RUN_STARTED.input unless known, and last for the run', () => {
  const toolCalls = [{ id: 'c1', type: 'function', function: { name: 'remove', arguments: '{}' } }]
  const messages = [
    { id: 'm1', role: 'assistant', toolCalls, ...as('s1') },
    { id: 'm2', role: 'reasoning', content: '', ...as('s1') },
    { id: 'm3', role: 'activity', activityType: 'search', content: {}, ...as('s1') },
  ]
  const input = { threadId: 't1', runId: 'r1', messages }
  for (const opening of [
    [{ ...started, input }],
    [started, { type: 'MESSAGES_SNAPSHOT', messages }],
    [started, text('START', as('s2')), text('END'), { type: 'MESSAGES_SNAPSHOT', messages }],
  ]) {
    passes(...opening, text('START', as('s1')), text('END'), finished)
    fails(/TEXT_MESSAGE_START: .*m1/, ...opening, text('START', as('s2')))
    fails(/TOOL_CALL_START: .*c1/, ...opening, call('START', { ...named, ...as('s2') }))
    fails(/REASONING_START: .*m2/, ...opening, { type: 'REASONING_START', messageId: 'm2', ...as('s2') })
    fails(/ACTIVITY_DELTA: .*m3/, ...opening, {
      type: 'ACTIVITY_DELTA',
      messageId: 'm3',
      activityType: 'search',
      patch: [],
      ...as('s2'),
    })
    passes(...opening, finished, started, text('START', as('s2')), text('END'), finished)
  }
})

test('rule 11: a subagent starts once, under a known parent, and ends once', () => {
  const name = { name: 'researcher' }
  run(
    subagent('STARTED', 's1', name),
    subagent('STARTED', 's2', { ...name, parentSubagentRunId: 's1' }),
    subagent('ERROR', 's2', { message: 'm' }),
    subagent('FINISHED'),
  )
  runFails(/^malformed-event: .*SUBAGENT_STARTED\/name/, subagent('STARTED'))
  runFails(/^malformed-event: .*SUBAGENT_STARTED\/subagentRunId/, { type: 'SUBAGENT_STARTED', ...name })
  runFails(/SUBAGENT_STARTED: .*s1/, subagent('STARTED', 's1', name), subagent('STARTED', 's1', name))
  runFails(
    /SUBAGENT_STARTED: .*s1/,
    subagent('STARTED', 's1', name),
    subagent('FINISHED'),
    subagent('STARTED', 's1', name),
  )
  runFails(/SUBAGENT_STARTED: .*s9/, subagent('STARTED', 's1', { ...name, parentSubagentRunId: 's9' }))
  runFails(/SUBAGENT_STARTED: .*s1/, subagent('STARTED', 's1', { ...name, parentSubagentRunId: 's1' }))
  runFails(/SUBAGENT_FINISHED: .*s1 is not open/, subagent('FINISHED'))
  runFails(/SUBAGENT_ERROR: .*s1 is not open/, subagent('ERROR', 's1', { message: 'm' }))
  runFails(/^malformed-event: .*SUBAGENT_ERROR\/message/, subagent('STARTED', 's1', name), subagent('ERROR'))
})

test('rule 12: a run finishes only when everything it opened is closed', () => {
  for (const [id, event] of Object.entries({
    plan: { type: 'STEP_STARTED', stepName: 'plan' },
    m1: text('START'),
    m2: { type: 'REASONING_MESSAGE_START', messageId: 'm2', role: 'reasoning' },
    m3: { type: 'REASONING_START', messageId: 'm3' },
    c1: call('START', named),
    s1: subagent('STARTED', 's1', { name: 'n' }),
  })) {
    runFails(new RegExp(`RUN_FINISHED: still open: .*${id}`), event)
    passes(started, event, failed)
  }
})

test('a stream that ends without a terminal event is truncated', () => {
  fails(/^truncated-stream: .*RUN_FINISHED or RUN_ERROR/)
  fails(/^truncated-stream/, started)
  fails(/^truncated-stream/, started, finished, started)
  fails(/^truncated-stream/, started, text('START'), text('CONTENT', delta), text('END'))
})

test('interrupts of one outcome have different ids', () => {
  const end = (...ids: string[]) => ({
    ...finished,
    outcome: { type: 'interrupt', interrupts: ids.map((id) => ({ id, reason: 'tool_call' })) },
  })
  passes(started, end('i1', 'i2'))
  fails(/RUN_FINISHED: interrupt ids/, started, end('i1', 'i2', 'i1'))
})

test('RUN_FINISHED names the run and the thread that it ends', () => {
  fails(/RUN_FINISHED: runId must be r1/, started, { ...finished, runId: 'r2' })
  fails(/RUN_FINISHED: threadId must be t1/, started, { ...finished, threadId: 't2' })
})

test('every run of a stream is on the thread of the first, and on the thread and run asked for', () => {
  fails(/RUN_STARTED: threadId must be t1/, started, finished, { ...started, threadId: 't2' })
  expect(read([started, finished], { threadId: 't1', runId: 'r1' })).toHaveLength(2)
  expect(read([failed], { threadId: 't1', runId: 'r1' })).toHaveLength(1)
  expect(read([started, finished], { threadId: 't2' })).toMatch(/RUN_STARTED: threadId must be t2/)
  expect(read([started, finished], { runId: 'r2' })).toMatch(/RUN_STARTED: runId must be r2/)
})

test('a new run starts with nothing open and nothing owned', () => {
  passes(started, text('START', as('s1')), failed, started, text('START', as('s2')), text('END'), finished)
})

test('an id that is the name of an object member is an id like any other', () => {
  const id = { messageId: '__proto__', toolCallId: 'constructor' }
  run(text('START', { messageId: id.messageId }), text('END', { messageId: id.messageId }))
  runFails(/constructor is not open/, call('ARGS', { ...delta, toolCallId: id.toolCallId }))
})
