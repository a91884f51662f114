import { asString, isRecord, omitUndefined } from '@countersign/core'
import type { AiSdkPart } from './message.js'

/**
 * What a UI message keeps of the AI SDK message it is a step of, in `metadata.aiSdk`. One AI SDK message has several steps; here each of
 * them is a message of its own, as in AG-UI, and they are one message again when they are sent.
 */
export interface StepMark {
  /** Of the AI SDK message. */
  readonly id: string
  readonly step: number
  /** Where the texts of the step begin and end and what the SDK says of each, where the parts alone do not tell. */
  readonly layout?: readonly LayoutItem[]
  /** Metadata of the AI SDK message that is no object; what is one lies beside `aiSdk` itself. */
  readonly metadata?: unknown
  /** The message stands for one part that AG-UI has no event for: its place in the step, its type there and its id. */
  readonly part?: { readonly index: number; readonly type: string; readonly id?: string }
  /** The server took the step back. */
  readonly isReset?: boolean
}

/** A text by its length, with whatever the SDK says of it; `part` is the next part of the message that is no text. */
export type LayoutItem = TextItem | 'part'

export interface TextItem {
  text: number
  providerMetadata?: unknown
  citations?: unknown
}

/** What `metadata` says of the AI SDK. */
export function aiSdkOf(metadata: unknown): Readonly<Record<string, unknown>> {
  const own = isRecord(metadata) ? metadata.aiSdk : undefined
  return isRecord(own) ? own : {}
}

/** `{ aiSdk }`, or nothing where nothing is said. */
export function aiSdkMetadata(
  own: Readonly<Record<string, unknown>>,
): { readonly aiSdk: Record<string, unknown> } | undefined {
  const said = omitUndefined({ ...own })
  return Object.keys(said).length > 0 ? { aiSdk: said } : undefined
}

export function readMark(metadata: unknown): StepMark | undefined {
  const { id, step, layout, metadata: other, part, isReset } = aiSdkOf(metadata)
  if (typeof id !== 'string' || typeof step !== 'number') return undefined
  return omitUndefined({
    id,
    step,
    layout: Array.isArray(layout) ? layout.filter(isLayoutItem) : undefined,
    metadata: other,
    part: readPlace(part),
    isReset: isReset === true || undefined,
  })
}

function readPlace(value: unknown): StepMark['part'] | undefined {
  if (!isRecord(value) || typeof value.type !== 'string' || typeof value.index !== 'number') return undefined
  return { index: value.index, type: value.type, ...omitUndefined({ id: asString(value.id) }) }
}

function isLayoutItem(value: unknown): value is LayoutItem {
  return value === 'part' || (isRecord(value) && Number.isInteger(value.text) && Number(value.text) >= 0)
}

/** The application's own metadata of an AI SDK message, out of that of ours. */
export function ownMetadataOf(metadata: unknown): unknown {
  if (!isRecord(metadata)) return undefined
  const { aiSdk, countersign: _, subagent: __, ...own } = metadata
  if (Object.keys(own).length > 0) return own
  return aiSdkOf({ aiSdk }).metadata
}

/** The same the other way: objects lie beside our own key, anything else in it. */
export function metadataWith(
  metadata: unknown,
  mark: Partial<StepMark>,
): Record<string, unknown> | undefined {
  const rest = isRecord(metadata) ? metadata : undefined
  const own = rest === undefined && metadata !== undefined && metadata !== null ? { ...mark, metadata } : mark
  const made = { ...rest, ...aiSdkMetadata(own) }
  return Object.keys(made).length > 0 ? made : undefined
}

/** How parts lie, as a layout. `isElsewhere`: parts that are not in the same message here. */
export function layoutOf(
  parts: readonly AiSdkPart[],
  isElsewhere: (part: AiSdkPart) => boolean,
): LayoutItem[] {
  return parts.flatMap((part): LayoutItem[] => {
    if (part.type !== 'text') return isElsewhere(part) ? [] : ['part']
    const { text, providerMetadata, citations } = part
    return [{ text: text.length, ...omitUndefined({ providerMetadata, citations }) }]
  })
}

/** Whether a part of an assistant's message is kept as a message of its own (an AG-UI activity). */
export function isOwnMessage({ type }: AiSdkPart): boolean {
  switch (type) {
    case 'file':
    case 'custom':
    case 'reasoning-file':
    case 'steering-message':
      return true
    default:
      return type.startsWith('data-')
  }
}

/** Whether the parts of the message alone would not tell the same: two texts in one, an empty one, or one with metadata. */
export function isNeeded(layout: readonly LayoutItem[]): boolean {
  const texts = layout.filter((item) => item !== 'part')
  const [first] = texts
  return texts.length > 1 || (first !== undefined && (first.text === 0 || Object.keys(first).length > 1))
}
