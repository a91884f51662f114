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

type AssistantPart = ModelText | ModelReasoning | ModelToolCall

/** The parts as `order` has them. Where it does not name each of them once, as everybody assumes them. */
export function arrangeParts(
  reasoning: readonly ModelReasoning[],
  texts: readonly TextPiece[],
  calls: readonly ModelToolCall[],
  order: unknown,
): readonly AssistantPart[] {
  const usual = [...reasoning, ...texts.map(textPart), ...calls]
  if (!Array.isArray(order)) return usual
  const thoughts = [...reasoning]
  const asked = [...calls]
  let left = [...texts]
  const parts: AssistantPart[] = []
  for (const step of order) {
    if (typeof step === 'number') {
      const [taken, rest] = takeText(left, step)
      parts.push(...taken.map(textPart))
      left = rest
    }
    const part = step === 'r' ? thoughts.shift() : step === 'c' ? asked.shift() : undefined
    if (part !== undefined) parts.push(part)
  }
  return thoughts.length + asked.length + left.length === 0 ? parts : usual
}

function textPart({ text, metadata }: TextPiece): ModelText {
  return { type: 'text', text, ...(metadata !== undefined && { metadata }) }
}

/** The pieces of the first `length` units, and what is left of them. A piece that is divided keeps its metadata in its first half. */
function takeText(pieces: readonly TextPiece[], length: number): [TextPiece[], TextPiece[]] {
  const taken: TextPiece[] = []
  let open = length
  for (const [i, piece] of pieces.entries()) {
    if (!(open > 0)) return [taken, pieces.slice(i)]
    if (piece.text.length > open) {
      const rest = { text: piece.text.slice(open) }
      return [
        [...taken, { ...piece, text: piece.text.slice(0, open) }],
        [rest, ...pieces.slice(i + 1)],
      ]
    }
    taken.push(piece)
    open -= piece.text.length
  }
  return [taken, []]
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
  if (!Array.isArray(texts)) return undefined
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
