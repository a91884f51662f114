// The chat routes that server workloads compare, each as an application would write it. Their models say the same deltas, in the same reads.
import { createAgent, handleChat, memoryLedger, memoryRunLog } from '@countersign/server'

/**
 * What a model says: `count` deltas, `textAt(n, start)`, in reads of `perRead`, each after `pause(n, start)`, in the words that a library has for them. A read of a provider's
 * response brings as many deltas as have arrived, and takes a turn of the event loop.
 */
async function* say({ count, perRead, textAt, pause = nextTurn }, { before = [], write, after = [] }) {
  const start = performance.timeOrigin + performance.now()
  yield* before
  for (let at = 0; at < count; at++) {
    if (at % perRead === 0) await pause(at, start)
    yield write(textAt(at, start))
  }
  await pause(count, start)
  yield* after
}

function nextTurn() {
  return new Promise((resolve) => setImmediate(resolve))
}

/** What every server has to do: read the request, call the model, send each event. No checks, no history, no approvals. */
function openHandWritten(answer) {
  const utf8 = new TextEncoder()
  return async (request) => {
    const { threadId, runId } = await request.json()
    const body = new ReadableStream({
      async start(controller) {
        let n = 0
        const send = (event) =>
          controller.enqueue(utf8.encode(`id: ${runId}:${++n}\ndata: ${JSON.stringify(event)}\n\n`))
        const messageId = `msg_${runId}`
        send({ type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' })
        send({ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' })
        for await (const event of say(answer, { write: (delta) => ({ type: 'text', delta }) }))
          send({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta: event.delta })
        send({ type: 'TEXT_MESSAGE_END', messageId })
        send({ type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } })
        controller.close()
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }
}

/** With a user, runs are stored in the run log and can be rejoined. */
function openCountersign(answer, context = {}, runLog = memoryRunLog()) {
  const model = {
    id: 'scripted',
    stream: () =>
      say(answer, {
        write: (delta) => ({ type: 'text-delta', delta }),
        after: [{ type: 'finish', reason: 'stop' }],
      }),
  }
  const approvals = { secret: 'x'.repeat(32), ledger: memoryLedger() }
  const limits = { runs: { perOwner: 5000, total: 5000 } }
  const agent = createAgent({ model, approvals, runLog, limits, warn: () => {} })
  return (request) => handleChat(agent, request, { context })
}

async function openTanstack(answer) {
  const { chat, chatParamsFromRequest, toServerSentEventsResponse } = await import('@tanstack/ai')
  const adapter = {
    kind: 'text',
    name: 'scripted',
    model: 'scripted',
    chatStream({ runId = 'r', threadId = 't' }) {
      const messageId = `msg_${runId}`
      return say(answer, {
        before: [
          { type: 'RUN_STARTED', runId, threadId },
          { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
        ],
        write: (delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta }),
        after: [
          { type: 'TEXT_MESSAGE_END', messageId },
          { type: 'RUN_FINISHED', runId, threadId, finishReason: 'stop' },
        ],
      })
    },
    structuredOutput: () => Promise.reject(new Error('not part of this')),
  }
  return async (request) => {
    const { tools, ...params } = await chatParamsFromRequest(request)
    const abortController = new AbortController()
    const stream = chat({ ...params, adapter, debug: false, abortController })
    return toServerSentEventsResponse(stream, { abortController })
  }
}

async function openAiSdk(answer) {
  const { convertToModelMessages, streamText } = await import('ai')
  const { MockLanguageModelV4 } = await import('ai/test')
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  }
  const words = {
    before: [
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: '0' },
    ],
    write: (delta) => ({ type: 'text-delta', id: '0', delta }),
    after: [
      { type: 'text-end', id: '0' },
      { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage },
    ],
  }
  const doStream = async () => ({ stream: ReadableStream.from(say(answer, words)) })
  return async (request) => {
    const { messages } = await request.json()
    // One for each run: the mock keeps every call.
    const model = new MockLanguageModelV4({ doStream })
    const result = streamText({
      model,
      messages: await convertToModelMessages(messages),
      abortSignal: request.signal,
    })
    return result.toUIMessageStreamResponse({ originalMessages: messages })
  }
}

const agui = (n) => ({
  protocolVersion: '1.0',
  threadId: `t${n}`,
  runId: `r${n}`,
  messages: [{ id: 'u', role: 'user', content: 'go' }],
  tools: [],
  context: [],
  state: {},
  forwardedProps: {},
})
const ui = (n) => ({
  id: `t${n}`,
  messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] }],
  trigger: 'submit-message',
})

/** Countersign with another run log. */
export const openWithLog = (answer, runLog) => openCountersign(answer, { subject: 'ann' }, runLog)

/** `open(answer)` makes a handler of fetch requests; `bodyOf(n)` is the body of the nth. */
export const routes = {
  'hand-written': { name: 'hand-written SSE handler', open: openHandWritten, bodyOf: agui },
  countersign: { name: 'Countersign', open: openCountersign, bodyOf: agui },
  'countersign-log': {
    name: 'Countersign with its run log',
    open: (answer) => openWithLog(answer),
    bodyOf: agui,
  },
  tanstack: { name: 'TanStack AI', open: openTanstack, bodyOf: agui },
  'ai-sdk': { name: 'AI SDK', open: openAiSdk, bodyOf: ui },
}

/** The nth chat request of a route. */
export function requestOf({ bodyOf }, n) {
  const headers = { 'content-type': 'application/json' }
  return new Request('http://127.0.0.1/', { method: 'POST', headers, body: JSON.stringify(bodyOf(n)) })
}

/** The text of a response, for all of these formats. */
export function textOf(stream) {
  return [...stream.matchAll(/^data: (\{.*)$/gm)]
    .map(([, data]) => JSON.parse(data))
    .filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT' || type === 'text-delta')
    .map(({ delta }) => delta)
    .join('')
}
