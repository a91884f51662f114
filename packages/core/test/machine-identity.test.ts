import { ChatStore, type MessagePart, readMessage, type UIMessage } from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  answer,
  args,
  ask,
  Chat,
  call,
  closed,
  end,
  found,
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
  textEnd,
  textStart,
  user,
} from './support.js'

/** Which messages and parts are new objects against the time before. */
function rebuilt(
  before: readonly UIMessage[],
  after: readonly UIMessage[],
): { messages: string[]; parts: number } {
  const old = new Set<UIMessage>(before)
  const oldParts = new Set<MessagePart>(before.flatMap(({ parts }) => parts))
  return {
    messages: after.filter((message) => !old.has(message)).map(({ id }) => id),
    parts: after.flatMap(({ parts }) => parts).filter((part) => !oldParts.has(part)).length,
  }
}

const history = (length: number): UIMessage[] =>
  Array.from({ length }, (_, i) =>
    i % 2 === 0
      ? user(`u${i}`)
      : {
          id: `h${i}`,
          role: 'assistant',
          parts: [
            { type: 'text', text: 'x' },
            { type: 'text', text: 'y' },
          ],
        },
  )

test('S4.22 every step rebuilds its own message and part and nothing else', () => {
  const chat = new Chat()
  chat.do({ type: 'set-messages', messages: history(10) }, ...text('a1', 'intro'), ...call('c0'))
  const steps: readonly (readonly [Step, string[], number])[] = [
    [start('c1'), ['a1'], 1],
    [args('c1', '{"path":"/a"'), ['a1'], 1],
    [args('c1', '}'), ['a1'], 1],
    [end('c1'), ['a1'], 1],
    [ask('c1'), ['a1'], 1],
    [answer('approval_c1'), ['a1'], 1],
    [opened(), ['a1'], 1],
    [runStarted(), [], 0],
    [result('c1'), ['a1'], 2],
    [textStart('a1'), [], 0],
    [textDelta('a1', 'more'), ['a1'], 1],
    [textDelta('a1', 'and more'), ['a1'], 1],
    [textEnd('a1'), [], 0],
    [textEnd('a1', { m: 1 }), [], 0],
    [runFinished(), [], 0],
    [closed, [], 0],
    [says('u99'), ['u99'], 1],
  ]
  for (const [event, messages, parts] of steps) {
    const before = chat.messages
    chat.do(event)
    expect([event.type, rebuilt(before, chat.messages)]).toEqual([event.type, { messages, parts }])
    if (messages.length === 0) expect(chat.messages).toBe(before)
  }
})

test('counted work: 10,000 deltas behind 1,000 messages, read rarely, rebuild one message and one part per reading', () => {
  const store = new ChatStore({ threadId: 't', messages: history(1000), moreSteps: fullSteps })
  store.dispatch(textStart('a1'))
  store.dispatch(textDelta('a1', 'x'))
  let before = store.getSnapshot().messages
  let messages = 0
  let parts = 0
  for (let i = 1; i <= 10_000; i++) {
    store.dispatch(textDelta('a1', 'x'))
    if (i % 500 !== 0) continue
    const after = store.getSnapshot().messages
    const work = rebuilt(before, after)
    messages += work.messages.length
    parts += work.parts
    before = after
  }
  expect([messages, parts]).toEqual([20, 20])
  expect(found(store.getMessage('a1')).parts).toEqual([{ type: 'text', text: 'x'.repeat(10_001) }])
})

test('counted work: what is dirty or stale does not pile up while nobody reads', () => {
  const chat = new Chat({ applyPatch: (document) => ({ ...(document as object) }) })
  chat.do(textStart('a1'), start('c1'), {
    type: 'ACTIVITY_SNAPSHOT',
    messageId: 'act',
    activityType: 'p',
    content: {},
  })
  for (let i = 0; i < 1000; i++) {
    chat.do(textDelta('a1', 'x'), args('c1', '1'))
    chat.do({ type: 'ACTIVITY_DELTA', messageId: 'act', activityType: 'p', patch: [] })
    if (i % 100 === 0) readMessage(chat.state, 'a1')
  }
  expect(chat.state.dirty).toHaveLength(2)
  expect(chat.state.order.map(({ stale }) => stale.length).every((size) => size <= 2)).toBe(true)
})

test('counted work: a thousand calls in one message, asked and answered, touch one part each', () => {
  const chat = new Chat()
  for (let i = 0; i < 1000; i++) chat.do(...pending(`c${i}`))
  let before = chat.messages
  for (let i = 0; i < 1000; i += 100) {
    chat.do(answer(`approval_c${i}`))
    const after = chat.messages
    expect(rebuilt(before, after)).toEqual({ messages: ['a1'], parts: 1 })
    before = after
  }
  expect(chat.pending).toHaveLength(990)
})

test('pendingApprovals is the same array while nothing about them changes, and in the order they were asked', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), ...pending('c2'))
  const before = chat.pending
  chat.do(...call('c3'), result('c3'), says('u1'), ...text('a2', 'x'))
  expect(chat.pending).toBe(before)
  chat.do(answer('approval_c1'))
  expect(chat.pending.map(({ id }) => id)).toEqual(['c2'])
  expect(chat.pending[0]).toBe(before[1])
})

test('finished members of streaming arguments keep their identity', () => {
  const chat = new Chat()
  chat.do(start('c1'), args('c1', '{"files":[{"path":"/a"},{"pa'))
  const before = chat.call('c1').input as { files: unknown[] }
  chat.do(args('c1', 'th":"/b"}'))
  const after = chat.call('c1').input as { files: unknown[] }
  expect(after).not.toBe(before)
  expect(after.files[0]).toBe(before.files[0])
  expect(before).toEqual({ files: [{ path: '/a' }, {}] })
})

test('S4.22 what waits for the person is, however often it is read, what the messages say, in their order', () => {
  const ids = Array.from({ length: 6 }, (_, i) => `c${i}`)
  const change = fc.oneof(
    fc.record({ do: fc.constant('ask' as const), id: fc.constantFrom(...ids) }),
    fc.record({ do: fc.constant('ask again, changed' as const), id: fc.constantFrom(...ids) }),
    fc.record({ do: fc.constant('answer' as const), id: fc.constantFrom(...ids) }),
    fc.record({ do: fc.constant('end' as const), id: fc.constantFrom(...ids) }),
    fc.record({ do: fc.constant('read' as const), id: fc.constantFrom(...ids) }),
  )
  const property = fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
    const chat = new Chat()
    chat.do(opened('r1'), runStarted('r1'), ...text('a1', 'intro'), ...ids.flatMap((id) => call(id)))
    for (const { do: what, id } of changes) {
      if (what === 'ask') chat.do(ask(id))
      if (what === 'ask again, changed') chat.do(ask(id, { message: 'Another one?' }))
      if (what === 'answer') chat.do(answer(`approval_${id}`))
      if (what === 'end') chat.do(result(id))
      if (what !== 'read') continue
      const parts = chat.messages.flatMap((message) => message.parts)
      const waiting = parts.filter((part) => part.type === 'tool-call' && part.state === 'approval-requested')
      expect(chat.pending).toEqual(waiting)
      expect(chat.pending.every((part, i) => part === waiting[i])).toBe(true)
      expect(chat.pending).toBe(chat.pending)
    }
  })
  fc.assert(property, { seed, numRuns: 500 })
})
