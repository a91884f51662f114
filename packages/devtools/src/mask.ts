import { isRecord, REDACTED, sanitizeArgs } from '@countersign/core'
import type { Recording, TimelineEntry } from './form.js'
import { printAction, printStep } from './print.js'

/**
 * A copy with the values of secret-looking keys masked at every depth, as `sanitizeArgs` of
 * `@countersign/core` does; also inside strings that are JSON, as AG-UI carries arguments and results.
 */
export function mask(value: unknown): unknown {
  return sanitizeArgs(maskTexts(value), { maxLength: Number.POSITIVE_INFINITY, maxDepth: 64, isSecret })
}

/** Token counts are numbers in the protocol, not secrets. */
function isSecret(key: string): false | undefined {
  return /^(?:input|output|total|reasoning|cachedInput|cacheWriteInput)Tokens$/.test(key) ? false : undefined
}

function maskTexts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(maskTexts)
  if (!isRecord(value)) return value
  if (typeof value.op === 'string' && typeof value.path === 'string') return maskPatch(value, value.path)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, maskMember(key, item)]))
}

/** An operation of a JSON patch names its key in its path. */
function maskPatch(operation: Readonly<Record<string, unknown>>, path: string): unknown {
  const key = path.slice(path.lastIndexOf('/') + 1)
  const masked = sanitizeArgs({ [key]: null }, { isSecret }) as Record<string, unknown>
  return masked[key] === null || !('value' in operation) ? operation : { ...operation, value: REDACTED }
}

function maskMember(key: string, item: unknown): unknown {
  if (typeof item !== 'string') return maskTexts(item)
  if (key === 'arguments') return maskArguments(item)
  return key === 'content' ? maskJson(item, item) : item
}

/** Masks the text of a call's arguments. Text that cannot be parsed is masked completely. */
function maskArguments(text: string): string {
  return text === '' ? text : maskJson(text, JSON.stringify(REDACTED))
}

function maskJson(text: string, unreadable: string): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return unreadable
  }
  if (typeof value !== 'object' || value === null) return text
  const masked = JSON.stringify(mask(value))
  return masked === JSON.stringify(value) ? text : masked
}

/** Masks one entry for display. Pieces of streamed arguments are masked completely, because a secret may be spread over them. */
export function maskEntry(entry: TimelineEntry): TimelineEntry {
  if (entry.kind === 'event' && entry.event.type === 'TOOL_CALL_ARGS')
    return { ...entry, event: { ...entry.event, delta: REDACTED } }
  return maskPlain(entry)
}

/**
 * A recording without secrets that still replays: a value is masked identically in events, requests, actions
 * and steps. If the arguments of a call contain secrets, the first piece carries all of the masked arguments.
 */
export function maskRecording(recording: Recording): Recording {
  const { start, entries } = recording
  const masked = new Map<number, TimelineEntry>()
  for (const pieces of argumentPieces(entries).values()) {
    const text = pieces.map(({ delta }) => delta).join('')
    const shown = maskArguments(text)
    if (shown === text) continue
    for (const [order, { at, entry }] of pieces.entries())
      masked.set(at, { ...entry, event: { ...entry.event, delta: order === 0 ? shown : '' } })
  }
  return {
    ...recording,
    masked: true,
    start: mask(start) as Recording['start'],
    entries: entries.map((entry, at) => masked.get(at) ?? maskPlain(entry)),
  }
}

interface Piece {
  readonly at: number
  readonly entry: Extract<TimelineEntry, { readonly kind: 'event' }>
  readonly delta: string
}

/** The pieces of streamed arguments, by call and run. */
function argumentPieces(entries: readonly TimelineEntry[]): ReadonlyMap<string, readonly Piece[]> {
  const calls = new Map<string, Piece[]>()
  for (const [at, entry] of entries.entries()) {
    if (entry.kind !== 'event' || entry.event.type !== 'TOOL_CALL_ARGS') continue
    const { toolCallId, delta } = entry.event as { toolCallId?: unknown; delta?: unknown }
    const key = `${entry.run} ${String(toolCallId)}`
    const pieces = calls.get(key) ?? []
    pieces.push({ at, entry, delta: String(delta) })
    calls.set(key, pieces)
  }
  return calls
}

/** Display texts are derived from the same values, so they are generated again from the masked ones. */
function maskPlain(entry: TimelineEntry): TimelineEntry {
  const masked = mask(entry) as TimelineEntry
  switch (masked.kind) {
    case 'action':
      return masked.action ? { ...masked, text: printAction(masked.action) } : masked
    case 'note':
      return masked.step ? { ...masked, text: printStep(masked.step) } : masked
    default:
      return masked
  }
}
