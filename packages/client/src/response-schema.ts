import { isRecord, sameJson } from '@countersign/core'
import type { CheckResponse } from './options.js'

/**
 * Why an answer does not fit the JSON Schema (2020-12) that the interrupt has, or `undefined` where it fits or there is no schema. Only
 * what can be judged is let through: an assertion that is not known here makes no answer fit, and the reason names it. Annotations and
 * words that are no part of JSON Schema assert nothing, as its specification has it.
 *
 * @example new ChatClient({ connection, checkResponse })
 */
export const checkResponse: CheckResponse = (payload, { responseSchema: root }) =>
  root && faultAt({ root, path: '', depth: 0 }, root, payload)

interface Place {
  readonly root: unknown
  /** JSON Pointer (RFC 6901) into the answer. */
  readonly path: string
  readonly depth: number
}

/** What is wrong with a value, told with its place; nothing where it fits. */
type Assertion = (
  wanted: unknown,
  value: unknown,
  place: Place,
  schema: Readonly<Record<string, unknown>>,
) => string | undefined

/** Deeper schemas are not those of a form, or refer to themselves. */
const deepest = 64

function faultAt(place: Place, schema: unknown, value: unknown): string | undefined {
  if (place.depth > deepest) return say(place, 'is asked for in too deep a schema')
  if (schema === true) return undefined
  if (!isRecord(schema)) return say(place, 'is not asked for')
  return firstFault(Object.entries(schema), ([word, wanted]) => {
    if (unjudged.has(word))
      return say(place, `cannot be checked for "${word}"; check it by a checkResponse of your own`)
    return Object.hasOwn(assertions, word) ? assertions[word]?.(wanted, value, place, schema) : undefined
  })
}

function say({ path }: Place, fault: string): string {
  return `"${path}" ${fault}.`
}

function unless(holds: boolean, place: Place, fault: string): string | undefined {
  return holds ? undefined : say(place, fault)
}

function within({ root, path, depth }: Place, key?: string | number): Place {
  const step = key === undefined ? '' : `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
  return { root, path: path + step, depth: depth + 1 }
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

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number' && Number.isFinite(value),
  integer: Number.isInteger,
  array: Array.isArray,
  object: isRecord,
}

/** The formats of a form's fields; others are annotations, as JSON Schema has it. */
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
const characters = (value: unknown) => (typeof value === 'string' ? [...value].length : undefined)
const items = (value: unknown) => (Array.isArray(value) ? value.length : undefined)
const members = (value: unknown) => (isRecord(value) ? Object.keys(value).length : undefined)
const least = (size: number, wanted: number) => size >= wanted
const most = (size: number, wanted: number) => size <= wanted

const assertions: Readonly<Record<string, Assertion>> = {
  type: (wanted, value, place) =>
    unless(
      [wanted].flat().some((type) => types[String(type)]?.(value)),
      place,
      `must be of the type ${wanted}`,
    ),
  enum: (wanted, value, place) =>
    unless(
      list(wanted).some((one) => sameJson(one, value)),
      place,
      'is none of the choices',
    ),
  const: (wanted, value, place) =>
    unless(sameJson(wanted, value), place, `must be ${JSON.stringify(wanted)}`),
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
      all.slice(0, index).some((other) => sameJson(item, other))
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
  pattern: (wanted, value, place) =>
    unless(typeof value !== 'string' || matches(String(wanted), value), place, `must match ${wanted}`),
  format: (wanted, value, place) => {
    const fits = formats[String(wanted)]
    return unless(typeof value !== 'string' || !fits || fits(value), place, `must be of the format ${wanted}`)
  },
  allOf: (wanted, value, place) =>
    firstFault(list(wanted), (schema) => faultAt(within(place), schema, value)),
  anyOf: (wanted, value, place) =>
    unless(fitting(wanted, value, place) > 0, place, 'fits none of what it may be'),
  oneOf: (wanted, value, place) =>
    unless(fitting(wanted, value, place) === 1, place, 'must fit exactly one of what it may be'),
  not: (wanted, value, place) =>
    unless(faultAt(within(place), wanted, value) !== undefined, place, 'is what it must not be'),
  $ref: (wanted, value, place) => {
    const target = referred(place.root, String(wanted))
    return target === undefined
      ? say(place, `is asked for by ${wanted}, which is not there`)
      : faultAt(within(place), target, value)
  },
}

function firstFault<T>(all: readonly T[], faultOf: (one: T) => string | undefined): string | undefined {
  for (const one of all) {
    const fault = faultOf(one)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** What should be a list and is none asks for nothing that there is. */
function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [false]
}

function fitting(schemas: unknown, value: unknown, place: Place): number {
  return list(schemas).filter((schema) => faultAt(within(place), schema, value) === undefined).length
}

/** Decimal fractions have no exact binary form: 0.3 is a multiple of 0.1. */
function isMultiple(size: number, of: number): boolean {
  const times = size / of
  return Math.abs(times - Math.round(times)) < 1e-9
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return false
  }
}

/** A JSON Pointer into the same schema; nothing is fetched. */
function referred(root: unknown, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined
  let found = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    found = Object.hasOwn(Object(found), key) ? Reflect.get(Object(found), key) : undefined
  }
  return found
}
