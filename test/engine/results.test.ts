import { randomUUID } from 'node:crypto'
import { type AGUIEvent, type Message, type RunAgentInput, toAGUIMessages } from '@countersign/core'
import {
  type AgentOptions,
  createAgent,
  handleChat,
  isSuccess,
  loadThread,
  type Model,
  type ModelMessage,
  memoryThreads,
  tool,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'

const context = { subject: 'ann' }
const threadId = 't'

/** The model calls the tool three times at once, and then says how many rows it sees. */
function setUp(more: Partial<AgentOptions>, result: (n: number) => unknown) {
  const model: Model = {
    id: 'test/m',
    async *stream({ messages }) {
      const results = messages.filter(({ role }) => role === 'tool')
      if (results.length > 0) yield { type: 'text-delta', delta: seen(results) }
      else
        for (const n of [1, 2, 3])
          yield { type: 'tool-call', id: `c${n}`, name: 'read', arguments: JSON.stringify({ n }) }
      yield { type: 'finish', reason: results.length > 0 ? 'stop' : 'tool_calls' }
    },
  }
  const read = tool({
    name: 'read',
    description: 'Reads a page.',
    input: z.object({ n: z.number() }),
    execute: ({ n }) => result(n),
  })
  return createAgent({ model, tools: [read], warn: () => {}, ...more })
}

async function send(agent: ReturnType<typeof setUp>): Promise<AGUIEvent[]> {
  const runId = randomUUID()
  const messages: Message[] = [{ id: `u-${runId}`, role: 'user', content: 'Read them.' }]
  const input: RunAgentInput = {
    threadId,
    runId,
    protocolVersion: '1.0',
    messages,
    tools: [],
    context: [],
    forwardedProps: { countersign: { serverHistory: true } },
  }
  const body = JSON.stringify(input)
  const headers = { 'content-type': 'application/json' }
  const request = new Request('http://localhost/chat', { method: 'POST', headers, body })
  const response = await handleChat(agent, request, { context })
  const text = await response.text()
  expect(text).toContain('data: ')
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
}

const seen = (messages: readonly ModelMessage[]) => {
  const rows = messages.flatMap((message) =>
    message.role === 'tool'
      ? message.content.flatMap((part) =>
          part.type === 'tool-result' && isSuccess(part.outcome) ? part.outcome.value : [],
        )
      : [],
  )
  return `${rows.length} rows`
}

const resultsOf = (all: readonly object[]) =>
  all.flatMap((one) => ('role' in one && 'content' in one && one.role === 'tool' ? String(one.content) : []))
const share = { perOwner: 100_000, total: 1_000_000 }

test('a result for which there is no room is dropped as soon as its tool has ended, and its call is stored as one that has run', async () => {
  const threads = memoryThreads()
  const agent = setUp({ threads, limits: { runBytes: share } }, (n) => String(n).repeat(20_000))
  const events = await send(agent)
  expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'too-many-runs' })
  const stored = await loadThread(agent, { subject: context.subject, threadId })
  const told = resultsOf(toAGUIMessages(stored?.messages ?? []))
  expect(told.map((text) => text.length > 19_000)).toEqual([true, false, false])
  for (const text of told.slice(1)) expect(text).toContain('The tool read ran, but its result is not kept')
  // the reader has what is stored
  expect(resultsOf(events.filter(({ type }) => type === 'TOOL_CALL_RESULT'))).toEqual(told)
})

test('short results find room where long ones do not, until they would be sent', async () => {
  const threads = memoryThreads()
  const agent = setUp({ threads, limits: { runBytes: share } }, (n) =>
    n === 1 ? 'x'.repeat(24_900) : `paid as invoice ${n}. `.repeat(20),
  )
  const events = await send(agent)
  expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'too-many-runs' })
  const stored = await loadThread(agent, { subject: context.subject, threadId })
  expect(resultsOf(toAGUIMessages(stored?.messages ?? [])).slice(1)).toEqual(
    [2, 3].map((n) => `paid as invoice ${n}. `.repeat(20)),
  )
})

test('long results that fit are kept whole, and the model gets them as values', async () => {
  const threads = memoryThreads()
  const rows = Array.from({ length: 4000 }, (_, id) => ({ id, name: `row ${id}` }))
  const agent = setUp({ threads }, () => rows)
  const events = await send(agent)
  expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED' })
  expect(events).toContainEqual(expect.objectContaining({ delta: '12000 rows' }))
  const stored = await loadThread(agent, { subject: context.subject, threadId })
  expect(resultsOf(toAGUIMessages(stored?.messages ?? [])).map((text) => JSON.parse(text))).toEqual([
    rows,
    rows,
    rows,
  ])
})
