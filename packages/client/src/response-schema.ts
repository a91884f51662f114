import { isRecord, sameJson } from '@countersign/core'
import type { CheckResponse } from './options.js'
import { matches } from './pattern.js'

/**
 * Maximum steps of one check: visiting a schema, member or item, or reading a character. A form takes some hundreds; a million take
 * about a tenth of a second. A small schema can demand far more, for example with two references to the same schema on each level.
 */
const MOST_STEPS = 1_000_000

/**
 * Why a response does not match the interrupt's JSON Schema (2020-12), or `undefined` if it matches or there
 * is no schema. Whatever cannot be checked is refused: for an unsupported assertion, a schema that takes more
 * than a million steps, or a pattern with backreferences or lookbehinds, no response passes, and the reason
 * says so. So a server's schema can never block the page; patterns are matched without backtracking, in time
 * proportional to the text. As in the specification, annotations and unknown keywords assert nothing.
 *
 * @example new ChatClient({ connection, checkResponse })
 */
export const checkResponse: CheckResponse = (payload, { responseSchema: root }) => {
  try {
    return root && faultAt({ root, budget: { left: MOST_STEPS }, path: '', depth: 0 }, root, payload)
  } catch (error) {
    if (error instanceof Unjudged) return error.message
    throw error
  }
}

/** Aborts the check: inside `not` or `oneOf`, an assertion that cannot be checked could otherwise let a response pass. */
class Unjudged extends Error {}

interface Place {
  readonly root: unknown
  readonly budget: { left: number }
  /** JSON Pointer (RFC 6901) into the response. */
  readonly path: string
  readonly depth: number
}

/** Returns what is wrong with a value and where; `undefined` if it fits. */
type Assertion = (
  wanted: unknown,
  value: unknown,
  place: Place,
  schema: Readonly<Record<string, unknown>>,
) => string | undefined

/** Deeper schemas are unreasonable for a form, or recursive. */
const deepest = 64

function faultAt(place: Place, schema: unknown, value: unknown): string | undefined {
  if (place.depth > deepest) throw new Unjudged(say(place, 'is asked for in too deep a schema'))
  spend(place, 1 + widthOf(schema))
  if (schema === true) return undefined
  if (!isRecord(schema)) return say(place, 'is not asked for')
  return firstFault(Object.entries(schema), ([word, wanted]) => {
    if (unjudged.has(word)) throw cannot(place, word)
    if (!Object.hasOwn(assertions, word)) return undefined
    spend(place, widthOf(value) + (ofSchemas.has(word) ? 0 : sizeOf(wanted)))
    return assertions[word]?.(wanted, value, place, schema)
  })
}

function cannot(place: Place, word: string): Unjudged {
  return new Unjudged(say(place, `cannot be checked for "${word}"; check it by a checkResponse of your own`))
}

/** Like `sameJson`. The cost depends on the response; the schema's value is counted once, when its keyword is visited. */
function same(place: Place, wanted: unknown, value: unknown): boolean {
  spend(place, typeof value === 'object' ? sizeOf(value) : 1)
  return sameJson(wanted, value)
}

function spend(place: Place, steps: number): void {
  place.budget.left -= steps
  if (place.budget.left < 0)
    throw new Unjudged(say(place, 'takes too much work to check; check it by a checkResponse of your own'))
}

/** The cost of iterating over one value, without its members. */
function widthOf(value: unknown): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length
  return isRecord(value) ? Object.keys(value).length : 0
}

/** The number of nested values, plus the characters of their strings and keys. */
function sizeOf(value: unknown): number {
  let size = 0
  const rest = [value]
  for (const one of rest) {
    size += typeof one === 'string' ? one.length + 1 : 1
    if (typeof one !== 'object' || one === null) continue
    for (const [key, member] of Object.entries(one)) {
      size += key.length
      rest.push(member)
    }
  }
  return size
}

function say({ path }: Place, fault: string): string {
  return `"${path}" ${fault}.`
}

function unless(holds: boolean, place: Place, fault: string): string | undefined {
  return holds ? undefined : say(place, fault)
}

function within(place: Place, key?: string | number): Place {
  const { root, budget, path, depth } = place
  const step = key === undefined ? '' : `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
  spend(place, step.length)
  return { root, budget, path: path + step, depth: depth + 1 }
}

const unjudged = new Set([
  '$dynamicRef',
  'contains',
  'dependencies',
  'dependentRequired',
  'dependentSchemas',
  'if',
  'patternProperties',
  'prefixItems',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
])

/** Keywords that contain schemas, which are counted when they are visited. */
const ofSchemas = new Set(['additionalProperties', 'allOf', 'anyOf', 'items', 'not', 'oneOf', 'properties'])

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  integer: Number.isInteger,
  array: Array.isArray,
  object: isRecord,
}

/** The formats of form fields; others are annotations, as in the specification. */
const formats: Readonly<Record<string, (text: string) => boolean>> = {
  email: (text) => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: (text) => /^[a-z][a-z\d+.-]*:\S+$/i.test(text),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  'date-time': (text) => /^\d{4}-\d\d-\d\dT\S+$/i.test(text) && !Number.isNaN(Date.parse(text)),
}

const limit =
  (
    measure: (value: unknown) => number | undefined,
    holds: (size: number, limit: number) => boolean,
    fault: string,
  ): Assertion =>
  (wanted, value, place) => {
    const size = measure(value)
    return unless(size === undefined || holds(size, Number(wanted)), place, `${fault} ${wanted}`)
  }

const number = (value: unknown) => (typeof value === 'number' ? value : undefined)
/** JSON Schema counts characters, not UTF-16 units. */
const characters = (value: unknown) =>
  typeof value === 'string' ? value.replace(/[\uD800-\uDBFF][\uDC00-\uDFFF]/g, '_').length : undefined
const items = (value: unknown) => (Array.isArray(value) ? value.length : undefined)
const members = (value: unknown) => (isRecord(value) ? Object.keys(value).length : undefined)
const least = (size: number, wanted: number) => size >= wanted
const most = (size: number, wanted: number) => size <= wanted

const assertions: Readonly<Record<string, Assertion>> = {
  type: (wanted, value, place) =>
    unless(
      [wanted].flat().some((type) => Object.hasOwn(types, String(type)) && types[String(type)]?.(value)),
      place,
      `must be of the type ${wanted}`,
    ),
  enum: (wanted, value, place) =>
    unless(
      list(wanted).some((one) => same(place, one, value)),
      place,
      'is none of the choices',
    ),
  const: (wanted, value, place) =>
    unless(same(place, wanted, value), place, `must be ${JSON.stringify(wanted)}`),
  required: (wanted, value, place) =>
    firstFault(isRecord(value) ? list(wanted) : [], (name) =>
      unless(Object.hasOwn(Object(value), String(name)), place, `needs "${name}"`),
    ),
  properties: (wanted, value, place) =>
    firstFault(isRecord(value) ? Object.entries(value) : [], ([name, member]) =>
      Object.hasOwn(Object(wanted), name)
        ? faultAt(within(place, name), Reflect.get(Object(wanted), name), member)
        : undefined,
    ),
  additionalProperties: (wanted, value, place, { properties }) =>
    firstFault(isRecord(value) ? Object.entries(value) : [], ([name, member]) =>
      Object.hasOwn(Object(properties), name) ? undefined : faultAt(within(place, name), wanted, member),
    ),
  items: (wanted, value, place) =>
    firstFault(Array.isArray(value) ? [...value.entries()] : [], ([index, item]) =>
      faultAt(within(place, index), wanted, item),
    ),
  uniqueItems: (wanted, value, place) => {
    const isTwice = (item: unknown, index: number, all: readonly unknown[]) =>
      all.slice(0, index).some((other) => same(place, item, other))
    return unless(
      !(wanted === true && Array.isArray(value) && value.some(isTwice)),
      place,
      'holds something twice',
    )
  },
  minimum: limit(number, least, 'must be at least'),
  maximum: limit(number, most, 'must be at most'),
  exclusiveMinimum: limit(number, (size, wanted) => size > wanted, 'must be more than'),
  exclusiveMaximum: limit(number, (size, wanted) => size < wanted, 'must be less than'),
  multipleOf: limit(number, isMultiple, 'must be a multiple of'),
  minLength: limit(characters, least, 'must have a length of at least'),
  maxLength: limit(characters, most, 'must have a length of at most'),
  minItems: limit(items, least, 'must have a length of at least'),
  maxItems: limit(items, most, 'must have a length of at most'),
  minProperties: limit(members, least, 'must have a length of at least'),
  maxProperties: limit(members, most, 'must have a length of at most'),
  pattern: (wanted, value, place) => {
    if (typeof value !== 'string') return undefined
    const isMatch = matches(String(wanted), value, (steps) => spend(place, steps))
    if (isMatch === undefined) throw cannot(place, 'pattern')
    return unless(isMatch, place, `must match ${wanted}`)
  },
  format: (wanted, value, place) => {
    const has = formats[String(wanted)]
    return unless(typeof value !== 'string' || !has || has(value), place, `must be of the format ${wanted}`)
  },
  allOf: (wanted, value, place) =>
    firstFault(list(wanted), (schema) => faultAt(within(place), schema, value)),
  anyOf: (wanted, value, place) =>
    unless(
      list(wanted).some((schema) => fits(schema, value, place)),
      place,
      'fits none of what it may be',
    ),
  oneOf: (wanted, value, place) =>
    unless(
      list(wanted).filter((schema) => fits(schema, value, place)).length === 1,
      place,
      'must fit exactly one of what it may be',
    ),
  not: (wanted, value, place) => unless(!fits(wanted, value, place), place, 'is what it must not be'),
  $ref: (wanted, value, place) => {
    const target = referred(place.root, String(wanted))
    if (target === undefined) throw new Unjudged(say(place, `is asked for by ${wanted}, which is not there`))
    return faultAt(within(place), target, value)
  },
}

function firstFault<T>(all: readonly T[], faultOf: (one: T) => string | undefined): string | undefined {
  for (const one of all) {
    const fault = faultOf(one)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** A list that is invalid counts as one of the schema `false`, which nothing matches. */
function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [false]
}

function fits(schema: unknown, value: unknown, place: Place): boolean {
  return faultAt(within(place), schema, value) === undefined
}

/** Tolerates binary rounding: 0.3 is a multiple of 0.1. */
function isMultiple(size: number, of: number): boolean {
  const times = size / of
  return Math.abs(times - Math.round(times)) < 1e-9
}

/** Resolves a JSON Pointer into the same schema; nothing is fetched. */
function referred(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined
  let found = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    found = Object.hasOwn(Object(found), key) ? Reflect.get(Object(found), key) : undefined
  }
  return found
}
