import { isRecord } from '@countersign/core'
import type { ModelReasoning, ModelText, ModelToolCall, ProviderMetadata } from '../model/model.js'

/**
 * One step of an assistant message's `metadata.countersign.order`: a number of UTF-16 units of its text, its next reasoning (`r`) or its
 * next call (`c`). A client records more there (results, sources), which the model is never shown.
 */
export type OrderStep = number | 'r' | 'c'

/** A piece of a message's text with its own metadata for the provider. */
export interface TextPiece {
  readonly text: string
  readonly metadata?: ProviderMetadata | undefined
}

/** The order that readers assume without a record: reasoning, one text, calls. */
export function isUsualOrder(order: readonly OrderStep[]): boolean {
  const ranks = order.map((step) => (step === 'r' ? 0 : step === 'c' ? 2 : 1))
  return ranks.every(
    (rank, i) => i === 0 || rank > (ranks[i - 1] ?? 0) || (rank !== 1 && rank === ranks[i - 1]),
  )
}

/** An order without the steps of removed calls, which are identified by their index among the calls. */
export function orderWithout(order: unknown, isLeftOut: (nth: number) => boolean): unknown {
  if (!Array.isArray(order)) return order
  let nth = 0
  return order.filter((step: unknown) => step !== 'c' || !isLeftOut(nth++))
}

/** Longer orders, and texts of more pieces, are ignored: a step costs far more than the few bytes that request it. */
const MOST_STEPS = 10_000

type AssistantPart = ModelText | ModelReasoning | ModelToolCall

/** The parts in the order of `order`. If it does not cover all of them, in the usual order. */
export function arrangeParts(
  reasoning: readonly ModelReasoning[],
  texts: readonly TextPiece[],
  calls: readonly ModelToolCall[],
  order: unknown,
): readonly AssistantPart[] {
  const usual = [...reasoning, ...texts.map(textPart), ...calls]
  if (!Array.isArray(order) || order.length > MOST_STEPS) return usual
  // By position: the client writes both the order and the parts, so each piece must be touched only once.
  const thoughts = reasoning.values()
  const asked = calls.values()
  const text = textReader(texts)
  const parts: AssistantPart[] = []
  for (const step of order) {
    if (typeof step === 'number') for (const piece of text.take(step)) parts.push(textPart(piece))
    const part = step === 'r' ? thoughts.next().value : step === 'c' ? asked.next().value : undefined
    if (part !== undefined) parts.push(part)
  }
  return thoughts.next().done && asked.next().done && text.isRead() ? parts : usual
}

function textPart({ text, metadata }: TextPiece): ModelText {
  return { type: 'text', text, ...(metadata !== undefined && { metadata }) }
}

/** Reads texts from the start. If a piece is divided, only its first part keeps the metadata. */
function textReader(pieces: readonly TextPiece[]) {
  let at = 0
  let from = 0
  return {
    *take(length: number): Generator<TextPiece> {
      for (let open = Math.floor(length); open > 0; ) {
        const piece = pieces[at]
        if (piece === undefined) return
        const text = piece.text.slice(from, from + open)
        yield from === 0 ? { ...piece, text } : { text }
        open -= text.length
        from += text.length
        if (from < piece.text.length) return
        at++
        from = 0
      }
    },
    isRead: () => at >= pieces.length,
  }
}

/**
 * Divides a message's text into pieces, as `metadata.countersign.texts` says (`[{ length, provider? }]`). `undefined` if that is absent
 * or does not match the text.
 */
export function readTextPieces(
  text: string,
  texts: unknown,
  metadataOf: (provider: unknown) => ProviderMetadata | undefined,
): readonly TextPiece[] | undefined {
  if (!Array.isArray(texts) || texts.length > MOST_STEPS) return undefined
  const pieces: TextPiece[] = []
  let start = 0
  for (const piece of texts) {
    if (!isRecord(piece) || typeof piece.length !== 'number' || !(piece.length > 0)) return undefined
    const end = start + piece.length
    pieces.push({ text: text.slice(start, end), metadata: metadataOf(piece.provider) })
    start = end
  }
  return start === text.length ? pieces : undefined
}
