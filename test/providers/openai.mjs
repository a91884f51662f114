import { openai } from '@countersign/openai'
import { callsOf, parsed } from './facts.mjs'
import { chatSay, responsesSay } from './openai-says.mjs'

const connect = (origin, stream, id, api) =>
  openai({
    api,
    model: id ?? 'test-model',
    apiKey: 'test',
    baseURL: `${origin}/v1`,
    options: { maxRetries: 0, logLevel: 'off' },
    stream,
  })

export const openaiChat = {
  name: 'OpenAI Chat Completions',
  line: 55,
  say: chatSay,
  model: (origin, { stream, id }) => connect(origin, stream, id, 'chat'),
  kindOf: (_event, index) => (index < 0 ? undefined : `tool:${index}`),
  refine: (facts) => ({
    ...facts,
    usage: facts.usage && { ...facts.usage, outputTokens: countedOutput(facts) },
  }),
}

/** xAI counts thoughts beside its output; AG-UI, and so our event, counts them in. */
function countedOutput({ usage, rawUsage }) {
  const { outputTokens, reasoningTokens } = usage
  return rawUsage.completion_tokens + (reasoningTokens ?? 0) === outputTokens
    ? rawUsage.completion_tokens
    : outputTokens
}

export const openaiResponses = {
  name: 'OpenAI Responses',
  line: 55,
  say: responsesSay,
  asks: true,
  model: (origin, { stream, id }) => connect(origin, stream, id, 'responses'),
  kindOf(event, _, events) {
    if (event.type !== 'tool-call' && event.type !== 'tool-call-start') return undefined
    if (!event.providerExecuted) return `tool:${event.name}`
    return `provider:${event.approval?.state === 'requested' ? 'mcp_approval_request' : typeOf(event, events)}`
  },
  refine: (facts, events) => ({
    ...facts,
    providerTools: callsOf(events)
      .filter((call) => call.providerExecuted && call.approval?.state !== 'requested')
      .map(providerTool),
  }),
}

/** The item that a call was, in OpenAI's words; its beginning does not say it yet, its end does. */
function typeOf({ id }, events) {
  return callsOf(events).find((call) => call.id === id)?.metadata.type
}

function providerTool({ id, name, arguments: text, metadata, result }) {
  const { type, status = null, serverLabel, containerId, approvalRequestId = null } = metadata
  const value = result?.outcome.kind === 'ok' ? result.outcome.value : undefined
  const base = { id, type, name: null, input: null, status }
  switch (type) {
    case 'mcp_list_tools':
      return { ...base, serverLabel, tools: value?.map((tool) => tool.name) }
    case 'mcp_call':
      return {
        ...base,
        name,
        input: parsed(text),
        serverLabel,
        approvalRequestId,
        outputLength: typeof value === 'string' ? value.length : null,
        error: result?.outcome.kind === 'ok' ? null : (result?.outcome.reason ?? null),
      }
    case 'web_search_call':
      return { ...base, input: parsed(text) }
    case 'file_search_call':
      return { ...base, input: parsed(text), results: value?.length ?? null }
    case 'code_interpreter_call':
      return { ...base, codeLength: parsed(text).code.length, containerId }
    default:
      return base
  }
}
