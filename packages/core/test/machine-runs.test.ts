import {
  areAllToolsComplete,
  CountersignError,
  createChatState,
  findAnswerable,
  hasUnsentAnswer,
  type Interrupt,
  type LocalEvent,
  readMessages,
  resumeEntries,
  step,
  type ToolCallPart,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { expect, test } from 'vitest'
import {
  answer,
  args,
  Chat,
  call,
  closed,
  custom,
  opened,
  pending,
  result,
  runFinished,
  runStarted,
  says,
  start,
  text,
  user,
  warnings,
} from './support.js'

const failedRun: LocalEvent = {
  type: 'run-closed',
  end: { type: 'failed', error: new CountersignError('connection-failed', 'gone') },
}
const aborted: LocalEvent = { type: 'run-closed', end: { type: 'aborted' } }

const asks = (...interrupts: Interrupt[]) => runFinished({ outcome: { type: 'interrupt', interrupts } })
const question: Interrupt = { id: 'int-1', reason: 'confirmation', message: 'Which one?' }
const open = (chat: Chat) => visibleRequests(chat.state)

test('an answer is waiting, sent with the next request, and settled by its result', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), answer('approval_c1'))
  expect(chat.approval('c1').delivery).toBe('waiting')
  chat.do(opened())
  expect([chat.approval('c1').delivery, hasUnsentAnswer(chat.state)]).toEqual(['sent', false])
  chat.do(runStarted(), result('c1'))
  expect(chat.approval('c1').delivery).toBe('settled')
})

test('a request that fails before RUN_STARTED leaves its answers waiting, after it unknown', () => {
  for (const end of [failedRun, aborted]) {
    const before = new Chat()
    before.do(...pending('c1'), answer('approval_c1'), opened(), end)
    expect([before.approval('c1').delivery, hasUnsentAnswer(before.state)]).toEqual(['waiting', true])
    const after = new Chat()
    after.do(...pending('c1'), answer('approval_c1'), opened(), runStarted(), end)
    expect([after.approval('c1').delivery, hasUnsentAnswer(after.state)]).toEqual(['unknown', false])
    expect(resumeEntries(after.state, false)).toEqual([])
    expect(resumeEntries(after.state, true)).toMatchObject([
      { interruptId: 'approval_c1', status: 'resolved' },
    ])
  }
})

test('an answer that its run had settled before it broke is not offered again', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), answer('approval_c1'), opened(), runStarted(), result('c1'), failedRun)
  expect([chat.approval('c1').delivery, resumeEntries(chat.state, true)]).toEqual(['settled', []])
})

test('an answer given while the stream is open is not part of what its end returns', () => {
  const chat = new Chat()
  chat.do(opened(), runStarted(), ...pending('c1'), answer('approval_c1'), failedRun)
  expect(chat.approval('c1').delivery).toBe('waiting')
})

test('the output of a client tool goes again only if its request was not acknowledged', () => {
  const outputs: LocalEvent = { type: 'tool-output', toolCallId: 'c1', messageId: 'm1', output: 1 }
  const chat = new Chat()
  chat.do(...call('c1'), { type: 'tool-started', toolCallId: 'c1' }, outputs)
  expect(hasUnsentAnswer(chat.state)).toBe(true)
  chat.do(opened(), failedRun)
  expect(hasUnsentAnswer(chat.state)).toBe(true)
  chat.do(opened('run-2'), runStarted('run-2'), failedRun)
  expect(hasUnsentAnswer(chat.state)).toBe(false)
})

test('half-streamed arguments of a broken run are cancelled, and its unanswered calls no longer hold the turn', () => {
  const chat = new Chat()
  chat.do(opened(), runStarted(), ...call('c1'), start('c2'), start('c3'), args('c3', '{"pa'))
  expect(areAllToolsComplete(chat.state)).toBe(false)
  chat.do(failedRun)
  expect(chat.call('c1').state).toBe('input-complete')
  for (const id of ['c2', 'c3']) {
    expect(chat.call(id)).toMatchObject({ state: 'cancelled', error: { code: 'incomplete-arguments' } })
  }
  expect(areAllToolsComplete(chat.state)).toBe(true)
  const before = chat.messages
  chat.do(args('c3', 'th":1}'))
  expect(chat.messages).toBe(before)
})

test('the run tells why it ended, from metadata or from the root', () => {
  for (const finish of [{ metadata: { finishReason: 'tool_calls' } }, { finishReason: 'tool_calls' }]) {
    const chat = new Chat()
    chat.do(opened(), runStarted(), runFinished(finish), closed)
    expect(chat.state.run).toEqual({
      phase: 'idle',
      last: { runId: 'run-1', reason: 'tool_calls', outcome: 'success', pendingToolCallIds: undefined },
    })
  }
})

test('an interrupt that concerns no call is shown, answered once, sent once and gone', () => {
  const chat = new Chat()
  chat.do(opened(), runStarted(), asks(question), closed)
  expect([open(chat), areAllToolsComplete(chat.state)]).toEqual([['int-1'], false])
  chat.do({ type: 'respond', interruptId: 'int-1', response: { payload: { pick: 2 } } })
  chat.do({ type: 'respond', interruptId: 'int-1', response: { payload: { pick: 3 } } })
  expect([open(chat), areAllToolsComplete(chat.state), hasUnsentAnswer(chat.state)]).toEqual([[], true, true])
  expect(resumeEntries(chat.state, false)).toEqual([
    { interruptId: 'int-1', status: 'resolved', payload: { pick: 2 } },
  ])
  chat.do(opened('run-2'))
  expect(hasUnsentAnswer(chat.state)).toBe(false)
  chat.do(runStarted('run-2'), runFinished(), closed)
  expect(warnings(chat.do({ type: 'respond', interruptId: 'int-1', response: { cancel: true } }))).toEqual([
    'unknown-id',
  ])
})

test('an interrupt may be declined, or closed by the person moving on', () => {
  const chat = new Chat()
  chat.do(asks(question, { ...question, id: 'int-2' }))
  chat.do({ type: 'respond', interruptId: 'int-1', response: { cancel: true } })
  chat.do({ type: 'close', ids: ['int-2'], because: 'moved-on' })
  expect(resumeEntries(chat.state, false)).toEqual([
    { interruptId: 'int-1', status: 'cancelled' },
    { interruptId: 'int-2', status: 'cancelled' },
  ])
})

test('an interrupt that is asked again after it was answered is open again', () => {
  const chat = new Chat()
  chat.do(opened(), runStarted(), asks(question), closed)
  chat.do({ type: 'respond', interruptId: 'int-1', response: { payload: 'bad' } })
  chat.do(opened('run-2'), runStarted('run-2'), asks(question), closed)
  expect([open(chat), areAllToolsComplete(chat.state)]).toEqual([['int-1'], false])
})

test('the answer to an interrupt whose run broke is not lost: at once before RUN_STARTED, by retry after it', () => {
  const chat = new Chat()
  chat.do(
    asks(question),
    { type: 'respond', interruptId: 'int-1', response: { payload: 1 } },
    opened(),
    failedRun,
  )
  expect([hasUnsentAnswer(chat.state), resumeEntries(chat.state, false).length]).toEqual([true, 1])
  chat.do(opened(), runStarted(), failedRun)
  expect([hasUnsentAnswer(chat.state), resumeEntries(chat.state, false).length]).toEqual([false, 0])
  expect(resumeEntries(chat.state, true)).toEqual([{ interruptId: 'int-1', status: 'resolved', payload: 1 }])
})

test('what a broken run had taken along is not returned to a conversation that was replaced meanwhile', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), answer('approval_c1'))
  const messages = chat.messages
  chat.do(opened(), { type: 'set-messages', messages: messages.slice() }, failedRun)
  expect(resumeEntries(chat.state, true)).toEqual([])
  chat.do(opened('run-2'), { type: 'set-messages', messages: [] }, failedRun)
  expect([resumeEntries(chat.state, true), chat.state.unsent.size]).toEqual([[], 0])
})

test('queue: messages wait in order; speaking again releases what one sees', () => {
  const chat = new Chat()
  const item = (id: string, ...visible: string[]): LocalEvent => ({
    type: 'queue',
    item: { id, message: user(id), visible },
  })
  chat.do(item('q1', 'x'), item('q2', 'y'), item('q3'))
  expect(chat.state.queue.map(({ id, visible }) => [id, visible])).toEqual([
    ['q1', ['x', 'y']],
    ['q2', ['y']],
    ['q3', []],
  ])
  chat.do({ type: 'unqueue', id: 'q2' })
  expect(chat.state.queue.map(({ id }) => id)).toEqual(['q1', 'q3'])
})

test('an error outside of a run is kept until the next request', () => {
  const chat = new Chat()
  const error = new CountersignError('tool-failed', 'x')
  chat.do({ type: 'failed', error })
  expect(chat.state.error).toBe(error)
  chat.do(opened())
  expect(chat.state.error).toBeUndefined()
})

test('RUN_ERROR is kept as the failure of the run, with its code', () => {
  const chat = new Chat()
  chat.do(opened(), runStarted(), { type: 'RUN_ERROR', message: 'Quota.', code: 'quota' })
  expect(chat.state.run).toMatchObject({
    failure: { code: 'run-error', message: 'Quota.', data: { code: 'quota' } },
  })
})

const part = (more: Partial<ToolCallPart>): ToolCallPart => ({
  type: 'tool-call',
  id: 'c1',
  name: 'remove',
  arguments: '{"path":"/a"}',
  input: { path: '/a' },
  state: 'input-complete',
  ...more,
})
const stored = (more: Partial<ToolCallPart>): UIMessage[] => [
  user('u1'),
  { id: 'a1', role: 'assistant', parts: [{ type: 'text', text: 'I will.' }, part(more)] },
]
const load = (messages: readonly UIMessage[]) => {
  const chat = new Chat()
  chat.do({ type: 'set-messages', messages })
  return chat
}
const question1 = { id: 'approval_c1', needsApproval: true, options: ['deny', 'once'], token: 'T' } as const

test('U.14 stored messages with a pending request show it again and cause nothing', () => {
  const messages = stored({ state: 'approval-requested', approval: question1 })
  const chat = load(messages)
  expect(chat.messages).toEqual(messages)
  expect(chat.effects).toEqual([])
  expect([hasUnsentAnswer(chat.state), findAnswerable(chat.state, 'approval_c1').status]).toEqual([
    false,
    'open',
  ])
  chat.do(answer('approval_c1'))
  expect(resumeEntries(chat.state, false)).toMatchObject([{ interruptId: 'approval_c1' }])
})

test('a stored answer that waited is offered again; one that was under way is in doubt', () => {
  const state = 'approval-responded' as const
  const waiting = load(stored({ state, approval: { ...question1, approved: true, delivery: 'waiting' } }))
  expect(resumeEntries(waiting.state, false)).toHaveLength(1)
  for (const delivery of ['sent', 'unknown'] as const) {
    const doubt = load(stored({ state, approval: { ...question1, approved: true, delivery } }))
    expect(doubt.approval('c1').delivery).toBe('unknown')
    expect([resumeEntries(doubt.state, false).length, resumeEntries(doubt.state, true).length]).toEqual([
      0, 1,
    ])
    expect(hasUnsentAnswer(doubt.state)).toBe(false)
  }
})

test('stored half arguments are cancelled; a stored tool at work has failed, and the server will hear of it', () => {
  const half = load(stored({ state: 'input-streaming', arguments: '{"pa', input: {} }))
  expect(half.call('c1')).toMatchObject({ state: 'cancelled', error: { code: 'incomplete-arguments' } })
  const messages = stored({ state: 'executing' })
  const running = load(messages)
  expect(running.call('c1')).toMatchObject({ state: 'error', error: { code: 'interrupted' } })
  expect(running.messages[0]).toEqual(messages[0])
  expect(running.parts('a1')[0]).toEqual(messages[1]?.parts[0])
  expect(running.parts('a1')[2]).toMatchObject({
    type: 'tool-result',
    toolCallId: 'c1',
    metadata: { countersign: { outcome: 'error', code: 'interrupted' } },
  })
  expect(running.state.unsent.size).toBe(1)
  expect(messages[1]?.parts).toHaveLength(2)
})

test('a stored record never sends anything: finished calls with any delivery', () => {
  const approval = { ...question1, approved: true, delivery: 'waiting' } as const
  const chat = load(stored({ state: 'complete', output: 1, approval }))
  expect([hasUnsentAnswer(chat.state), chat.state.unsent.size]).toEqual([false, 0])
})

test('loading the same id twice is refused; frozen messages can be loaded', () => {
  const messages = [Object.freeze(user('u1', 'one'))]
  expect(() => load([...messages, user('u1', 'two')])).toThrow('its id "u1" is that of messages[0]')
  const chat = load(messages)
  expect(chat.messages).toEqual([messages[0]])
  const [before] = chat.messages
  chat.do(...text('a1', 'hi'))
  expect(chat.messages[0]).toBe(before)
})

test('a stream goes on after loading: repeated call ids, growth, results', () => {
  const chat = load(stored({ state: 'complete', output: 'old' }))
  chat.do(says('u2'), ...call('c1', { path: '/b' }, { parentMessageId: 'a2' }), result('c1', '"new"'))
  expect(chat.calls('c1').map(({ output }) => output)).toEqual(['old', 'new'])
})

test('the same steps give the same state', () => {
  const steps = [
    says('u1'),
    opened(),
    runStarted(),
    ...text('a1', 'x'),
    ...pending('c1'),
    custom('x', 1),
    answer('approval_c1'),
    closed,
  ]
  const run = () => {
    const state = createChatState({ moreSteps: fullSteps })
    const effects = steps.map((event) => step(state, event))
    return { messages: readMessages(state), effects, run: state.run }
  }
  expect(run()).toEqual(run())
})
