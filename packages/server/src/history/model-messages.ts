import { type FailureFlag, fromResultContent, type Message, type ToolMessage } from '@countersign/core'
import type {
  ModelFile,
  ModelMessage,
  ModelReasoning,
  ModelText,
  ModelToolCall,
  ModelToolResult,
  ProviderMetadata,
} from '../model/model.js'
import { isProviderExecuted } from './history.js'
import { asString, isRecord, readOwn } from './metadata.js'

type AssistantMessage = Extract<Message, { role: 'assistant' }>
type UserMessage = Extract<Message, { role: 'user' }>
type ReasoningMessage = Extract<Message, { role: 'reasoning' }>

/** A prepared history as the messages of a {@link ModelRequest}. Reasoning joins the assistant message it belongs to. */
export function toModelMessages(prepared: readonly Message[]): readonly ModelMessage[] {
  const messages: ModelMessage[] = []
  const reasoning = reasoningByOwner(prepared)
  const names = new Map<string, string>()
  let results: ModelToolResult[] | undefined
  for (const message of prepared) {
    if (message.role !== 'tool') results = undefined
    switch (message.role) {
      case 'system':
      case 'developer':
        messages.push({ role: 'system', content: message.content })
        break
      case 'user':
        messages.push({ role: 'user', content: userContent(message) })
        break
      case 'assistant':
        for (const call of message.toolCalls ?? []) names.set(call.id, call.function.name)
        messages.push({
          role: 'assistant',
          content: assistantContent(message, reasoning.get(message.id) ?? []),
        })
        break
      case 'tool':
        if (results === undefined) {
          results = []
          messages.push({ role: 'tool', content: results })
        }
        results.push(toolResult(message, names.get(message.toolCallId) ?? ''))
        break
      case 'reasoning':
      case 'activity':
        break
      default:
        message satisfies never
    }
  }
  return messages
}

/** By the id that the reasoning names, else by the assistant message that follows it. */
function reasoningByOwner(messages: readonly Message[]): ReadonlyMap<string, readonly ReasoningMessage[]> {
  const byOwner = new Map<string, ReasoningMessage[]>()
  let unowned: ReasoningMessage[] = []
  const give = (owner: string, given: readonly ReasoningMessage[]) => {
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), ...given])
  }
  for (const message of messages) {
    if (message.role === 'reasoning') {
      const owner = asString(readOwn(message.metadata).messageId)
      if (owner === undefined) unowned.push(message)
      else give(owner, [message])
      continue
    }
    if (message.role === 'assistant' && unowned.length > 0) give(message.id, unowned)
    unowned = []
  }
  return byOwner
}

function userContent({ content }: UserMessage): readonly (ModelText | ModelFile)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map((part) =>
    part.type === 'text'
      ? { type: 'text', text: part.text }
      : { type: 'file', media: part.type, source: part.source },
  )
}

function assistantContent(
  message: AssistantMessage,
  reasoning: readonly ReasoningMessage[],
): readonly (ModelText | ModelReasoning | ModelToolCall)[] {
  const thoughts = reasoning.map(
    (thought): ModelReasoning => ({
      type: 'reasoning',
      text: thought.content,
      ...(thought.encryptedValue !== undefined && { signature: thought.encryptedValue }),
      ...providerMetadata(thought.metadata),
    }),
  )
  const text: ModelText[] = message.content
    ? [{ type: 'text', text: message.content, ...providerMetadata(message.metadata) }]
    : []
  const calls = (message.toolCalls ?? []).map(
    (call): ModelToolCall => ({
      type: 'tool-call',
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
      ...(isProviderExecuted(call) && { providerExecuted: true }),
      ...(call.encryptedValue !== undefined && { signature: call.encryptedValue }),
      ...providerMetadata(call.metadata),
    }),
  )
  return [...thoughts, ...text, ...calls]
}

function providerMetadata(metadata: unknown): { metadata?: ProviderMetadata } {
  const { provider } = readOwn(metadata)
  return isRecord(provider) ? { metadata: provider } : {}
}

function toolResult(message: ToolMessage, toolName: string): ModelToolResult {
  const { outcome, code } = readOwn(message.metadata)
  const failure: FailureFlag | undefined =
    outcome === 'denied' || outcome === 'cancelled' || outcome === 'error'
      ? { outcome, ...(typeof code === 'string' && { code }) }
      : undefined
  const { toolCallId, content, error } = message
  return { type: 'tool-result', toolCallId, toolName, outcome: fromResultContent(content, failure, error) }
}
