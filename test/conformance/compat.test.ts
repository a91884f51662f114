import { ChatClient, stream } from '@countersign/client'
import type { RunAgentInput, UIMessage } from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { type CompatOptions, compat, upgradeMessages } from '@countersign/tanstack'
import { expect, onTestFinished, test } from 'vitest'

const run = { threadId: 't1', runId: 'r1' }
const started = { type: 'RUN_STARTED', ...run }
const finished = { type: 'RUN_FINISHED', ...run }
const said = [
  { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Hello.' },
  { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
]

/** Asks a server of old that answers with these events. */
async function ask(
  events: readonly object[],
  options?: CompatOptions | 'without',
  initialMessages: readonly UIMessage[] = [],
) {
  const requests: RunAgentInput[] = []
  const warnings: string[] = []
  const custom: string[] = []
  const ids = ['u1', 'r1']
  const chat = new ChatClient({
    threadId: 't1',
    initialMessages,
    generateId: () => ids.shift() ?? 'more',
    connection: stream((input) => {
      requests.push(input)
      // Not what 1.0 allows: that is the point.
      return replay(events) as AsyncGenerator<never>
    }),
    compat: options === 'without' ? undefined : compat(options),
    onWarning: (message) => warnings.push(message),
    onEvent: (event) => custom.push(event.type),
  })
  onTestFinished(chat.dispose)
  const sent = await chat.sendMessage('Hi.')
  return { sent, chat, warnings, custom, request: requests[0], parts: partsOf(chat) }
}

async function* replay(events: readonly object[]) {
  for (const event of events) yield structuredClone(event)
}

function partsOf(chat: ChatClient) {
  return chat
    .getSnapshot()
    .messages.slice(1)
    .flatMap(({ parts }) => parts.map((part) => ('text' in part ? `${part.type}: ${part.text}` : part.type)))
}

const thinks = [
  { type: 'THINKING_START', title: 'Working' },
  { type: 'THINKING_TEXT_MESSAGE_START' },
  { type: 'THINKING_TEXT_MESSAGE_CONTENT', delta: 'Let me see.' },
  { type: 'THINKING_TEXT_MESSAGE_END' },
  { type: 'THINKING_END' },
]

test('thinking becomes reasoning, each time another, and is warned about once', async () => {
  const { sent, parts, warnings } = await ask([started, ...thinks, ...thinks, ...said, finished])
  expect(sent).toEqual({ status: 'sent' })
  expect(parts).toEqual(['reasoning: Let me see.', 'reasoning: Let me see.', 'text: Hello.'])
  expect(warnings.filter((warning) => warning.startsWith('THINKING_START'))).toHaveLength(1)
})

test('without compat the same stream loses its thinking, with a warning', async () => {
  const { parts, warnings } = await ask([started, ...thinks, ...said, finished], 'without')
  expect(parts).toEqual(['text: Hello.'])
  expect(warnings.join()).toMatch(/THINKING_START/)
})

test('null stands for nothing, except where null is a value', async () => {
  const nulls = [
    { ...started, parentRunId: null, timestamp: null },
    ...said.map((event) => ({ ...event, rawEvent: null, timestamp: null })),
    { type: 'STATE_SNAPSHOT', snapshot: { a: 1 } },
    { type: 'STATE_SNAPSHOT', snapshot: null },
    { type: 'CUSTOM', name: 'mine', value: null },
    { ...finished, result: null, outcome: null },
  ]
  const { sent, chat, custom } = await ask(nulls)
  expect(sent).toEqual({ status: 'sent' })
  expect(chat.getSnapshot().state).toBe(null)
  expect(custom).toEqual(['CUSTOM'])
  expect((await ask(nulls, 'without')).sent).toMatchObject({ status: 'failed' })
})

test('RUN_FINISHED needs no ids', async () => {
  const stream = [started, ...said, { type: 'RUN_FINISHED' }]
  expect((await ask(stream)).sent).toEqual({ status: 'sent' })
  expect((await ask(stream, 'without')).sent).toMatchObject({ status: 'failed' })
  const wrong = [started, ...said, { type: 'RUN_FINISHED', ...run, runId: 'r2' }]
  expect((await ask(wrong)).sent).toMatchObject({ status: 'failed' })
})

test('S4.24 what comes after RUN_FINISHED still lands: it belongs before it', async () => {
  const late = {
    type: 'CUSTOM',
    name: 'source',
    value: { messageId: 'm1', id: 's1', url: 'https://a.example' },
  }
  const { sent, parts } = await ask([started, ...said, finished, late])
  expect(sent).toEqual({ status: 'sent' })
  expect(parts).toEqual(['text: Hello.', 'source'])
  expect((await ask([started, ...said, finished, late], 'without')).sent).toMatchObject({ status: 'failed' })
})

test('a run under other ids than those asked for is taken for it, with a warning; without compat it is refused', async () => {
  const own = { threadId: 'theirs', runId: 'theirs-1' }
  const events = [{ type: 'RUN_STARTED', ...own }, ...said, { type: 'RUN_FINISHED', ...own }]
  const { sent, parts, warnings } = await ask(events)
  expect(sent).toEqual({ status: 'sent' })
  expect(parts).toEqual(['text: Hello.'])
  expect(warnings).toEqual([expect.stringMatching(/other ids than the request/)])
  const other = { type: 'RUN_FINISHED', threadId: 'theirs', runId: 'theirs-2' }
  expect((await ask([events[0] ?? {}, ...said, other])).sent).toMatchObject({ status: 'failed' })
  expect((await ask(events, 'without')).sent).toMatchObject({ status: 'failed' })
})

test('a late RUN_ERROR is still an error, and a second run still begins', async () => {
  const failed = await ask([started, ...said, finished, { type: 'RUN_ERROR', message: 'broken' }])
  expect(failed.sent).toMatchObject({ status: 'failed' })
  const second = { ...run, runId: 'r2' }
  const again = [
    { type: 'RUN_STARTED', ...second },
    { ...said[0], messageId: 'm2' },
    { ...said[1], messageId: 'm2' },
    { ...said[2], messageId: 'm2' },
    { type: 'RUN_FINISHED', ...second },
  ]
  const { sent, parts } = await ask([started, ...said, finished, ...again])
  expect(sent).toEqual({ status: 'sent' })
  expect(parts).toEqual(['text: Hello.', 'text: Hello.'])
})

test('a truncated stream is an error, unless the option says that this server never ends one', async () => {
  expect((await ask([started, ...said])).sent).toMatchObject({ status: 'failed' })
  const { sent, warnings } = await ask([started, ...said], { acceptUnfinished: true })
  expect(sent).toEqual({ status: 'sent' })
  expect(warnings.join()).toMatch(/without RUN_FINISHED/)
  const inside = [started, ...said.slice(0, 2)]
  expect((await ask(inside, { acceptUnfinished: true })).sent).toMatchObject({ status: 'failed' })
  const broken = [started, { type: 'RUN_ERROR', message: 'broken' }]
  expect((await ask(broken, { acceptUnfinished: true })).sent).toMatchObject({ status: 'failed' })
  expect((await ask([], { acceptUnfinished: true })).sent).toMatchObject({ status: 'failed' })
})

test('a request has what 0.x requires, and not what it does not know', async () => {
  const { request } = await ask([started, ...said, finished])
  expect(request).toMatchObject({ state: {}, context: [], tools: [], forwardedProps: {} })
  expect(request).not.toHaveProperty('protocolVersion')
})

const image = { type: 'image', source: { type: 'url', value: 'https://a.example/cat.png' } } as const
const history = fromAGUIMessages([
  { id: 'h1', role: 'user', content: [{ type: 'text', text: 'Look.' }, image] },
  { id: 'h2', role: 'reasoning', content: 'A cat.' },
  { id: 'h3', role: 'assistant', content: 'A cat.', subagentRunId: 's1' },
])

test('what is sent and taken depends on the version', async () => {
  const seen = async (version?: string) => {
    const subagent = { subagentRunId: 's2' }
    const stream = [
      started,
      { type: 'SUBAGENT_STARTED', ...subagent, name: 'reader' },
      ...said.map((event) => ({ ...event, ...subagent })),
      { type: 'SUBAGENT_FINISHED', ...subagent },
      finished,
    ]
    const { sent, request, chat } = await ask(stream, { version }, history)
    expect(sent).toEqual({ status: 'sent' })
    const messages = request?.messages ?? []
    const told = chat.getSnapshot().messages.at(-1)?.metadata?.subagent
    return {
      content: messages[0]?.content,
      reasoning: messages.some(({ role }) => role === 'reasoning'),
      owner: messages.find(({ id }) => id === 'h3')?.subagentRunId,
      told: told !== undefined,
    }
  }
  const content = [{ type: 'text', text: 'Look.' }, image]
  expect(await seen()).toEqual({ content, reasoning: true, owner: 's1', told: true })
  expect(await seen('0.0.58')).toEqual({ content, reasoning: true, owner: 's1', told: true })
  expect(await seen('0.0.57')).toEqual({ content, reasoning: true, owner: undefined, told: false })
  expect(await seen('0.0.45')).toEqual({ content, reasoning: false, owner: undefined, told: false })
  expect(await seen('0.0.39')).toEqual({ content: 'Look.', reasoning: false, owner: undefined, told: false })
  expect(await seen('0.0.9')).toMatchObject({ content: 'Look.' })
  expect(await seen('1.0')).toMatchObject({ content, told: true })
})

test('a version that is none is told at once', () => {
  expect(() => compat({ version: 'latest' })).toThrow(/version has to be one such as "0.0.45": latest/)
})

test('a binary part becomes what 1.0 has for its type', () => {
  const parts = [
    { type: 'binary', mimeType: 'image/png', url: 'https://a.example/cat.png' },
    { type: 'binary', mimeType: 'audio/wav', data: 'AAAA' },
    { type: 'binary', mimeType: 'application/pdf', id: 'file-1', filename: 'a.pdf' },
    { type: 'text', text: 'as it was' },
  ]
  expect(upgradeMessages([{ id: 'u1', role: 'user', content: parts }])).toEqual([
    {
      id: 'u1',
      role: 'user',
      content: [
        { type: 'image', source: { type: 'url', value: 'https://a.example/cat.png', mimeType: 'image/png' } },
        { type: 'audio', source: { type: 'data', value: 'AAAA', mimeType: 'audio/wav' } },
        {
          type: 'document',
          source: { type: 'file', value: 'file-1', mimeType: 'application/pdf' },
          metadata: { filename: 'a.pdf' },
        },
        { type: 'text', text: 'as it was' },
      ],
    },
  ])
})

test('a snapshot with binary parts is taken', async () => {
  const messages = [
    { id: 'u1', role: 'user', content: [{ type: 'binary', mimeType: 'image/png', data: 'AAAA' }] },
  ]
  const { chat } = await ask([started, { type: 'MESSAGES_SNAPSHOT', messages }, finished])
  expect(chat.getSnapshot().messages[0]?.parts).toMatchObject([{ type: 'file', media: 'image' }])
})
