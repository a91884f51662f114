import type {
  ModelApprovalResponse,
  ModelReasoning,
  ModelText,
  ModelToolCall,
  ModelToolResult,
} from '@countersign/server'
import { asRecord, asText, parseJson, toProviderText } from '@countersign/server/model-kit'
import type { ResponseInputItem } from 'openai/resources/responses/responses'
import { providerItem } from './provider-item.js'

type Part = ModelText | ModelReasoning | ModelToolCall
type Answer = ModelToolResult | ModelApprovalResponse

/** A part and the item it came from. */
interface Piece {
  readonly thought?: boolean
  /** The provider has run the call since its approval request: it sent the request as an item, but gets back the call. */
  readonly changed?: boolean
  /** With or without the ids that the provider assigned. */
  item(withIds: boolean): ResponseInputItem
}

/**
 * Converts one step of the model, and the results and answers for its calls, to items in their original order. The provider requires a
 * reasoning item to be followed by the very item it led to; a turn that cannot be restored completely is sent without reasoning and ids.
 *
 * @param stored whether the provider stores replies, so that an id can stand for an item
 */
export function turnItems(
  parts: readonly Part[],
  answers: readonly Answer[],
  stored: boolean,
): readonly ResponseInputItem[] {
  const answerTo = new Map(answers.map((answer) => [answer.toolCallId, answer]))
  const thoughts = thoughtsByItem(parts)
  const read = parts.flatMap((part): readonly (Piece | undefined)[] => {
    switch (part.type) {
      case 'reasoning': {
        const own = thoughts.get(part.metadata?.itemId) ?? []
        // Each summary of a reasoning item is a separate part. Reasoning of other providers is not sent.
        return own[0] === part ? [thoughtPiece(own, stored)] : []
      }
      case 'text':
        return [textPiece(part)]
      case 'tool-call':
        return [callPiece(part, answerTo.get(part.id))]
      default:
        return part satisfies never
    }
  })
  const pieces = read.filter((piece) => piece !== undefined)
  const whole = pieces.length === read.length && !pieces.some(({ changed }) => changed)
  const sent = whole ? pieces : pieces.filter(({ thought }) => !thought)
  return [...sent.map((piece) => piece.item(whole)), ...outputs(parts, answers)]
}

function thoughtsByItem(parts: readonly Part[]): ReadonlyMap<unknown, readonly ModelReasoning[]> {
  const items = new Map<unknown, ModelReasoning[]>()
  for (const part of parts) {
    const itemId = part.type === 'reasoning' ? part.metadata?.itemId : undefined
    if (part.type === 'reasoning' && typeof itemId === 'string')
      items.set(itemId, [...(items.get(itemId) ?? []), part])
  }
  return items
}

function thoughtPiece(own: readonly ModelReasoning[], stored: boolean): Piece | undefined {
  const { signature: encrypted, metadata } = own.at(-1) ?? {}
  const id = asText(metadata?.itemId)
  if (id === undefined || (encrypted === undefined && !stored)) return undefined
  if (metadata?.type === 'compaction' && encrypted !== undefined)
    return { item: () => ({ type: 'compaction', id, encrypted_content: encrypted }) }
  const texts = own.map(({ text }) => text).filter((text) => text !== '')
  const open = metadata?.open === true
  return {
    thought: true,
    item: () => ({
      type: 'reasoning',
      id,
      summary: open ? [] : texts.map((text) => ({ type: 'summary_text', text })),
      ...(open && { content: texts.map((text) => ({ type: 'reasoning_text', text })) }),
      ...(encrypted !== undefined && { encrypted_content: encrypted }),
    }),
  }
}

function textPiece({ text, metadata = {} }: ModelText): Piece {
  const { phase } = metadata
  const id = asText(metadata.itemId)
  const about = isPhase(phase) ? { phase } : {}
  return {
    item: (withIds) =>
      withIds && id !== undefined
        ? {
            type: 'message',
            id,
            role: 'assistant',
            status: 'completed',
            content: [
              metadata.refusal === true
                ? { type: 'refusal', refusal: text }
                : { type: 'output_text', text, annotations: [] },
            ],
            ...about,
          }
        : { role: 'assistant', content: text, ...about },
  }
}

function isPhase(phase: unknown): phase is 'commentary' | 'final_answer' {
  return phase === 'commentary' || phase === 'final_answer'
}

function callPiece(call: ModelToolCall, answer: Answer | undefined): Piece | undefined {
  const { id, name, metadata = {} } = call
  if (call.providerExecuted) {
    const item = providerItem(call, answer)
    const changed = call.approval !== undefined && answer?.type === 'tool-result'
    return item && { item: () => item, changed }
  }
  const itemId = asText(metadata.itemId)
  return {
    item: (withIds) => ({
      ...(metadata.custom === true
        ? { type: 'custom_tool_call', call_id: id, name, input: inputOf(call) }
        : { type: 'function_call', call_id: id, name, arguments: call.arguments || '{}' }),
      ...(withIds && itemId !== undefined && { id: itemId }),
    }),
  }
}

/** A custom tool takes free text, which is wrapped in the arguments of our call. */
function inputOf(call: ModelToolCall): string {
  return asText(asRecord(parseJson(call.arguments)).input) ?? call.arguments
}

/** The answers that are separate items: results of calls that ran here, and answers to the provider's approval requests. */
function outputs(parts: readonly Part[], answers: readonly Answer[]): readonly ResponseInputItem[] {
  const calls = new Map(parts.flatMap((part) => (part.type === 'tool-call' ? [[part.id, part]] : [])))
  return answers.flatMap((answer): readonly ResponseInputItem[] => {
    const call = calls.get(answer.toolCallId)
    if (call === undefined) return []
    if (answer.type === 'approval-response')
      return providerItem(call, answer) === undefined ? [] : [approvalItem(answer)]
    if (call.providerExecuted) return []
    const output = toProviderText(answer.outcome)
    return call.metadata?.custom === true
      ? [{ type: 'custom_tool_call_output', call_id: call.id, output }]
      : [{ type: 'function_call_output', call_id: call.id, output }]
  })
}

function approvalItem({ approvalId, approved, reason }: ModelApprovalResponse): ResponseInputItem {
  return {
    type: 'mcp_approval_response',
    approval_request_id: approvalId,
    approve: approved,
    ...(reason !== undefined && { reason }),
  }
}
