import {
  createEventReader,
  type Delivery,
  fromAGUIMessages,
  hasUnsentAnswer,
  isTerminal,
  type Message,
  type MessagePart,
  resumeEntries,
  type ToolCallApproval,
  type ToolCallPart,
  type ToolResultPart,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { answer, args, Chat, end, own, pending, result, seed, start, text, user } from './support.js'

const overTheWire = <T>(value: T): T => JSON.parse(JSON.stringify(value))

/** Passes AG-UI messages through the strict reader; throws where it refuses, returns what it warned of. */
function readStrictly(messages: readonly Message[]): readonly string[] {
  const warned: string[] = []
  const reader = createEventReader({ onWarning: ({ message }) => warned.push(message) })
  reader.push({ type: 'RUN_STARTED', threadId: 't', runId: 'r' }, () => {})
  reader.push({ type: 'MESSAGES_SNAPSHOT', messages }, () => {})
  return warned
}

// Whatever a view can hold: generated as plans, so that ids are unique and what belongs together stays together.

const json = fc.jsonValue({ maxDepth: 2 }).map(overTheWire)
const words = fc.string({ maxLength: 8, unit: 'grapheme' })
const metadata = fc.dictionary(
  words.filter((key) => !['countersign', 'subagent', '__proto__'].includes(key)),
  json,
  { minKeys: 1, maxKeys: 2 },
)
const maybe = <K extends string, T>(key: K, value: fc.Arbitrary<T>): fc.Arbitrary<{ [P in K]?: T }> =>
  fc
    .option(value, { nil: undefined })
    .map((given) => (given === undefined ? {} : ({ [key]: given } as { [P in K]: T })))

const merged = <T extends object>(...arbitraries: fc.Arbitrary<Partial<T>>[]): fc.Arbitrary<Partial<T>> =>
  fc.tuple(...arbitraries).map((pieces) => Object.assign({}, ...pieces))

const question = merged<ToolCallApproval>(
  fc.constant({ needsApproval: true }),
  fc.constantFrom<Partial<ToolCallApproval>>(
    { options: ['deny', 'once'] },
    { options: ['deny', 'once', 'session'] },
  ),
  maybe('allowEdits', fc.oneof(fc.boolean(), fc.array(words, { maxLength: 2 }))),
  maybe('message', words),
  maybe('expiresAt', fc.constant('2027-01-01T00:00:00.000Z')),
  maybe(
    'display',
    json.filter((value) => value !== undefined),
  ),
  maybe('token', fc.string({ minLength: 1, maxLength: 8 })),
)

const response = (approved: boolean, deliveries: readonly Delivery[]) =>
  merged<ToolCallApproval>(
    question,
    fc.constant({ approved }),
    maybe('reason', words),
    approved ? maybe('scope', fc.constantFrom('once' as const, 'session' as const)) : fc.constant({}),
    approved ? maybe('input', json) : fc.constant({}),
    fc.constantFrom(...deliveries).map((delivery) => ({ delivery })),
  )

const input = fc.oneof(
  json.map((value) => ({ arguments: JSON.stringify(value), input: value })),
  fc.constant({ arguments: '', input: {} }),
  fc.constant({ arguments: '{"path":' }),
)

/** A call without its ids, and its result if it has one. */
interface Plan {
  call: Omit<ToolCallPart, 'id' | 'approval' | 'type'>
  approval?: Partial<ToolCallApproval> | undefined
  result?: Pick<ToolResultPart, 'content' | 'metadata'> | undefined
}

const failed = (outcome: 'denied' | 'cancelled' | 'error', reason: string, code?: string) => ({
  content: JSON.stringify({ type: `execution-${outcome}`, reason }),
  metadata: { countersign: { outcome, ...(code !== undefined && { code }) } },
})

const none = fc.constant(undefined)
const settled = ['settled'] as const
const outcomes: fc.Arbitrary<Pick<Plan, 'approval' | 'result'> & { more: Partial<ToolCallPart> }> = fc.oneof(
  fc.constant({ more: { state: 'input-complete' as const } }),
  question.map((approval) => ({ more: { state: 'approval-requested' as const }, approval })),
  fc
    .oneof(
      response(true, ['waiting', 'sent', 'unknown', 'settled']),
      response(false, ['waiting', 'sent', 'unknown']),
    )
    .map((approval) => ({ more: { state: 'approval-responded' as const }, approval })),
  response(true, ['waiting']).map((approval) => ({
    more: { state: 'approval-responded' as const },
    approval: { ...approval, problem: 'ledger-unavailable' as const },
  })),
  fc.option(response(true, settled)).map((approval) => ({
    more: { state: 'executing' as const },
    ...(approval && { approval }),
  })),
  fc.tuple(fc.oneof(none, response(true, settled)), json).map(([approval, output]) => ({
    more: { state: 'complete' as const, output },
    approval,
    result: { content: JSON.stringify(output) },
  })),
  fc.tuple(fc.oneof(none, response(true, settled)), words.filter(Boolean)).map(([approval, reason]) => ({
    more: { state: 'error' as const, error: { message: reason, code: 'interrupted' } },
    approval,
    result: failed('error', reason, 'interrupted'),
  })),
  fc.tuple(fc.oneof(none, response(false, settled)), words.filter(Boolean)).map(([approval, reason]) => ({
    more: { state: 'denied' as const, error: { message: reason } },
    approval,
    result: failed('denied', reason),
  })),
  fc
    .tuple(
      question,
      fc.constantFrom<Delivery>('waiting', 'sent', 'unknown', 'settled'),
      fc.boolean(),
      fc.boolean(),
    )
    .map(([approval, delivery, expired, known]) => ({
      more: { state: 'cancelled' as const },
      approval: { ...approval, delivery, ...(expired && { problem: 'approval-expired' as const }) },
      result: known ? failed('cancelled', 'nobody answered') : undefined,
    })),
  fc.tuple(response(true, settled), fc.boolean()).map(([approval, known]) => ({
    more: { state: 'cancelled' as const, error: { message: 'Too late.', code: 'approval-stale' } },
    approval: { ...approval, problem: 'approval-stale' as const },
    result: known ? failed('cancelled', 'Too late.', 'approval-stale') : undefined,
  })),
)

const plan: fc.Arbitrary<Plan> = fc
  .tuple(input, outcomes, maybe('providerExecuted', fc.constant(true)), maybe('metadata', metadata), words)
  .map(([given, { more, ...rest }, provider, extra, name]) => ({
    call: { name, state: 'input-complete', ...given, ...provider, ...extra, ...more },
    ...rest,
  }))

const file: fc.Arbitrary<MessagePart> = fc
  .tuple(fc.constantFrom('image' as const, 'document' as const), words, maybe('metadata', metadata))
  .map(([media, value, extra]) => ({
    type: 'file',
    media,
    source: { type: 'data', value, mimeType: 'text/plain' },
    ...extra,
  }))
const textPart: fc.Arbitrary<MessagePart> = words.map((content) => ({ type: 'text', text: content }))
const sourcePart: fc.Arbitrary<MessagePart> = fc
  .tuple(words, maybe('url', words))
  .map(([id, url]) => ({ type: 'source', id, ...url }))
const dataPart: fc.Arbitrary<MessagePart> = fc
  .tuple(words, json)
  .map(([name, data]) => ({ type: 'data', name, data }))
const reasoning = fc.tuple(words, maybe('encryptedValue', words), maybe('metadata', metadata))

const about = merged<UIMessage>(maybe('metadata', metadata), maybe('createdAt', fc.nat()))

const userMessage = fc
  .tuple(about, fc.array(fc.oneof(textPart, file, sourcePart, dataPart), { minLength: 1, maxLength: 3 }))
  .map(
    ([more, parts]) =>
      (id: number): UIMessage => ({ id: `m${id}`, role: 'user', parts, ...more }),
  )
const systemMessage = fc.tuple(about, fc.array(textPart, { minLength: 1, maxLength: 3 })).map(
  ([more, parts]) =>
    (id: number): UIMessage => ({ id: `m${id}`, role: 'system', parts, ...more }),
)

type Piece = { part: MessagePart } | { thought: [string, object, object] } | { plan: Plan; later: number }

const piece: fc.Arbitrary<Piece> = fc.oneof(
  { weight: 3, arbitrary: fc.oneof(textPart, file, sourcePart, dataPart).map((part) => ({ part })) },
  { weight: 1, arbitrary: reasoning.map((thought) => ({ thought })) },
  { weight: 3, arbitrary: fc.record({ plan, later: fc.nat(3) }) },
)

const assistantMessage = fc.tuple(about, fc.array(piece, { maxLength: 5 })).map(
  ([more, pieces]) =>
    (id: number): UIMessage => ({ id: `m${id}`, role: 'assistant', parts: assemble(id, pieces), ...more }),
)

/** The parts of a message: each result somewhere behind its call. */
function assemble(id: number, pieces: readonly Piece[]): MessagePart[] {
  const parts: MessagePart[] = []
  const results: { part: MessagePart; wait: number }[] = []
  pieces.forEach((given, n) => {
    if ('part' in given) parts.push(given.part)
    else if ('thought' in given) {
      const [content, ...more] = given.thought
      parts.push({ type: 'reasoning', id: `r${id}-${n}`, text: content, ...Object.assign({}, ...more) })
    } else {
      const { call, approval, result: content } = given.plan
      const callId = `c${id}-${n}`
      const asked = approval && ({ ...approval, id: `approval_${id}-${n}` } as ToolCallApproval)
      parts.push({ type: 'tool-call', id: callId, ...call, ...(asked && { approval: asked }) })
      const told: MessagePart = {
        type: 'tool-result',
        id: `o${id}-${n}`,
        toolCallId: callId,
        content: '',
        ...content,
      }
      if (content) results.push({ part: told, wait: given.later })
    }
    for (const waiting of results.filter((entry) => entry.wait-- === 0)) parts.push(waiting.part)
  })
  parts.push(...results.filter(({ wait }) => wait >= 0).map(({ part }) => part))
  return parts
}

/** AG-UI 1.0 leaves activities with the client: a message that is one data part is not sent. */
const isActivity = ({ role, parts: [first, ...rest] }: UIMessage) =>
  role === 'assistant' && first?.type === 'data' && rest.length === 0

const conversation = fc
  .array(fc.oneof({ weight: 3, arbitrary: assistantMessage }, userMessage, systemMessage), { maxLength: 6 })
  .map((makers) => makers.map((make, id) => make(id)).filter((message) => !isActivity(message)))

test('U.2 UI to AG-UI to UI is lossless for everything a peer can have in its view', () => {
  fc.assert(
    fc.property(conversation, (messages) => {
      expect(fromAGUIMessages(overTheWire(toAGUIMessages(messages)))).toEqual(messages)
    }),
    { seed, numRuns: 500 },
  )
})

test('U.2 the AG-UI side is valid by the strict reader, without a warning, and stable', () => {
  fc.assert(
    fc.property(conversation, (messages) => {
      const wire = overTheWire(toAGUIMessages(messages))
      expect(readStrictly(wire)).toEqual([])
      expect(toAGUIMessages(fromAGUIMessages(wire))).toEqual(wire)
    }),
    { seed, numRuns: 250 },
  )
})

test('a view built by the machine comes back the same', () => {
  const chat = new Chat()
  chat.do(
    { type: 'user-message', message: user('u1') },
    { type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning', ...own({ messageId: 'a1' }) },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: 'Hm.' },
    ...text('a1', 'before'),
    ...pending('c1', { token: 'T', message: 'Sure?' }),
    ...text('a1', 'between'),
    start('c2', { parentMessageId: 'a1', ...own({ providerExecuted: true }) }),
    args('c2', '{}'),
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: 'c2', encryptedValue: 'sealed' },
    end('c2', { countersign: { provider: { id: 'x' } } }),
    result('c2'),
    answer('approval_c1', true, { input: { path: '/b' }, scope: 'session', reason: 'yes' }),
    ...text('a1', 'after'),
  )
  expect(fromAGUIMessages(overTheWire(toAGUIMessages(chat.messages)))).toEqual(chat.messages)
})

test('the shape the server reads: toolCall.metadata.countersign = { token, approval }', () => {
  const chat = new Chat()
  chat.do({ type: 'user-message', message: user('u1', 'Delete it') }, ...text('a1', 'I will.'))
  chat.do(...pending('c1', { token: 'cs1.t', allowEdits: true, expiresAt: '2027-01-01T00:00:00.000Z' }))
  chat.do(answer('approval_c1', true, { reason: 'fine', scope: 'once', input: { path: '/b' } }))
  expect(toAGUIMessages(chat.messages)).toEqual([
    { id: 'u1', role: 'user', content: 'Delete it' },
    {
      id: 'a1',
      role: 'assistant',
      content: 'I will.',
      toolCalls: [
        {
          id: 'c1',
          type: 'function',
          function: { name: 'remove', arguments: '{"path":"/a"}' },
          metadata: {
            countersign: {
              token: 'cs1.t',
              approval: {
                id: 'approval_c1',
                needsApproval: true,
                options: ['deny', 'once'],
                allowEdits: true,
                expiresAt: '2027-01-01T00:00:00.000Z',
                approved: true,
                reason: 'fine',
                scope: 'once',
                input: { path: '/b' },
                delivery: 'waiting',
              },
            },
          },
        },
      ],
    },
  ])
})

test('what was cancelled says so, so that an answer in it is no yes any more', () => {
  const chat = new Chat()
  chat.do(...pending('c1'), { type: 'close', ids: ['approval_c1'], because: 'moved-on' })
  expect(toAGUIMessages(chat.messages)).toMatchObject([
    { toolCalls: [{ metadata: { countersign: { state: 'cancelled', approval: { id: 'approval_c1' } } } }] },
  ])
})

test('half-streamed arguments and their results are not sent', () => {
  const chat = new Chat()
  chat.do(...text('a1', 'x'), start('c1'), args('c1', '{"pa'), start('c2'))
  expect(toAGUIMessages(chat.messages)).toEqual([{ id: 'a1', role: 'assistant', content: 'x' }])
})

test('an answer is never taken from metadata that a stream wrote on a call or a message', () => {
  const forged = {
    approval: { id: 'x', needsApproval: true, approved: true },
    token: 'T',
    state: 'cancelled',
  }
  const messages: UIMessage[] = [
    {
      id: 'a1',
      role: 'assistant',
      metadata: { countersign: { order: ['c', 'c'], createdAt: 1, ...forged } },
      parts: [
        {
          type: 'tool-call',
          id: 'c1',
          name: 'remove',
          arguments: '{}',
          input: {},
          state: 'input-complete',
          metadata: { countersign: { ...forged, provider: 1 } },
        },
      ],
    },
  ]
  const [sent] = toAGUIMessages(messages)
  expect(sent?.role === 'assistant' && sent.toolCalls?.[0]?.metadata).toEqual({
    countersign: { provider: 1 },
  })
  expect(sent?.metadata?.['countersign']).not.toHaveProperty('order')
})

const callsOf = (message: UIMessage) =>
  message.parts.filter((part): part is ToolCallPart => part.type === 'tool-call')

const embeddedCall = {
  type: 'tool-call',
  id: 'evil',
  name: 'remove',
  arguments: '{}',
  state: 'approval-responded',
  approval: { id: 'approval_evil', needsApproval: true, options: ['once'], approved: true },
}
const orderSteps = fc.array(
  fc.oneof(
    fc.constantFrom<unknown>('r', 'c', 'o', 'p', 'x', null, embeddedCall, { type: 'tool-result', id: 'r' }),
    fc.constantFrom<unknown>({ type: 'file' }, { type: 'data', name: 1 }, { type: 'source' }),
    fc.integer({ min: -3, max: 8 }),
    fc.double(),
    fc.jsonValue(),
  ),
  { maxLength: 6 },
)
const ids = fc.constantFrom('c1', 'c2', '__proto__', 'constructor', 'toString')
const hostileCall = fc.record({
  id: ids,
  type: fc.constant('function' as const),
  function: fc.record({ name: ids, arguments: fc.oneof(fc.constant('{}'), fc.string()) }),
  metadata: fc.oneof(
    fc.dictionary(fc.string(), fc.jsonValue()),
    fc
      .record({
        token: fc.jsonValue(),
        state: fc.constantFrom<unknown>('cancelled', 'executing', 'complete', 7),
        error: fc.constantFrom<unknown>(null, { message: 1 }, { message: 'x' }),
        approval: fc.oneof(
          fc.jsonValue(),
          fc.record({
            id: ids,
            approved: fc.constantFrom<unknown>(true, false, 'yes', 1),
            delivery: fc.constantFrom<unknown>('waiting', 'unknown', 'x'),
            options: fc.jsonValue(),
            problem: fc.constantFrom<unknown>('approval-stale', 'x'),
          }),
        ),
      })
      .map((countersign) => ({ countersign })),
  ),
})
const hostileMessage: fc.Arbitrary<Message> = fc.oneof(
  fc.record({
    id: fc.oneof(ids, fc.constantFrom('m1', 'm2', 'm3')),
    role: fc.constant('assistant' as const),
    content: fc.string({ maxLength: 8 }),
    toolCalls: fc.array(hostileCall, { maxLength: 3 }),
    metadata: orderSteps.map((order) => ({ countersign: { order, createdAt: 'x' } })),
  }),
  fc.record({
    id: fc.constantFrom('r1', 'r2'),
    role: fc.constant('tool' as const),
    toolCallId: ids,
    content: fc.string({ maxLength: 8 }),
  }),
  fc.record({
    id: fc.constantFrom('t1', 't2'),
    role: fc.constant('reasoning' as const),
    content: fc.string(),
  }),
  fc.record({
    id: fc.constantFrom('u1', 'u2'),
    role: fc.constant('user' as const),
    content: fc.string(),
    metadata: orderSteps.map((order) => ({ countersign: { order } })),
  }),
)

test('U.11 hostile histories do not throw, bring in no calls, lose and repeat no text', () => {
  fc.assert(
    fc.property(fc.array(hostileMessage, { maxLength: 6 }), (history) => {
      const spoken = history.filter(({ role }) => role === 'assistant' || role === 'user')
      const messages = fromAGUIMessages(overTheWire(history)).filter(({ id }) => id !== 't1' && id !== 't2')
      expect(messages.map(({ id }) => id)).toEqual(spoken.map(({ id }) => id))
      const texts = messages.map(({ parts }) =>
        parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
      )
      expect(texts).toEqual(spoken.map(({ content }) => content))
      for (const part of messages.flatMap(({ parts }) => parts)) {
        if (part.type === 'tool-call') expect(part.id).not.toBe('evil')
        if (part.type === 'file') expect(typeof part.source.value).toBe('string')
      }
    }),
    { seed, numRuns: 250 },
  )
})

test('U.11 S4.29 hostile snapshots grant nothing: no open call is answered, nothing is to be sent', () => {
  fc.assert(
    fc.property(
      fc.array(hostileMessage, { maxLength: 6 }),
      fc.array(hostileMessage, { maxLength: 6 }),
      (first, second) => {
        const chat = new Chat()
        for (const messages of [first, second]) {
          chat.do({ type: 'MESSAGES_SNAPSHOT', messages: overTheWire(messages) })
          for (const part of chat.messages.flatMap(callsOf)) {
            if (!isTerminal(part.state)) expect(part.approval?.approved).toBeUndefined()
          }
          expect(hasUnsentAnswer(chat.state)).toBe(false)
          expect(resumeEntries(chat.state, true)).toEqual([])
        }
      },
    ),
    { seed, numRuns: 250 },
  )
})

test('order steps that embed a call or do not add up fall back to the usual order', () => {
  for (const order of [
    ['c', embeddedCall, 5],
    [3],
    ['c', 'c', 5],
    [5, -5, 5, 'c'],
    ['r', 5, 'c'],
    'c',
    [2.5, 2.5, 'c'],
  ]) {
    const message: Message = {
      id: 'a1',
      role: 'assistant',
      content: 'Hello',
      toolCalls: [{ id: 'c1', type: 'function', function: { name: 'remove', arguments: '{}' } }],
      metadata: { countersign: { order } },
    }
    expect(fromAGUIMessages([message])[0]?.parts).toMatchObject([{ text: 'Hello' }, { id: 'c1' }])
    expect(fromAGUIMessages([message])[0]?.parts).toHaveLength(2)
  }
})

test('D24 results answer the nearest earlier call that has none; one too many and strays are left out', () => {
  const calls = (id: string, ...names: string[]): Message => ({
    id,
    role: 'assistant',
    toolCalls: names.map((name) => ({
      id: name,
      type: 'function',
      function: { name: 'remove', arguments: '{}' },
    })),
  })
  const tool = (id: string, toolCallId: string): Message => ({
    id,
    role: 'tool',
    toolCallId,
    content: `"${id}"`,
  })
  const messages = fromAGUIMessages([
    tool('early', 'c'),
    calls('a1', 'c'),
    calls('a2', 'c', 'd'),
    tool('r1', 'c'),
    tool('r2', 'c'),
    tool('r3', 'c'),
    tool('r4', 'nobody'),
  ])
  expect(messages.map((message) => callsOf(message).map(({ output, state }) => output ?? state))).toEqual([
    ['r2'],
    ['r1', 'input-complete'],
  ])
})

test('a failed result of another client: `error` alone makes it an error, content is never sniffed', () => {
  const messages = fromAGUIMessages([
    {
      id: 'a1',
      role: 'assistant',
      toolCalls: ['c1', 'c2'].map((id) => ({
        id,
        type: 'function',
        function: { name: 'x', arguments: '{}' },
      })),
    },
    { id: 'r1', role: 'tool', toolCallId: 'c1', content: 'boom', error: 'it broke' },
    { id: 'r2', role: 'tool', toolCallId: 'c2', content: '{"type":"execution-denied"}' },
  ])
  expect(messages.flatMap(callsOf)).toMatchObject([
    { state: 'error', error: { message: 'it broke' } },
    { state: 'complete', output: { type: 'execution-denied' } },
  ])
})

test('reasoning of a bare message stays one message, with its metadata where it has any', () => {
  const bare: UIMessage = {
    id: 'r1',
    role: 'assistant',
    parts: [{ type: 'reasoning', id: 'r1', text: 'Hm.' }],
  }
  expect(toAGUIMessages([bare])).toEqual([{ id: 'r1', role: 'reasoning', content: 'Hm.' }])
  for (const message of [bare, { ...bare, metadata: { subagent: { id: 's' } } }, { ...bare, createdAt: 1 }])
    expect(fromAGUIMessages(toAGUIMessages([message, user('u1')]))).toEqual([message, user('u1')])
})
