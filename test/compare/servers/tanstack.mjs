// A route of TanStack AI as "Tool Approval" of its docs has it. With OPTION: "Resumable Streams", with the log that its package has.
import {
  chat,
  chatParamsFromRequest,
  memoryStream,
  toolDefinition,
  toServerSentEventsResponse,
} from '@tanstack/ai'
import { description, inputSchema, nextStep, serveFetch, transfer } from './common.mjs'

const { OPTION } = process.env
const transferTool = toolDefinition({
  name: 'transfer',
  description,
  inputSchema,
  needsApproval: true,
}).server(transfer)

serveFetch(async (request) => {
  if (request.method === 'POST') return respond(request, await chatParamsFromRequest(request))
  const runId = new URL(request.url).searchParams.get('runId')
  if (!OPTION || !runId) return new Response(null, { status: 404 })
  return respond(request, { messages: [], threadId: `replay:${runId}`, runId })
})

function respond(request, params) {
  const stream = chat({
    adapter,
    messages: params.messages,
    threadId: params.threadId,
    runId: params.runId,
    parentRunId: params.parentRunId,
    ...(params.resume ? { resume: params.resume } : {}),
    tools: [transferTool],
    debug: false,
  })
  return toServerSentEventsResponse(
    stream,
    OPTION ? { durability: { adapter: memoryStream(request) } } : undefined,
  )
}

/** A text adapter without a provider. */
const adapter = {
  kind: 'text',
  name: 'scripted',
  model: 'scripted',
  async *chatStream({ messages, runId = 'run', threadId = 'thread' }) {
    yield { type: 'RUN_STARTED', runId, threadId }
    const last = messages.findLastIndex(({ role }) => role === 'user')
    const results = messages
      .slice(last + 1)
      .flatMap(({ role, content }) => (role === 'tool' ? [content] : []))
    const { call, say } = nextStep(textOf(messages[last].content), results)
    if (call) {
      const toolCallId = crypto.randomUUID()
      yield { type: 'TOOL_CALL_START', toolCallId, toolCallName: 'transfer' }
      yield { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(call) }
      yield { type: 'TOOL_CALL_END', toolCallId }
    } else {
      const messageId = crypto.randomUUID()
      yield { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }
      for await (const delta of say) yield { type: 'TEXT_MESSAGE_CONTENT', messageId, delta }
      yield { type: 'TEXT_MESSAGE_END', messageId }
    }
    yield { type: 'RUN_FINISHED', runId, threadId, finishReason: call ? 'tool_calls' : 'stop' }
  },
}

function textOf(content) {
  return typeof content === 'string' ? content : content.map(({ content, text }) => content ?? text).join('')
}
