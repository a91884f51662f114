import { google } from '@countersign/google'
import { callsOf } from './facts.mjs'
import { contentSays } from './google-says.mjs'

/** What the provider ran itself. A search is told of beside the answer, the others are parts of it. */
function providerTools(events) {
  const calls = callsOf(events)
  return events.flatMap((event) => {
    if (event.type === 'tool-call' && event.providerExecuted) {
      const input = JSON.parse(event.arguments)
      const { type } = event.metadata
      if (type === 'google_search') return [{ id: null, type, name: null, input }]
      const about = { id: event.metadata.id ?? null, type }
      if (type !== 'executableCode') return [{ ...about, name: event.name, input }]
      return [{ ...about, name: input.language, input: null, codeLength: input.code.length }]
    }
    if (event.type !== 'tool-result' || event.metadata.type === 'google_search') return []
    const { type, id = null, status } = event.metadata
    const known = calls.some((call) => call.id === event.toolCallId)
    return known ? [{ id, type, name: null, input: null, status }] : []
  })
}

/** What the provider's own counts say, which the `usage` event tells as AG-UI counts. */
function usageFacts(raw) {
  if (raw === null) return null
  return {
    inputTokens: raw.promptTokenCount ?? null,
    outputTokens: raw.candidatesTokenCount ?? null,
    totalTokens: raw.totalTokenCount ?? null,
    reasoningTokens: raw.thoughtsTokenCount ?? null,
    cachedInputTokens: raw.cachedContentTokenCount ?? null,
    toolUsePromptTokens: raw.toolUsePromptTokenCount ?? null,
  }
}

/** Signatures stand on calls, thoughts and results, and on pieces of the text. */
function signatures(events) {
  return events.filter((event) => event.signature ?? event.metadata?.thoughtSignature).length
}

export const geminiGenerate = {
  name: 'Google',
  line: 59,
  say: contentSays,
  model: (origin, { stream }) => google({ model: 'test-model', apiKey: 'test', baseURL: origin, stream }),
  kindOf(event) {
    const type = event.metadata?.type
    if (event.type === 'tool-result' && type !== 'google_search') return `provider:${type}`
    if (event.type !== 'tool-call' && event.type !== 'tool-call-start') return undefined
    if (!event.providerExecuted) return `tool:${event.name}`
    return `provider:${type}`
  },
  refine(facts, events) {
    const signed = signatures(events)
    return {
      ...facts,
      ...(signed > 0 && { signatures: signed }),
      providerTools: providerTools(events),
      // an id that the adapter gave, or that the engine is to give, is none of the provider's; the adapter adds one delta: the whole of what
      // came whole, or the brackets that close what came in pieces
      toolCalls: facts.toolCalls.map((call) => ({
        ...call,
        argumentDeltas: call.argumentDeltas - 1,
        id: /^(call_\d+)?$/.test(call.id) ? null : call.id,
      })),
      usage: usageFacts(facts.rawUsage),
      sequence: facts.sequence.filter((kind) => kind !== 'provider:google_search'),
    }
  },
}
