import type { UIMessage } from '@countersign/client'
import { event, gated, resolve, scriptedConnection } from '@countersign/testing'
import { verified } from '@countersign/testing/suites'
import { describe, expect, test } from 'vitest'
import { failOnUnhandledRejections, linesOf, openClient, saying } from './open-chat.js'

failOnUnhandledRejections()

describe('a message whose id was used before', () => {
  const start = (messageId: string) => event({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
  const delta = (messageId: string, words: string) =>
    event({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: words })
  const end = (messageId: string) => event({ type: 'TEXT_MESSAGE_END', messageId })
  const say = (messageId: string, words: string) => [
    start(messageId),
    delta(messageId, words),
    end(messageId),
  ]

  const chat = (
    runs: Parameters<typeof scriptedConnection>[0],
    initialMessages: readonly UIMessage[] = [],
  ) => {
    const told: unknown[] = []
    const server = scriptedConnection(runs)
    const client = openClient({
      connection: verified(server),
      initialMessages,
      onWarning: (warning) => told.push(warning),
      onError: (error) => told.push(error),
    })
    return { client, server, told }
  }

  test('by an earlier turn is a message of its own at the end, in every turn', async () => {
    const { client, server, told } = chat(['one', 'two', 'three'].map((words) => say('m1', words)))
    for (const question of ['q1', 'q2', 'q3']) await client.sendMessage(question)
    const lines = ['user: q1', 'assistant: one', 'user: q2', 'assistant: two', 'user: q3', 'assistant: three']
    expect(linesOf(client)).toEqual(lines)
    const { messages } = client.getSnapshot()
    expect(new Set(messages.map(({ id }) => id)).size).toBe(6)
    expect(messages[1]?.id).toBe('m1')
    expect(server.requests[2]?.messages.map(({ content }) => content)).toEqual([
      'q1',
      'one',
      'q2',
      'two',
      'q3',
    ])
    expect(told).toEqual([])
  })

  test('by what the user said is a message of its own, not lost', async () => {
    const { client, told } = chat([say('m1', 'one'), say('m1', 'two')], [saying('m1', 'old')])
    await client.sendMessage('q1')
    await client.sendMessage('q2')
    const lines = ['user: old', 'user: q1', 'assistant: one', 'user: q2', 'assistant: two']
    expect(linesOf(client)).toEqual(lines)
    expect(told).toEqual([])
  })

  test('takes along what names it: its reasoning, its sources, its calls, and what is said after them', async () => {
    const run = (n: number) => [
      event({ type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning' }),
      event({ type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: `think ${n}` }),
      event({ type: 'REASONING_MESSAGE_END', messageId: 'r1' }),
      ...say('m1', `look ${n}`),
      event({ type: 'CUSTOM', name: 'source', value: { messageId: 'm1', id: `s${n}` } }),
      event({ type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'look', parentMessageId: 'm1' }),
      event({ type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' }),
      event({ type: 'TOOL_CALL_END', toolCallId: 'c1' }),
      event({ type: 'TOOL_CALL_RESULT', messageId: `t${n}`, toolCallId: 'c1', content: 'seen' }),
      ...say('m1', `found ${n}`),
    ]
    const { client, told } = chat([run(1), run(2)])
    await client.sendMessage('q1')
    await client.sendMessage('q2')
    const answer = (n: number) => `assistant: think ${n}|look ${n}|source|tool-call|tool-result|found ${n}`
    expect(linesOf(client)).toEqual(['user: q1', answer(1), 'user: q2', answer(2)])
    expect(told).toEqual([])
  })

  test('in the same turn goes on, also in the run that takes the answer to a question', async () => {
    const { client, told } = chat([
      [...say('m1', 'I will ask.'), gated(1)],
      [resolve(), ...say('m1', 'Deleted.')],
    ])
    await client.sendMessage('go')
    const [asked] = client.getSnapshot().pendingApprovals
    await client.addToolApprovalResponse({ id: asked?.approval.id ?? '', approved: true })
    const { messages } = client.getSnapshot()
    expect(messages.filter(({ id }) => id.startsWith('m1')).map(({ id }) => id)).toEqual(['m1'])
    expect(linesOf(client).filter((line) => line.includes('I will ask.|'))).toHaveLength(1)
    expect(linesOf(client).join()).toContain('Deleted.')
    expect(told).toEqual([])
  })

  test('does so too where the conversation was loaded, and the answers of a later load stay apart', async () => {
    const first = chat([say('m1', 'one'), say('m1', 'two')])
    await first.client.sendMessage('q1')
    await first.client.sendMessage('q2')
    const again = chat([say('m1', 'three')], first.client.getSnapshot().messages)
    await again.client.sendMessage('q3')
    expect(linesOf(again.client).slice(-3)).toEqual(['assistant: two', 'user: q3', 'assistant: three'])
    expect(again.told).toEqual([])
  })
})
