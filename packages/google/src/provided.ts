import type { ModelEvent } from '@countersign/server'
import { failed, type ToolOutcome } from '@countersign/server/model-kit'
import type {
  CodeExecutionResult,
  ExecutableCode,
  GroundingMetadata,
  ToolCall,
  ToolResponse,
} from '@google/genai'

/** Code that the provider runs, as a provider-executed call. */
export function codeCall(
  { id: given, code, language }: ExecutableCode,
  id: string,
  signature?: string,
): ModelEvent {
  return {
    type: 'tool-call',
    id,
    name: 'code_execution',
    arguments: JSON.stringify({ language, code }),
    providerExecuted: true,
    ...(signature !== undefined && { signature }),
    metadata: { type: 'executableCode', ...(given !== undefined && { id: given }) },
  }
}

export function codeResult(
  { id: given, outcome: status, output }: CodeExecutionResult,
  toolCallId: string,
  signature?: string,
): ModelEvent {
  const outcome: ToolOutcome =
    status === undefined || status === 'OUTCOME_OK'
      ? { kind: 'ok', value: output ?? '' }
      : failed('execution_error', output || 'The code did not run to its end.', status)
  return {
    type: 'tool-result',
    toolCallId,
    outcome,
    metadata: {
      type: 'codeExecutionResult',
      ...(given !== undefined && { id: given }),
      ...(status !== undefined && { status }),
      ...(signature !== undefined && { thoughtSignature: signature }),
    },
  }
}

/** A built-in tool of the provider, such as its search. */
export function toolCall({ id = '', toolType, args }: ToolCall, signature?: string): ModelEvent {
  return {
    type: 'tool-call',
    id,
    name: (toolType ?? 'tool').toLowerCase(),
    arguments: JSON.stringify(args ?? {}),
    providerExecuted: true,
    ...(signature !== undefined && { signature }),
    metadata: { type: 'toolCall', toolType },
  }
}

export function toolResponse({ id = '', toolType, response }: ToolResponse, signature?: string): ModelEvent {
  return {
    type: 'tool-result',
    toolCallId: id,
    outcome: { kind: 'ok', value: response ?? null },
    metadata: {
      type: 'toolResponse',
      toolType,
      ...(signature !== undefined && { thoughtSignature: signature }),
    },
  }
}

/** What grounded a reply: the search with its queries, and each source. */
export function* groundingEvents(grounding: GroundingMetadata): Generator<ModelEvent> {
  const sources = (grounding.groundingChunks ?? []).map(({ web, retrievedContext, maps }, i) => {
    const { uri, title } = web ?? maps ?? retrievedContext ?? {}
    return {
      id: `grounding_${i}`,
      ...(uri !== undefined && { url: uri }),
      ...(title !== undefined && { title }),
    }
  })
  const queries = grounding.webSearchQueries ?? []
  if (queries.length > 0) {
    const id = 'google_search'
    const search = { type: id }
    yield {
      type: 'tool-call',
      id,
      name: id,
      arguments: JSON.stringify({ queries }),
      providerExecuted: true,
      metadata: search,
    }
    yield {
      type: 'tool-result',
      toolCallId: id,
      outcome: { kind: 'ok', value: { sources } },
      metadata: search,
    }
  }
  for (const source of sources) yield { type: 'source', source }
}
