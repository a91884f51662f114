import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AGUIEvent, toAGUIMessages } from '@countersign/core'
import { answerQueue, createAgent, type Model, memoryLedger, type Observe, tool } from '@countersign/server'
import { opentelemetry } from '@countersign/server/opentelemetry'
import { context, SpanStatusCode } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

// The real SDK of OpenTelemetry, with its exporter into memory.

beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()))
afterAll(() => context.disable())

const guide = join(import.meta.dirname, '../../docs/deploy.md')

function setUp(options: { recordContent?: boolean } = {}) {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const tracer = provider.getTracer('test')
  return { tracer, exporter, observe: opentelemetry({ tracer, ...options }) }
}

function createTestAgent(observe: Observe, isFailing = false) {
  const model: Model = {
    id: 'openai/gpt-5',
    async *stream({ messages }) {
      const isFirst = messages.at(-1)?.role === 'user'
      yield { type: 'usage', usage: { inputTokens: isFirst ? 900 : 1000, outputTokens: isFirst ? 60 : 20 } }
      if (!isFirst) {
        if (isFailing) throw new Error('overloaded')
        yield { type: 'text-delta', delta: 'All done: secret-text.' }
        yield { type: 'finish', reason: 'stop' }
        return
      }
      yield { type: 'tool-call', id: 'c1', name: 'find_file', arguments: '{"name":"secret-name"}' }
      yield { type: 'tool-call', id: 'c2', name: 'read_limits', arguments: '{}' }
      yield { type: 'tool-call', id: 'c3', name: 'delete_file', arguments: '{"path":"secret-path"}' }
      yield { type: 'finish', reason: 'tool_calls' }
    },
  }
  const input = z.looseObject({})
  const tools = [
    tool({ name: 'find_file', description: 'Finds.', input, execute: () => 'found: secret-result' }),
    tool({
      ...{ name: 'read_limits', description: 'Reads.', input },
      execute: () => Promise.reject(new Error('secret-error')),
    }),
    tool({
      ...{ name: 'delete_file', description: 'Deletes.', input, needsApproval: true },
      execute: () => ({ deleted: true }),
    }),
  ]
  const approvals = { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() }
  return createAgent({
    ...{ model, tools, observe, approvals, concurrency: 1 },
    ...{ warn: () => {}, onError: () => {} },
  })
}

/** One run with a live channel whose request is approved at once. */
async function runApproved(agent: ReturnType<typeof createTestAgent>): Promise<AGUIEvent[]> {
  const answers = answerQueue()
  const subject = { subject: 'ann' }
  const input = {
    ...{ threadId: 'thread-1', runId: 'run-1', protocolVersion: '1.0' },
    messages: [{ id: 'u1', role: 'user' as const, content: 'Delete secret-question, please.' }],
  }
  const events: AGUIEvent[] = []
  for await (const event of agent.run(input, { context: subject, answers })) {
    events.push(event)
    if (event.type !== 'CUSTOM' || event.name !== 'approval-requested') continue
    const { approval } = event.value as { approval: { id: string; token: string } }
    const metadata = { countersign: { token: approval.token } }
    void answers.put(
      { interruptId: approval.id, status: 'resolved', payload: { approved: true }, metadata },
      subject,
    )
  }
  return events
}

/** The spans as a tree, in the order in which they began, with those of their attributes that are the same in each run. */
function printed(spans: readonly ReadableSpan[]): string {
  const random =
    /^(countersign\.(approval\.id|owner\.hash|first_event_ms)|gen_ai\.(conversation\.id|tool\.type))$/
  const lines = (parent: string | undefined, indent: string): string[] =>
    spans
      .filter((span) => span.parentSpanContext?.spanId === parent)
      .flatMap((span) => {
        const shown = Object.entries(span.attributes).filter(([name]) => !random.test(name))
        const own = shown.map(([name, value]) => `${indent}    ${name} = ${JSON.stringify(value)}`)
        return [`${indent}${span.name}`, ...own, ...lines(span.spanContext().spanId, `${indent}  `)]
      })
  return lines(undefined, '').join('\n')
}

/** The SDK exports spans as they end. Those that began in the same millisecond keep the order of their ids. */
function inOrder(spans: readonly ReadableSpan[], began: readonly string[]): ReadableSpan[] {
  return [...spans].sort(
    (one, other) => began.indexOf(one.spanContext().spanId) - began.indexOf(other.spanContext().spanId),
  )
}

async function spansOfApprovedRun(options: { recordContent?: boolean; isFailing?: boolean } = {}) {
  const { tracer, exporter, observe } = setUp(options)
  const began: string[] = []
  const start = tracer.startSpan.bind(tracer)
  tracer.startSpan = (...args) => {
    const span = start(...args)
    began.push(span.spanContext().spanId)
    return span
  }
  await tracer.startActiveSpan('POST /api/chat', async (request) => {
    await runApproved(createTestAgent(observe, options.isFailing))
    request.end()
  })
  const spans = exporter.getFinishedSpans()
  const [request] = spans.filter(({ name }) => name === 'POST /api/chat')
  return inOrder(spans, [request?.spanContext().spanId ?? '', ...began])
}

test('T34 an approved run is one tree of spans with the attributes of the GenAI conventions: as docs/deploy.md lists them (RECORD_SPANS=1 writes the list)', async () => {
  const listing = printed(await spansOfApprovedRun())
  const page = readFileSync(guide, 'utf8')
  const withListing = page.replace(/```text spans\n[\s\S]*?```/, () => `\`\`\`text spans\n${listing}\n\`\`\``)
  if (process.env.RECORD_SPANS) writeFileSync(guide, withListing)
  expect(readFileSync(guide, 'utf8')).toBe(withListing)
})

test('T34 all spans are of one trace, end, and carry the conversation; an error has a status and a type', async () => {
  const spans = await spansOfApprovedRun({ isFailing: true })
  expect(new Set(spans.map((span) => span.spanContext().traceId)).size).toBe(1)
  expect(spans.every(({ ended }) => ended)).toBe(true)
  const ours = spans.filter(({ name }) => name !== 'POST /api/chat')
  for (const { attributes } of ours) expect(attributes['gen_ai.conversation.id']).toBe('thread-1')
  const failed = ours.filter(({ status }) => status.code === SpanStatusCode.ERROR)
  expect(failed.map(({ name, attributes }) => `${name}: ${attributes['error.type']}`)).toEqual([
    'invoke_agent: model-failed',
    'execute_tool read_limits: tool-failed',
    'chat gpt-5: model-failed',
  ])
})

test('T34 no argument and no text is in a span unless recordContent is set; then they have the attributes of the conventions', async () => {
  const said = (spans: readonly ReadableSpan[]) =>
    JSON.stringify(
      spans.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
    )
  expect(said(await spansOfApprovedRun())).not.toMatch(/secret|ann/)
  const spans = await spansOfApprovedRun({ recordContent: true })
  const all = Object.assign({}, ...spans.map(({ attributes }) => attributes))
  expect(
    Object.keys(all)
      .filter((name) => /messages|call\./.test(name))
      .sort(),
  ).toEqual([
    'gen_ai.input.messages',
    'gen_ai.output.messages',
    'gen_ai.tool.call.arguments',
    'gen_ai.tool.call.id',
    'gen_ai.tool.call.result',
  ])
  const [chat] = spans.filter(({ name }) => name === 'chat gpt-5')
  expect(JSON.parse(String(chat?.attributes['gen_ai.input.messages']))).toEqual([
    { role: 'user', parts: [{ type: 'text', content: 'Delete secret-question, please.' }] },
  ])
  const [output] = JSON.parse(String(chat?.attributes['gen_ai.output.messages']))
  expect(output).toMatchObject({ role: 'assistant', finish_reason: 'tool_calls' })
  expect(output.parts[0]).toEqual({
    ...{ type: 'tool_call', id: 'c1', name: 'find_file' },
    arguments: '{"name":"secret-name"}',
  })
  // The message of an error that a tool threw is for the log of the server.
  expect(said(spans)).not.toContain('secret-error')
})

test('T34 what a tool traces is inside of its span', async () => {
  const { tracer, exporter, observe } = setUp()
  const look = tool({
    ...{ name: 'look', description: 'Looks.', input: z.object({}) },
    execute: async () => {
      await Promise.resolve()
      tracer.startSpan('SELECT').end()
      return 'seen'
    },
  })
  let isFirst = true
  const model: Model = {
    id: 'openai/gpt-5',
    async *stream() {
      tracer.startSpan('POST api.openai.com').end()
      if (isFirst) yield { type: 'tool-call', id: 'c1', name: 'look', arguments: '{}' }
      isFirst = false
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const agent = createAgent({ model, tools: [look], observe, warn: () => {} })
  await agent.generate({ threadId: 't', runId: 'r', messages: [{ id: 'u', role: 'user', content: 'go' }] })
  const spans = exporter.getFinishedSpans()
  const parentOf = (name: string) => {
    const child = spans.find((span) => span.name === name)
    return spans.find((span) => span.spanContext().spanId === child?.parentSpanContext?.spanId)?.name
  }
  expect([parentOf('SELECT'), parentOf('POST api.openai.com'), parentOf('invoke_agent')]).toEqual([
    'execute_tool look',
    'chat gpt-5',
    undefined,
  ])
})

test('T34 a request that stays open is a span until the end of its run; its answer in a later run is an event of that run', async () => {
  const { exporter, observe } = setUp()
  const agent = createTestAgent(observe)
  const input = {
    ...{ threadId: 'thread-1', protocolVersion: '1.0' },
    messages: [{ id: 'u1', role: 'user' as const, content: 'Delete it.' }],
  }
  const { interrupts, messages } = await agent.generate({ ...input, runId: 'run-1' })
  const [asked] = exporter.getFinishedSpans().filter(({ name }) => name === 'approval delete_file')
  expect(asked?.attributes['gen_ai.tool.call.id']).toBe('c3')
  expect(asked?.attributes['countersign.approval.decision']).toBeUndefined()
  const resume = interrupts.map(({ id }) => ({
    ...{ interruptId: id, status: 'resolved' as const, payload: { approved: true } },
  }))
  await agent.generate({ ...input, runId: 'run-2', messages: [...toAGUIMessages(messages)], resume })
  const second = exporter
    .getFinishedSpans()
    .find(({ name, attributes }) => name === 'invoke_agent' && attributes['countersign.run.id'] === 'run-2')
  expect(second?.events).toMatchObject([
    { name: 'countersign.approval-settled', attributes: { 'countersign.approval.decision': 'approve' } },
  ])
})
