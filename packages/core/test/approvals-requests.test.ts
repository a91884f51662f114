import {
  type ApprovalErrorCode,
  findAnswerable,
  hasDeferredAnswer,
  hasUnsentAnswer,
  type Interrupt,
  type Message,
  resumeEntries,
  visibleRequests,
} from '@countersign/core'
import { expect, test } from 'vitest'
import {
  answer,
  args,
  ask,
  asked,
  Chat,
  call,
  closed,
  custom,
  end,
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
  warnings,
} from './support.js'

const refuse = (approvalId: unknown, code: string): Step =>
  custom('approval-refused', { approvalId, toolCallId: 'c1', code, message: 'No.' })

const interrupted = (...interrupts: Interrupt[]): Step =>
  runFinished({ outcome: { type: 'interrupt', interrupts } })

test('S4.17 CUSTOM makes it approval-requested, approved undefined', () => {
  const chat = new Chat()
  chat.do(...call('c1'), ask('c1', { options: undefined }))
  expect(chat.call('c1').state).toBe('approval-requested')
  expect(chat.approval('c1')).toEqual({ id: 'approval_c1', needsApproval: true, options: ['deny', 'once'] })
})

test('a request is taken over with everything it says, and nothing of an answer', () => {
  const chat = new Chat()
  const says = {
    options: ['deny', 'once', 'session'],
    allowEdits: ['path'],
    message: 'Deletes a file',
    expiresAt: '2027-01-01T00:00:00.000Z',
    display: { path: '***' },
    token: 'cs1.token',
  }
  chat.do(
    ...call('c1'),
    ask('c1', { ...says, approved: true, reason: 'x', scope: 'session', input: {}, delivery: 'sent' }),
  )
  expect(chat.approval('c1')).toEqual({ id: 'approval_c1', needsApproval: true, ...says })
})

test('S4.18 the request is told once, with the call, its input and the approval', () => {
  const chat = new Chat()
  chat.do(...call('c1'))
  expect(chat.do(ask('c1'))).toEqual([
    {
      type: 'approval-requested',
      messageId: 'a1',
      toolCallId: 'c1',
      toolName: 'remove',
      input: { path: '/a' },
      approval: chat.approval('c1'),
    },
  ])
  expect(chat.do(ask('c1'))).toEqual([])
})

test('S4.19 an answer sets approval-responded and approved; arguments and other parts are untouched', () => {
  for (const approved of [true, false]) {
    const chat = new Chat()
    chat.do(...text('a1', 'I will.'), ...pending('c1'), ...call('c2'))
    const before = chat.parts('a1')
    expect(chat.do(answer('approval_c1', approved, { reason: 'because' }))).toEqual([])
    const after = chat.parts('a1')
    expect(after[1]).toEqual({
      ...before[1],
      state: 'approval-responded',
      approval: {
        id: 'approval_c1',
        needsApproval: true,
        options: ['deny', 'once'],
        approved,
        reason: 'because',
        delivery: 'waiting',
      },
    })
    expect([after[0] === before[0], after[2] === before[2]]).toEqual([true, true])
  }
})

test('edits and scope belong to a yes; a no has neither', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), ...pending('c2'))
  const given = { scope: 'session' as const, input: { path: '/b' } }
  chat.do(answer('approval_c1', true, given), answer('approval_c2', false, given))
  expect(chat.approval('c1')).toMatchObject(given)
  expect(chat.call('c1').input).toEqual({ path: '/a' })
  expect(chat.approval('c2')).toEqual({
    id: 'approval_c2',
    needsApproval: true,
    options: ['deny', 'once'],
    approved: false,
    delivery: 'waiting',
  })
})

test('S4.20 an unknown approval id changes nothing', () => {
  const chat = new Chat()
  chat.do(...pending('c1'))
  const before = chat.messages
  expect(warnings(chat.do(answer('c1')))).toEqual(['unknown-id'])
  expect(chat.messages).toBe(before)
  expect(findAnswerable(chat.state, 'c1')).toEqual({ status: 'not-found' })
})

test('S4.21 an answered approval takes no second answer', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), answer('approval_c1', true, { reason: 'first' }))
  const before = chat.messages
  expect(chat.do(answer('approval_c1', false, { reason: 'second' }))).toEqual([])
  expect(chat.messages).toBe(before)
  expect(findAnswerable(chat.state, 'approval_c1')).toEqual({ status: 'already-answered' })
})

test('S4.22 an answer makes new objects of its message and part and leaves every other as it is', () => {
  const chat = new Chat()
  chat.do(says('u1'), ...pending('c1'), ...pending('c2'), ...call('c3', {}, { parentMessageId: 'a2' }))
  const before = chat.messages
  chat.do(answer('approval_c1'))
  const after = chat.messages
  expect(after.map((message, i) => message === before[i])).toEqual([true, false, true])
  expect(after[1]?.parts.map((part, i) => part === before[1]?.parts[i])).toEqual([false, true])
})

test('S4.23 two messages with one call id but two approval ids are independent', () => {
  const chat = new Chat()
  chat.do(...call('c', { path: '/a' }, { parentMessageId: 'a1' }), ask('c', { id: 'approval_1' }))
  chat.do(...call('c', { path: '/a' }, { parentMessageId: 'a2' }), ask('c', { id: 'approval_2' }))
  chat.do(answer('approval_1', false))
  expect(chat.calls('c').map(({ state }) => state)).toEqual(['approval-responded', 'approval-requested'])
  chat.do(answer('approval_2'))
  expect(chat.calls('c').map((part) => part.approval?.approved)).toEqual([false, true])
})

test('S4.24 a request after RUN_FINISHED still lands on its call', () => {
  const chat = new Chat()
  chat.do(opened(), runStarted(), ...call('c1'), runFinished(), ask('c1'), closed)
  expect(chat.pending.map(({ id }) => id)).toEqual(['c1'])
  chat.do(...call('c2'), ask('c2'))
  expect(chat.pending.map(({ id }) => id)).toEqual(['c1', 'c2'])
})

test('S4.25 a request for an unknown call is a warning and is not told', () => {
  const chat = new Chat()
  const effects = chat.do(ask('nobody'))
  expect([warnings(effects), asked(effects), chat.messages]).toEqual([['unknown-id'], [], []])
  expect(warnings(chat.do(answer('approval_nobody')))).toEqual(['unknown-id'])
})

test('S4.26 the same request again does not reset an answered part', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), answer('approval_c1'))
  const before = chat.messages
  expect(chat.do(ask('c1'))).toEqual([])
  expect(chat.messages).toBe(before)
})

test('S4.27 S4.31 the end, an error or an abort of the stream leaves requests answerable and answers given', () => {
  const error = { type: 'RUN_ERROR', message: 'boom' } as const
  const ends: Step[][] = [
    [runFinished(), closed],
    [error, closed],
    [{ type: 'run-closed', end: { type: 'aborted' } }],
  ]
  for (const steps of ends) {
    const chat = new Chat()
    chat.do(opened(), runStarted(), ...pending('c1'), ...pending('c2'), answer('approval_c2'), ...steps)
    expect(chat.call('c1').state).toBe('approval-requested')
    expect(chat.call('c2')).toMatchObject({ state: 'approval-responded', approval: { delivery: 'waiting' } })
    expect(findAnswerable(chat.state, 'approval_c1').status).toBe('open')
  }
})

test('S4.37 the approval has an id of its own, under which alone it is answered', () => {
  const chat = new Chat()
  chat.do(...pending('c1'))
  expect(chat.approval('c1').id).not.toBe('c1')
  expect(visibleRequests(chat.state)).toEqual(['approval_c1'])
})

const frozen: Record<string, Step[]> = {
  'another message': [ask('c1', { message: 'B' })],
  'another expiry': [ask('c1', { expiresAt: '2027-02-02T00:00:00Z' })],
  'another token': [ask('c1', { token: 'B' })],
  'other shown arguments': [ask('c1', { display: { b: 1 } })],
  'another approval id': [ask('c1', { id: 'approval_other' })],
  'another input': [ask('c1', {}, { input: { path: '/b' } })],
  'another tool': [ask('c1', {}, { toolName: 'format' })],
  'other arguments in a re-opened call': [start('c1'), args('c1', '{"path":"/b"}'), end('c1')],
  'another name in a re-opened call': [start('c1', { toolCallName: 'format', parentMessageId: 'a1' })],
}

for (const [what, steps] of Object.entries(frozen)) {
  test(`S4.28 ${what} makes a shown request unanswerable, never swapped`, () => {
    const chat = new Chat()
    const shown = { message: 'A', expiresAt: '2027-01-01T00:00:00Z', token: 'A', display: { a: 1 } }
    chat.do(...pending('c1', shown))
    const before = chat.call('c1')
    chat.do(...steps)
    // What was streamed again as something else is a call of its own (F26).
    expect(chat.calls('c1')[0]).toEqual({
      ...before,
      approval: { ...before.approval, problem: 'approval-changed' },
    })
    expect(chat.effects.filter(({ type }) => type === 'approval-requested')).toHaveLength(1)
    expect(findAnswerable(chat.state, 'approval_c1')).toEqual({
      status: 'closed',
      reason: 'approval-changed',
    })
    const after = chat.messages
    expect(chat.do(answer('approval_c1'))).toEqual([])
    expect(chat.messages).toBe(after)
    expect(hasUnsentAnswer(chat.state)).toBe(false)
  })
}

test('S4.28 a later source that tells less, or a call streamed again unchanged, changes nothing', () => {
  const chat = new Chat()
  chat.do(...pending('c1', { message: 'A', token: 'A' }))
  const before = chat.messages
  const bare = custom('approval-requested', { toolCallId: 'c1', approval: { id: 'approval_c1' } })
  chat.do(ask('c1'), bare, ...call('c1'))
  chat.do(interrupted({ id: 'approval_c1', reason: 'tool_call', toolCallId: 'c1' }))
  expect(chat.call('c1').approval).toBe(
    before[0]?.parts[0]?.type === 'tool-call' && before[0].parts[0].approval,
  )
  expect(findAnswerable(chat.state, 'approval_c1').status).toBe('open')
})

test('S4.28 a request whose input differs in value from the streamed arguments cannot be answered, and is not told', () => {
  const chat = new Chat()
  chat.do(...call('c1'))
  const effects = chat.do(ask('c1', {}, { input: { path: '/etc' } }))
  expect(asked(effects)).toEqual([])
  expect(warnings(effects)).toEqual(['illegal-step'])
  expect(chat.call('c1')).toMatchObject({ input: { path: '/a' }, approval: { problem: 'approval-changed' } })
  expect(findAnswerable(chat.state, 'approval_c1').status).toBe('closed')
})

test('the input of the event may be written otherwise: order of keys, 1.0 for 1, -0 for 0', () => {
  const chat = new Chat()
  chat.do(start('c1'), args('c1', '{"b":{"y":1.0,"x":-0},"a":[1,2]}'), end('c1'))
  chat.do(ask('c1', {}, { input: { a: [1, 2], b: { x: 0, y: 1 } } }))
  expect(findAnswerable(chat.state, 'approval_c1').status).toBe('open')
})

test('one approval id for two calls is refused for the second', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), ...call('c2'))
  expect(warnings(chat.do(ask('c2', { id: 'approval_c1' })))).toEqual(['illegal-step'])
  expect(chat.call('c2').approval).toBeUndefined()
  chat.do(answer('approval_c1'))
  expect(chat.call('c1').approval?.approved).toBe(true)
})

test('a request that says nothing usable is a warning', () => {
  const chat = new Chat()
  chat.do(...call('c1'))
  for (const value of [null, 'yes', [], {}, { toolCallId: 'c1' }, { toolCallId: 'c1', approval: { id: 7 } }])
    expect(warnings(chat.do(custom('approval-requested', value)))).toEqual(['malformed-value'])
  expect(chat.call('c1').state).toBe('input-complete')
})

const ourRequest = {
  toolCallId: 'c1',
  toolName: 'remove',
  input: { path: '/a' },
  approval: {
    id: 'approval_c1',
    needsApproval: true,
    options: ['deny', 'once', 'session'],
    allowEdits: ['path'],
    expiresAt: '2027-01-01T00:00:00.000Z',
    token: 'tok',
  },
}

const ourInterrupt: Interrupt = {
  id: 'approval_c1',
  reason: 'tool_call',
  toolCallId: 'c1',
  message: 'remove needs your approval.',
  expiresAt: '2027-01-01T00:00:00.000Z',
  responseSchema: {
    type: 'object',
    properties: { approved: { type: 'boolean' }, editedArgs: { type: 'object' } },
  },
  ...own(ourRequest),
}

test('S4.32 an interrupt of our own server updates the part exactly like CUSTOM, and both are one request', () => {
  const byEvent = new Chat()
  byEvent.do(...call('c1'), custom('approval-requested', ourRequest))
  const byInterrupt = new Chat()
  const effects = byInterrupt.do(...call('c1'), interrupted(ourInterrupt))
  expect(asked(effects)).toEqual(['approval_c1'])
  expect(byInterrupt.call('c1')).toEqual({
    ...byEvent.call('c1'),
    approval: { ...ourRequest.approval, message: 'remove needs your approval.' },
  })
  const before = byEvent.messages
  expect(byEvent.do(interrupted(ourInterrupt))).toEqual([])
  expect(byEvent.messages).toBe(before)
})

test('S4.32 the token may come with END alone; any one way of asking suffices', () => {
  const chat = new Chat()
  chat.do(start('c1'), args('c1', '{"path":"/a"}'), end('c1', { countersign: { token: 'tok' } }))
  chat.do(interrupted({ id: 'approval_c1', reason: 'tool_call', toolCallId: 'c1' }))
  expect(chat.approval('c1').token).toBe('tok')
  chat.do(answer('approval_c1'))
  expect(resumeEntries(chat.state, false)).toEqual([
    {
      interruptId: 'approval_c1',
      status: 'resolved',
      payload: { approved: true },
      metadata: { countersign: { token: 'tok' } },
    },
  ])
})

test('S4.32 a token that differs from the one at END makes the request unanswerable', () => {
  const chat = new Chat()
  chat.do(
    start('c1'),
    args('c1', '{"path":"/a"}'),
    end('c1', { countersign: { token: 'A' } }),
    ask('c1', { token: 'B' }),
  )
  expect(findAnswerable(chat.state, 'approval_c1')).toEqual({ status: 'closed', reason: 'approval-changed' })
})

test('S4.32 an interrupt of a foreign server: no metadata, editedArgs in its schema offers edits', () => {
  const chat = new Chat()
  chat.do(
    ...call('c1'),
    ...call('c2'),
    interrupted(
      {
        id: 'int-1',
        reason: 'tool_call',
        toolCallId: 'c1',
        message: 'Sure?',
        expiresAt: 'soon',
        responseSchema: { type: 'object', properties: { approved: {}, editedArgs: { type: 'object' } } },
      },
      {
        id: 'int-2',
        reason: 'vendor:gate',
        toolCallId: 'c2',
        responseSchema: { properties: { approved: {} } },
      },
    ),
  )
  expect(chat.approval('c1')).toEqual({
    id: 'int-1',
    needsApproval: true,
    options: ['deny', 'once'],
    allowEdits: true,
    message: 'Sure?',
    expiresAt: 'soon',
  })
  expect(chat.approval('c2')).toEqual({ id: 'int-2', needsApproval: true, options: ['deny', 'once'] })
  chat.do(answer('int-1', true, { input: { path: '/b' } }), answer('int-2', false))
  expect(resumeEntries(chat.state, false)).toEqual([
    { interruptId: 'int-1', status: 'resolved', payload: { approved: true, editedArgs: { path: '/b' } } },
    { interruptId: 'int-2', status: 'resolved', payload: { approved: false } },
  ])
})

const codes: ApprovalErrorCode[] = [
  'approval-malformed',
  'approval-not-found',
  'approval-tampered',
  'approval-expired',
  'approval-stale',
  'approval-changed',
  'approval-conflict',
  'approval-interrupted',
]

for (const code of codes) {
  test(`a refusal with ${code} sets the problem and cancels the call`, () => {
    const chat = new Chat()
    chat.do(...pending('c1'), answer('approval_c1'), opened(), runStarted(), refuse('approval_c1', code))
    // Of a call that may have run the outcome may follow in the same run (F52).
    const mayHaveRun = code === 'approval-conflict' || code === 'approval-interrupted'
    const approval = { approved: true, problem: code, delivery: 'settled' }
    const error = { message: 'No.', code }
    const state = mayHaveRun ? 'approval-responded' : 'cancelled'
    expect(chat.call('c1')).toMatchObject({ state, error, approval })
    chat.do(runFinished(), closed)
    expect(chat.call('c1')).toMatchObject({ state: 'cancelled', error, approval })
    expect([hasUnsentAnswer(chat.state), resumeEntries(chat.state, true)]).toEqual([false, []])
  })
}

test('a refusal with ledger-unavailable keeps the answer for retry and does not send it by itself', () => {
  const chat = new Chat()
  chat.do(
    ...pending('c1'),
    answer('approval_c1'),
    opened(),
    runStarted(),
    refuse('approval_c1', 'ledger-unavailable'),
  )
  chat.do(runFinished(), closed)
  expect(chat.call('c1')).toMatchObject({
    state: 'approval-responded',
    approval: { approved: true, problem: 'ledger-unavailable', delivery: 'waiting' },
  })
  expect([hasUnsentAnswer(chat.state), hasDeferredAnswer(chat.state)]).toEqual([false, true])
  expect(resumeEntries(chat.state, true)).toMatchObject([{ interruptId: 'approval_c1', status: 'resolved' }])
  chat.do(opened('run-3'))
  expect(chat.approval('c1')).toMatchObject({ delivery: 'sent' })
  expect('problem' in chat.approval('c1')).toBe(false)
})

test('a refusal of an unknown approval, of a finished call, or with an unknown code', () => {
  const chat = new Chat()
  chat.do(...pending('c1', { id: 'undefined' }), ...pending('c2'))
  expect(warnings(chat.do(refuse(undefined, 'approval-stale')))).toEqual(['unknown-id'])
  expect(warnings(chat.do(refuse('nobody', 'approval-stale')))).toEqual(['unknown-id'])
  expect(warnings(chat.do(custom('approval-refused', null)))).toEqual(['unknown-id'])
  chat.do(answer('undefined'), refuse('undefined', 'made-up'))
  expect(chat.call('c1')).toMatchObject({ state: 'cancelled', approval: { problem: 'approval-malformed' } })
  chat.do(result('c2'))
  const before = chat.messages
  chat.do(refuse('approval_c2', 'approval-stale'))
  expect(chat.messages).toBe(before)
})

test('what nobody answered is closed by the person moving on or by its expiry, and told with the next request', () => {
  const chat = new Chat()
  chat.do(...pending('c1', { token: 't1' }), ...pending('c2'), ...pending('c3'), answer('approval_c3'))
  chat.do({ type: 'close', ids: ['approval_c1', 'approval_c3', 'nobody'], because: 'moved-on' })
  chat.do({ type: 'close', ids: ['approval_c2'], because: 'expired' })
  expect(chat.call('c1')).toMatchObject({ state: 'cancelled', approval: { delivery: 'waiting' } })
  expect(chat.call('c2')).toMatchObject({ state: 'cancelled', approval: { problem: 'approval-expired' } })
  expect(chat.call('c3').state).toBe('approval-responded')
  expect(findAnswerable(chat.state, 'approval_c1')).toEqual({ status: 'closed', reason: 'cancelled' })
  expect(findAnswerable(chat.state, 'approval_c2')).toEqual({ status: 'closed', reason: 'approval-expired' })
  expect(resumeEntries(chat.state, false)).toEqual([
    { interruptId: 'approval_c3', status: 'resolved', payload: { approved: true } },
    { interruptId: 'approval_c1', status: 'cancelled', metadata: { countersign: { token: 't1' } } },
    { interruptId: 'approval_c2', status: 'cancelled' },
  ])
})

test('an expired request alone sends nothing by itself', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), { type: 'close', ids: ['approval_c1'], because: 'expired' })
  expect(hasUnsentAnswer(chat.state)).toBe(false)
})

test('U.13 dropping a message drops its pending approval from every view', () => {
  const chat = new Chat()
  chat.do(
    says('u1'),
    ...pending('c1'),
    says('u2'),
    ...call('c2', { path: '/a' }, { parentMessageId: 'a2' }),
    ask('c2'),
  )
  expect(chat.pending.map(({ id }) => id)).toEqual(['c1', 'c2'])
  chat.do({ type: 'truncate', messageId: 'u2' })
  expect(chat.pending.map(({ id }) => id)).toEqual(['c1'])
  expect(visibleRequests(chat.state)).toEqual(['approval_c1'])
  expect(findAnswerable(chat.state, 'approval_c2')).toEqual({ status: 'not-found' })
  chat.do({ type: 'set-messages', messages: [] })
  expect([chat.pending, visibleRequests(chat.state)]).toEqual([[], []])
})

test('U.15 truncating drops answers that lived in the removed part, and cancels open interrupts', () => {
  const chat = new Chat()
  chat.do(says('u1'), ...pending('c1'), answer('approval_c1'))
  chat.do(interrupted({ id: 'int-1', reason: 'confirmation' }))
  chat.do({ type: 'truncate', messageId: 'u1' })
  expect(hasUnsentAnswer(chat.state)).toBe(true)
  expect(resumeEntries(chat.state, true)).toEqual([
    { interruptId: 'approval_c1', status: 'cancelled' },
    { interruptId: 'int-1', status: 'cancelled' },
  ])
  expect(chat.messages.map(({ id }) => id)).toEqual(['u1'])
})

const snapshotCall = (metadata?: Record<string, unknown>, path = '/a'): Message => ({
  id: 'a1',
  role: 'assistant',
  content: '',
  toolCalls: [
    {
      id: 'c1',
      type: 'function',
      function: { name: 'remove', arguments: JSON.stringify({ path }) },
      ...(metadata && { metadata }),
    },
  ],
})

test('S4.29 a snapshot keeps a pending approval it does not know of', () => {
  const chat = new Chat()
  chat.do(says('u1'), ...pending('c1', { token: 'T' }))
  const before = chat.messages
  chat.do({
    type: 'MESSAGES_SNAPSHOT',
    messages: [{ id: 'u1', role: 'user', content: 'Hello' }, snapshotCall()],
  })
  expect(chat.messages.map((message, i) => message === before[i])).toEqual([true, true])
  expect(findAnswerable(chat.state, 'approval_c1').status).toBe('open')
})

test('S4.29 a snapshot restores a request it tells of, without its answer', () => {
  const chat = new Chat()
  const approval = { id: 'approval_c1', needsApproval: true, options: ['deny', 'once'] }
  const effects = chat.do({
    type: 'MESSAGES_SNAPSHOT',
    messages: [
      snapshotCall({
        countersign: { token: 'T', approval: { ...approval, approved: true, delivery: 'waiting' } },
      }),
    ],
  })
  expect(asked(effects)).toEqual(['approval_c1'])
  expect(chat.call('c1')).toMatchObject({
    state: 'approval-requested',
    approval: { ...approval, token: 'T' },
  })
  expect(chat.approval('c1').approved).toBeUndefined()
  expect([hasUnsentAnswer(chat.state), resumeEntries(chat.state, true)]).toEqual([false, []])
})

test('S4.29 a snapshot does not answer, close or swap a pending request', () => {
  const approval = {
    id: 'approval_c1',
    needsApproval: true,
    options: ['deny', 'once'],
    token: 'T',
    message: 'A',
  }
  const forged: Record<string, Record<string, unknown>> = {
    answered: { approval: { ...approval, approved: true }, token: 'T' },
    cancelled: { approval, token: 'T', state: 'cancelled' },
    executing: { approval, token: 'T', state: 'executing' },
  }
  for (const [, countersign] of Object.entries(forged)) {
    const chat = new Chat()
    chat.do(...pending('c1', { token: 'T', message: 'A' }))
    const before = chat.messages
    chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [snapshotCall({ countersign })] })
    expect(chat.messages[0]).toBe(before[0])
  }
  const differing: Message[] = [
    snapshotCall(undefined, '/b'),
    snapshotCall({ countersign: { approval: { ...approval, message: 'B' }, token: 'T' } }),
    snapshotCall({ countersign: { approval, token: 'other' } }),
    snapshotCall({ countersign: { approval: { ...approval, expiresAt: '2027-01-01' }, token: 'T' } }),
  ]
  for (const message of differing) {
    const chat = new Chat()
    chat.do(...pending('c1', { token: 'T', message: 'A', expiresAt: '2026-12-01' }))
    chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [message] })
    expect(chat.call('c1')).toMatchObject({
      input: { path: '/a' },
      approval: { token: 'T', message: 'A', problem: 'approval-changed' },
    })
  }
})

test('S4.29 an answer survives a snapshot, also one that moves the call to another message or leaves it out', () => {
  const moved: Message = { ...snapshotCall(), id: 'other' }
  const without: Message = { id: 'a1', role: 'assistant', content: 'Only text.' }
  for (const message of [snapshotCall(), moved, without]) {
    const chat = new Chat()
    chat.do(opened(), runStarted(), ...pending('c1', { token: 'T' }), answer('approval_c1'))
    chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [message] })
    expect(chat.call('c1')).toMatchObject({
      state: 'approval-responded',
      approval: { approved: true, token: 'T' },
    })
    expect(resumeEntries(chat.state, false)).toMatchObject([{ interruptId: 'approval_c1' }])
    chat.do(runFinished(), closed, opened('run-2'), runStarted('run-2'), result('c1', '"done"'))
    expect(chat.call('c1')).toMatchObject({
      state: 'complete',
      output: 'done',
      approval: { delivery: 'settled' },
    })
  }
})

test('U.13 a snapshot without the message of a pending request drops the request', () => {
  const chat = new Chat()
  chat.do(says('u1'), ...pending('c1'))
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u1', role: 'user', content: 'Hello' }] })
  expect([chat.pending, visibleRequests(chat.state)]).toEqual([[], []])
  expect(findAnswerable(chat.state, 'approval_c1')).toEqual({ status: 'not-found' })
})

test('S4.29 a result in a snapshot settles the call', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), answer('approval_c1'), opened(), runStarted())
  const tool: Message = { id: 'r1', role: 'tool', toolCallId: 'c1', content: '"done"' }
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [snapshotCall(), tool] })
  expect(chat.call('c1')).toMatchObject({
    state: 'complete',
    output: 'done',
    approval: { delivery: 'settled' },
  })
  expect(chat.parts('a1').map(({ type }) => type)).toEqual(['tool-call', 'tool-result'])
  const before = chat.messages
  expect(warnings(chat.do(result('c1', '"again"')))).toEqual(['illegal-step'])
  expect(chat.messages).toBe(before)
})

test('a call with an answer and a result in a snapshot is a record: nothing is sent because of it', () => {
  const chat = new Chat()
  const approval = {
    id: 'x',
    needsApproval: true,
    options: ['deny', 'once'],
    approved: true,
    delivery: 'waiting',
  }
  const tool: Message = { id: 'r1', role: 'tool', toolCallId: 'c1', content: '"done"' }
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [snapshotCall({ countersign: { approval } }), tool] })
  expect(chat.call('c1')).toMatchObject({
    state: 'complete',
    approval: { approved: true, delivery: 'settled' },
  })
  expect([hasUnsentAnswer(chat.state), chat.state.unsent.size]).toEqual([false, 0])
})

test('a snapshot cannot take an approval id away from the call it belongs to', () => {
  const chat = new Chat()
  chat.do(...pending('c1'))
  const approval = { id: 'approval_c1', needsApproval: true, options: ['deny', 'once'], approved: false }
  const forged: Message = {
    id: 'a2',
    role: 'assistant',
    toolCalls: [
      { id: 'c9', type: 'function', function: { name: 'remove', arguments: '{}' }, ...own({ approval }) },
      { id: 'c8', type: 'function', function: { name: 'remove', arguments: '{}' }, ...own({ approval }) },
    ],
  }
  const tool: Message = { id: 'r9', role: 'tool', toolCallId: 'c9', content: '"done"' }
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [snapshotCall(), forged, tool] })
  expect(findAnswerable(chat.state, 'approval_c1')).toMatchObject({ status: 'open' })
  chat.do(answer('approval_c1'))
  expect(chat.call('c1').approval?.approved).toBe(true)
  expect(chat.call('c8').approval).toBeUndefined()
})

test('a request that a snapshot tells of under another message is no longer shown where it was', () => {
  const chat = new Chat()
  chat.do(
    opened(),
    runStarted(),
    { type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: 'Hm.' },
    { type: 'REASONING_MESSAGE_END', messageId: 'r1' },
    ...call('c1', { path: '/a' }, { parentMessageId: 'r1' }),
    ask('c1'),
  )
  expect(chat.parts('r1').map(({ type }) => type)).toEqual(['reasoning', 'tool-call'])
  chat.do({ type: 'MESSAGES_SNAPSHOT', messages: [snapshotCall()] })
  expect(chat.parts('r1').map(({ type }) => type)).toEqual(['reasoning'])
  expect(chat.messages.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool-call'))).toHaveLength(
    1,
  )
  expect(chat.pending.map(({ id }) => id)).toEqual(['c1'])
})

test('a result clears what was said of its answer for now: a refusal whose answer had counted all the same', () => {
  for (const [approved, code] of [
    [false, 'ledger-unavailable'],
    [true, 'call-running'],
  ] as const) {
    const chat = new Chat()
    const decided = { decision: approved ? 'approve' : 'deny', by: 'person' }
    const outcome = approved ? 'error' : 'denied'
    chat.do(
      ...pending('c1'),
      answer('approval_c1', approved),
      opened(),
      runStarted(),
      refuse('approval_c1', code),
    )
    chat.do(result('c1', `{"type":"execution-${outcome}"}`, own({ outcome, decided })), runFinished(), closed)
    expect(chat.call('c1')).toMatchObject({ state: outcome, approval: { approved, delivery: 'settled' } })
    expect('problem' in chat.approval('c1')).toBe(false)
    expect(hasDeferredAnswer(chat.state)).toBe(false)
  }
  const other = new Chat()
  other.do(
    ...pending('c1'),
    answer('approval_c1'),
    opened(),
    runStarted(),
    refuse('approval_c1', 'call-running'),
  )
  other.do(
    result('c1', '{"type":"execution-denied"}', own({ outcome: 'denied', decided: { decision: 'deny' } })),
  )
  expect(other.approval('c1')).toMatchObject({ problem: 'approval-conflict' })
})
