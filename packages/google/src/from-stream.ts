import type { FinishReason, ModelEvent } from '@countersign/server'
import { asNumber, asRecord, type Fields } from '@countersign/server/model-kit'
import type { Candidate, GenerateContentResponse, GroundingMetadata } from '@google/genai'
import { AnswerParts } from './answer-parts.js'
import { finishMessageOf } from './framed-fetch.js'
import { groundingEvents } from './provided.js'

/**
 * Converts responses of `generateContent`, streamed or complete, to model events. The provider sends no end marker, and an error
 * may still follow a finish reason, so `finish` is emitted when the stream has ended after a finish reason or a blocked prompt.
 */
export async function* contentEvents(
  chunks: AsyncIterable<GenerateContentResponse> | Iterable<GenerateContentResponse>,
): AsyncGenerator<ModelEvent> {
  const parts = new AnswerParts()
  const seen: Seen = { about: {}, sources: 0 }
  for await (const chunk of chunks) {
    const [candidate] = chunk.candidates ?? []
    note(seen, chunk, candidate)
    for (const part of candidate?.content?.parts ?? []) yield* parts.take(part)
    yield* citations(seen, candidate)
  }
  yield* parts.end()
  if (seen.grounding !== undefined) yield* groundingEvents(seen.grounding)
  yield { type: 'metadata', metadata: seen.about }
  if (seen.about.usage !== undefined) yield { type: 'usage', usage: usageOf(asRecord(seen.about.usage)) }
  if (seen.blocked) yield { type: 'finish', reason: 'content_filter' }
  else if (seen.finishReason !== undefined)
    yield { type: 'finish', reason: finishReason(seen.finishReason, parts.asked) }
}

/** What the chunks of a reply contained besides its content. */
interface Seen {
  about: Fields
  sources: number
  finishReason?: string
  blocked?: boolean
  grounding?: GroundingMetadata
}

function note(seen: Seen, chunk: GenerateContentResponse, candidate: Candidate | undefined): void {
  const { responseId: id, modelVersion: model, usageMetadata: usage, promptFeedback } = chunk
  const { finishReason, groundingMetadata, content } = candidate ?? {}
  const finishMessage = candidate?.finishMessage ?? finishMessageOf(content)
  const blocked = promptFeedback?.blockReason !== undefined
  seen.about = {
    ...seen.about,
    ...(id !== undefined && { id }),
    ...(model !== undefined && { model }),
    ...(usage !== undefined && { usage }),
    ...(finishReason !== undefined && { finishReason }),
    ...(finishMessage !== undefined && { finishDetail: finishMessage }),
    ...(blocked && { finishDetail: promptFeedback }),
    ...(groundingMetadata !== undefined && { groundingMetadata }),
  }
  if (finishReason !== undefined) seen.finishReason = finishReason
  if (blocked) seen.blocked = true
  if (groundingMetadata !== undefined) seen.grounding = groundingMetadata
}

function* citations(seen: Seen, candidate: Candidate | undefined): Generator<ModelEvent> {
  for (const { uri, title, ...metadata } of candidate?.citationMetadata?.citations ?? []) {
    const source = {
      ...(uri !== undefined && { url: uri }),
      ...(title !== undefined && { title }),
      metadata: { ...metadata },
    }
    yield { type: 'source', source: { id: `citation_${seen.sources++}`, ...source } }
  }
}

function finishReason(said: string, asked: boolean): FinishReason {
  switch (said) {
    case 'STOP':
      return asked ? 'tool_calls' : 'stop'
    case 'MAX_TOKENS':
      return 'length'
    case 'SAFETY':
    case 'RECITATION':
    case 'BLOCKLIST':
    case 'PROHIBITED_CONTENT':
    case 'SPII':
    case 'IMAGE_SAFETY':
    case 'IMAGE_PROHIBITED_CONTENT':
    case 'IMAGE_RECITATION':
      return 'content_filter'
    case 'MALFORMED_FUNCTION_CALL':
    case 'MALFORMED_RESPONSE':
    case 'MISSING_THOUGHT_SIGNATURE':
    case 'UNEXPECTED_TOOL_CALL':
    case 'TOO_MANY_TOOL_CALLS':
      return 'error'
    default:
      return said.toLowerCase()
  }
}

/** The provider counts reasoning separately from its output, and tool input separately from its input; AG-UI includes both. */
function usageOf(usage: Fields) {
  const count = (key: string) => asNumber(usage[key])
  const input = count('promptTokenCount')
  const output = count('candidatesTokenCount')
  const total = count('totalTokenCount')
  const thoughts = count('thoughtsTokenCount')
  const cached = count('cachedContentTokenCount')
  return {
    ...(input !== undefined && { inputTokens: input + (count('toolUsePromptTokenCount') ?? 0) }),
    ...(output !== undefined && { outputTokens: output + (thoughts ?? 0) }),
    ...(total !== undefined && { totalTokens: total }),
    ...(thoughts !== undefined && { reasoningTokens: thoughts }),
    ...(cached !== undefined && { cachedInputTokens: cached }),
  }
}
