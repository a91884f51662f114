import { asString, isRecord, omitUndefined } from '@countersign/core'
import type { AiSdkPart } from './message.js'

/**
 * What a UI message stores about its AI SDK message, in `metadata.aiSdk`. An AI SDK message has several
 * steps. Here, as in AG-UI, each is a separate message; they are joined again when they are sent.
 */
export interface StepMark {
  /** The id of the AI SDK message. */
  readonly id: string
  readonly step: number
  /** The boundaries and SDK metadata of the step's texts, if the parts alone do not determine them. */
  readonly layout?: readonly LayoutItem[]
  /** Metadata of the AI SDK message that is not an object; an object is stored next to `aiSdk` itself. */
  readonly metadata?: unknown
  /** The message represents one part that AG-UI has no event for: its index in the step, its AI SDK type and its id. */
  readonly part?: { readonly index: number; readonly type: string; readonly id?: string }
}

/** A text by its length, with its SDK metadata; `part` stands for the next part that is not text. */
export type LayoutItem = TextItem | 'part'

export interface TextItem {
  text: number
  providerMetadata?: unknown
  citations?: unknown
}

/** Reads `metadata.aiSdk`. */
export function aiSdkOf(metadata: unknown): Readonly<Record<string, unknown>> {
  const own = isRecord(metadata) ? metadata.aiSdk : undefined
  return isRecord(own) ? own : {}
}

/** `{ aiSdk }`, or `undefined` if it would be empty. */
export function aiSdkMetadata(
  own: Readonly<Record<string, unknown>>,
): { readonly aiSdk: Record<string, unknown> } | undefined {
  const said = omitUndefined({ ...own })
  return Object.keys(said).length > 0 ? { aiSdk: said } : undefined
}

export function readMark(metadata: unknown): StepMark | undefined {
  const { id, step, layout, metadata: other, part } = aiSdkOf(metadata)
  if (typeof id !== 'string' || typeof step !== 'number') return undefined
  return omitUndefined({
    id,
    step,
    layout: Array.isArray(layout) ? layout.filter(isLayoutItem) : undefined,
    metadata: other,
    part: readPlace(part),
  })
}

function readPlace(value: unknown): StepMark['part'] | undefined {
  if (!isRecord(value) || typeof value.type !== 'string' || typeof value.index !== 'number') return undefined
  return { index: value.index, type: value.type, ...omitUndefined({ id: asString(value.id) }) }
}

function isLayoutItem(value: unknown): value is LayoutItem {
  return value === 'part' || (isRecord(value) && Number.isInteger(value.text) && Number(value.text) >= 0)
}

/** Extracts the application's metadata of an AI SDK message from ours. */
export function ownMetadataOf(metadata: unknown): unknown {
  if (!isRecord(metadata)) return undefined
  const { aiSdk, countersign: _, subagent: __, ...own } = metadata
  if (Object.keys(own).length > 0) return own
  return aiSdkOf({ aiSdk }).metadata
}

/** The reverse: objects are stored next to `aiSdk`, anything else inside it. */
export function metadataWith(
  metadata: unknown,
  mark: Partial<StepMark>,
): Record<string, unknown> | undefined {
  const rest = isRecord(metadata) ? metadata : undefined
  const own = rest === undefined && metadata !== undefined && metadata !== null ? { ...mark, metadata } : mark
  const made = { ...rest, ...aiSdkMetadata(own) }
  return Object.keys(made).length > 0 ? made : undefined
}

/** The layout of parts. `isElsewhere`: parts that become separate messages. */
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

/** Whether a part of an assistant message becomes a separate message (an AG-UI activity). */
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

/** Whether the parts alone do not determine the layout: several texts, an empty one, or one with metadata. */
export function isNeeded(layout: readonly LayoutItem[]): boolean {
  const texts = layout.filter((item) => item !== 'part')
  const [first] = texts
  return texts.length > 1 || (first !== undefined && (first.text === 0 || Object.keys(first).length > 1))
}

/** Whether data has the form in which an activity, whose content is an object, holds any other value. An object of this form is held so, too. */
export function isWrapped(data: unknown): data is { readonly value: unknown } {
  return isRecord(data) && Object.keys(data).join() === 'value'
}
