import { type Constraint, CountersignError, isRecord } from '@countersign/core'
import { inWords } from '../encoding/in-words.js'
import { type Base, isUnder, mayBeUnder, plainText, readBase, Spelling } from './under.js'

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

/**
 * Whether arguments may meet every constraint: all that {@link meetsAll} finds, and whatever can't be decided. For what refuses or asks, where
 * a wrong "no" would let a call run. Only an argument that is missing or `null`, or surely another value, does not meet a constraint.
 */
export function mayMeetAll(input: unknown, where: readonly Constraint[]): boolean {
  return where.every((constraint) => {
    const value = valueAt(input, constraint.field, UNDECIDED)
    if (value === UNDECIDED) return true
    return value !== undefined && value !== null && mayMeet(value, constraint, () => spellingOf(input, value))
  })
}

const spellings = new WeakMap<object, Map<unknown, Spelling>>()

/** An argument as a text, read once for all rules. */
function spellingOf(input: unknown, value: unknown): Spelling {
  const known = spellings.get(Object(input)) ?? new Map<unknown, Spelling>()
  spellings.set(Object(input), known)
  const spelling = known.get(value) ?? new Spelling(String(value))
  known.set(value, spelling)
  return spelling
}

/** What an argument is of which nobody can tell whether it is there: something other than a plain object is where its parent should be. */
const UNDECIDED = Symbol('undecided')

/** An argument by its key or path: own members of plain objects only. `other` is returned if a parent is something else. */
export function valueAt(input: unknown, field: Constraint['field'], other?: symbol): unknown {
  let value = input
  for (const key of typeof field === 'string' ? [field] : field) {
    if (value === undefined || value === null) return undefined
    if (!isRecord(value)) return other
    if (!Object.hasOwn(value, key)) return isPlain(value) ? undefined : other
    value = value[key]
  }
  return value
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
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
  const base = baseOf(constraint)
  return base !== undefined && isUnder(value, base)
}

/** A value of another type may be converted by the tool, so nothing is known of it. */
function mayMeet(value: unknown, constraint: Constraint, spelling: () => Spelling): boolean {
  if ('is' in constraint || 'in' in constraint) return mayBeOneOf(value, constraint, spelling)
  // Also where a double is not exact, it is on the right side of a bound that is.
  if ('atMost' in constraint) return typeof value !== 'number' || !(value > constraint.atMost)
  if ('atLeast' in constraint) return typeof value !== 'number' || !(value < constraint.atLeast)
  const base = baseOf(constraint)
  return base === undefined || mayBeUnder(value, base)
}

/** Texts that differ only in what a tool may ignore may be the same, and so may those of which that can't be told. */
function mayBeOneOf(value: unknown, constraint: Choice, spelling: () => Spelling): boolean {
  const list = 'is' in constraint ? [constraint.is] : constraint.in
  if (!list.some((one) => typeof one === typeof value)) return true
  const { texts, longest } = choicesOf(constraint, list)
  const text = spelling().plain(longest)
  return text === undefined || texts.some((one) => one === undefined || one === text)
}

type Choice = Extract<Constraint, { is: unknown } | { in: unknown }>

interface Choices {
  /** Each as a plain text; undefined if it would take too long to tell. */
  readonly texts: readonly (string | undefined)[]
  readonly longest: number
}

function choicesOf(constraint: Choice, list: readonly unknown[]): Choices {
  const known = choices.get(constraint)
  if (known !== undefined) return known
  const texts = list.map((one) => plainText(String(one)))
  const read = { texts, longest: Math.max(...texts.map((one) => one?.length ?? 0)) }
  choices.set(constraint, read)
  return read
}

/** The texts of constraints, read once. */
const choices = new WeakMap<Constraint, Choices>()

function baseOf(constraint: Extract<Constraint, { under: string }>): Base | undefined {
  const base = bases.get(constraint) ?? readBase(constraint.under)
  if (base !== undefined) bases.set(constraint, base)
  return base
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
