// A route of the AI SDK as "Tool Execution Approval" of its docs has it. With OPTION: "Securing Approvals for Sensitive Tools", and
// "Chatbot Message Persistence" with `consumeSseStream: consumeStream` of "Stopping Streams", so that an answer is stored without its reader.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import {
  consumeStream,
  convertToModelMessages,
  createUIMessageStreamResponse,
  streamText,
  tool,
  toUIMessageStream,
} from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { description, inputSchema, nextStep, serveFetch, transfer } from './common.mjs'

const { OPTION, DATA, TOOL_APPROVAL_SECRET } = process.env
const folder = `${DATA}/chats`
mkdirSync(folder, { recursive: true })
const fileOf = (id) => `${folder}/${encodeURIComponent(id)}.json`

const model = new MockLanguageModelV4({
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(answer(prompt)) }),
})

serveFetch(async (request) => {
  if (request.method === 'GET') return loadChat(new URL(request.url).pathname)
  const { id, messages } = await request.json()
  const result = streamText({
    model,
    messages: await convertToModelMessages(messages),
    tools: { transfer: tool({ description, inputSchema, execute: transfer }) },
    toolApproval: { transfer: 'user-approval' },
    ...(OPTION && { experimental_toolApprovalSecret: TOOL_APPROVAL_SECRET }),
    onError: () => {},
  })
  if (!OPTION) return createUIMessageStreamResponse({ stream: toUIMessageStream({ stream: result.stream }) })
  return createUIMessageStreamResponse({
    consumeSseStream: consumeStream,
    stream: toUIMessageStream({
      stream: result.stream,
      originalMessages: messages,
      onEnd: (all) => writeFileSync(fileOf(id), JSON.stringify(all.messages)),
    }),
  })
})

/** What a page reads when it is opened again. */
function loadChat(path) {
  try {
    if (OPTION) return new Response(readFileSync(fileOf(decodeURIComponent(path.split('/').at(-1)))))
  } catch {}
  return new Response(null, { status: 404 })
}

async function* answer(prompt) {
  const last = prompt.findLastIndex(({ role }) => role === 'user')
  const text = prompt[last].content.map((part) => part.text ?? '').join('')
  const results = prompt
    .slice(last + 1)
    .flatMap(({ role, content }) => (role === 'tool' ? content : []))
    .flatMap((part) => (part.type === 'tool-result' ? [JSON.stringify(part.output)] : []))
  const { call, say } = nextStep(text, results)
  yield { type: 'stream-start', warnings: [] }
  if (call) {
    const toolCallId = crypto.randomUUID()
    yield { type: 'tool-call', toolCallId, toolName: 'transfer', input: JSON.stringify(call) }
  } else {
    yield { type: 'text-start', id: '0' }
    for await (const delta of say) yield { type: 'text-delta', id: '0', delta }
    yield { type: 'text-end', id: '0' }
  }
  const reason = call ? 'tool-calls' : 'stop'
  const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 }
  const usage = { inputTokens: tokens, outputTokens: tokens }
  yield { type: 'finish', finishReason: { unified: reason, raw: reason }, usage }
}
