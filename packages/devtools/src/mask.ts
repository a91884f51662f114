import { isRecord, REDACTED, sanitizeArgs } from '@countersign/core'
import type { Recording, TimelineEntry } from './form.js'
import { printAct, printStep } from './print.js'

/**
 * A value with what is under keys that name secrets masked, at every depth, as `sanitizeArgs` of `@countersign/core` does; also inside
 * of texts that are JSON, as AG-UI carries arguments and results.
 */
export function mask(value: unknown): unknown {
  return sanitizeArgs(maskTexts(value), { maxLength: Number.POSITIVE_INFINITY, maxDepth: 64, isSecret })
}

/** Counts of tokens are numbers by the protocol, and no secrets. */
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

/** The text of a call's arguments. What cannot be read cannot be masked in parts, and is masked whole. */
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

/** One entry for the eye. The pieces of streamed arguments are masked whole: a secret can be spread over them. */
export function maskEntry(entry: TimelineEntry): TimelineEntry {
  if (entry.kind === 'event' && entry.event.type === 'TOOL_CALL_ARGS')
    return { ...entry, event: { ...entry.event, delta: REDACTED } }
  return maskPlain(entry)
}

/**
 * A recording without secrets that still replays: the same value is masked in the same way in events, requests, acts and steps, and the
 * arguments of a call stream in as masked, the first piece with all of it where anything was.
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

/** Lines for the eye are made of the same values, so they are made anew where anything was masked. */
function maskPlain(entry: TimelineEntry): TimelineEntry {
  const masked = mask(entry) as TimelineEntry
  switch (masked.kind) {
    case 'act':
      return masked.act ? { ...masked, text: printAct(masked.act) } : masked
    case 'note':
      return masked.step ? { ...masked, text: printStep(masked.step) } : masked
    default:
      return masked
  }
}
