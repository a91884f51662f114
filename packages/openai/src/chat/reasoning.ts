import { isRecord } from '@countersign/core'
import type { ModelReasoning } from '@countersign/server'
import { asList, asNumber, asRecord, asText, type Fields } from '@countersign/server/model-kit'

/**
 * Where a server puts thoughts, for which Chat Completions has no place of its own: `reasoning_content` (DeepSeek, xAI, vLLM, llama.cpp),
 * `reasoning` (Groq, OpenRouter, Ollama), or parts of `content` (Mistral).
 */
export type ReasoningField = 'reasoning_content' | 'reasoning' | 'thinking'

/** The thoughts in a delta. */
export function readThought(
  delta: Fields,
): { readonly field: ReasoningField; readonly text: string } | undefined {
  for (const field of ['reasoning_content', 'reasoning'] as const) {
    const text = asText(delta[field])
    if (text) return { field, text }
  }
  const text = asList(delta.content).map(thinkingText).join('')
  return text === '' ? undefined : { field: 'thinking', text }
}

function thinkingText(part: unknown): string {
  const { type, thinking } = asRecord(part)
  if (type !== 'thinking') return ''
  if (typeof thinking === 'string') return thinking
  return asList(thinking)
    .map((inner) => asText(asRecord(inner).text) ?? '')
    .join('')
}

/** Fields of OpenRouter's `reasoning_details` that come in pieces. */
const growing = ['text', 'summary', 'data']

/** Details of reasoning as far as they have come: pieces of one detail have its `index` and its `type`. */
export function mergeDetails(before: readonly Fields[], pieces: unknown): readonly Fields[] {
  const details = [...before]
  for (const piece of asList(pieces)) {
    if (!isRecord(piece)) continue
    const at = details.findLastIndex(({ index, type }) => index === piece.index && type === piece.type)
    const detail = details[at]
    // whole details of servers that do not number them stay apart
    if (detail === undefined || piece.index === undefined) details.push(piece)
    else details[at] = mergePiece(detail, piece)
  }
  return details
}

function mergePiece(detail: Fields, piece: Fields): Fields {
  const given = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined)
  const grown = growing.flatMap((field) => {
    const [before, more] = [asText(detail[field]), asText(piece[field])]
    return before !== undefined && more !== undefined ? [[field, before + more]] : []
  })
  return { ...detail, ...Object.fromEntries(given), ...Object.fromEntries(grown) }
}

const fieldsOfDetails = ['type', 'text', 'summary', 'data', 'signature', 'id', 'format'] as const

/**
 * Thoughts as they go back. Signed details always do. Plain thoughts only to the server that gave them, under the field where it put
 * them, and only while it works on one question: DeepSeek refuses those of earlier ones.
 */
export function thoughtFields(parts: readonly ModelReasoning[], sameQuestion: boolean): Fields {
  const details = parts.flatMap(({ metadata }) => asList(metadata?.details).map(detailOf))
  if (details.length > 0) return { reasoning_details: details }
  if (!sameQuestion) return {}
  const field = parts.map(({ metadata }) => metadata?.field).find(isPlain)
  const text = parts.map((part) => part.text).join('')
  return field === undefined || text === '' ? {} : { [field]: text }
}

/** The thoughts that go back as parts of the content. */
export function thinkingParts(parts: readonly ModelReasoning[]): readonly Fields[] {
  return parts
    .filter(({ metadata, text }) => metadata?.field === 'thinking' && text !== '')
    .map(({ text }) => ({ type: 'thinking', thinking: [{ type: 'text', text }] }))
}

function isPlain(field: unknown): field is ReasoningField {
  return field === 'reasoning_content' || field === 'reasoning'
}

/** It has been in the client's hands: only what is known of a detail is sent. */
function detailOf(detail: unknown): Fields {
  const fields = asRecord(detail)
  const index = asNumber(fields.index)
  const known = fieldsOfDetails.flatMap((field) => {
    const value = asText(fields[field])
    return value === undefined ? [] : [[field, value]]
  })
  return { ...Object.fromEntries(known), ...(index !== undefined && { index }) }
}
