import { transformJSONSchema } from '@anthropic-ai/sdk/lib/transform-json-schema'
import type { ModelMessage, ModelRequest, ModelTool, ModelToolResult } from '@countersign/server'
import { asNumber, asRecord, type Fields, isSuccess, toProviderText } from '@countersign/server/model-kit'
import { assistantBlocks, wireId } from './assistant-blocks.js'
import { fileBlock } from './files.js'
import type { AnthropicOptions } from './options.js'

const defaultMaxTokens = 8192

/** One turn of a conversation in the provider's form. */
interface Turn {
  readonly role: 'user' | 'assistant'
  readonly content: Fields[]
}

/** The body of a request, without `stream`. */
export interface RequestBody {
  readonly model: string
  readonly max_tokens: number
  readonly messages: readonly Turn[]
  readonly [key: string]: unknown
}

/** Converts an engine request to the body of a Messages API request. */
export function toRequest(request: ModelRequest, { model, params = {} }: AnthropicOptions): RequestBody {
  const { tools: own = [], ...rest } = params
  const tools = [...request.tools.map(toolBlock), ...own]
  const system = systemText(request)
  const { output } = request
  const format = output && { type: 'json_schema', schema: transformJSONSchema({ ...output }) }
  return {
    ...rest,
    ...(format && { output_config: { format, ...params.output_config } }),
    model,
    max_tokens: params.max_tokens ?? defaultMaxTokens + thinkingBudget(params.thinking),
    ...(system !== '' && { system }),
    messages: turns(request.messages),
    ...(tools.length > 0 && { tools }),
  }
}

/** The budget for thinking counts towards `max_tokens`. */
function thinkingBudget(thinking: unknown): number {
  return asNumber(asRecord(thinking).budget_tokens) ?? 0
}

function toolBlock({ name, description, parameters }: ModelTool): Fields {
  return { name, description, input_schema: { type: 'object', ...parameters } }
}

/** The provider accepts system text only in one place, before the conversation. */
function systemText({ system, messages }: ModelRequest): string {
  const said = messages.flatMap((message) => (message.role === 'system' ? [message.content] : []))
  return [...(system === undefined ? [] : [system]), ...said].filter((text) => text !== '').join('\n\n')
}

/** Joins adjacent messages of one role, as the provider would, and drops empty ones. */
function turns(messages: readonly ModelMessage[]): readonly Turn[] {
  const results = resultsOf(messages)
  const lastAsked = messages.findLastIndex((message) => asks(message, results))
  const joined: Turn[] = []
  for (const [index, message] of messages.entries()) {
    if (message.role === 'system') continue
    const role = message.role === 'assistant' ? 'assistant' : 'user'
    const content =
      message.role === 'assistant'
        ? assistantBlocks(message.content, results, index > lastAsked)
        : message.role === 'user'
          ? userBlocks(message.content)
          : message.content.flatMap((answer) => resultBlock(answer, results))
    if (content.length === 0) continue
    const before = joined.at(-1)
    if (before?.role === role) before.content.push(...content)
    else joined.push({ role, content: [...content] })
  }
  return joined
}

/** Whether the message gives the model something to respond to; results of provider-executed calls do not. */
function asks(message: ModelMessage, provided: ReadonlyMap<string, ModelToolResult>): boolean {
  if (message.role !== 'tool') return message.role === 'user'
  return message.content.some(({ type, toolCallId }) => type === 'tool-result' && !provided.has(toolCallId))
}

/** Results of provider-executed calls, by call: they belong to the assistant's turn, even if they came in a later reply. */
function resultsOf(messages: readonly ModelMessage[]): ReadonlyMap<string, ModelToolResult> {
  const provided = new Set<string>()
  const results = new Map<string, ModelToolResult>()
  for (const { role, content } of messages) {
    if (role === 'assistant')
      for (const part of content)
        if (part.type === 'tool-call' && part.providerExecuted) provided.add(part.id)
    if (role === 'tool')
      for (const answer of content)
        if (answer.type === 'tool-result' && provided.has(answer.toolCallId))
          results.set(answer.toolCallId, answer)
  }
  return results
}

function userBlocks(content: Extract<ModelMessage, { role: 'user' }>['content']): readonly Fields[] {
  return content.flatMap((part): readonly Fields[] => {
    if (part.type === 'file') return [fileBlock(part)]
    return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text }]
  })
}

/** The result of a call that ran here. This provider has no approval requests, so answers to those of other providers are left out. */
function resultBlock(
  answer: Extract<ModelMessage, { role: 'tool' }>['content'][number],
  provided: ReadonlyMap<string, ModelToolResult>,
): readonly Fields[] {
  if (answer.type !== 'tool-result' || provided.has(answer.toolCallId)) return []
  const { toolCallId, outcome } = answer
  return [
    {
      type: 'tool_result',
      tool_use_id: wireId(toolCallId),
      content: toProviderText(outcome),
      ...(!isSuccess(outcome) && { is_error: true }),
    },
  ]
}
