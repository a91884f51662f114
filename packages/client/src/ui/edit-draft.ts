import { isExactJson } from '@countersign/core'

/** One argument of a call in the editor. A `text` field holds a string unchanged, a `json` field any other value as JSON. */
export interface Field {
  key: string
  kind: 'text' | 'json'
  editable: boolean
  original: unknown
}

/** What the user typed, by key. A missing key means the field was not touched. */
export type Draft = Readonly<Record<string, string>>

export type Edited =
  | { ok: true; changed: boolean; input: Record<string, unknown> }
  /** An error message for each field that cannot be parsed, or does not fit. */
  | { ok: false; errors: ReadonlyMap<string, string> }

/** The arguments as fields. Empty if the arguments are not an object. */
export function fieldsOf(input: unknown, allowEdits: boolean | readonly string[]): Field[] {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return []
  return Object.entries(input).map(([key, original]) => ({
    key,
    kind: typeof original === 'string' ? 'text' : 'json',
    editable: typeof allowEdits === 'boolean' ? allowEdits : allowEdits.includes(key),
    original,
  }))
}

/** What a field shows before it is edited. */
export function textOf(field: Pick<Field, 'original'>): string {
  return typeof field.original === 'string' ? field.original : JSON.stringify(field.original, null, 2)
}

/** What stood in a field before it was edited; `undefined` while it is as it was. */
export function textBefore(field: Field, typed: string): string | undefined {
  return textOf(field) === typed ? undefined : textOf(field)
}

/** The draft that produces these arguments. */
export function draftOf(input: unknown): Draft {
  return Object.fromEntries(fieldsOf(input, true).map((field) => [field.key, textOf(field)]))
}

/** The arguments with the draft applied, or what is wrong with it. `fitting` validates it against the tool's schema. */
export function applyDraft(fields: readonly Field[], draft: Draft): Edited {
  const errors = new Map<string, string>()
  const entries = fields.map((field): [string, unknown] => {
    const typed = Object.hasOwn(draft, field.key) ? draft[field.key] : undefined
    if (!field.editable || typed === undefined || typed === textOf(field)) return [field.key, field.original]
    const read = readField(field, typed)
    if (!read.ok) errors.set(field.key, read.error)
    return [field.key, read.ok ? read.value : field.original]
  })
  if (errors.size > 0) return { ok: false, errors }
  const changed = entries.some(([, value], index) => value !== fields[index]?.original)
  return { ok: true, changed, input: Object.fromEntries(entries) }
}

function readField(field: Field, typed: string): { ok: true; value: unknown } | { ok: false; error: string } {
  if (field.kind === 'text') return { ok: true, value: typed }
  try {
    const value: unknown = JSON.parse(typed)
    // JavaScript would round it, so that something else than what was typed is approved.
    if (!isExactJson(typed)) return { ok: false, error: 'This has a number with too many digits.' }
    if (typeName(value) === typeName(field.original)) return { ok: true, value }
    return { ok: false, error: `This must stay ${typeName(field.original)}; now it is ${typeName(value)}.` }
  } catch {
    return { ok: false, error: `This is not valid JSON. It must be ${typeName(field.original)}.` }
  }
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return (
    { object: 'an object', number: 'a number', boolean: 'true or false', string: 'a text' }[
      typeof value as string
    ] ?? 'a value'
  )
}
