import { isRecord } from '@countersign/core'
import type { ModelReasoning } from '@countersign/server'
import { asList, asNumber, asRecord, asText, type Fields } from '@countersign/server/model-kit'

/**
 * The field in which a server sends reasoning, which Chat Completions does not define: `reasoning_content`
 * (DeepSeek, xAI, vLLM, llama.cpp), `reasoning` (Groq, OpenRouter, Ollama), or parts of `content` (Mistral).
 */
export type ReasoningField = 'reasoning_content' | 'reasoning' | 'thinking'

/** The reasoning in a delta. */
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

/** Fields of OpenRouter's `reasoning_details` that are streamed in pieces. */
const growing = ['text', 'summary', 'data']

/** Merges streamed reasoning details: pieces of one detail share its `index` and `type`. */
export class ReasoningDetails {
  readonly #details = new Map<unknown, Map<string, unknown>>()

  add(pieces: unknown): void {
    for (const piece of asList(pieces)) {
      if (!isRecord(piece)) continue
      const { index, type } = piece
      // Servers that do not number details send complete ones; they stay separate.
      const key = index === undefined ? Symbol() : JSON.stringify([index, type])
      const detail = this.#details.get(key)
      if (detail === undefined) this.#details.set(key, new Map(Object.entries(piece)))
      else for (const [field, value] of Object.entries(piece)) grow(detail, field, value)
    }
  }

  /** What was added since the last time. */
  take(): readonly Fields[] {
    const details = [...this.#details.values()].map((fields) => Object.fromEntries(fields))
    this.#details.clear()
    return details
  }
}

function grow(detail: Map<string, unknown>, field: string, value: unknown): void {
  if (value === null || value === undefined) return
  const before = growing.includes(field) ? asText(detail.get(field)) : undefined
  const more = asText(value)
  detail.set(field, before !== undefined && more !== undefined ? before + more : value)
}

const fieldsOfDetails = ['type', 'text', 'summary', 'data', 'signature', 'id', 'format'] as const

/**
 * Reasoning to be sent back. Signed details are always included. Plain reasoning goes only to the server that
 * sent it, in the same field, and only during one turn: DeepSeek refuses that of earlier turns.
 */
export function thoughtFields(parts: readonly ModelReasoning[], sameQuestion: boolean): Fields {
  const details = parts.flatMap(({ metadata }) => asList(metadata?.details).map(detailOf))
  if (details.length > 0) return { reasoning_details: details }
  if (!sameQuestion) return {}
  const field = parts.map(({ metadata }) => metadata?.field).find(isPlain)
  const text = parts.map((part) => part.text).join('')
  return field === undefined || text === '' ? {} : { [field]: text }
}

/** Reasoning that is sent back as parts of the content. */
export function thinkingParts(parts: readonly ModelReasoning[]): readonly Fields[] {
  return parts
    .filter(({ metadata, text }) => metadata?.field === 'thinking' && text !== '')
    .map(({ text }) => ({ type: 'thinking', thinking: [{ type: 'text', text }] }))
}

function isPlain(field: unknown): field is ReasoningField {
  return field === 'reasoning_content' || field === 'reasoning'
}

/** Details have passed through the client, so only known fields are sent. */
function detailOf(detail: unknown): Fields {
  const fields = asRecord(detail)
  const index = asNumber(fields.index)
  const known = fieldsOfDetails.flatMap((field) => {
    const value = asText(fields[field])
    return value === undefined ? [] : [[field, value]]
  })
  return { ...Object.fromEntries(known), ...(index !== undefined && { index }) }
}
