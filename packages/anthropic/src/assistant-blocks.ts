import { isRecord } from '@countersign/core'
import type {
  ModelReasoning,
  ModelText,
  ModelToolCall,
  ModelToolResult,
  ProviderMetadata,
} from '@countersign/server'
import {
  asList,
  asText,
  type Fields,
  isSuccess,
  parseJson,
  toProviderText,
} from '@countersign/server/model-kit'

type Part = ModelText | ModelReasoning | ModelToolCall

/**
 * Converts one step of the model to its original blocks, in order: the provider requires reasoning to be sent back
 * unchanged, before the calls it led to. Reasoning, calls and approval requests of other providers are left out.
 *
 * @param results of provider-executed calls
 * @param goesOn whether the provider is to continue this step: only then may one of its calls lack a result
 */
export function assistantBlocks(
  parts: readonly Part[],
  results: ReadonlyMap<string, ModelToolResult>,
  goesOn: boolean,
): readonly Fields[] {
  return parts.flatMap((part): readonly Fields[] => {
    switch (part.type) {
      case 'text':
        return textBlocks(part)
      case 'reasoning':
        return thoughtBlocks(part)
      case 'tool-call':
        if (part.providerExecuted) return providedBlocks(part, results.get(part.id), goesOn)
        return [
          {
            type: 'tool_use',
            id: wireId(part.id),
            name: part.name,
            input: inputOf(part.arguments),
            ...callerOf(part.metadata),
          },
        ]
      default:
        return part satisfies never
    }
  })
}

/** Ids of other providers may contain characters that this one rejects. */
export function wireId(id: string): string {
  return id.replace(/[^\w-]/g, '_')
}

/** The provider rejects text that is only white space, although it sends such text itself, between citations. */
function textBlocks({ text, metadata }: ModelText): readonly Fields[] {
  if (text.trim() === '') return []
  const citations = asList(metadata?.citations).filter(isRecord)
  return [{ type: 'text', text, ...(citations.length > 0 && { citations }) }]
}

function thoughtBlocks({ text, signature, metadata }: ModelReasoning): readonly Fields[] {
  if (signature === undefined) return []
  switch (metadata?.type) {
    case 'thinking':
      return [{ type: 'thinking', thinking: text, signature }]
    case 'redacted_thinking':
      return [{ type: 'redacted_thinking', data: signature }]
    default:
      return []
  }
}

function providedBlocks(
  { id, name, arguments: text, metadata }: ModelToolCall,
  result: ModelToolResult | undefined,
  goesOn: boolean,
): readonly Fields[] {
  const type = metadata?.type
  if (type !== 'server_tool_use' && type !== 'mcp_tool_use') return []
  const answer = result && providedResult(result)
  if (answer === undefined && !goesOn) return []
  const server = asText(metadata?.serverLabel)
  const call = {
    type,
    id,
    name,
    input: inputOf(text),
    ...(type === 'mcp_tool_use' && server !== undefined && { server_name: server }),
    ...callerOf(metadata),
  }
  return answer === undefined ? [call] : [call, answer]
}

function providedResult({ toolCallId, outcome, metadata }: ModelToolResult): Fields | undefined {
  const type = asText(metadata?.type)
  if (type === undefined || !/^\w+_tool_result$/.test(type)) return undefined
  const content = isSuccess(outcome) ? outcome.value : (metadata?.content ?? toProviderText(outcome))
  return {
    type,
    tool_use_id: toolCallId,
    content,
    ...(type === 'mcp_tool_result' && { is_error: !isSuccess(outcome) }),
    ...callerOf(metadata),
  }
}

function callerOf(metadata: ProviderMetadata | undefined): Fields {
  return isRecord(metadata?.caller) ? { caller: metadata.caller } : {}
}

/** The provider accepts only objects. Other input of the model is wrapped, so that the model still sees it. */
function inputOf(text: string): Fields {
  if (text.trim() === '') return {}
  const input = parseJson(text)
  return isRecord(input) ? input : { invalid: text }
}
