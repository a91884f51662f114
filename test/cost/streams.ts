import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { statePatch } from '@countersign/client/state-patch'
import { many, membersOf, one, SHAPES, text, times, type Value } from './shapes.js'

/** Events between the start of a run and its end, as bytes of about the size that is asked for. */
export interface Stream {
  readonly name: string
  readonly events: (bytes: number) => readonly Value[]
}

const started: Value = { type: 'RUN_STARTED', threadId: 'thread', runId: 'run' }
const finished: Value = { type: 'RUN_FINISHED', threadId: 'thread', runId: 'run' }

/** A stream is given the ids of the request that it answers. */
export function sse(events: readonly Value[], { threadId = 'thread', runId = 'run' } = {}): string {
  const ids = { threadId, runId }
  const all = [
    ...(events[0]?.type === 'RUN_STARTED' ? [] : [started]),
    ...events,
    ...(events.at(-1)?.type === 'RUN_FINISHED' || events.at(-1)?.type === 'RUN_ERROR' ? [] : [finished]),
  ]
  return all
    .map(
      (event) =>
        `data: ${JSON.stringify(/^RUN_(STARTED|FINISHED)$/.test(String(event.type)) ? { ...event, ...ids } : event)}\n\n`,
    )
    .join('')
}

const open = (type: string, event: Value): Value =>
  type === 'TOOL_CALL'
    ? { type: 'TOOL_CALL_START', toolCallId: event.toolCallId, toolCallName: 'x' }
    : type === 'REASONING_MESSAGE'
      ? { type: 'REASONING_MESSAGE_START', messageId: event.messageId, role: 'reasoning' }
      : type === 'STEP'
        ? { type: 'STEP_STARTED', stepName: event.stepName }
        : type === 'SUBAGENT'
          ? { type: 'SUBAGENT_STARTED', subagentRunId: event.subagentRunId, name: 'x' }
          : { type: `${type}_START`, messageId: event.messageId }

const ends: Readonly<Record<string, string>> = { STEP: 'STEP_FINISHED', SUBAGENT: 'SUBAGENT_FINISHED' }

const close = (type: string, event: Value): Value => {
  const { toolCallId, messageId, stepName, subagentRunId } = event
  const end = ends[type] ?? `${type}_END`
  return JSON.parse(JSON.stringify({ type: end, toolCallId, messageId, stepName, subagentRunId }))
}

/** The events with what AG-UI wants before and after them. */
function inOrder(type: string, events: readonly Value[]): readonly Value[] {
  const [first = {}] = events
  const [, stem = '', opens, closes] =
    /^(.+)_(?:(START|STARTED)|(END|FINISHED|ERROR)|CONTENT|ARGS)$/.exec(type) ?? []
  if (type.startsWith('RUN_')) return events.slice(0, 1)
  if (opens) return events.flatMap((event) => [event, close(stem, event)])
  if (closes) return events.flatMap((event) => [open(stem, event), event])
  if (stem !== '') return [open(stem, first), ...events, close(stem, first)]
  if (type === 'TOOL_CALL_RESULT')
    return events.flatMap((event) => [open('TOOL_CALL', event), close('TOOL_CALL', event), event])
  if (type === 'ACTIVITY_DELTA')
    return [
      { type: 'ACTIVITY_SNAPSHOT', messageId: first.messageId, activityType: 'x', content: { x: 1 } },
      ...events,
    ]
  if (type === 'STATE_DELTA') return [{ type: 'STATE_SNAPSHOT', snapshot: { x: 1 } }, ...events]
  if (type === 'REASONING_ENCRYPTED_VALUE')
    return events.flatMap((event) => {
      const thought = { messageId: event.entityId }
      return [
        open('REASONING_MESSAGE', thought),
        close('REASONING_MESSAGE', thought),
        { ...event, subtype: 'message' },
      ]
    })
  return events
}

function generated(): Stream[] {
  return membersOf('event').flatMap((member) =>
    SHAPES.flatMap((shape): Stream[] => {
      const events = (bytes: number): readonly Value[] | undefined => {
        if (shape === 'often' || shape === 'repeated')
          return inOrder(member.value, many(member, shape, bytes / 2))
        const single = one(member, shape, 'i', bytes)
        return single && inOrder(member.value, [single])
      }
      const name = `${member.value}, ${shape}`
      return events(1000) === undefined ? [] : [{ name, events: (bytes) => events(bytes) ?? [] }]
    }),
  )
}

const call = (id: string, more: Value = {}): Value[] => [
  { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'x', ...more },
  { type: 'TOOL_CALL_END', toolCallId: id },
]
const asked = (id: string, toolCallId = id): Value => ({
  type: 'CUSTOM',
  name: 'approval-requested',
  value: { toolCallId, toolName: 'x', approval: { id: `a${id}`, options: ['deny', 'once'] } },
})
const activity: Value = { activityType: 'x', content: {} }

const metadata = (index: number): Value => ({ metadata: { [`key${index}`]: index } })

/** What no single kind of event shows. */
const combined: readonly Stream[] = [
  {
    name: 'calls whose arguments are replaced at their end',
    events: (bytes) =>
      inOrder(
        'TOOL_CALL_END',
        times(bytes / 200, (index) => ({
          type: 'TOOL_CALL_END',
          toolCallId: `c${index}`,
          metadata: { countersign: { arguments: '{"text":"x"}' } },
        })),
      ),
  },
  {
    name: 'metadata that grows with each piece of a text',
    events: (bytes) =>
      inOrder(
        'TEXT_MESSAGE_CONTENT',
        times(bytes / 100, (index) => ({
          type: 'TEXT_MESSAGE_CONTENT',
          messageId: 'm',
          delta: 'x',
          ...metadata(index),
        })),
      ),
  },
  {
    name: 'metadata that grows with each piece of a thought',
    events: (bytes) =>
      inOrder(
        'REASONING_MESSAGE_CONTENT',
        times(bytes / 100, (index) => ({
          type: 'REASONING_MESSAGE_CONTENT',
          messageId: 'm',
          delta: 'x',
          ...metadata(index),
        })),
      ),
  },
  {
    name: 'metadata that grows with each piece of arguments',
    events: (bytes) =>
      inOrder(
        'TOOL_CALL_ARGS',
        times(bytes / 100, (index) => ({
          type: 'TOOL_CALL_ARGS',
          toolCallId: 'c',
          delta: '',
          ...metadata(index),
        })),
      ),
  },
  {
    name: 'a structured text that is started and ended again and again',
    events: (bytes) => [
      { type: 'TEXT_MESSAGE_START', messageId: 'm', metadata: { countersign: { output: 'partial' } } },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: '[' },
      ...times(bytes / 350, (index) => [
        { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: '1,' },
        {
          type: 'TEXT_MESSAGE_END',
          messageId: 'm',
          ...(index % 2 && { metadata: { countersign: { output: {} } } }),
        },
        { type: 'CUSTOM', name: 'source', value: { messageId: 'm', id: `s${index}` } },
        { type: 'TEXT_MESSAGE_START', messageId: 'm', metadata: { countersign: { output: 'partial' } } },
      ]).flat(),
      { type: 'TEXT_MESSAGE_END', messageId: 'm', metadata: { countersign: { output: true } } },
    ],
  },
  {
    name: 'metadata of a message that grows',
    events: (bytes) =>
      times(bytes / 100, (index) => ({
        type: 'CUSTOM',
        name: 'message-metadata',
        value: { messageId: 'm', ...metadata(index) },
      })),
  },
  {
    name: 'messages that are taken back, after many that stay',
    events: (bytes) => [
      ...times(bytes / 200, (index) => ({ type: 'ACTIVITY_SNAPSHOT', messageId: `s${index}`, ...activity })),
      ...times(bytes / 400, (index) => [
        { type: 'ACTIVITY_SNAPSHOT', messageId: `d${index}`, ...activity },
        { type: 'CUSTOM', name: 'messages-dropped', value: { messageId: `d${index}` } },
      ]).flat(),
    ],
  },
  {
    name: 'progress of a call with many calls beside it',
    events: (bytes) => [
      ...times(Math.min(500, bytes / 400), (index) => ({
        ...{ type: 'TOOL_CALL_START', toolCallId: `c${index}` },
        ...{ toolCallName: 'x', parentMessageId: 'm' },
      })),
      ...times(bytes / 160, (index) => ({
        ...{ type: 'CUSTOM', name: 'tool-progress' },
        value: { toolCallId: `c${index % 500}`, toolName: 'x', data: { index, text: 'half done' } },
      })),
    ],
  },
  {
    name: 'metadata of an activity that grows',
    events: (bytes) => [
      { type: 'ACTIVITY_SNAPSHOT', messageId: 'm', activityType: 'x', content: {} },
      ...times(bytes / 140, (index) => ({
        type: 'ACTIVITY_SNAPSHOT',
        messageId: 'm',
        activityType: 'x',
        content: {},
        replace: false,
        ...metadata(index),
      })),
    ],
  },
  {
    name: 'a list that grows by deltas of the state',
    events: (bytes) => [
      { type: 'STATE_SNAPSHOT', snapshot: { list: [] } },
      ...times(bytes / 80, () => ({
        type: 'STATE_DELTA',
        delta: [{ op: 'add', path: '/list/-', value: 1 }],
      })),
    ],
  },
  {
    name: 'small deltas of a large state',
    events: (bytes) => [
      { type: 'STATE_SNAPSHOT', snapshot: { n: 0, list: times(bytes / 2 / 6, (index) => index) } },
      ...times(bytes / 2 / 80, (index) => ({
        type: 'STATE_DELTA',
        delta: [{ op: 'replace', path: '/n', value: index }],
      })),
    ],
  },
  {
    name: 'small deltas of a large activity',
    events: (bytes) => [
      {
        type: 'ACTIVITY_SNAPSHOT',
        messageId: 'm',
        activityType: 'x',
        content: { n: 0, list: times(bytes / 2 / 6, (index) => index) },
      },
      ...times(bytes / 2 / 120, (index) => ({
        type: 'ACTIVITY_DELTA',
        messageId: 'm',
        activityType: 'x',
        patch: [{ op: 'replace', path: '/n', value: index }],
      })),
    ],
  },
  {
    name: 'a state that doubles by copies of itself',
    events: (bytes) => [
      { type: 'STATE_SNAPSHOT', snapshot: { a: { x: 1 } } },
      ...times(bytes / 90, () => ({
        type: 'STATE_DELTA',
        delta: [{ op: 'copy', from: '/a', path: '/a/b' }],
      })),
    ],
  },
  {
    name: 'the first items of a list taken out one by one',
    events: (bytes) => [
      { type: 'STATE_SNAPSHOT', snapshot: { list: times(bytes / 80, (index) => index) } },
      ...times(bytes / 80, () => ({ type: 'STATE_DELTA', delta: [{ op: 'remove', path: '/list/0' }] })),
    ],
  },
  {
    name: 'subagents that all speak in chunks',
    events: (bytes) => [
      ...times(bytes / 250, (index) => ({ type: 'SUBAGENT_STARTED', subagentRunId: `s${index}`, name: 'x' })),
      ...times(bytes / 250, (index) => ({
        type: 'TEXT_MESSAGE_CHUNK',
        messageId: `m${index}`,
        subagentRunId: `s${index}`,
        delta: 'x',
      })),
      ...times(bytes / 250, (index) => ({ type: 'SUBAGENT_FINISHED', subagentRunId: `s${index}` })),
    ],
  },
  {
    name: 'subagents that each have one above',
    events: (bytes) => [
      ...times(bytes / 200, (index) => ({
        type: 'SUBAGENT_STARTED',
        subagentRunId: `s${index}`,
        name: 'x',
        ...(index > 0 && { parentSubagentRunId: `s${index - 1}` }),
      })),
      ...times(bytes / 200, (index) => ({ type: 'SUBAGENT_FINISHED', subagentRunId: `s${index}` })),
    ],
  },
  {
    name: 'sources of one message',
    events: (bytes) =>
      times(bytes / 90, (index) => ({
        type: 'CUSTOM',
        name: 'source',
        value: { messageId: 'm', id: `s${index}` },
      })),
  },
  {
    name: 'questions about calls',
    events: (bytes) => times(bytes / 300, (index) => [...call(`c${index}`), asked(`c${index}`)]).flat(),
  },
  {
    name: 'questions in the order in which they come last',
    events: (bytes) => {
      const calls = times(bytes / 300, (index) => `c${index}`)
      return [...calls.flatMap((id) => call(id)), ...calls.toReversed().map((id) => asked(id))]
    },
  },
  {
    name: 'questions that are answered elsewhere, the last ones first',
    events: (bytes) => {
      const calls = times(bytes / 400, (index) => `c${index}`)
      return [
        ...calls.flatMap((id) => [...call(id), asked(id)]),
        ...calls
          .toReversed()
          .map((id) => ({ type: 'TOOL_CALL_RESULT', messageId: `r${id}`, toolCallId: id, content: 'x' })),
      ]
    },
  },
  {
    name: 'refusals',
    events: (bytes) => [
      ...call('c'),
      asked('c'),
      ...times(bytes / 130, () => ({
        type: 'CUSTOM',
        name: 'approval-refused',
        value: { approvalId: 'ac', toolCallId: 'c', code: 'approval-malformed', message: 'x' },
      })),
    ],
  },
  {
    name: 'results that come again while other calls are open',
    events: (bytes) => [
      ...times(bytes / 300, (index) => call(`c${index}`)).flat(),
      ...call('c'),
      ...times(bytes / 200, (index) => ({
        type: 'TOOL_CALL_RESULT',
        messageId: `r${index}`,
        toolCallId: 'c',
        content: 'x',
      })),
    ],
  },
  {
    name: 'interrupts of an open run',
    events: (bytes) =>
      times(bytes / 100, (index) => ({
        type: 'CUSTOM',
        name: 'interrupt-requested',
        value: { id: `i${index}`, reason: 'x' },
      })),
  },
  {
    name: 'interrupts of an open run that close',
    events: (bytes) =>
      times(bytes / 180, (index) => [
        { type: 'CUSTOM', name: 'interrupt-requested', value: { id: `i${index}`, reason: 'x' } },
        { type: 'CUSTOM', name: 'interrupt-closed', value: { id: `i${index}` } },
      ]).flat(),
  },
  {
    name: 'client tools that are handed out',
    events: (bytes) =>
      times(bytes / 200, (index) => [
        ...call(`c${index}`),
        { type: 'CUSTOM', name: 'client-tool-ready', value: { toolCallId: `c${index}`, input: {} } },
      ]).flat(),
  },
  {
    name: 'provider content for results',
    events: (bytes) =>
      times(bytes / 400, (index) => [
        ...call(`c${index}`),
        { type: 'TOOL_CALL_RESULT', messageId: `r${index}`, toolCallId: `c${index}`, content: 'x' },
        { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: `r${index}`, encryptedValue: 'x' },
      ]).flat(),
  },
  {
    name: 'provider content for a message of very many members',
    events: (bytes) => [
      {
        type: 'TEXT_MESSAGE_START',
        messageId: 'm',
        metadata: Object.fromEntries(times(bytes / 28, (index) => [`key${index}`, 1])),
      },
      { type: 'TEXT_MESSAGE_END', messageId: 'm' },
      ...times(bytes / 240, () => ({
        type: 'REASONING_ENCRYPTED_VALUE',
        subtype: 'message',
        entityId: 'm',
        encryptedValue: 'x',
      })),
    ],
  },
  {
    name: 'interrupts at the end of a run',
    events: (bytes) => [
      {
        ...finished,
        outcome: {
          type: 'interrupt',
          interrupts: times(bytes / 40, (index) => ({ id: `i${index}`, reason: 'x' })),
        },
      },
    ],
  },
  {
    name: 'interrupts at the end of a run that ask about its calls',
    events: (bytes) => [
      ...times(bytes / 200, (index) => call(`c${index}`)).flat(),
      {
        ...finished,
        outcome: {
          type: 'interrupt',
          interrupts: times(bytes / 200, (index) => ({
            id: `i${index}`,
            reason: 'tool_call',
            toolCallId: `c${index}`,
          })),
        },
      },
    ],
  },
  {
    name: 'calls left to the client',
    events: (bytes) => [
      ...times(bytes / 200, (index) => call(`c${index}`)).flat(),
      {
        ...finished,
        outcome: { type: 'success', pendingToolCallIds: times(bytes / 200, (index) => `c${index}`) },
      },
    ],
  },
  {
    name: 'arguments in single characters',
    events: (bytes) =>
      inOrder(
        'TOOL_CALL_ARGS',
        [...`[${times(bytes / 130, () => '1').join(',')}]`].map((delta) => ({
          type: 'TOOL_CALL_ARGS',
          toolCallId: 'c',
          delta,
        })),
      ),
  },
  {
    name: 'deep arguments in single characters',
    events: (bytes) =>
      inOrder(
        'TOOL_CALL_ARGS',
        [...text(bytes / 65).replaceAll('x', '[')].map((delta) => ({
          type: 'TOOL_CALL_ARGS',
          toolCallId: 'c',
          delta,
        })),
      ),
  },
  {
    name: 'a call that is streamed again and again',
    events: (bytes) => [
      ...call('c'),
      ...times(bytes / 220, () => [
        { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'x', parentMessageId: 'c' },
        { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: 'x' },
        { type: 'TOOL_CALL_END', toolCallId: 'c' },
      ]).flat(),
    ],
  },
  {
    name: 'a snapshot with an order of parts',
    events: (bytes) => [
      {
        type: 'MESSAGES_SNAPSHOT',
        messages: [
          {
            id: 'm',
            role: 'assistant',
            content: text(bytes / 3),
            metadata: { countersign: { order: times(bytes / 3, () => 1) } },
          },
        ],
      },
    ],
  },
  {
    name: 'a snapshot with thoughts of others before one message',
    events: (bytes) => [
      {
        type: 'MESSAGES_SNAPSHOT',
        messages: times(bytes / 120, (index) => [
          { id: `r${index}`, role: 'reasoning', content: 'x', subagentRunId: `s${index}` },
          { id: `m${index}`, role: 'assistant', content: 'x', subagentRunId: 't' },
        ]).flat(),
      },
    ],
  },
  {
    name: 'a snapshot of calls and results of one id',
    events: (bytes) => [
      {
        type: 'MESSAGES_SNAPSHOT',
        messages: [
          {
            id: 'm',
            role: 'assistant',
            toolCalls: times(bytes / 130, () => ({
              id: 'c',
              type: 'function',
              function: { name: 'x', arguments: '' },
            })),
          },
          ...times(bytes / 130, (index) => ({
            id: `r${index}`,
            role: 'tool',
            toolCallId: 'c',
            content: 'x',
          })),
        ],
      },
    ],
  },
  {
    name: 'snapshots of questions under changing messages',
    events: (bytes) => [
      ...times(bytes / 600, (index) => [...call(`c${index}`), asked(`c${index}`)]).flat(),
      {
        type: 'MESSAGES_SNAPSHOT',
        messages: times(bytes / 600, (index) => ({
          id: `n${index}`,
          role: 'assistant',
          toolCalls: [{ id: `c${index}`, type: 'function', function: { name: 'x', arguments: '' } }],
        })),
      },
    ],
  },
]

export const streams: readonly Stream[] = [...generated(), ...combined]

/** Bytes as a network brings them. */
export function bodyOf(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.subarray(at, at + 65_536))
      at += 65_536
    },
  })
}

const utf8 = new TextEncoder()

/** A page that shows all that comes: a client reads the stream and then sends its next request. */
export async function readByClient(
  stream: Uint8Array,
  onError: (error: unknown) => void = () => {},
): Promise<void> {
  let requests = 0
  const fetch = async (_: unknown, init?: RequestInit) => {
    const { runId } = JSON.parse(String(init?.body))
    // the ids are of the request, which the stream was made before
    const body = requests++ === 0 ? stream : utf8.encode(sse([], { runId }))
    return new Response(bodyOf(body), { headers: { 'content-type': 'text/event-stream' } })
  }
  let next = 0
  const client = new ChatClient({
    threadId: 'thread',
    connection: fetchServerSentEvents('http://localhost/chat', { fetch }),
    statePatch,
    generateId: () => (next++ === 1 ? 'run' : `own${next}`),
    onError,
    onWarning: () => {},
  })
  client.subscribe(() => client.getSnapshot())
  await client.sendMessage('go')
  client.getSnapshot()
  await client.sendMessage('again')
  client.dispose()
}
