import {
  type AssistantMessage,
  asString,
  getCountersignMetadata,
  isRecord,
  type Message,
  type ReasoningMessage,
  type ToolCall,
  type ToolMessage,
  type UserMessage,
} from '@countersign/core'
import { addTo } from '../encoding/groups.js'
import type {
  ModelApprovalResponse,
  ModelFile,
  ModelMessage,
  ModelReasoning,
  ModelText,
  ModelToolCall,
  ModelToolResult,
  ProviderMetadata,
} from '../model/model.js'
import { type FailureFlag, fromResultContent, isSuccess, type ToolOutcome } from '../outcome.js'
import type { ForwardedCalls } from './forwarded.js'
import { isProviderExecuted, providerApprovalOf } from './history.js'
import { arrangeParts, readTextPieces, type TextPiece } from './order.js'
import { remembered } from './remembered.js'
import { turnwise } from './turns.js'

/**
 * Converts a prepared history to the messages of a request to this provider's model. Reasoning joins its assistant message.
 * A call that needs the provider's approval has the answer in place of a result, until it has one.
 */
export function toModelMessages(
  prepared: readonly Message[],
  provider: string,
  forwarded: ForwardedCalls = new Map(),
): readonly ModelMessage[] {
  return forwarded.size > 0 ? partOf(prepared, provider, forwarded).items : unforwarded(prepared, provider)
}

const unforwarded = turnwise<ModelMessage, string>((history, from, end, provider) =>
  partOf(history.slice(from, end), provider, new Map()),
)

/** It is closed unless it has something that belongs to messages elsewhere: a provider's approval, or reasoning that names its message. */
function partOf(prepared: readonly Message[], provider: string, forwarded: ForwardedCalls) {
  const messages: ModelMessage[] = []
  const reasoning = reasoningByOwner(prepared)
  const ids = new Set(reasoning.size === 0 ? [] : prepared.map(({ id }) => id))
  const answeredApprovals = new Set<string>()
  let calls: readonly ToolCall[] = []
  let results: (ModelToolResult | ModelApprovalResponse)[] | undefined
  const answer = (result: ModelToolResult | ModelApprovalResponse) => {
    if (result.type === 'approval-response') {
      if (answeredApprovals.has(result.approvalId)) return
      answeredApprovals.add(result.approvalId)
    }
    if (results === undefined) {
      results = []
      messages.push({ role: 'tool', content: results })
    }
    results.push(result)
  }
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
      case 'assistant': {
        calls = message.toolCalls ?? []
        const content = assistantContent(message, reasoning.get(message.id) ?? [], provider)
        messages.push({ role: 'assistant', content })
        for (const one of calls) if (forwarded.has(one)) forwardedAnswer(one).forEach(answer)
        break
      }
      case 'tool': {
        const call = calls.findLast(({ id }) => id === message.toolCallId)
        answer(toolAnswer(message, call, provider))
        break
      }
      case 'reasoning':
      case 'activity':
        break
      default:
        message satisfies never
    }
  }
  const isClosed = answeredApprovals.size === 0 && [...reasoning.keys()].every((owner) => ids.has(owner))
  return { items: messages, isClosed }
}

/** By the id in the reasoning's metadata, else by the assistant message that follows it. */
function reasoningByOwner(messages: readonly Message[]): ReadonlyMap<string, readonly ReasoningMessage[]> {
  const byOwner = new Map<string, ReasoningMessage[]>()
  let unowned: ReasoningMessage[] = []
  for (const message of messages) {
    if (message.role === 'reasoning') {
      const owner = asString(getCountersignMetadata(message.metadata).messageId)
      if (owner === undefined) unowned.push(message)
      else addTo(byOwner, owner, message)
      continue
    }
    if (message.role === 'assistant') for (const one of unowned) addTo(byOwner, message.id, one)
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
  provider: string,
): readonly (ModelText | ModelReasoning | ModelToolCall)[] {
  const { content, toolCalls, metadata } = message
  // Most messages of a long conversation are only a text.
  if (content && toolCalls === undefined && metadata === undefined && reasoning.length === 0)
    return [{ type: 'text', text: content }]
  const thoughts = reasoning.map(
    (thought): ModelReasoning => ({
      type: 'reasoning',
      text: thought.content,
      ...(thought.encryptedValue !== undefined && { signature: thought.encryptedValue }),
      ...providerMetadata(thought.metadata, provider),
    }),
  )
  const calls = (toolCalls ?? []).map(
    (call): ModelToolCall => ({
      type: 'tool-call',
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
      ...(isProviderExecuted(call) && { providerExecuted: true }),
      ...providerApproval(call),
      ...(call.encryptedValue !== undefined && { signature: call.encryptedValue }),
      ...providerMetadata(call.metadata, provider),
    }),
  )
  return arrangeParts(thoughts, textPieces(message, provider), calls, getCountersignMetadata(metadata).order)
}

function textPieces({ content, metadata }: AssistantMessage, name: string): readonly TextPiece[] {
  if (!content) return []
  const own = getCountersignMetadata(metadata)
  const metadataOf = (provider: unknown) => ownedBy(provider, name)
  const pieces = readTextPieces(content, own.texts, metadataOf)
  return pieces ?? [{ text: content, metadata: metadataOf(own.provider) }]
}

function providerApproval(call: ToolCall): Pick<ModelToolCall, 'approval'> {
  const id = providerApprovalOf(call)
  return id === undefined ? {} : { approval: { id, state: 'requested' } }
}

function providerMetadata(metadata: unknown, name: string): { metadata?: ProviderMetadata } {
  const own = ownedBy(getCountersignMetadata(metadata).provider, name)
  return own === undefined ? {} : { metadata: own }
}

function ownedBy(provider: unknown, name: string): ProviderMetadata | undefined {
  const own = isRecord(provider) && Object.hasOwn(provider, name) ? provider[name] : undefined
  return isRecord(own) ? own : undefined
}

function forwardedAnswer(call: ToolCall): readonly ModelApprovalResponse[] {
  const approvalId = providerApprovalOf(call)
  if (approvalId === undefined) return []
  return [{ type: 'approval-response', approvalId, toolCallId: call.id, approved: true }]
}

const neverRan = new Set(['denied', 'cancelled'])

/** A result, or, for a call that needed the provider's approval and never ran, a denial for the provider. */
function toolAnswer(
  message: ToolMessage,
  call: ToolCall | undefined,
  provider: string,
): ModelToolResult | ModelApprovalResponse {
  const { toolCallId } = message
  const outcome = outcomeOf(message)
  const approvalId = call && providerApprovalOf(call)
  if (approvalId !== undefined && !isSuccess(outcome) && neverRan.has(outcome.kind)) {
    const { reason } = outcome
    const denied = { type: 'approval-response', approvalId, toolCallId, approved: false } as const
    return { ...denied, ...(reason !== undefined && { reason }) }
  }
  const toolName = call?.function.name ?? ''
  const metadata = providerMetadata(message.metadata, provider)
  // Beside the result or, if the call ran elsewhere, in the call.
  const { editedInput = getCountersignMetadata(call?.metadata).editedInput } = getCountersignMetadata(
    message.metadata,
  )
  const told = editedInput === undefined ? outcome : { ...outcome, editedInput }
  return { type: 'tool-result', toolCallId, toolName, outcome: told, ...metadata }
}

export const outcomeOf = remembered(({ metadata, content, error }: ToolMessage): ToolOutcome => {
  const { outcome, code } = getCountersignMetadata(metadata)
  const failure: FailureFlag | undefined =
    outcome === 'denied' || outcome === 'cancelled' || outcome === 'error'
      ? { outcome, ...(typeof code === 'string' && { code }) }
      : undefined
  return fromResultContent(content, failure, error)
})
