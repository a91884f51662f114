import { ChatClient, stream } from '@countersign/client'
import { statePatch } from '@countersign/client/state-patch'
import type { AGUIEvent } from '@countersign/core'
import { beforeEach, expect, test, vi } from 'vitest'

// In production a plain chat is read without the strict reader, and options are not checked.
beforeEach(() => void vi.stubEnv('NODE_ENV', 'production'))

type Script = (run: { threadId: string; runId: string }) => readonly unknown[]

function openChat(script: Script) {
  const warnings: string[] = []
  const connection = stream(async function* ({ threadId, runId }) {
    yield script({ threadId, runId }) as AGUIEvent[]
  } as Parameters<typeof stream>[0])
  const chat = new ChatClient({
    connection,
    threadId: 't',
    statePatch,
    onWarning: (message) => warnings.push(message),
  })
  return { chat, warnings }
}

const said = [
  { type: 'TEXT_MESSAGE_START', messageId: 'm' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Hello' },
]
const over = [{ type: 'TEXT_MESSAGE_END', messageId: 'm' }]

test('a plain chat is read', async () => {
  const { chat } = openChat((run) => [
    { type: 'RUN_STARTED', ...run },
    ...said,
    ...over,
    { type: 'RUN_FINISHED', ...run },
  ])
  expect(await chat.sendMessage('hi')).toEqual({ status: 'sent' })
  expect(chat.getSnapshot().messages.at(-1)?.parts).toEqual([{ type: 'text', text: 'Hello' }])
})

test('shared state, a subagent and chunks in the middle of an answer are taken in their order', async () => {
  const { chat, warnings } = openChat((run) => [
    { type: 'RUN_STARTED', ...run },
    ...said,
    { type: 'STATE_SNAPSHOT', snapshot: { n: 1 } },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: ', world' },
    { type: 'STATE_DELTA', delta: [{ op: 'replace', path: '/n', value: 2 }] },
    ...over,
    { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'helper' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'n', delta: 'Done', subagentRunId: 's' },
    { type: 'SUBAGENT_FINISHED', subagentRunId: 's' },
    { type: 'RUN_FINISHED', ...run },
  ])
  expect(await chat.sendMessage('hi')).toEqual({ status: 'sent' })
  const { messages, state } = chat.getSnapshot()
  expect(messages.slice(1).map(({ parts }) => parts)).toEqual([
    [{ type: 'text', text: 'Hello, world' }],
    [{ type: 'text', text: 'Done' }],
  ])
  expect(messages[2]?.metadata?.subagent).toEqual({ id: 's', name: 'helper' })
  expect(state).toEqual({ n: 2 })
  expect(warnings).toEqual([])
})

test('a stream that breaks AG-UI fails with the same error as in development', async () => {
  const broken: readonly Script[] = [
    (run) => [{ type: 'RUN_STARTED', ...run }, ...over],
    (run) => [{ type: 'RUN_STARTED', ...run }, ...said],
    (run) => [{ type: 'RUN_STARTED', ...run }, ...said, { type: 'RUN_FINISHED', ...run }],
    (run) => [{ type: 'RUN_STARTED', ...run, threadId: 'another' }],
    (run) => [
      { type: 'RUN_STARTED', ...run },
      { type: 'TEXT_MESSAGE_START', messageId: 1 },
    ],
    () => said,
  ]
  for (const script of broken) {
    vi.stubEnv('NODE_ENV', 'production')
    const there = await openChat(script).chat.sendMessage('hi')
    vi.stubEnv('NODE_ENV', 'test')
    const here = await openChat(script).chat.sendMessage('hi')
    expect(here.status).toBe('failed')
    expect(there).toEqual(here)
  }
})

test('a snapshot of the server takes the place of what is there', async () => {
  const { chat } = openChat((run) => [
    { type: 'RUN_STARTED', ...run },
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u', role: 'user', content: 'hi' }] },
    { type: 'RUN_FINISHED', ...run },
  ])
  await chat.sendMessage('hi')
  expect(chat.getSnapshot().messages.map(({ id }) => id)).toEqual(['u'])
})
