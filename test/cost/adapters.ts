import { aiSdk } from '@countersign/ai-sdk'
import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { langGraph } from '@countersign/langgraph'
import { tanstack } from '@countersign/tanstack'
import { times, type Value } from './shapes.js'
import { bodyOf } from './streams.js'

/** A stream that a page reads through an adapter: an event has its name, where the protocol has names, and its data. */
interface AdapterStream {
  readonly name: string
  readonly adapter: keyof typeof pages
  readonly events: (bytes: number) => readonly Value[]
}

/** The pages, each by its adapter, with an end for the stream and what answers the request after it. */
const pages = {
  'AI SDK': {
    options: (fetch: typeof globalThis.fetch) => ({ connection: aiSdk({ fetch }) }),
    whole: (chunks: readonly Value[]) => [{ type: 'start', messageId: 'm' }, ...chunks, { type: 'finish' }],
    frame: (data: Value) => `data: ${JSON.stringify(data)}\n\n`,
  },
  LangGraph: {
    options: (fetch: typeof globalThis.fetch) => ({
      connection: langGraph({ apiUrl: 'http://localhost', assistantId: 'agent', state: true, fetch }),
    }),
    whole: (events: readonly Value[]) => [...events, update({ model: null })],
    frame: ({ event, data }: Value) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`,
  },
  TanStack: {
    options: (fetch: typeof globalThis.fetch) => ({
      connection: fetchServerSentEvents('http://localhost/chat', { fetch }),
      compat: tanstack(),
    }),
    whole: (events: readonly Value[]) => [
      ...(events[0]?.type === 'TOOL_CALL_RESULT' ? [] : [{ type: 'RUN_STARTED', threadId: 'x', runId: 'y' }]),
      ...events,
      ...(events.at(-1)?.type === 'RUN_FINISHED'
        ? []
        : [{ type: 'RUN_FINISHED', threadId: 'x', runId: 'y' }]),
    ],
    frame: (data: Value) => `data: ${JSON.stringify(data)}\n\n`,
  },
} satisfies Record<string, unknown>

/** A page that shows all that comes, and then sends its next request. */
export async function readThrough(adapter: keyof typeof pages, stream: Uint8Array): Promise<void> {
  const { options } = pages[adapter]
  let requests = 0
  const errors: unknown[] = []
  const fetch = async (url: unknown) => {
    if (String(url).endsWith('/state')) return new Response('{}', { status: 404 })
    const body = requests++ === 0 ? stream : encodedFor(adapter, [])
    return new Response(bodyOf(body), { headers: { 'content-type': 'text/event-stream' } })
  }
  const client = new ChatClient({
    threadId: 'thread',
    ...options(fetch),
    onError: (error) => errors.push(error),
    onWarning: () => {},
  })
  client.subscribe(() => client.getSnapshot())
  await client.sendMessage('go')
  client.getSnapshot()
  await client.sendMessage('again')
  client.dispose()
  // A stream that is refused costs nothing.
  if (errors.length > 0) throw errors[0]
}

export function encodedFor(adapter: keyof typeof pages, events: readonly Value[]): Uint8Array {
  const { whole, frame } = pages[adapter]
  return new TextEncoder().encode(whole(events).map(frame).join(''))
}

const update = (data: Value): Value => ({ event: 'updates', data })
const said = (more: Value, id = 'm'): Value =>
  update({ model: { messages: [{ type: 'ai', id, content: 'x', ...more }] } })
const chunk = (more: Value): Value => ({
  event: 'messages',
  data: [{ type: 'AIMessageChunk', id: 'm', content: '', ...more }, { langgraph_checkpoint_ns: 'model:1' }],
})
const graphCall = (index: number): Value => ({ id: `c${index}`, name: 'send', args: { to: index } })
const graphCalls = (bytes: number, each: number): readonly Value[] => times(bytes / each, graphCall)
const action = (index: number): Value => ({ name: 'send', args: { to: index } })
const review: Value = { action_name: 'send', allowed_decisions: ['approve', 'reject', 'edit'] }
const asking = (interrupts: readonly Value[]): Value => update({ __interrupt__: interrupts })
const decide = (actions: readonly Value[], configs: readonly Value[]): Value => ({
  action_requests: actions,
  review_configs: configs,
})

const available = (id: number | string, input: unknown = {}): Value => ({
  type: 'tool-input-available',
  toolCallId: `c${id}`,
  toolName: 'x',
  input,
})
const ask = (id: number | string, nth = id): Value => ({
  type: 'tool-approval-request',
  toolCallId: `c${id}`,
  approvalId: `a${nth}`,
})
const output = (id: number | string, more: Value = {}): Value => ({
  type: 'tool-output-available',
  toolCallId: `c${id}`,
  output: 1,
  ...more,
})
const spoken = (kind: string, id: number, more: Value = {}): Value[] => [
  { type: `${kind}-start`, id: `${id}` },
  { type: `${kind}-delta`, id: `${id}`, delta: 'x' },
  { type: `${kind}-end`, id: `${id}`, ...more },
]

const ofAiSdk: Readonly<Record<string, AdapterStream['events']>> = {
  'metadata of a message that grows': (bytes) =>
    times(bytes / 70, (index) => ({ type: 'message-metadata', messageMetadata: { [`key${index}`]: 1 } })),
  'metadata that grows inside, in an open step': (bytes) => [
    ...spoken('text', 0),
    ...times(bytes / 70, (index) => ({
      type: 'message-metadata',
      messageMetadata: { x: { y: { [`key${index}`]: 1 } } },
    })),
  ],
  'texts of one step, with what the provider keeps': (bytes) =>
    times(bytes / 160, (index) => spoken('text', index, { providerMetadata: { x: { y: index } } })).flat(),
  'texts that are all open': (bytes) => {
    const ids = times(bytes / 120, (index) => `${index}`)
    return [
      ...ids.map((id) => ({ type: 'text-start', id })),
      ...ids.toReversed().map((id) => ({ type: 'text-delta', id, delta: 'x' })),
      ...ids.toReversed().map((id) => ({ type: 'text-end', id })),
    ]
  },
  'texts that go on in steps after theirs': (bytes) => {
    const ids = times(bytes / 280, (index) => `${index}`)
    return [
      ...ids.flatMap((id) => [{ type: 'start-step' }, { type: 'text-start', id }]),
      ...ids.map((id) => ({ type: 'text-delta', id, delta: 'x' })),
      ...ids.flatMap((id) => [available(id), output(id)]),
    ]
  },
  thoughts: (bytes) => times(bytes / 140, (index) => spoken('reasoning', index)).flat(),
  'thoughts that are all open': (bytes) => [
    ...times(bytes / 80, (index) => ({ type: 'reasoning-start', id: `${index}` })),
    ...times(bytes / 80, (index) => ({ type: 'reasoning-delta', id: `${index}`, delta: 'x' })),
  ],
  sources: (bytes) => times(bytes / 60, (index) => ({ type: 'source-url', sourceId: `s${index}`, url: 'x' })),
  'data under ids, and the same again': (bytes) =>
    times(bytes / 45, (index) => ({ type: 'data-x', id: `d${index % Math.ceil(bytes / 90)}`, data: index })),
  files: (bytes) => times(bytes / 60, () => ({ type: 'file', url: 'data:,x', mediaType: 'text/plain' })),
  steps: (bytes) =>
    times(bytes / 170, () => [{ type: 'start-step' }, ...spoken('text', 0), { type: 'finish-step' }]).flat(),
  'steps that are taken back': (bytes) =>
    times(bytes / 260, (index) => [
      { type: 'start-step' },
      ...spoken('text', 0),
      available(index),
      { type: 'reset-step' },
    ]).flat(),
  'calls with a result': (bytes) => times(bytes / 140, (id) => [available(id), output(id)]).flat(),
  'questions, the last calls first': (bytes) => {
    const ids = times(bytes / 150, (id) => id)
    return [...ids.map((id) => available(id)), ...ids.toReversed().map((id) => ask(id))]
  },
  'questions that the server answers itself': (bytes) => {
    const ids = times(bytes / 250, (id) => id)
    return [
      ...ids.flatMap((id) => [available(id), { ...ask(id), isAutomatic: true }]),
      ...ids.map((id) => ({ type: 'tool-approval-response', approvalId: `a${id}`, approved: true })),
    ]
  },
  'calls whose ids come again, their questions and their results': (bytes) => {
    const ids = times(bytes / 400, (id) => id)
    return [
      ...ids.map((id) => available(id)),
      { type: 'start-step' },
      ...ids.map((id) => available(id)),
      ...[...ids, ...ids.toReversed()].map((id, nth) => ask(id, nth)),
      ...[...ids, ...ids].map((id) => output(id)),
    ]
  },
  'arguments in small pieces': (bytes) => [
    { type: 'tool-input-start', toolCallId: 'c', toolName: 'x' },
    ...times(bytes / 70, (index) => ({
      type: 'tool-input-delta',
      toolCallId: 'c',
      inputTextDelta: index > 0 ? '1,' : '{"a":[',
    })),
  ],
  'progress of a call': (bytes) => [
    available(0),
    ...times(bytes / 90, (index) => output(0, { output: { index }, preliminary: true })),
  ],
}

const ofLangGraph: Readonly<Record<string, AdapterStream['events']>> = {
  'requests in another order than their calls': (bytes) => {
    const actions = times(bytes / 100, action)
    return [
      said({ tool_calls: graphCalls(bytes, 100) }),
      asking([{ id: 'i', value: decide(actions.toReversed(), [review]) }]),
    ]
  },
  'requests of one form': (bytes) => [
    said({ tool_calls: times(bytes / 60, (index) => ({ id: `c${index}`, name: 'x', args: {} })) }),
    asking([
      {
        id: 'i',
        value: decide(
          times(bytes / 60, () => ({ name: 'x', args: {} })),
          [{ ...review, action_name: 'x' }],
        ),
      },
    ]),
  ],
  'reviews, the one that counts last': (bytes) => [
    said({ tool_calls: graphCalls(bytes, 130) }),
    asking([
      {
        id: 'i',
        value: decide(times(bytes / 130, action), [
          ...times(bytes / 130, (index) => ({ action_name: `x${index}` })),
          review,
        ]),
      },
    ]),
  ],
  'an interrupt for each call': (bytes) => [
    said({ tool_calls: graphCalls(bytes, 200) }),
    asking(
      times(bytes / 200, (index) => ({
        id: `i${index}`,
        value: decide([action(index)], [review]),
      })).toReversed(),
    ),
  ],
  'interrupts, one by one': (bytes) =>
    times(bytes / 90, (index) => asking([{ id: `i${index}`, value: 'x' }])),
  'interrupts that come again': (bytes) => [
    asking(times(bytes / 60, (index) => ({ id: `i${index}`, value: 'x' }))),
    ...times(bytes / 180, () => asking([{ id: 'i0', value: 'x' }])),
  ],
  'calls in chunks': (bytes) =>
    times(bytes / 180, (index) =>
      chunk({ tool_call_chunks: [{ index, id: `c${index}`, name: 'send', args: '{}' }] }),
    ),
  'arguments in small pieces': (bytes) =>
    times(bytes / 170, (index) =>
      chunk({
        tool_call_chunks: [
          { index: 0, args: index > 0 ? '1,' : '[', ...(index === 0 && { id: 'c', name: 'x' }) },
        ],
      }),
    ),
  'a text in chunks': (bytes) => times(bytes / 120, () => chunk({ content: 'x' })),
  'thoughts in chunks': (bytes) =>
    times(bytes / 160, () => chunk({ content: [{ type: 'thinking', thinking: 'x' }] })),
  messages: (bytes) => times(bytes / 90, (index) => said({}, `m${index}`)),
  'messages that are still open': (bytes) =>
    times(bytes / 130, (index) => chunk({ id: `m${index}`, content: 'x' })),
  'one message again and again': (bytes) => [
    said({ content: 'x'.repeat(bytes / 3), tool_calls: graphCalls(bytes / 3, 45) }),
    ...times(bytes / 250, () => said({ content: '' })),
  ],
  'messages with calls of one id': (bytes) =>
    times(bytes / 160, (index) => said({ tool_calls: [{ ...graphCall(index), id: 'c' }] }, `m${index}`)),
  'results, the last calls first': (bytes) => [
    said({ tool_calls: graphCalls(bytes, 180) }),
    ...times(bytes / 180, (index) =>
      update({
        tools: { messages: [{ type: 'tool', id: `r${index}`, tool_call_id: `c${index}`, content: 'x' }] },
      }),
    ).toReversed(),
  ],
  'calls that get no result': (bytes) => [said({ tool_calls: graphCalls(bytes, 45) })],
  'states with small changes': (bytes) =>
    times(bytes / 60, (index) => ({ event: 'values', data: { index } })),
}

const result = (index: number): Value => ({
  type: 'TOOL_CALL_RESULT',
  messageId: 'm',
  toolCallId: `c${index}`,
  content: 'x',
})
const call = (index: number): Value[] => [
  { type: 'TOOL_CALL_START', toolCallId: `c${index}`, toolCallName: 'x', parentMessageId: 'm' },
  { type: 'TOOL_CALL_END', toolCallId: `c${index}` },
]
const ending = (interrupts: readonly Value[]): Value => ({
  type: 'RUN_FINISHED',
  threadId: 'x',
  runId: 'y',
  outcome: { type: 'interrupt', interrupts },
})
const bound = (index: number, kind: string): Value => ({
  id: `approval_c${index}`,
  reason: 'tool_call',
  ...(kind !== 'generic' && { toolCallId: `c${index}` }),
  metadata: {
    'tanstack:interruptBinding': { kind, toolCallId: `c${index}`, toolName: 'x', interruptedRunId: 'y' },
  },
})
const endOf = (kind: string) => (bytes: number) => [
  ...times(bytes / 400, call).flat(),
  ending(times(bytes / 400, (index) => bound(index, kind))),
]

const ofTanStack: Readonly<Record<string, AdapterStream['events']>> = {
  'approvals at the end of a run': endOf('tool-approval'),
  'client tools at the end of a run': endOf('client-tool-execution'),
  'interrupts of other kinds at the end of a run': endOf('generic'),
  'turns of the model': (bytes) =>
    times(bytes / 200, (index) => [
      { type: 'RUN_STARTED', threadId: 'x', runId: `y${index}` },
      { type: 'TEXT_MESSAGE_START', messageId: `m${index}`, role: 'assistant' },
      { type: 'TEXT_MESSAGE_END', messageId: `m${index}` },
      { type: 'RUN_FINISHED', threadId: 'x', runId: `y${index}` },
    ]).flat(),
  'results of one message': (bytes) => times(bytes / 240, (index) => [...call(index), result(index)]).flat(),
  'thoughts of older servers': (bytes) =>
    times(bytes / 200, () => [
      { type: 'THINKING_START' },
      { type: 'THINKING_TEXT_MESSAGE_START' },
      { type: 'THINKING_TEXT_MESSAGE_CONTENT', delta: 'x' },
      { type: 'THINKING_TEXT_MESSAGE_END' },
      { type: 'THINKING_END' },
    ]).flat(),
  'a snapshot of parts of older servers': (bytes) => [
    {
      type: 'MESSAGES_SNAPSHOT',
      messages: times(bytes / 200, (index) => ({
        id: `m${index}`,
        role: 'user',
        content: times(2, () => ({ type: 'binary', mimeType: 'image/png', data: 'eA==', filename: 'x' })),
      })),
    },
  ],
}

const of = (adapter: AdapterStream['adapter'], forms: Readonly<Record<string, AdapterStream['events']>>) =>
  Object.entries(forms).map(([name, events]): AdapterStream => ({ name, adapter, events }))

export const adapterStreams: readonly AdapterStream[] = [
  ...of('AI SDK', ofAiSdk),
  ...of('LangGraph', ofLangGraph),
  ...of('TanStack', ofTanStack),
]
