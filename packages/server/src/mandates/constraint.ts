import { type Constraint, CountersignError, isRecord } from '@countersign/core'
import { inWords } from '../encoding/in-words.js'
import { type Base, isUnder, readBase } from './under.js'

/**
 * Whether validated arguments meet every constraint. `[]` is met by everything.
 *
 * @throws CountersignError `invalid-option` for a constraint that is none.
 */
export function meetsConstraints(input: unknown, where: readonly Constraint[]): boolean {
  return meetsAll(input, readConstraints(where, 'where'))
}

/** The same for constraints from {@link readConstraints}. */
export function meetsAll(input: unknown, where: readonly Constraint[]): boolean {
  return where.every((constraint) => meets(valueAt(input, constraint.field), constraint))
}

/** An argument by its key or path: own members of plain objects only. */
export function valueAt(input: unknown, field: Constraint['field']): unknown {
  let value = input
  for (const key of typeof field === 'string' ? [field] : field) {
    if (!isRecord(value) || !Object.hasOwn(value, key)) return undefined
    value = value[key]
  }
  return value
}

/** Whether a value is a number that a double holds exactly enough to be compared. */
export function isExactNumber(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER
}

function meets(value: unknown, constraint: Constraint): boolean {
  if ('is' in constraint) return isComparable(value) && value === constraint.is
  if ('in' in constraint) return isComparable(value) && constraint.in.includes(value)
  if ('atMost' in constraint) return isExactNumber(value) && value <= constraint.atMost
  if ('atLeast' in constraint) return isExactNumber(value) && value >= constraint.atLeast
  const base = bases.get(constraint) ?? readBase(constraint.under)
  if (base === undefined) return false
  bases.set(constraint, base)
  return isUnder(value, base)
}

/** Bases are read once. */
const bases = new WeakMap<Constraint, Base>()

function isComparable(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'boolean' || isExactNumber(value)
}

const MAX_CONSTRAINTS = 16
const MAX_VALUES = 256
const UNDER =
  'a path or URL in its normal form, without "..", such as "/srv/data" or "https://example.org/v1"'

/** What each kind of constraint compares with. */
const KINDS: ReadonlyMap<string, readonly [fits: (value: unknown) => boolean, expected: string]> = new Map([
  ['is', [isComparable, 'text, a number or a boolean']],
  ['in', [isChoice, `a list of 1 to ${MAX_VALUES} texts, numbers or booleans`]],
  ['atMost', [isExactNumber, 'a number of at most 2^53 - 1']],
  ['atLeast', [isExactNumber, 'a number of at most 2^53 - 1']],
  ['under', [isBase, UNDER]],
])

function isChoice(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.length <= MAX_VALUES && value.every(isComparable)
}

function isBase(value: unknown): boolean {
  return typeof value === 'string' && readBase(value) !== undefined
}

/**
 * Reads constraints written by an application. The result is a copy.
 *
 * @throws CountersignError `invalid-option`, naming the place.
 */
export function readConstraints(value: unknown, place: string): readonly Constraint[] {
  if (!Array.isArray(value) || value.length > MAX_CONSTRAINTS)
    throw invalid(place, `a list of at most ${MAX_CONSTRAINTS} constraints`, value)
  return value.map((item, index) => readConstraint(item, `${place}[${index}]`))
}

function readConstraint(value: unknown, place: string): Constraint {
  if (!isRecord(value)) throw invalid(place, 'an object', value)
  const { field, ...condition } = value
  const [[kind, compared] = ['', undefined], ...more] = Object.entries(condition)
  const [fits, expected] = KINDS.get(kind) ?? []
  if (fits === undefined || more.length > 0)
    throw invalid(place, `an object of field and one of ${[...KINDS.keys()].join(', ')}`, value)
  if (!fits(compared)) throw invalid(`${place}.${kind}`, String(expected), compared)
  const copied = Array.isArray(compared) ? [...compared] : compared
  return { field: readField(field, `${place}.field`), [kind]: copied } as Constraint
}

/**
 * A key, or a path of keys.
 *
 * @throws CountersignError `invalid-option`
 */
export function readField(value: unknown, place: string): Constraint['field'] {
  const isKey = (key: unknown) => typeof key === 'string' && key !== '' && key.length <= 256
  // With a dot it would be a path in other libraries, and a key that no arguments have here.
  if (typeof value === 'string' && isKey(value) && !value.includes('.')) return value
  if (Array.isArray(value) && value.length > 0 && value.length <= 8 && value.every(isKey)) return [...value]
  throw invalid(place, 'a key, or a path such as ["invoice", "total"]', value)
}

export function invalid(place: string, expected: string, value: unknown): CountersignError {
  const message = `${place} must be ${expected}; it is ${inWords(value)}.`
  return new CountersignError('invalid-option', message, { option: place })
}
