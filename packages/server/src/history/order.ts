import { isRecord } from '@countersign/core'
import type { ModelReasoning, ModelText, ModelToolCall, ProviderMetadata } from '../model/model.js'

/**
 * One step of an assistant message's `metadata.countersign.order`: how many UTF-16 units of its text, its next reasoning (`r`) or its
 * next call (`c`). A client says more there (results, sources); no model is shown that.
 */
export type OrderStep = number | 'r' | 'c'

/** A piece of a message's text that has something of its own to go back to its provider with it. */
export interface TextPiece {
  readonly text: string
  readonly metadata?: ProviderMetadata | undefined
}

/** What a reader assumes where no order is said: reasoning, one text, calls. */
export function isUsualOrder(order: readonly OrderStep[]): boolean {
  const ranks = order.map((step) => (step === 'r' ? 0 : step === 'c' ? 2 : 1))
  return ranks.every(
    (rank, i) => i === 0 || rank > (ranks[i - 1] ?? 0) || (rank !== 1 && rank === ranks[i - 1]),
  )
}

/** An order without the steps of those calls that are left out, by their number among the calls. */
export function orderWithout(order: unknown, isLeftOut: (nth: number) => boolean): unknown {
  if (!Array.isArray(order)) return order
  let nth = 0
  return order.filter((step: unknown) => step !== 'c' || !isLeftOut(nth++))
}

/** An order of more steps, or a text of more pieces, is not followed: each costs far more than the few bytes that ask for it. */
const MOST_STEPS = 10_000

type AssistantPart = ModelText | ModelReasoning | ModelToolCall

/** The parts as `order` has them. Where it does not name each of them once, as everybody assumes them. */
export function arrangeParts(
  reasoning: readonly ModelReasoning[],
  texts: readonly TextPiece[],
  calls: readonly ModelToolCall[],
  order: unknown,
): readonly AssistantPart[] {
  const usual = [...reasoning, ...texts.map(textPart), ...calls]
  if (!Array.isArray(order) || order.length > MOST_STEPS) return usual
  // by position: a client writes both the order and what it takes apart, and each piece is touched once
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

/** Takes texts from their beginning. A piece that is divided keeps its metadata in its first part. */
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
 * A message's text in its pieces, as `metadata.countersign.texts` divides it (`[{ length, provider? }]`). Where that does not fit the
 * text, or is not said, in one piece.
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
