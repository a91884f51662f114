import {
  type AiSdkMessage,
  createAiSdkReader,
  createAiSdkWriter,
  fromAiSdkMessages,
  toAiSdkMessages,
} from '@countersign/ai-sdk'
import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import {
  type AGUIEvent,
  createChatState,
  readMessages,
  step,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/core'
import { createEventReader, fullSteps } from '@countersign/core/ag-ui'
import { expect, test } from 'vitest'

const pendingIn = (messages: readonly UIMessage[]) =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'tool-call' && part.state === 'approval-requested' ? [part] : [])),
  )

type Chunk = { readonly type: string; readonly [field: string]: unknown }

test('messages of AI SDK 4 are refused with the way to go on', () => {
  const old: unknown = { id: 'm', role: 'user', content: 'hello' }
  expect(() => fromAiSdkMessages([old as AiSdkMessage])).toThrow(/Message 0 has no list of `parts`.*AI SDK 4/)
})

/** A stream on an empty conversation: its events, checked, and what the machine makes of them. */
function read(chunks: readonly Chunk[], continued?: AiSdkMessage) {
  const run = { threadId: 't', runId: 'r' }
  const reader = createAiSdkReader({ ...run, continued })
  const events = [...reader.start(), ...chunks.flatMap((chunk) => reader.read(chunk)), ...reader.end()]
  const check = createEventReader(run)
  const state = createChatState({ moreSteps: fullSteps })
  if (continued) step(state, { type: 'set-messages', messages: fromAiSdkMessages([continued]) })
  for (const event of events) check.push(event, (checked) => step(state, checked))
  return { events, reader, state, messages: readMessages(state) }
}

const last = (events: readonly AGUIEvent[]) => events.at(-1)

const calls = (messages: readonly UIMessage[]): ToolCallPart[] =>
  messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'tool-call' ? [part] : [])))

const start: Chunk = { type: 'start', messageId: 'm1' }
const startStep: Chunk = { type: 'start-step' }
const finish: Chunk = { type: 'finish', finishReason: 'tool-calls' }
const available: Chunk = {
  type: 'tool-input-available',
  toolCallId: 'c1',
  toolName: 'rm',
  input: { path: 'a' },
}
const asked: Chunk = {
  type: 'tool-approval-request',
  toolCallId: 'c1',
  approvalId: 'a1',
  signature: 's1',
  reason: 'Sure?',
}

test('each step of an AI SDK message is a message, and they are one again when they are sent', () => {
  const say = (text: string): Chunk[] => [
    startStep,
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: text },
    { type: 'text-end', id: '0' },
    { type: 'finish-step' },
  ]
  const { messages } = read([start, ...say('One.'), ...say('Two.'), finish])
  expect(messages).toMatchObject([
    { id: 'm1', parts: [{ type: 'text', text: 'One.' }] },
    { id: 'm1/2', parts: [{ type: 'text', text: 'Two.' }] },
  ])
  expect(toAiSdkMessages(messages)).toEqual([
    {
      id: 'm1',
      role: 'assistant',
      parts: [
        { type: 'step-start' },
        { type: 'text', text: 'One.', state: 'done' },
        { type: 'step-start' },
        { type: 'text', text: 'Two.', state: 'done' },
      ],
    },
  ])
})

test('a request of the AI SDK is an approval that offers no edit and no session, and ends its run as an interrupt', () => {
  const { events, state } = read([start, startStep, available, asked, finish])
  expect(pendingIn(readMessages(state))).toMatchObject([
    { name: 'rm', input: { path: 'a' }, approval: { id: 'a1', message: 'Sure?', options: ['deny', 'once'] } },
  ])
  expect(pendingIn(readMessages(state))[0]?.approval).not.toHaveProperty('allowEdits')
  expect(last(events)).toMatchObject({
    type: 'RUN_FINISHED',
    outcome: { type: 'interrupt', interrupts: [{ id: 'a1', toolCallId: 'c1' }] },
    metadata: { finishReason: 'tool_calls' },
  })
})

test('where the server will run something else than was streamed, that is what is shown and what goes back', () => {
  const input = { path: '/work/a' }
  const { state, messages } = read([
    start,
    startStep,
    { type: 'tool-input-start', toolCallId: 'c1', toolName: 'rm' },
    { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '{"path":"a"}' },
    { ...available, input },
    { ...asked, inputSchemaInput: { path: 'a' } },
    finish,
  ])
  expect(pendingIn(readMessages(state))).toMatchObject([
    { input, arguments: JSON.stringify(input), approval: { id: 'a1' } },
  ])
  expect(toAiSdkMessages(messages)[0]?.parts[1]).toMatchObject({
    input,
    approval: { id: 'a1', signature: 's1', requestReason: 'Sure?', inputSchemaInput: { path: 'a' } },
  })
})

test('a call that is left to the client is named by its run, one that the provider runs is not', () => {
  const theirs = { ...available, toolCallId: 'c2', providerExecuted: true }
  const { events } = read([start, startStep, available, theirs, finish])
  expect(last(events)).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: ['c1'] } })
})

test('a stream that the server stopped is cancelled, and nothing waits for what will not come', () => {
  const half: Chunk[] = [
    { type: 'tool-input-start', toolCallId: 'c2', toolName: 'rm' },
    { type: 'tool-input-delta', toolCallId: 'c2', inputTextDelta: '{"pa' },
  ]
  const { events, messages } = read([start, startStep, available, ...half, { type: 'abort' }])
  expect(last(events)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } })
  expect(calls(messages).map(({ state }) => state)).toEqual(['cancelled', 'cancelled'])
  expect(toAiSdkMessages(messages)[0]?.parts).toMatchObject([
    { type: 'step-start' },
    { type: 'tool-rm', toolCallId: 'c1', state: 'output-error', errorText: 'The run was stopped.' },
  ])
})

test('H26 a step that the server takes back is gone from the page, with its calls, and is not sent again', () => {
  const { events, messages } = read([
    start,
    startStep,
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'No.' },
    available,
    { type: 'reset-step' },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'Yes.' },
    { type: 'text-end', id: '0' },
    { type: 'finish' },
  ])
  expect(calls(messages)).toEqual([])
  expect(messages.flatMap(({ parts }) => parts)).toEqual([{ type: 'text', text: 'Yes.' }])
  expect(last(events)).toMatchObject({ outcome: { type: 'success', pendingToolCallIds: [] } })
  const texts = toAiSdkMessages(messages).flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])),
  )
  expect(texts).toEqual(['Yes.'])
})

test('after an error nothing counts, and a stream without its last word has no last event', () => {
  const failed = read([
    start,
    { type: 'error', errorText: 'No.' },
    startStep,
    { type: 'text-start', id: '0' },
    finish,
  ])
  expect(failed.events.map(({ type }) => type)).toEqual(['RUN_STARTED', 'RUN_ERROR'])
  const broken = read([start, startStep])
  expect(broken.reader.isDone).toBe(false)
  expect(broken.events.map(({ type }) => type)).toEqual(['RUN_STARTED'])
})

test('results come for calls of earlier steps, before any new step', () => {
  const { messages } = read([start, startStep, available, asked, finish])
  const [sent] = toAiSdkMessages(messages)
  const more = read(
    [start, { type: 'tool-output-denied', toolCallId: 'c1' }, { type: 'finish', finishReason: 'stop' }],
    sent,
  )
  expect(calls(more.messages)).toMatchObject([{ state: 'denied' }])
  expect([...more.reader.outcomes.keys()]).toEqual(['c1'])
})

test('data that does not stay is an event of the application, data that stays is found by its id and replaced', () => {
  const data = (temperature: number, more: object = {}): Chunk => ({
    type: 'data-weather',
    data: { temperature },
    ...more,
  })
  const { events, messages } = read([
    start,
    data(1, { transient: true }),
    data(2, { id: 'oslo' }),
    data(3, { id: 'oslo' }),
    { type: 'finish' },
  ])
  expect(events).toContainEqual({ type: 'CUSTOM', name: 'data-weather', value: { data: { temperature: 1 } } })
  expect(messages).toMatchObject([{ parts: [{ type: 'data', name: 'weather', data: { temperature: 3 } }] }])
  expect(toAiSdkMessages(messages)[0]?.parts).toEqual([
    { type: 'data-weather', id: 'oslo', data: { temperature: 3 } },
  ])
})

const call = (part: Partial<ToolCallPart>): UIMessage => ({
  id: 'a1',
  role: 'assistant',
  parts: [
    { type: 'tool-call', id: 'c1', name: 'rm', arguments: '{}', input: {}, state: 'input-complete', ...part },
  ],
})
const approval = { id: 'ap', needsApproval: true, options: ['deny', 'once'] } as const
const user: UIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }

test('what an AI SDK server could not take is told as what it is', () => {
  const written = (part: Partial<ToolCallPart>, ...after: readonly UIMessage[]) =>
    toAiSdkMessages([call(part), ...after])[0]?.parts[1]
  const responded = {
    state: 'approval-responded',
    approval: { ...approval, approved: true, delivery: 'unknown' },
  } as const
  expect(written({})).toMatchObject({
    state: 'output-error',
    errorText: expect.stringContaining('may or may not'),
  })
  expect(written({ providerExecuted: true })).toMatchObject({
    state: 'input-available',
    providerExecuted: true,
  })
  expect(written({ state: 'input-streaming' })).toBeUndefined()
  expect(written({ state: 'cancelled', approval })).toMatchObject({
    state: 'output-denied',
    approval: { id: 'ap', approved: false, reason: 'Nobody answered the request.' },
  })
  expect(written(responded)).toMatchObject({ state: 'approval-responded', approval: { approved: true } })
  expect(written(responded, user)).toMatchObject({ state: 'output-error' })
  expect(written({ ...responded, approval: { ...approval, approved: false } }, user)).toMatchObject({
    state: 'output-denied',
  })
})

test('files of the person go as data URLs, as URLs, or by the names their provider knows', () => {
  const parts: UIMessage['parts'] = [
    { type: 'file', media: 'image', source: { type: 'data', value: 'AAAA', mimeType: 'image/png' } },
    { type: 'file', media: 'video', source: { type: 'url', value: 'https://a.example/v' } },
    { type: 'file', media: 'document', source: { type: 'file', value: 'f1', provider: 'openai' } },
  ]
  const [sent] = toAiSdkMessages([{ ...user, parts }])
  expect(sent?.parts).toEqual([
    { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AAAA' },
    { type: 'file', mediaType: 'video', url: 'https://a.example/v' },
    { type: 'file', mediaType: 'application/octet-stream', url: '', providerReference: { openai: 'f1' } },
  ])
  expect(toAiSdkMessages(fromAiSdkMessages(sent ? [sent] : []))).toEqual([sent])
})

const write = (events: readonly AGUIEvent[], continued?: AiSdkMessage) => {
  const writer = createAiSdkWriter({ messageId: 'm1', continued })
  return events.flatMap((event) => writer(event))
}

test('opaque content that comes after a thought is told with its end, since the SDK takes nothing later', () => {
  const chunks = write([
    { type: 'REASONING_START', messageId: 'r1' },
    {
      type: 'REASONING_MESSAGE_START',
      messageId: 'r1',
      role: 'reasoning',
      metadata: { countersign: { messageId: 'a1' } },
    },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: 'Hm.' },
    { type: 'REASONING_MESSAGE_END', messageId: 'r1', metadata: { countersign: { messageId: 'a1' } } },
    { type: 'REASONING_END', messageId: 'r1' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'r1', encryptedValue: 'x' },
    { type: 'TEXT_MESSAGE_START', messageId: 'a1', role: 'assistant' },
  ])
  expect(chunks).toEqual([
    { type: 'start-step' },
    { type: 'reasoning-start', id: 'r1' },
    { type: 'reasoning-delta', id: 'r1', delta: 'Hm.' },
    { type: 'reasoning-end', id: 'r1', providerMetadata: { countersign: { encryptedValue: 'x' } } },
    { type: 'text-start', id: 'a1/1' },
  ])
})

test('a result for a call that the message does not have is left out: the SDK would give up at it', () => {
  const result: AGUIEvent = {
    type: 'TOOL_CALL_RESULT',
    messageId: 'o1',
    toolCallId: 'c1',
    content: '{"ok":true}',
  }
  expect(write([result])).toEqual([])
  const part = { type: 'tool-rm', toolCallId: 'c1', state: 'approval-responded', input: {} } as const
  expect(write([result], { id: 'm0', role: 'assistant', parts: [part] })).toEqual([
    { type: 'tool-output-available', toolCallId: 'c1', output: { ok: true } },
  ])
})

test('a token is the signature of a request, and is in no other place', () => {
  const chunks = write([
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'rm', parentMessageId: 'a1' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"path":"a"}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1', metadata: { countersign: { token: 'cs1.x' } } },
    {
      type: 'CUSTOM',
      name: 'approval-requested',
      value: {
        toolCallId: 'c1',
        toolName: 'rm',
        approval: { ...approval, message: 'Sure?', token: 'cs1.x' },
      },
    },
  ])
  expect(chunks.filter((chunk) => JSON.stringify(chunk).includes('cs1.x'))).toEqual([
    {
      type: 'tool-approval-request',
      approvalId: 'ap',
      toolCallId: 'c1',
      reason: 'Sure?',
      signature: 'cs1.x',
      approvalDescriptor: { options: ['deny', 'once'] },
    },
  ])
  // an SDK client runs a tool of its own when its input is available: not before the yes
  expect(chunks.some(({ type }) => type === 'tool-input-available')).toBe(false)
})

test('calls of names that belong to the protocol are not shown, and questions without a call are data', () => {
  const chunks = write([
    {
      type: 'TOOL_CALL_START',
      toolCallId: 'q1',
      toolCallName: 'client.requestApproval',
      parentMessageId: 'a1',
    },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'q1', delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: 'q1' },
    {
      type: 'RUN_FINISHED',
      threadId: 't',
      runId: 'r',
      outcome: { type: 'interrupt', interrupts: [{ id: 'i1', reason: 'input' }] },
    },
  ])
  expect(chunks).toEqual([
    { type: 'data-interrupt', id: 'i1', data: { id: 'i1', reason: 'input' } },
    { type: 'finish', finishReason: 'stop' },
  ])
})

test('a run that was stopped is an abort, and one that failed an error', () => {
  const run = { threadId: 't', runId: 'r' }
  expect(write([{ type: 'RUN_FINISHED', ...run, outcome: { type: 'cancelled' } }])).toMatchObject([
    { type: 'abort' },
  ])
  expect(write([{ type: 'RUN_ERROR', message: 'No.' }])).toEqual([{ type: 'error', errorText: 'No.' }])
})

test('F26 calls of one id, in one step and in the next, have their own arguments, questions and outputs', () => {
  const other = { ...available, input: { path: 'b' } }
  const output = (value: string): Chunk => ({
    type: 'tool-output-available',
    toolCallId: 'c1',
    output: value,
  })
  // A request names only the id, and for both the SDK would run the arguments of the last call with it: neither can be answered.
  const both = read([start, startStep, available, other, asked, { ...asked, approvalId: 'a2' }, finish])
  expect(calls(both.messages).map(({ input, approval }) => [input, approval?.id, approval?.problem])).toEqual(
    [
      [{ path: 'a' }, 'a1', 'approval-changed'],
      [{ path: 'b' }, 'a2', 'approval-changed'],
    ],
  )
  const rounds = [
    start,
    startStep,
    available,
    output('one'),
    startStep,
    available,
    output('two'),
    startStep,
    other,
    asked,
    finish,
  ]
  const { messages } = read(rounds)
  const shown = calls(messages).map((call) => [call.input, call.output ?? call.approval?.id])
  expect(shown).toEqual([
    [{ path: 'a' }, 'one'],
    [{ path: 'a' }, 'two'],
    [{ path: 'b' }, 'a1'],
  ])
  const sent = toAiSdkMessages(messages).flatMap(({ parts }) =>
    parts.flatMap((part) => ('output' in part ? [part.output] : [])),
  )
  expect(sent).toEqual(['one', 'two'])
})

test('initialMessages with parts of the AI SDK are refused, and the error names what converts them', () => {
  const connection = fetchServerSentEvents('http://localhost/chat')
  const stored = [
    {
      ...{ id: 'm1', role: 'assistant' },
      parts: [{ type: 'tool-delete_file', toolCallId: 'c1', state: 'input-available', input: {} }],
    },
  ]
  expect(() => new ChatClient({ connection, initialMessages: stored as never })).toThrow(/fromAiSdkMessages/)
})
