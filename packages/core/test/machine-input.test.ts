import {
  type AGUIEvent,
  CountersignError,
  createChatState,
  findAnswerable,
  isCountersignError,
  type LocalEvent,
  type Message,
  readMessages,
  resumeEntries,
  step,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
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
  type Step,
  says,
  seed,
  start,
  text,
  textDelta,
  textStart,
  user,
} from './support.js'

const failed = (resumable = false): LocalEvent => ({
  type: 'run-closed',
  end: {
    type: 'failed',
    error: new CountersignError('connection-failed', 'cut'),
    resumable,
  },
})

/** A copy of the working state, but for what cannot be copied. */
const plain = ({ state }: Chat) =>
  structuredClone({
    ...state,
    applyPatch: 0,
    moreSteps: 0,
    asked: 0,
    open: state.open.size,
    calls: state.calls.size,
    order: 0,
    approvals: state.approvals.size,
    memory: 0,
    messages: [...state.messages.keys()],
    dirty: 0,
    changed: 0,
    unsent: state.unsent.size,
  })

describe('F27 what an application hands in', () => {
  const wrong: Record<string, unknown> = {
    'a function': (before: readonly UIMessage[]) => before,
    nothing: undefined,
    'a text': 'hello',
    'a message without parts': [user('u2'), { id: 'a2', role: 'assistant' }],
    'a message without an id': [{ role: 'user', parts: [] }],
    'a message of an unknown role': [{ id: 'x', role: 'robot', parts: [] }],
    'a part that is none': [{ id: 'x', role: 'user', parts: [null] }],
    'a text without its text': [{ id: 'x', role: 'user', parts: [{ type: 'text' }] }],
    'a call without its state': [
      { id: 'x', role: 'assistant', parts: [{ type: 'tool-call', id: 'c', name: 'n', arguments: '' }] },
    ],
  }
  for (const [what, messages] of Object.entries(wrong)) {
    test(`${what} in the place of messages is refused, and the conversation stays as it was`, () => {
      const chat = new Chat()
      chat.do(says('u1'), ...pending('c1'), opened(), runStarted(), ...text('a2', 'So'))
      const shown = chat.messages
      const before = plain(chat)
      const act = { type: 'set-messages', messages } as LocalEvent
      expect(() => chat.do(act)).toThrow(expect.objectContaining({ code: 'invalid-argument' }))
      expect(plain(chat)).toEqual(before)
      expect(chat.messages).toBe(shown)
    })
  }

  test('may be changed afterwards, and no snapshot changes with it', () => {
    const mutable = (id: string): UIMessage => ({
      id,
      role: 'user',
      metadata: { tags: ['a'] },
      parts: [
        { type: 'file', media: 'image', source: { type: 'url', value: 'https://example.com/a.png' } },
        { type: 'data', name: 'chart', data: { points: [1, 2] } },
      ],
    })
    const chat = new Chat()
    const [loaded, said, queued, output] = [mutable('u1'), mutable('u2'), mutable('u3'), { rows: [{ n: 1 }] }]
    const shared = { step: { at: 1 } }
    const snapshot: Message[] = [{ id: 'a9', role: 'assistant', content: 'Hi', metadata: { tags: ['a'] } }]
    const display = { path: ['a'] }
    const steps: Step[] = [
      { type: 'set-messages', messages: [loaded] },
      { type: 'user-message', message: said },
      { type: 'queue', item: { id: 'u3', message: queued, visible: [] } },
      ...call('c1'),
      { type: 'tool-output', toolCallId: 'c1', messageId: 'r1', output },
      ...call('c2', display),
      custom('approval-requested', { toolCallId: 'c2', input: display, approval: { id: 'q', display } }),
      { type: 'STATE_SNAPSHOT', snapshot: shared },
      { type: 'ACTIVITY_SNAPSHOT', messageId: 'p1', activityType: 'plan', content: shared },
    ]
    chat.do(...steps)
    const told = structuredClone([chat.messages, chat.pending, chat.state.shared, chat.state.queue])
    for (const one of [loaded, said, queued, output, shared, display]) ruin(one)
    expect([chat.messages, chat.pending, chat.state.shared, chat.state.queue]).toEqual(told)
    chat.do({ type: 'MESSAGES_SNAPSHOT', messages: snapshot })
    const now = structuredClone(chat.messages)
    ruin(snapshot)
    expect(chat.messages).toEqual(now)
    chat.do(...text('a10', 'more'))
    expect(chat.messages.slice(0, -1)).toEqual(now)
  })

  test('may be deep, refer to itself, and hold what is no JSON', () => {
    let deep: unknown = 'end'
    for (let n = 0; n < 50_000; n++) deep = [deep]
    const round: Record<string, unknown> = {}
    round.self = round
    const date = new Date(0)
    const chat = new Chat()
    chat.do({ type: 'user-message', message: user('u1', 'x', { metadata: { deep, round, date } }) })
    expect(chat.message('u1').metadata?.date).toBe(date)
  })
})

/** Changes every object in a value. */
function ruin(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  for (const inner of Object.values(value)) ruin(inner)
  for (const name of Object.keys(value)) Object.assign(value, { [name]: 'ruined' })
  if (Array.isArray(value)) value.push('ruined')
}

test(`F27 whatever a step holds, it is taken, or it throws and nothing has changed (seed ${seed})`, () => {
  const junk = fc.oneof(
    fc.constantFrom<unknown>(
      undefined,
      null,
      0,
      '',
      'c1',
      'u1',
      'approval_c1',
      [],
      {},
      [null],
      [{}],
      () => 1,
    ),
    fc.anything({ maxDepth: 2 }),
  )
  const names = [
    'messages',
    'message',
    'item',
    'ids',
    'approvalId',
    'approved',
    'toolCallId',
    'messageId',
    'value',
    'name',
    'end',
    'delta',
    'metadata',
    'content',
    'snapshot',
    'outcome',
    'interruptId',
    'response',
    'runId',
    'id',
    'error',
    'output',
    'input',
  ]
  const types = [
    'set-messages',
    'user-message',
    'queue',
    'unqueue',
    'answer',
    'close',
    'respond',
    'tool-started',
    'tool-output',
    'truncate',
    'drop-unfinished',
    'answer-sent',
    'CUSTOM',
  ]
  const acts = fc.record({
    type: fc.constantFrom(...types),
    members: fc.dictionary(fc.constantFrom(...names), junk, { maxKeys: 5 }),
  })
  let [taken, threw] = [0, 0]
  fc.assert(
    fc.property(fc.array(acts, { maxLength: 6 }), (given) => {
      const state = createChatState({ moreSteps: fullSteps })
      const begin: Step[] = [
        says('u1'),
        ...pending('c1'),
        ...call('c2'),
        opened(),
        runStarted(),
        textStart('a2'),
        textDelta('a2', 'So'),
      ]
      for (const one of begin) step(state, one)
      for (const { type, members } of given) {
        const before = readMessages(state)
        const then = [
          before,
          [...state.messages.keys()],
          [...state.calls.keys()],
          [...state.approvals.keys()],
          state.asked.length,
          state.open.size,
          state.unsent.size,
          state.interrupts.size,
          state.turn,
          state.queue,
          state.shared,
          state.run,
          state.error,
        ]
        try {
          step(state, { ...members, type } as never)
          taken++
        } catch {
          threw++
          const now = [
            readMessages(state),
            [...state.messages.keys()],
            [...state.calls.keys()],
            [...state.approvals.keys()],
            state.asked.length,
            state.open.size,
            state.unsent.size,
            state.interrupts.size,
            state.turn,
            state.queue,
            state.shared,
            state.run,
            state.error,
          ]
          expect(now).toEqual(then)
          expect(now[0]).toBe(before)
        }
        // What was asked is pending, answered, or closed, or the person replaced the conversation.
        const isThere = findAnswerable(state, 'approval_c1').status !== 'not-found'
        expect(isThere || !['a1', 'c1'].some((id) => state.messages.has(id))).toBe(true)
      }
      expect(() => toAGUIMessages(readMessages(state))).not.toThrow()
    }),
    { seed, numRuns: 3000 },
  )
  console.log(`seed ${seed}: ${taken} steps taken, ${threw} refused`)
  expect(Math.min(taken, threw)).toBeGreaterThan(500)
})

describe('F28 a request that is repeated', () => {
  const begun: Step[] = [says('u1'), opened(), runStarted()]
  const again: Step[] = [{ type: 'drop-unfinished' }, opened('run-2'), runStarted('run-2')]
  const said = (chat: Chat) =>
    chat.messages.map(({ parts }) => parts.map((part) => (part.type === 'text' ? part.text : part.type)))

  test('keeps nothing of a text that broke off, and shows it until then', () => {
    const chat = new Chat()
    chat.do(...begun, textStart('a1'), textDelta('a1', 'The capital of Fra'), failed())
    expect(said(chat)).toEqual([['Hello'], ['The capital of Fra']])
    chat.do(...again, ...text('a2', 'The capital of France is Paris.'))
    expect(said(chat)).toEqual([['Hello'], ['The capital of France is Paris.']])
  })

  test('keeps the calls, what was said before them, and their results', () => {
    const chat = new Chat()
    const more: Step[] = [
      ...text('a1', 'Let me see.'),
      ...call('c1'),
      result('c1'),
      ...text('a1', 'It'),
      start('c2'),
      args('c2', '{"pa'),
    ]
    chat.do(...begun, ...more, textStart('a2'), textDelta('a2', 'is'), failed(true), ...again)
    expect(said(chat)).toEqual([['Hello'], ['Let me see.', 'tool-call', 'tool-result']])
  })

  test('keeps what an earlier run said, and what it said itself before a run that failed before it began', () => {
    const chat = new Chat()
    chat.do(
      ...begun,
      ...pending('c1'),
      ...text('a1', 'Please.'),
      runFinished(),
      closed,
      answer('approval_c1'),
    )
    chat.do(
      opened('run-2'),
      runStarted('run-2'),
      ...call('c9', {}),
      start('c8'),
      textStart('a2'),
      textDelta('a2', 'So'),
      failed(),
      ...again,
    )
    expect(said(chat)).toEqual([['Hello'], ['tool-call', 'Please.', 'tool-call']])
    chat.do(failed(), { type: 'drop-unfinished' })
    expect(said(chat)).toEqual([['Hello'], ['tool-call', 'Please.', 'tool-call']])
  })

  test('keeps everything where nothing failed, and where the person has spoken since', () => {
    const chat = new Chat()
    chat.do(...begun, ...text('a1', 'Yes.'), runFinished(), closed, { type: 'drop-unfinished' })
    chat.do(says('u2'), opened('run-2'), runStarted('run-2'), ...text('a2', 'Ye'), failed(), says('u3'), {
      type: 'drop-unfinished',
    })
    expect(said(chat)).toEqual([['Hello'], ['Yes.'], ['Hello'], ['Ye'], ['Hello']])
  })
})

describe('F33 questions and texts that a server does not know', () => {
  test('truncating tells the server that nobody will answer, with the token of each question', () => {
    const chat = new Chat()
    chat.do(says('u1'), ...pending('c1', { token: 'T' }), ...pending('c2'), ...call('c3'), result('c3'))
    chat.do({ type: 'truncate', messageId: 'u1' }, opened())
    const entries = [
      { interruptId: 'approval_c1', status: 'cancelled', metadata: { countersign: { token: 'T' } } },
      { interruptId: 'approval_c2', status: 'cancelled' },
    ]
    // It is what the request took along: where that was not acknowledged, it goes out with the next.
    chat.do(failed())
    expect(resumeEntries(chat.state, false)).toEqual(entries)
    chat.do(opened('run-2'), runStarted('run-2'), runFinished(), closed)
    expect([resumeEntries(chat.state, true), chat.state.interrupts.size]).toEqual([[], 0])
  })

  const snapshot = (...messages: Message[]): AGUIEvent => ({ type: 'MESSAGES_SNAPSHOT', messages })
  const before: Message = { id: 'u1', role: 'user', content: 'Hello' }

  test('a call that is missing in a snapshot of its run can be asked about, answered and finished', () => {
    const chat = new Chat()
    chat.do(says('u1'), opened(), runStarted(), ...call('c1'), snapshot(before))
    const interrupt = { id: 'q', reason: 'tool_call', toolCallId: 'c1' }
    chat.do(snapshot(before, { id: 'a1', role: 'assistant', content: 'Let me.' }))
    chat.do(runFinished({ outcome: { type: 'interrupt', interrupts: [interrupt] } }), closed)
    expect(chat.pending.map(({ id }) => id)).toEqual(['c1'])
    chat.do(answer('q'), opened('run-2'), runStarted('run-2'), snapshot(before), result('c1'))
    expect(chat.call('c1')).toMatchObject({ state: 'complete', output: 'done' })
  })

  test('a text that is being written goes on behind a snapshot that has less of it, or nothing', () => {
    for (const told of [
      [],
      [{ id: 'a1', role: 'assistant', content: 'One ' }],
      [{ id: 'a1', role: 'assistant', content: '' }],
    ]) {
      const chat = new Chat()
      chat.do(says('u1'), opened(), runStarted(), textStart('a1'), textDelta('a1', 'One two '))
      chat.do(snapshot(before, ...(told as Message[])), textDelta('a1', 'three'))
      expect(chat.parts('a1')).toEqual([{ type: 'text', text: 'One two three' }])
    }
  })

  test('what a snapshot says otherwise counts, and what has ended goes with it', () => {
    const chat = new Chat()
    chat.do(
      says('u1'),
      opened(),
      runStarted(),
      ...text('a1', 'Old'),
      ...call('c1', {}, {}),
      result('c1'),
      textStart('a2'),
      textDelta('a2', 'Half'),
    )
    chat.do(snapshot(before, { id: 'a2', role: 'assistant', content: 'Another' }))
    expect(chat.messages.map(({ id, parts }) => [id, parts])).toEqual([
      ['u1', [{ type: 'text', text: 'Hello' }]],
      ['a2', [{ type: 'text', text: 'Another' }]],
    ])
  })
})

describe('F52 an answer that was not first', () => {
  const refused = (code: string) =>
    custom('approval-refused', { approvalId: 'approval_c1', toolCallId: 'c1', code, message: 'No.' })
  for (const approved of [true, false]) {
    for (const code of ['approval-conflict', 'approval-interrupted']) {
      test(`${code} after a ${approved ? 'yes' : 'no'}: the call shows the outcome that comes in the same run`, () => {
        const chat = new Chat()
        chat.do(...pending('c1'), answer('approval_c1', approved), opened(), runStarted(), refused(code))
        expect(resumeEntries(chat.state, true)).toEqual([])
        chat.do(result('c1', '"sent"'), runFinished(), closed)
        expect(chat.call('c1')).toMatchObject({
          state: 'complete',
          output: 'sent',
          approval: { problem: code },
        })
        expect(chat.call('c1').error).toBeUndefined()
      })
    }
  }

  test('without an outcome in that run the call is closed, and its answer goes nowhere any more', () => {
    for (const over of [closed, failed(), { type: 'run-closed', end: { type: 'aborted' } } as const]) {
      const chat = new Chat()
      chat.do(
        ...pending('c1'),
        answer('approval_c1'),
        opened(),
        runStarted(),
        refused('approval-conflict'),
        over,
      )
      expect(chat.call('c1')).toMatchObject({ state: 'cancelled', error: { code: 'approval-conflict' } })
      expect(resumeEntries(chat.state, true)).toEqual([])
    }
  })
})

test('F27 the error says what is wrong and that nothing was changed', () => {
  try {
    new Chat().do({ type: 'set-messages', messages: [user('u1'), {} as UIMessage] })
    expect.fail('It was taken.')
  } catch (error) {
    if (!isCountersignError(error)) throw error
    expect(error).toMatchObject({ code: 'invalid-argument', data: { at: 1 } })
    expect(error.message).toContain('Nothing was changed.')
  }
})
