import { type Interrupt, isExactJson } from '@countersign/core'
import { checkResponse } from '../response-schema.js'

/** How a field is filled in. */
export type Control =
  | { readonly kind: 'text'; readonly input: 'text' | 'email' | 'url' | 'date'; readonly isLong: boolean }
  | { readonly kind: 'number'; readonly whole: boolean }
  | { readonly kind: 'flag' }
  | { readonly kind: 'choice'; readonly choices: readonly Choice[] }
  /** Any other value is written as JSON. */
  | { readonly kind: 'json' }

/** One option of a choice. The label comes from the server. */
export interface Choice {
  readonly label: string
  readonly value: unknown
}

/** One value that a question asks for. `label` and `description` come from the server. */
export interface QuestionField {
  readonly index: number
  /** The property of the answer; `undefined` if the answer is this single value. */
  readonly key: string | undefined
  readonly label: string
  readonly description: string | undefined
  readonly required: boolean
  readonly control: Control
  /** The initial value, as the user would type it. */
  readonly initial: string
}

/** What the user typed, by the index of the field; for a choice the index of the option, for a flag `true` or `false`. */
export type QuestionDraft = Readonly<Record<number, string>>

/** Validation errors, by the index of the field, or for the form as a whole. */
export type Faults = ReadonlyMap<number | 'form', string>

export const noFaults: Faults = new Map()

export type ReadAnswer =
  | { readonly ok: true; readonly payload: unknown }
  | { readonly ok: false; readonly faults: Faults }

type Schema = Readonly<Record<string, unknown>>

/** The fields of a question: one for each property of a flat schema, else one for the whole answer; a text field without a schema. */
export function questionFields({ responseSchema }: Interrupt): QuestionField[] {
  const schema: Schema = responseSchema ?? { type: 'string' }
  const { properties, required } = schema
  if (!isSchema(properties) || schema.$ref !== undefined) return [fieldOf(0, undefined, schema, true)]
  const wanted = Array.isArray(required) ? required : []
  return Object.entries(properties).map(([key, property], index) =>
    fieldOf(index, key, isSchema(property) ? property : {}, wanted.includes(key)),
  )
}

function fieldOf(index: number, key: string | undefined, schema: Schema, required: boolean): QuestionField {
  const control = controlOf(schema)
  return {
    index,
    key,
    label: text(schema.title) ?? key ?? 'Your answer',
    description: text(schema.description),
    required,
    control,
    initial: initialOf(control, schema.default),
  }
}

function controlOf(schema: Schema): Control {
  const choices = choicesOf(schema)
  if (choices) return { kind: 'choice', choices }
  switch (schema.type) {
    case 'string':
      return { kind: 'text', input: inputOf(schema.format), isLong: isLong(schema) }
    case 'number':
      return { kind: 'number', whole: false }
    case 'integer':
      return { kind: 'number', whole: true }
    case 'boolean':
      return { kind: 'flag' }
    default:
      return { kind: 'json' }
  }
}

/** Reads `enum`, with the `enumNames` that MCP adds to it, or `oneOf` with a `const` and a `title` each. */
function choicesOf({ enum: values, enumNames: names, oneOf }: Schema): Choice[] | undefined {
  if (Array.isArray(values) && values.length > 0) {
    const given: readonly unknown[] = Array.isArray(names) ? names : []
    return values.map((value, index) => ({ label: text(given[index]) ?? labelOf(value), value }))
  }
  if (!Array.isArray(oneOf) || oneOf.length === 0) return undefined
  const choices = oneOf.flatMap((one) =>
    isSchema(one) && 'const' in one
      ? [{ label: text(one.title) ?? labelOf(one.const), value: one.const }]
      : [],
  )
  return choices.length === oneOf.length ? choices : undefined
}

function labelOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function inputOf(format: unknown): 'text' | 'email' | 'url' | 'date' {
  if (format === 'email' || format === 'date') return format
  return format === 'uri' ? 'url' : 'text'
}

/** A one-line input cannot hold a default with line breaks. */
function isLong({ default: given, maxLength }: Schema): boolean {
  return Number(maxLength) > 200 || (typeof given === 'string' && given.includes('\n'))
}

function initialOf(control: Control, given: unknown): string {
  if (given === undefined) return ''
  switch (control.kind) {
    case 'choice': {
      const index = control.choices.findIndex(({ value }) => JSON.stringify(value) === JSON.stringify(given))
      return index < 0 ? '' : String(index)
    }
    case 'text':
      return text(given) ?? ''
    case 'number':
    case 'flag':
      return String(given)
    case 'json':
      return JSON.stringify(given, null, 2)
    default:
      return control satisfies never
  }
}

/** What a field shows. */
export function typedIn(field: QuestionField, draft: QuestionDraft): string {
  return draft[field.index] ?? field.initial
}

/** How many rows a multi-line field shows. */
export function rowsOf(value: string): number {
  return Math.min(12, Math.max(2, value.split('\n').length))
}

/** The page's own note beside a field's label. */
export function noteOf({ control, required, key }: QuestionField): string | undefined {
  const notes = [
    ...(required || control.kind === 'flag' ? [] : ['optional']),
    ...(control.kind === 'json' ? ['JSON'] : []),
    ...(control.kind === 'number' && control.whole && key !== undefined ? ['a whole number'] : []),
  ]
  return notes.length > 0 ? notes.join(', ') : undefined
}

/** The ids of the elements that describe a field, for `aria-describedby`: the server's description and the validation error. */
export function describedBy(
  id: string,
  { description }: QuestionField,
  fault: string | undefined,
): { readonly hint: string; readonly fault: string; readonly ids: string | undefined } {
  const hint = `${id}-hint`
  const wrong = `${id}-fault`
  const ids = [...(description === undefined ? [] : [hint]), ...(fault === undefined ? [] : [wrong])]
  return { hint, fault: wrong, ids: ids.length > 0 ? ids.join(' ') : undefined }
}

/** The errors without that of a field that is being edited. */
export function withoutFault(faults: Faults, index: number): Faults {
  return faults.has(index) ? new Map([...faults].filter(([at]) => at !== index)) : faults
}

/**
 * The answer from the form, or its errors: first every field that cannot be parsed, then the schema's. Empty
 * fields are left out of the answer. A flag that is not set is `false`.
 */
export function readAnswer(interrupt: Interrupt, draft: QuestionDraft): ReadAnswer {
  const fields = questionFields(interrupt)
  const reads = fields.map((field) => readField(field, typedIn(field, draft)))
  const unread = reads.flatMap((read, index) => (read.type === 'fault' ? [[index, read.fault] as const] : []))
  if (unread.length > 0) return { ok: false, faults: new Map(unread) }
  const payload = payloadOf(fields, reads)
  const fault = checkResponse(payload, interrupt)
  return fault === undefined ? { ok: true, payload } : { ok: false, faults: faultsOf(fields, fault) }
}

type Read =
  | { readonly type: 'value'; readonly value: unknown }
  | { readonly type: 'empty' }
  | { readonly type: 'fault'; readonly fault: string }

function payloadOf(fields: readonly QuestionField[], reads: readonly Read[]): unknown {
  const entries = fields.flatMap(({ key }, index): (readonly [string | undefined, unknown])[] => {
    const read = reads[index]
    return read?.type === 'value' ? [[key, read.value]] : []
  })
  const [only] = entries
  if (only && only[0] === undefined) return only[1]
  return Object.fromEntries(entries)
}

function readField({ control, required }: QuestionField, typed: string): Read {
  if (control.kind === 'flag') return { type: 'value', value: typed === 'true' }
  const isEmpty = (control.kind === 'text' ? typed : typed.trim()) === ''
  if (isEmpty) return required ? { type: 'fault', fault: 'This is required.' } : { type: 'empty' }
  switch (control.kind) {
    case 'text':
      return { type: 'value', value: typed }
    case 'number':
      return readNumber(typed.trim(), control.whole)
    case 'choice':
      return { type: 'value', value: control.choices[Number(typed)]?.value }
    case 'json':
      return readJson(typed)
    default:
      return control satisfies never
  }
}

function readNumber(typed: string, whole: boolean): Read {
  const value = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(typed) ? Number(typed) : Number.NaN
  if (whole && !Number.isInteger(value)) return { type: 'fault', fault: 'This must be a whole number.' }
  if (!Number.isFinite(value)) return { type: 'fault', fault: 'This must be a number, such as 2.5.' }
  // A larger number would be rounded, so that something else than what was typed is sent.
  if ((whole || /^[+-]?\d+$/.test(typed)) && !Number.isSafeInteger(value))
    return { type: 'fault', fault: 'This number is too large.' }
  return { type: 'value', value }
}

function readJson(typed: string): Read {
  try {
    const value: unknown = JSON.parse(typed)
    if (!isExactJson(typed)) return { type: 'fault', fault: 'This has a number with too many digits.' }
    return { type: 'value', value }
  } catch {
    return { type: 'fault', fault: 'This is not valid JSON. A text is written in "quotes".' }
  }
}

/** An error message starts with a JSON Pointer in quotes. It is shown at the field it points to, or else for the whole form. */
function faultsOf(fields: readonly QuestionField[], fault: string): Faults {
  for (const { index, key } of fields) {
    const place = key === undefined ? '""' : `"/${key.replaceAll('~', '~0').replaceAll('/', '~1')}"`
    if (fault.startsWith(`${place} `)) return new Map([[index, `This${fault.slice(place.length)}`]])
    if (fault.startsWith(`${place.slice(0, -1)}/`)) return new Map([[index, fault]])
  }
  return new Map([['form', fault.startsWith('"" ') ? `The answer${fault.slice(2)}` : fault]])
}

/** The server's message on why it did not accept the last answer. */
export function problemOf({ metadata }: Interrupt): string | undefined {
  const { countersign } = metadata ?? {}
  return isSchema(countersign) ? text(countersign.problem) : undefined
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
