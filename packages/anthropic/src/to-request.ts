import type { ModelMessage, ModelRequest, ModelTool, ModelToolResult } from '@countersign/server'
import { asNumber, asRecord, type Fields, isSuccess, toProviderText } from '@countersign/server/model-kit'
import { assistantBlocks, wireId } from './assistant-blocks.js'
import { fileBlock } from './files.js'
import type { AnthropicOptions } from './options.js'

const defaultMaxTokens = 8192

/** One turn of a conversation as the provider takes it. */
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

/** A request of the engine as the body of one of the Messages API. */
export function toRequest(request: ModelRequest, { model, params = {} }: AnthropicOptions): RequestBody {
  const { tools: own = [], ...rest } = params
  const tools = [...request.tools.map(toolBlock), ...own]
  const system = systemText(request)
  return {
    ...rest,
    model,
    max_tokens: params.max_tokens ?? defaultMaxTokens + thinkingBudget(params.thinking),
    ...(system !== '' && { system }),
    messages: turns(request.messages),
    ...(tools.length > 0 && { tools }),
  }
}

/** What thinking may use counts among `max_tokens`. */
function thinkingBudget(thinking: unknown): number {
  return asNumber(asRecord(thinking).budget_tokens) ?? 0
}

function toolBlock({ name, description, parameters }: ModelTool): Fields {
  return { name, description, input_schema: { type: 'object', ...parameters } }
}

/** The provider has one place for what the system says, before the conversation. */
function systemText({ system, messages }: ModelRequest): string {
  const said = messages.flatMap((message) => (message.role === 'system' ? [message.content] : []))
  return [...(system === undefined ? [] : [system]), ...said].filter((text) => text !== '').join('\n\n')
}

/** Neighbours of one role become one turn, since the provider joins them anyway; a turn without content is none. */
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

/** Whether it gives the model something to answer; what its provider ran itself does not. */
function asks(message: ModelMessage, provided: ReadonlyMap<string, ModelToolResult>): boolean {
  if (message.role !== 'tool') return message.role === 'user'
  return message.content.some(({ type, toolCallId }) => type === 'tool-result' && !provided.has(toolCallId))
}

/** Results of calls that a provider ran, by the call: they stand in the assistant's turn, also where they came in a later answer. */
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

/** The result of a call that ran here. This provider asks nobody, so answers to a provider's request are not for it. */
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
