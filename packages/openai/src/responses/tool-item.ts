import type { ModelToolCall } from '@countersign/server'
import {
  asList,
  asNumber,
  asRecord,
  asText,
  type Fields,
  isSuccess,
  parseJson,
  type ToolOutcome,
} from '@countersign/server/model-kit'
import type {
  ResponseCodeInterpreterToolCall,
  ResponseFileSearchToolCall,
  ResponseFunctionWebSearch,
  ResponseInputItem,
} from 'openai/resources/responses/responses'

/** Restores the item of a call of one of OpenAI's built-in tools. */
export function toolItem(
  call: ModelToolCall,
  outcome: ToolOutcome | undefined,
): ResponseInputItem | undefined {
  const { itemId, type, containerId } = call.metadata ?? {}
  const id = asText(itemId)
  if (id === undefined || outcome === undefined) return undefined
  const status = isSuccess(outcome) ? 'completed' : 'failed'
  const value = isSuccess(outcome) ? outcome.value : undefined
  const input = asRecord(parseJson(call.arguments))
  switch (type) {
    case 'web_search_call': {
      const action = searchAction(input)
      return action && { type, id, status, action }
    }
    case 'file_search_call':
      return { type, id, status, queries: texts(input.queries), results: searchResults(value) }
    case 'code_interpreter_call': {
      const container = asText(containerId)
      if (container === undefined) return undefined
      return {
        type,
        id,
        status,
        container_id: container,
        code: asText(input.code) ?? '',
        outputs: codeOutputs(value),
      }
    }
    case 'image_generation_call':
      return { type, id, status, result: asText(value) ?? null }
    default:
      return undefined
  }
}

function searchAction(input: Fields): ResponseFunctionWebSearch['action'] | undefined {
  const url = asText(input.url)
  switch (input.type) {
    case 'search': {
      const query = asText(input.query)
      const queries = texts(input.queries)
      return {
        type: 'search',
        ...(query !== undefined && { query }),
        ...(queries.length > 0 && { queries }),
      }
    }
    case 'open_page':
      return { type: 'open_page', ...(url !== undefined && { url }) }
    case 'find_in_page':
      return { type: 'find_in_page', url: url ?? '', pattern: asText(input.pattern) ?? '' }
    default:
      return undefined
  }
}

function searchResults(value: unknown): (ResponseFileSearchToolCall['results'] & {}) | null {
  if (!Array.isArray(value)) return null
  return asList(value).map((result) => {
    const { file_id, filename, text, score } = asRecord(result)
    return {
      ...(typeof file_id === 'string' && { file_id }),
      ...(typeof filename === 'string' && { filename }),
      ...(typeof text === 'string' && { text }),
      ...(asNumber(score) !== undefined && { score: asNumber(score) ?? 0 }),
    }
  })
}

function codeOutputs(value: unknown): ResponseCodeInterpreterToolCall['outputs'] {
  if (!Array.isArray(value)) return null
  return asList(value).flatMap((output): NonNullable<ResponseCodeInterpreterToolCall['outputs']> => {
    const { type, logs, url } = asRecord(output)
    if (type === 'logs' && typeof logs === 'string') return [{ type, logs }]
    return type === 'image' && typeof url === 'string' ? [{ type, url }] : []
  })
}

function texts(value: unknown): string[] {
  return asList(value).filter((text) => typeof text === 'string')
}
