import { agUiKinds, type Field, type Kind } from './fields.js'

export type Value = Record<string, unknown>

/** What an input is made of where it is made as costly as its bytes allow. */
export type Shape =
  /** One, with text in every field that takes any. */
  | 'long'
  /** The same, with text that has very many combining marks in a row: some built-in functions take the square of their number. */
  | 'marks'
  /** One, with all its lists as long as they can be. */
  | 'lists'
  /** One, with objects of very many members, or lists of very many items, where it takes any JSON. */
  | 'members'
  /** Very many small ones, each under an id of its own. */
  | 'often'
  /** Very many small ones under one id. */
  | 'repeated'

export const SHAPES: readonly Shape[] = ['long', 'marks', 'lists', 'members', 'often', 'repeated']

const kinds = agUiKinds()

export function membersOf(kind: string): readonly Kind[] {
  return kinds.filter((member) => member.kind === kind)
}

export const text = (length: number): string => 'x'.repeat(Math.max(0, Math.floor(length)))

/** Two kinds of marks, each out of place: normalizing a text moves the second kind before the first. */
export const marks = (length: number): string =>
  `a${'\u0301'.repeat(Math.max(0, length / 2))}${'\u0323'.repeat(Math.max(0, length / 2))}`

/** NFKC makes 18 characters of each. */
export const ligatures = (length: number): string => '\ufdfa'.repeat(Math.max(0, Math.floor(length / 3)))

export const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: Math.max(1, Math.floor(count)) }, (_, index) => make(index))

/** An object of about so many bytes. */
const wide = (bytes: number): Value =>
  Object.fromEntries(times(bytes / 14, (index) => [`key${index}`, index]))

/** A list of about so many bytes, of nested lists. */
const nested = (bytes: number): unknown[] => times(bytes / 26, () => [[[[[[[[[[[[]]]]]]]]]]]])

/** The least that is valid as this member of its kind. `id` is what all its ids are. */
function least({ tag, value, fields }: Kind, id: string): Value {
  const required = fields.filter(({ isRequired }) => isRequired)
  return {
    ...(tag !== undefined && { [tag]: value }),
    ...Object.fromEntries(required.map((field) => [field.name, leastOf(field, id)])),
  }
}

function leastOf({ name, kind, words, list }: Field, id: string): unknown {
  if (list === '[]') return []
  if (list === '[string]') return 'x'
  const one = words[0] ?? leastValue(name, kind, id)
  return list === undefined ? one : [one]
}

function leastValue(name: string, kind: string, id: string): unknown {
  switch (kind) {
    case 'string':
      return /id$/i.test(name) ? id : 'x'
    case 'boolean':
      return true
    case 'integer':
    case 'count':
      return 1
    case 'pointer':
      return '/x'
    case 'object':
    case 'any':
    case 'nonnull':
      return {}
    default: {
      const [member] = membersOf(kind)
      if (member === undefined) throw new Error(`there is no kind ${kind}`)
      return least(member, id)
    }
  }
}

/** A member of its kind of about `bytes`, in a shape that needs one only; nothing where it has no field for it. */
export function one(member: Kind, shape: Shape, id: string, bytes: number): Value | undefined {
  const fits = member.fields.filter((field) => isFor(field, shape))
  if (fits.length === 0) return undefined
  const share = bytes / fits.length
  const grown = fits.map((field, nth) => [field.name, grow(field, shape, share, nth)])
  return { ...least(member, id), ...Object.fromEntries(grown) }
}

const anyJson = new Set(['object', 'any', 'nonnull'])

function isFor({ name, kind, list, words }: Field, shape: Shape): boolean {
  if (words.length > 0 || name === 'timestamp') return false
  switch (shape) {
    case 'long':
    case 'marks':
      return list === undefined && (kind === 'pointer' || (kind === 'string' && !/id$/i.test(name)))
    case 'lists':
      return list !== undefined
    case 'members':
      return list === undefined && anyJson.has(kind)
    default:
      return false
  }
}

function grow(field: Field, shape: Shape, bytes: number, nth: number): unknown {
  if (shape === 'long') return field.kind === 'pointer' ? '/x'.repeat(bytes / 2) : text(bytes)
  if (shape === 'marks') return field.kind === 'pointer' ? `/${marks(bytes)}` : marks(bytes)
  if (shape === 'members') return field.kind === 'object' || nth % 2 === 0 ? wide(bytes) : nested(bytes)
  const item =
    field.kind === 'string' ? () => 'x' : (index: number) => leastValue(field.name, field.kind, `i${index}`)
  return times(bytes / (JSON.stringify(item(100)).length + 1), item)
}

/** Very many members of a kind, of about `bytes` together. */
export function many(member: Kind, shape: Shape, bytes: number, most = Number.POSITIVE_INFINITY): Value[] {
  const size = JSON.stringify(least(member, 'i1000')).length + 1
  const count = Math.min(most, bytes / size)
  return times(count, (index) => least(member, shape === 'often' ? `i${index}` : 'i'))
}
