import {
  areAllToolsComplete,
  clientCalls,
  createChatState,
  executingCalls,
  hasUnsentAnswer,
  type LocalEvent,
  readMessages,
  readRecord,
  step,
  type ToolCallState,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { expect, test } from 'vitest'
import { canMove } from '../src/machine/transitions.js'
import {
  answer,
  args,
  ask,
  Chat,
  call,
  closed,
  custom,
  end,
  failure,
  opened,
  own,
  pending,
  result,
  runFinished,
  runStarted,
  type Step,
  says,
  start,
  text,
  textDelta,
  textEnd,
  textStart,
  warnings,
} from './support.js'

const started = (toolCallId: string): LocalEvent => ({ type: 'tool-started', toolCallId })
const output = (toolCallId: string, value: unknown = 'here'): LocalEvent => ({
  type: 'tool-output',
  toolCallId,
  messageId: `out-${toolCallId}`,
  output: value,
})

test('S4.14 START creates a part in awaiting-input', () => {
  const chat = new Chat()
  chat.do(start('c1'))
  expect(chat.parts('a1')).toEqual([
    { type: 'tool-call', id: 'c1', name: 'remove', arguments: '', state: 'awaiting-input' },
  ])
})

test('S4.15 ARGS moves to input-streaming and arguments accumulate, parsed as far as they go', () => {
  const chat = new Chat()
  chat.do(start('c1'), args('c1', '{"path":"/a'))
  expect(chat.call('c1')).toMatchObject({
    state: 'input-streaming',
    arguments: '{"path":"/a',
    input: { path: '/a' },
  })
  chat.do(args('c1', 'b","n":1'))
  expect(chat.call('c1')).toMatchObject({ arguments: '{"path":"/ab","n":1', input: { path: '/ab' } })
})

test('S4.16 END makes it input-complete, arguments final', () => {
  const chat = new Chat()
  chat.do(...call('c1', { path: '/a', deep: [1, { x: null }] }))
  expect(chat.call('c1')).toEqual({
    type: 'tool-call',
    id: 'c1',
    name: 'remove',
    arguments: '{"path":"/a","deep":[1,{"x":null}]}',
    input: { path: '/a', deep: [1, { x: null }] },
    state: 'input-complete',
  })
})

test('S4.11 empty arguments are the input {}; text that is no JSON leaves no input but stays readable', () => {
  const chat = new Chat()
  chat.do(start('c1'), end('c1'), start('c2'), args('c2', '{"path":'), end('c2'))
  expect(chat.call('c1')).toMatchObject({ arguments: '', input: {}, state: 'input-complete' })
  expect(chat.call('c2')).toMatchObject({ arguments: '{"path":', state: 'input-complete' })
  expect(chat.call('c2').input).toBeUndefined()
})

test('a call without parentMessageId makes a message whose id is that of the call', () => {
  const chat = new Chat()
  chat.do(start('c1', {}))
  expect(chat.message('c1')).toMatchObject({ role: 'assistant', parts: [{ type: 'tool-call', id: 'c1' }] })
})

test('S4.97 a call without needsApproval goes from input-complete to its result, without any approval', () => {
  const chat = new Chat()
  for (const event of [...call('c1'), result('c1', '{"n":1}')]) {
    chat.do(event)
    expect('approval' in chat.call('c1')).toBe(false)
  }
  expect(chat.call('c1')).toMatchObject({ state: 'complete', output: { n: 1 } })
})

test('S4.96 the name of the tool survives approval, resume and result', () => {
  const chat = new Chat()
  const names = new Set<string>()
  for (const event of [
    ...pending('c1'),
    answer('approval_c1'),
    opened('run-2'),
    runStarted('run-2'),
    result('c1'),
    closed,
  ]) {
    chat.do(event)
    names.add(chat.call('c1').name)
  }
  expect([...names]).toEqual(['remove'])
  expect(chat.call('c1').state).toBe('complete')
})

test('S4.30 TOOL_CALL_RESULT adds a tool-result part, sets output and moves the call as its flag says', () => {
  const chat = new Chat()
  const metadata = { countersign: { outcome: 'error', code: 'interrupted' } }
  chat.do(
    ...call('ok'),
    ...call('no'),
    ...call('late'),
    ...call('bad'),
    result('ok', '{"kind":"denied"}'),
    result('no', '{"type":"execution-denied","reason":"not that one"}', failure('denied')),
    result('late', '{"type":"execution-cancelled"}', failure('cancelled')),
    result('bad', '{"type":"execution-error","reason":"disk full"}', { metadata }),
  )
  expect(chat.call('ok')).toMatchObject({ state: 'complete', output: { kind: 'denied' } })
  expect(chat.call('no')).toMatchObject({ state: 'denied', error: { message: 'not that one' } })
  expect(chat.call('late').state).toBe('cancelled')
  expect(chat.call('bad')).toMatchObject({
    state: 'error',
    error: { message: 'disk full', code: 'interrupted' },
  })
  expect(chat.call('bad').output).toBeUndefined()
  expect(chat.parts('a1').filter((part) => part.type === 'tool-result')).toEqual([
    { type: 'tool-result', id: 'result-ok', toolCallId: 'ok', content: '{"kind":"denied"}' },
    {
      type: 'tool-result',
      id: 'result-no',
      toolCallId: 'no',
      content: '{"type":"execution-denied","reason":"not that one"}',
      ...failure('denied'),
    },
    {
      type: 'tool-result',
      id: 'result-late',
      toolCallId: 'late',
      content: '{"type":"execution-cancelled"}',
      ...failure('cancelled'),
    },
    {
      type: 'tool-result',
      id: 'result-bad',
      toolCallId: 'bad',
      content: '{"type":"execution-error","reason":"disk full"}',
      metadata,
    },
  ])
})

test('S4.30 without a flag an answer of false makes the call denied, anything else complete', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), ...pending('c2'), answer('approval_c1', false), answer('approval_c2', true))
  chat.do(opened(), runStarted(), result('c1', 'no'), result('c2', 'yes'))
  expect(chat.call('c1').state).toBe('denied')
  expect(chat.call('c2')).toMatchObject({ state: 'complete', output: 'yes' })
})

test('a result that is an array of content parts is the output as it is', () => {
  const chat = new Chat()
  const content = [{ type: 'text' as const, text: 'seen' }]
  chat.do(...call('c1'), { type: 'TOOL_CALL_RESULT', messageId: 'r', toolCallId: 'c1', content })
  expect(chat.call('c1').output).toEqual(content)
})

test('D24 a result answers the nearest earlier call with that id that has none yet', () => {
  const chat = new Chat()
  chat.do(...call('c', 1, { parentMessageId: 'a1' }), result('c', '"one"', { messageId: 'r1' }), says('u1'))
  chat.do(...call('c', 2, { parentMessageId: 'a2' }))
  expect(chat.calls('c').map(({ state }) => state)).toEqual(['complete', 'input-complete'])
  chat.do(result('c', '"two"', { messageId: 'r2' }))
  expect(chat.calls('c').map(({ output: value }) => value)).toEqual(['one', 'two'])
  expect(chat.parts('a2').at(-1)).toMatchObject({ type: 'tool-result', id: 'r2' })
})

test('D24 with two open calls of one id, the first result is for the later and the second for the earlier', () => {
  const chat = new Chat()
  chat.do(...call('c', 1, { parentMessageId: 'a1' }), says('u1'), ...call('c', 2, { parentMessageId: 'a2' }))
  chat.do(result('c', '"later"', { messageId: 'r1' }), result('c', '"earlier"', { messageId: 'r2' }))
  expect(chat.calls('c').map(({ output: value }) => value)).toEqual(['earlier', 'later'])
})

test('D24 a START in a later turn is another call, also without a parent message', () => {
  const chat = new Chat()
  chat.do(...call('c', 1), result('c'), says('u1'), start('c', { toolCallName: 'other' }))
  expect(chat.calls('c').map(({ name, state }) => [name, state])).toEqual([
    ['remove', 'complete'],
    ['other', 'awaiting-input'],
  ])
})

test('a second result and a result for an unknown call change nothing and warn', () => {
  const chat = new Chat()
  chat.do(...call('c1'), result('c1', '"first"'))
  const before = chat.messages
  expect(warnings(chat.do(result('c1', '"second"', { messageId: 'again' })))).toEqual(['illegal-step'])
  expect(warnings(chat.do(result('nobody')))).toEqual(['unknown-id'])
  expect(chat.messages).toBe(before)
})

test('the result of a call that was cancelled here is kept as its result, and the call stays cancelled', () => {
  const chat = new Chat()
  chat.do(
    ...pending('c1'),
    { type: 'close', ids: ['approval_c1'], because: 'moved-on' },
    says('u2'),
    opened(),
    runStarted(),
  )
  expect(warnings(chat.do(result('c1', '{"type":"execution-cancelled"}', failure('cancelled'))))).toEqual([])
  expect(chat.call('c1')).toMatchObject({ state: 'cancelled', approval: { delivery: 'settled' } })
  expect(chat.parts('a1').at(-1)).toMatchObject({ type: 'tool-result', toolCallId: 'c1' })
  const before = chat.messages
  expect(warnings(chat.do(result('c1', '"again"')))).toEqual(['illegal-step'])
  expect(chat.messages).toBe(before)
})

test('the result of a refused answer is kept beside the refusal', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), answer('approval_c1'), opened(), runStarted())
  chat.do(
    custom('approval-refused', {
      approvalId: 'approval_c1',
      toolCallId: 'c1',
      code: 'approval-stale',
      message: 'Old.',
    }),
  )
  chat.do(result('c1', '{"type":"execution-cancelled"}', failure('cancelled', { code: 'approval-stale' })))
  expect(chat.call('c1')).toMatchObject({
    state: 'cancelled',
    error: { message: 'Old.', code: 'approval-stale' },
    approval: { problem: 'approval-stale' },
  })
  expect(chat.parts('a1').map(({ type }) => type)).toEqual(['tool-call', 'tool-result'])
})

const all: readonly ToolCallState[] = [
  'awaiting-input',
  'input-streaming',
  'input-complete',
  'approval-requested',
  'approval-responded',
  'executing',
  'complete',
  'error',
  'denied',
  'cancelled',
]
const terminal: readonly ToolCallState[] = ['complete', 'error', 'denied', 'cancelled']
const forward: Record<ToolCallState, readonly ToolCallState[]> = {
  'awaiting-input': ['input-streaming', 'input-complete', ...terminal],
  'input-streaming': ['input-complete', ...terminal],
  'input-complete': ['input-streaming', 'approval-requested', 'executing', ...terminal],
  'approval-requested': ['approval-responded', ...terminal],
  'approval-responded': ['approval-requested', 'executing', ...terminal],
  executing: ['complete', 'error'],
  complete: [],
  error: [],
  denied: [],
  cancelled: [],
}

test('S4.38 the table of transitions: forward only, terminal is terminal, two reopenings', () => {
  for (const from of all) {
    for (const to of all)
      expect([from, to, canMove(from, to)]).toEqual([from, to, forward[from].includes(to)])
  }
})

/** How a call gets into each state, in a turn of its own. */
const into: Record<ToolCallState, (chat: Chat) => unknown> = {
  'awaiting-input': (chat) => chat.do(start('c1')),
  'input-streaming': (chat) => chat.do(start('c1'), args('c1', '{"path":')),
  'input-complete': (chat) => chat.do(...call('c1')),
  'approval-requested': (chat) => chat.do(...pending('c1')),
  'approval-responded': (chat) => chat.do(...pending('c1'), answer('approval_c1')),
  executing: (chat) => chat.do(...call('c1'), started('c1')),
  complete: (chat) => chat.do(...call('c1'), result('c1')),
  error: (chat) => chat.do(...call('c1'), result('c1', '"x"', failure('error'))),
  denied: (chat) => chat.do(...call('c1'), result('c1', '"x"', failure('denied'))),
  cancelled: (chat) => chat.do(...call('c1'), result('c1', '"x"', failure('cancelled'))),
}

/** What each step leads to where it is legal; everywhere else it changes nothing. */
const legalSteps: Record<string, { step: Step; to: Partial<Record<ToolCallState, ToolCallState>> }> = {
  ARGS: {
    step: args('c1', '1}'),
    to: { 'awaiting-input': 'input-streaming', 'input-streaming': 'input-streaming' },
  },
  END: { step: end('c1'), to: { 'awaiting-input': 'input-complete', 'input-streaming': 'input-complete' } },
  request: { step: ask('c1'), to: { 'input-complete': 'approval-requested' } },
  answer: { step: answer('approval_c1'), to: { 'approval-requested': 'approval-responded' } },
  refusal: {
    step: custom('approval-refused', { approvalId: 'approval_c1', toolCallId: 'c1', code: 'approval-stale' }),
    to: { 'approval-requested': 'cancelled', 'approval-responded': 'cancelled' },
  },
  'F54 refusal of an edit': {
    step: custom('approval-refused', {
      approvalId: 'approval_c1',
      toolCallId: 'c1',
      code: 'approval-edit-invalid',
    }),
    to: { 'approval-responded': 'approval-requested' },
  },
  'refusal of who has answered': {
    step: custom('approval-refused', {
      approvalId: 'approval_c1',
      toolCallId: 'c1',
      code: 'approval-not-yours',
    }),
    to: { 'approval-responded': 'approval-requested' },
  },
  'moving on': {
    step: { type: 'close', ids: ['approval_c1'], because: 'moved-on' },
    to: { 'approval-requested': 'cancelled' },
  },
  'start of a client tool': { step: started('c1'), to: { 'input-complete': 'executing' } },
  'output of a client tool': {
    step: output('c1'),
    to: { 'input-complete': 'complete', executing: 'complete' },
  },
  result: {
    step: result('c1', '"x"', { messageId: 'r2' }),
    to: {
      'awaiting-input': 'complete',
      'input-streaming': 'complete',
      'input-complete': 'complete',
      'approval-requested': 'complete',
      'approval-responded': 'complete',
      executing: 'complete',
    },
  },
}

for (const [name, { step, to }] of Object.entries(legalSteps)) {
  test(`S4.38 ${name} is applied where it is legal and else is a no-op`, () => {
    for (const from of all) {
      const chat = new Chat()
      into[from](chat)
      const before = chat.messages
      chat.do(step)
      const target = to[from]
      expect([from, chat.call('c1').state]).toEqual([from, target ?? from])
      if (target === undefined) expect([from, chat.messages === before]).toEqual([from, true])
    }
  })
}

test('S4.38 F26 START goes on with what is under way, and else begins a call of its own', () => {
  for (const from of all) {
    const chat = new Chat()
    into[from](chat)
    const before = chat.messages
    chat.do(start('c1'))
    const isAnother = from === 'input-complete' || terminal.includes(from)
    expect([from, chat.calls('c1').map(({ state }) => state)]).toEqual([
      from,
      isAnother ? [from, 'awaiting-input'] : [from],
    ])
    if (!isAnother) expect([from, chat.messages === before]).toEqual([from, true])
  }
})

test('S4.38 an illegal step says so in a warning', () => {
  const chat = new Chat()
  chat.do(...call('c1'))
  expect(warnings(chat.do(args('c1', 'x')))).toEqual(['illegal-step'])
  expect(warnings(chat.do(end('c1')))).toEqual(['illegal-step'])
  expect(warnings(chat.do(answer('approval_c1')))).toEqual(['unknown-id'])
  chat.do(result('c1'))
  expect(warnings(chat.do(ask('c1')))).toEqual(['illegal-step'])
  for (const step of [
    args('nobody', 'x'),
    end('nobody'),
    ask('nobody'),
    textDelta('nobody', 'x'),
    textEnd('nobody'),
  ])
    expect(warnings(chat.do(step))).toEqual(['unknown-id'])
})

test('S4.38 text after the END of its message is a no-op, a new START continues it', () => {
  const chat = new Chat()
  chat.do(...text('a1', 'one'))
  const before = chat.messages
  expect(warnings(chat.do(textDelta('a1', 'late')))).toEqual(['illegal-step'])
  expect(chat.messages).toBe(before)
  chat.do(textStart('a1'), textDelta('a1', ' two'))
  expect(chat.parts('a1')).toEqual([{ type: 'text', text: 'one two' }])
})

test('a stream does not write into what the person said', () => {
  const chat = new Chat()
  chat.do(says('u1', 'delete nothing'))
  const before = chat.messages
  chat.do(textStart('u1'), textDelta('u1', ' but everything'), textEnd('u1', { x: 1 }))
  expect(chat.message('u1')).toBe(before[0])
  expect(chat.message('u1-2')).toMatchObject({ role: 'assistant', metadata: { x: 1 } })
  chat.do(says('u2', 'go on'))
  chat.do({
    type: 'REASONING_MESSAGE_START',
    messageId: 'r1',
    role: 'reasoning',
    ...own({ messageId: 'u1' }),
  })
  chat.do(...call('c1', {}, { parentMessageId: 'u2' }))
  expect(chat.message('u1')).toBe(before[0])
  expect(chat.message('c1').parts).toMatchObject([{ type: 'tool-call', id: 'c1' }])
})

test('a call that is only input-complete may be reopened: arguments append, another name does not', () => {
  const chat = new Chat()
  chat.do(start('c1'), args('c1', '{"a":1'), end('c1'), start('c1'), args('c1', ',"b":2}'), end('c1'))
  expect(chat.call('c1')).toMatchObject({ state: 'input-complete', input: { a: 1, b: 2 } })
  const [before] = chat.calls('c1')
  chat.do(start('c1', { toolCallName: 'other', parentMessageId: 'a1' }))
  expect(chat.calls('c1')).toMatchObject([before, { name: 'other', state: 'awaiting-input' }])
})

test('text, call, text keep their order', () => {
  const chat = new Chat()
  chat.do(...text('a1', 'before'), ...call('c1'), ...text('a1', 'after'), ...call('c2'), result('c1'))
  expect(chat.parts('a1').map((part) => (part.type === 'text' ? part.text : part.type))).toEqual([
    'before',
    'tool-call',
    'after',
    'tool-call',
    'tool-result',
  ])
})

test('what the server says of a call in its metadata is kept, except answers and outcomes', () => {
  const chat = new Chat()
  const forged = {
    approval: { id: 'x', needsApproval: true, approved: true },
    state: 'cancelled',
    error: { message: '?' },
  }
  chat.do(
    start('c1', { parentMessageId: 'a1', metadata: { trace: 1, countersign: { ...forged } } }),
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: 'c1', encryptedValue: 'sealed' },
    end('c1', { span: 2, countersign: { token: 'tok', provider: { id: 'p' }, ...forged } }),
  )
  expect(chat.call('c1')).toEqual({
    type: 'tool-call',
    id: 'c1',
    name: 'remove',
    arguments: '',
    input: {},
    state: 'input-complete',
    metadata: { trace: 1, span: 2, countersign: { encryptedValue: 'sealed', provider: { id: 'p' } } },
  })
})

test('S4.47 a provider-executed call is one from its START on, and waits for nobody unless it is asked about', () => {
  const chat = new Chat()
  chat.do(
    start('c1', { parentMessageId: 'a1', ...own({ providerExecuted: true }) }),
    args('c1', '{"path":"/a"}'),
  )
  expect(chat.call('c1').providerExecuted).toBe(true)
  chat.do(end('c1', { countersign: { providerExecuted: true } }))
  expect(areAllToolsComplete(chat.state)).toBe(true)
  chat.do(ask('c1'))
  expect(areAllToolsComplete(chat.state)).toBe(false)
  chat.do(answer('approval_c1'))
  expect(areAllToolsComplete(chat.state)).toBe(true)
})

test('S4.39 answered calls are complete, approved or denied', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), ...pending('c2'), answer('approval_c1', true), answer('approval_c2', false))
  expect(areAllToolsComplete(chat.state)).toBe(true)
  expect(hasUnsentAnswer(chat.state)).toBe(true)
})

test('S4.40 a client tool with output and no approval is complete', () => {
  const chat = new Chat()
  chat.do(...call('c1'), started('c1'))
  expect(areAllToolsComplete(chat.state)).toBe(false)
  expect(executingCalls(chat.state).map(({ id }) => id)).toEqual(['c1'])
  chat.do(output('c1', { ok: true }))
  expect(areAllToolsComplete(chat.state)).toBe(true)
  expect(chat.parts('a1')).toMatchObject([
    { state: 'complete', output: { ok: true } },
    { type: 'tool-result', id: 'out-c1', toolCallId: 'c1', content: '{"ok":true}' },
  ])
})

test('S4.41 a call with its result is complete', () => {
  const chat = new Chat()
  chat.do(...call('c1'), result('c1'))
  expect(areAllToolsComplete(chat.state)).toBe(true)
})

test('S4.42 a requested approval is not complete', () => {
  const chat = new Chat()
  chat.do(...pending('c1'))
  expect(areAllToolsComplete(chat.state)).toBe(false)
})

test('S4.43 awaiting, streaming and complete input without a result are not complete', () => {
  const chat = new Chat()
  for (const event of call('c1')) {
    chat.do(event)
    expect([chat.call('c1').state, areAllToolsComplete(chat.state)]).toEqual([chat.call('c1').state, false])
  }
})

test('S4.44 one open call keeps the whole set incomplete', () => {
  const chat = new Chat()
  chat.do(...call('c1'), result('c1'), ...pending('c2'), answer('approval_c2'), ...pending('c3'))
  expect(areAllToolsComplete(chat.state)).toBe(false)
  chat.do(answer('approval_c3', false))
  expect(areAllToolsComplete(chat.state)).toBe(true)
})

test('S4.45 only the last turn counts, and without an answer there is nothing to continue', () => {
  const chat = new Chat()
  expect([areAllToolsComplete(chat.state), hasUnsentAnswer(chat.state)]).toEqual([true, false])
  chat.do(says('u1'), ...pending('c1'), says('u2'), ...text('a2', 'Fine.'))
  expect([areAllToolsComplete(chat.state), hasUnsentAnswer(chat.state)]).toEqual([true, false])
  chat.do(
    ...call('c2', {}, { parentMessageId: 'a2' }),
    ...call('c3', {}, { parentMessageId: 'a3' }),
    result('c2'),
  )
  expect(areAllToolsComplete(chat.state)).toBe(false)
})

test('S4.46 an approved client tool: complete until it is handed out, then not until its output exists', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), answer('approval_c1'))
  expect(areAllToolsComplete(chat.state)).toBe(true)
  expect(warnings(chat.do(started('c1')))).toEqual(['illegal-step'])
  expect(warnings(chat.do(output('c1')))).toEqual(['illegal-step'])
  chat.do(
    opened(),
    runStarted(),
    custom('client-tool-ready', { toolCallId: 'c1', toolName: 'remove', input: { path: '/b' } }),
  )
  chat.do(runFinished({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } }), closed)
  expect(areAllToolsComplete(chat.state)).toBe(false)
  expect(chat.approval('c1').delivery).toBe('settled')
  expect(clientCalls(chat.state)).toEqual([{ id: 'c1', name: 'remove', input: { path: '/b' } }])
  chat.do(started('c1'))
  expect(chat.call('c1')).toMatchObject({ state: 'executing', input: { path: '/b' } })
  expect(clientCalls(chat.state)).toEqual([])
  chat.do(output('c1'))
  expect([areAllToolsComplete(chat.state), hasUnsentAnswer(chat.state)]).toEqual([true, true])
  expect(chat.call('c1')).toMatchObject({ state: 'complete', approval: { approved: true } })
})

test('client-tool-ready is taken once, with the input it came with first, and only for an approved call', () => {
  const chat = new Chat()
  const ready = (toolCallId: unknown, input: unknown) =>
    custom('client-tool-ready', { toolCallId, toolName: 'remove', input })
  chat.do(...pending('c1'), ...pending('c2'), answer('approval_c2', false), ...call('1'))
  expect(warnings(chat.do(ready('c1', {})))).toEqual(['illegal-step'])
  expect(warnings(chat.do(ready('c2', {})))).toEqual(['illegal-step'])
  expect(warnings(chat.do(ready(1, {})))).toEqual(['unknown-id'])
  expect(warnings(chat.do(ready('nobody', {})))).toEqual(['unknown-id'])
  chat.do(answer('approval_c1'), opened(), runStarted(), ready('c1', { path: '/1' }))
  chat.do(
    ready('c1', { path: '/2' }),
    runFinished({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } }),
    closed,
  )
  expect(clientCalls(chat.state)).toEqual([{ id: 'c1', name: 'remove', input: { path: '/1' } }])
})

test('client tools: those the run named, else those it left without a result, never of a broken run', () => {
  const outcomes = {
    named: runFinished({ outcome: { type: 'success', pendingToolCallIds: ['c2'] } }),
    unnamed: runFinished(),
    cancelled: runFinished({ outcome: { type: 'cancelled' } }),
  }
  const idsAfter = (event: Step, close: LocalEvent = closed) => {
    const chat = new Chat()
    chat.do(opened(), runStarted(), ...call('c1'), ...call('c2'), ...call('c3'), result('c3'), event, close)
    return clientCalls(chat.state).map(({ id }) => id)
  }
  expect(idsAfter(outcomes.named)).toEqual(['c2'])
  expect(idsAfter(outcomes.unnamed)).toEqual(['c1', 'c2'])
  expect(idsAfter(outcomes.cancelled)).toEqual([])
  expect(idsAfter(outcomes.unnamed, { type: 'run-closed', end: { type: 'aborted' } })).toEqual([])
})

test('a failed client tool is an error the server hears of; what has no JSON form does not lose the result', () => {
  const chat = new Chat()
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  chat.do(...call('c1'), ...call('c2'), ...call('c3'))
  chat.do(started('c1'), {
    type: 'tool-output',
    toolCallId: 'c1',
    messageId: 'm1',
    error: { message: 'no camera' },
  })
  chat.do(started('c2'), output('c2', cycle), started('c3'), {
    type: 'tool-output',
    toolCallId: 'c3',
    messageId: 'm3',
    output: undefined,
  })
  const contents = chat.parts('a1').flatMap((part) => (part.type === 'tool-result' ? [part.content] : []))
  expect(chat.call('c1')).toMatchObject({ state: 'error', error: { message: 'no camera' } })
  expect(chat.parts('a1')).toContainEqual({
    type: 'tool-result',
    id: 'm1',
    toolCallId: 'c1',
    content: '{"type":"execution-error","reason":"no camera"}',
    error: 'no camera',
    ...failure('error'),
  })
  expect(contents).toHaveLength(3)
  expect(contents[2]).toBe('null')
})

test('U.11 ids and names such as __proto__ neither match nor crash', () => {
  const hostile = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '']
  for (const id of hostile) {
    const chat = new Chat()
    expect(warnings(chat.do(args(id, 'x')))).toEqual(['unknown-id'])
    expect(warnings(chat.do(textDelta(id, 'x')))).toEqual(['unknown-id'])
    expect(warnings(chat.do(ask(id)))).toEqual(['unknown-id'])
    expect(warnings(chat.do(answer(id)))).toEqual(['unknown-id'])
    expect(warnings(chat.do(result(id)))).toEqual(['unknown-id'])
    chat.do(
      ...text(`m${id}`, 'hi'),
      ...call(id, { path: '/a' }, { toolCallName: id, parentMessageId: `m${id}` }),
    )
    chat.do(ask(id, { id: `approval${id}` }, { toolName: id }))
    expect(chat.pending).toMatchObject([{ id, name: id, state: 'approval-requested' }])
    chat.do(answer(`approval${id}`))
    expect(chat.call(id).approval?.approved).toBe(true)
    chat.do(...text(id, 'as a message'))
    expect(chat.message(id).role).toBe('assistant')
  }
  expect(Object.keys(Object.prototype)).toEqual([])
})

test('U.11 arguments with a key __proto__ are data', () => {
  const chat = new Chat()
  chat.do(start('c1'), args('c1', '{"__proto__":{"approved":true},"path":"/a"}'), end('c1'))
  const input = chat.call('c1').input as Record<string, unknown>
  expect(Object.keys(input)).toEqual(['__proto__', 'path'])
  expect(input['approved']).toBeUndefined()
  chat.do(ask('c1', {}, { input: JSON.parse('{"__proto__":{"approved":true},"path":"/a"}') }))
  expect(chat.approval('c1').problem).toBeUndefined()
})

test('S4.13 the machine is the only owner: what it published is built out of its state alone', () => {
  const chat = new Chat()
  const given = { id: 'u1', role: 'user' as const, parts: [{ type: 'text' as const, text: 'Hello' }] }
  chat.do({ type: 'user-message', message: given })
  for (const part of given.parts) part.text = 'changed by the caller'
  given.parts.push({ type: 'text', text: 'changed by the caller' })
  expect(readMessages(chat.state)).toMatchObject([{ id: 'u1', parts: [{ text: 'Hello' }] }])
})

test('a warning says which step was left out, and why', () => {
  const [warning] = new Chat().do(args('c1', 'x'))
  expect(warning).toEqual({
    type: 'warning',
    code: 'unknown-id',
    message: 'Left out (unknown-id): {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"x"}',
  })
})

test('a record is left out with a warning by a machine that was not given the step for it', () => {
  const state = createChatState({ moreSteps: fullSteps })
  const record = readRecord(createChatState())
  expect(step(state, { type: 'restore', record })).toMatchObject([{ code: 'illegal-step' }])
})

test('a message of the person with an id that is taken is not added twice', () => {
  const chat = new Chat()
  chat.do(says('u1', 'first'))
  const before = chat.messages
  expect(warnings(chat.do(says('u1', 'second')))).toEqual(['illegal-step'])
  expect(chat.messages).toBe(before)
})

test('a snapshot keeps the result of a client tool that no request has carried, in its message, until the snapshot has a result', () => {
  const snapshot = (...results: string[]): Step => ({
    type: 'MESSAGES_SNAPSHOT',
    messages: [
      {
        id: 'a1',
        role: 'assistant',
        content: 'Meanwhile.',
        toolCalls: [{ id: 'c1', type: 'function', function: { name: 'remove', arguments: '{}' } }],
      },
      ...results.map((content) => ({ id: 'r1', role: 'tool' as const, toolCallId: 'c1', content })),
    ],
  })
  const chat = new Chat()
  const contents = () => chat.parts('a1').flatMap((part) => (part.type === 'tool-result' ? part.content : []))
  chat.do(...call('c1', {}), started('c1'), output('c1'), snapshot(), snapshot())
  expect([chat.call('c1')?.state, contents(), hasUnsentAnswer(chat.state)]).toEqual([
    'complete',
    ['here'],
    true,
  ])
  chat.do(snapshot('there'))
  expect(contents()).toEqual(['there'])
})
