import { isRecord } from '@countersign/core'
import type { ModelApprovalResponse, ModelToolCall, ModelToolResult } from '@countersign/server'
import { asList, asRecord, asText, isSuccess, toProviderText } from '@countersign/server/model-kit'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { toolItem } from './tool-item.js'

/**
 * A call that the provider ran, or asked about, as the item that it was. It has been in the client's hands: so each kind is built field by
 * field, and what is not known here is left out, as are calls of other providers.
 */
export function providerItem(
  call: ModelToolCall,
  answer: ModelToolResult | ModelApprovalResponse | undefined,
): ResponseInputItem | undefined {
  const about = call.metadata ?? {}
  switch (about.type) {
    case 'mcp_approval_request':
      return askedItem(call, answer)
    case 'mcp_call':
      return answer?.type === 'tool-result' ? (mcpCall(call, answer) ?? toldItem(call, answer)) : undefined
    case 'mcp_list_tools':
      return answer?.type === 'tool-result' ? mcpListTools(call, answer) : undefined
    case 'web_search_call':
    case 'file_search_call':
    case 'code_interpreter_call':
    case 'image_generation_call':
      return toolItem(call, answer?.type === 'tool-result' ? answer.outcome : undefined)
    default:
      return undefined
  }
}

/** The request while it is being answered; once the call has run, the call. */
function askedItem(
  call: ModelToolCall,
  answer: ModelToolResult | ModelApprovalResponse | undefined,
): ResponseInputItem | undefined {
  const serverLabel = asText(call.metadata?.serverLabel)
  if (call.approval === undefined || answer === undefined || serverLabel === undefined) return undefined
  if (answer.type === 'tool-result') return mcpCall(call, answer) ?? toldItem(call, answer)
  return {
    type: 'mcp_approval_request',
    id: call.approval.id,
    server_label: serverLabel,
    name: call.name,
    arguments: call.arguments || '{}',
  }
}

function mcpCall(call: ModelToolCall, { outcome, metadata }: ModelToolResult): ResponseInputItem | undefined {
  const id = asText(metadata?.itemId)
  const serverLabel = asText(call.metadata?.serverLabel)
  if (id === undefined || serverLabel === undefined) return undefined
  const text = isSuccess(outcome) ? outputText(outcome.value) : undefined
  return {
    type: 'mcp_call',
    id,
    server_label: serverLabel,
    name: call.name,
    arguments: call.arguments || '{}',
    ...(text !== undefined && { output: text }),
    ...(!isSuccess(outcome) && {
      error: { type: 'mcp_tool_execution_error', content: toProviderText(outcome) },
    }),
  }
}

/**
 * A call that was to run and of which the provider told no item: the model hears what is known of it. As its own words, because name and
 * reason have been in the client's hands.
 */
function toldItem(call: ModelToolCall, { outcome }: ModelToolResult): ResponseInputItem | undefined {
  if (isSuccess(outcome)) return undefined
  return { role: 'assistant', content: `The call of ${call.name} gave no result: ${toProviderText(outcome)}` }
}

function outputText(value: unknown): string {
  return typeof value === 'string' ? value : toProviderText({ kind: 'ok', value })
}

function mcpListTools(call: ModelToolCall, { outcome }: ModelToolResult): ResponseInputItem | undefined {
  const id = asText(call.metadata?.itemId)
  const serverLabel = asText(call.metadata?.serverLabel)
  if (id === undefined || serverLabel === undefined || !isSuccess(outcome)) return undefined
  const tools = asList(outcome.value).flatMap((tool) => {
    const { name, description, input_schema: schema, annotations } = asRecord(tool)
    if (typeof name !== 'string') return []
    return [
      {
        name,
        input_schema: schema,
        ...(typeof description === 'string' && { description }),
        ...(isRecord(annotations) && { annotations }),
      },
    ]
  })
  return { type: 'mcp_list_tools', id, server_label: serverLabel, tools }
}
