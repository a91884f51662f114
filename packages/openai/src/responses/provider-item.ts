import { isRecord } from '@countersign/core'
import type { ModelApprovalResponse, ModelToolCall, ModelToolResult } from '@countersign/server'
import { asList, asRecord, asText, isSuccess, toProviderText } from '@countersign/server/model-kit'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { toolItem } from './tool-item.js'

/**
 * Restores the item of a provider-executed call or of its approval request. It has passed through the client,
 * so each kind is rebuilt field by field; unknown fields and calls of other providers are dropped.
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

/** The approval request while it is being answered; once the call has run, the call. */
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
 * A call that should have run but for which the provider sent no item. The model is told what is known, as
 * its own words, because name and reason have passed through the client.
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
