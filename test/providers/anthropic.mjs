import { anthropic } from '@countersign/anthropic'
import { messagesSay } from './anthropic-says.mjs'
import { callsOf, parsed } from './facts.mjs'

/** The blocks of tools that the provider ran, calls and results, in the order in which they came. */
function providerTools(events) {
  const calls = callsOf(events)
  return events.flatMap((event) => {
    if (event.type === 'tool-call-start' && event.providerExecuted) {
      const { arguments: text, metadata } = calls.find(({ id }) => id === event.id)
      const label = metadata.serverLabel === undefined ? {} : { serverLabel: metadata.serverLabel }
      return [{ id: event.id, type: metadata.type, name: event.name, input: parsed(text), ...label }]
    }
    if (event.type !== 'tool-result') return []
    const { type, content = event.outcome.value } = event.metadata
    const contentType = Array.isArray(content)
      ? `array(${content.length})`
      : (content?.type ?? typeof content)
    const isError = event.outcome.kind !== 'ok'
    return [{ id: event.toolCallId, type, name: null, input: null, isError, contentType }]
  })
}

/** What the provider's own counts say, which the `usage` event tells as AG-UI counts. */
function usageFacts(raw) {
  if (raw === null) return null
  return {
    inputTokens: raw.input_tokens ?? null,
    outputTokens: raw.output_tokens ?? null,
    totalTokens: null,
    reasoningTokens: raw.output_tokens_details?.thinking_tokens ?? null,
    cachedInputTokens: raw.cache_read_input_tokens ?? null,
    cacheCreationInputTokens: raw.cache_creation_input_tokens ?? null,
  }
}

export const anthropicMessages = {
  name: 'Anthropic',
  line: 57,
  say: messagesSay,
  model: (origin, { stream }) =>
    anthropic({
      // the SDK warns of models that have an end
      model: 'test-model',
      apiKey: 'test',
      baseURL: origin,
      options: { maxRetries: 0 },
      stream,
    }),
  kindOf(event, _, events) {
    if (event.type === 'tool-result') return `provider:${event.metadata.type}`
    if (event.type === 'reasoning-end' && event.metadata?.type === 'redacted_thinking')
      return 'redacted-reasoning'
    if (event.type !== 'tool-call-start') return undefined
    if (!event.providerExecuted) return `tool:${event.name}`
    return `provider:${callsOf(events).find(({ id }) => id === event.id).metadata.type}`
  },
  refine(facts, events) {
    const thoughts = events.filter((event) => event.type === 'reasoning-end')
    const redacted = thoughts.filter(({ metadata }) => metadata.type === 'redacted_thinking').length
    const signatures = thoughts.filter(({ signature }) => signature !== undefined).length - redacted
    return {
      ...facts,
      ...(signatures > 0 && { signatures }),
      ...(redacted > 0 && { redactedReasoning: redacted }),
      providerTools: providerTools(events),
      // where the provider sends no delta it means an empty object
      toolCalls: facts.toolCalls.map((call) => ({ ...call, argumentsText: call.argumentsText || '{}' })),
      usage: usageFacts(facts.rawUsage),
    }
  },
}
