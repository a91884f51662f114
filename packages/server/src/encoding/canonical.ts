import canonicalize from 'canonicalize'
import { parseStrictJson } from './strict-json.js'

export const MAX_JSON_DEPTH = 64

export type ArgumentsReading =
  /** `value` is parsed from `canonical`: what runs is exactly what is signed. */
  | { readonly ok: true; readonly value: unknown; readonly canonical: string }
  | { readonly ok: false; readonly reason: string }

/**
 * Parses a model's tool arguments strictly: duplicate keys, an own `__proto__`, lone surrogates, non-finite numbers, integers
 * beyond 2^53-1, more than 64 levels or 1 MiB are refused with the reason. The empty string is read as `{}`.
 */
export function readArguments(text: string): ArgumentsReading {
  const parsed = parseStrictJson(text === '' ? '{}' : text)
  if (!parsed.ok) return { ok: false, reason: parsed.message }
  const written = canonicalJson(parsed.value)
  if (!written.ok) return written
  return { ok: true, value: JSON.parse(written.canonical), canonical: written.canonical }
}

export type CanonicalText =
  | { readonly ok: true; readonly canonical: string }
  | { readonly ok: false; readonly reason: string }

/**
 * Writes a JSON value as RFC 8785 text. Members that are `undefined` are omitted, as by `JSON.stringify`. Anything else that JSON
 * can't represent (a Date, a Map, a function, NaN, a lone surrogate, a cycle) is refused, never converted.
 */
export function canonicalJson(value: unknown): CanonicalText {
  const reason = jsonProblem(value, MAX_JSON_DEPTH)
  if (reason !== undefined) return { ok: false, reason }
  const canonical = canonicalize(value)
  return canonical === undefined ? { ok: false, reason: 'undefined is not JSON' } : { ok: true, canonical }
}

/**
 * What a token binds besides the arguments: the validated value and the result of the tool's `bind`, `null` if it
 * has none. Refused if either is not JSON.
 */
export function bindingText(validated: unknown, bound: unknown = null): CanonicalText {
  return canonicalJson([validated, bound])
}

function jsonProblem(value: unknown, levels: number): string | undefined {
  switch (typeof value) {
    case 'string':
      return hasLoneSurrogate(value) ? 'a string has a lone surrogate' : undefined
    case 'number':
      return Number.isFinite(value) ? undefined : `${value} is not JSON`
    case 'boolean':
      return undefined
    case 'object':
      if (value === null) return undefined
      if (levels === 0) return `it nests deeper than ${MAX_JSON_DEPTH} levels`
      return Array.isArray(value) ? arrayProblem(value, levels - 1) : objectProblem(value, levels - 1)
    default:
      return `a ${typeof value} is not JSON`
  }
}

function arrayProblem(items: readonly unknown[], levels: number): string | undefined {
  // By index, because forEach would skip the holes of a sparse array.
  for (let index = 0; index < items.length; index++) {
    const problem = jsonProblem(items[index], levels)
    if (problem !== undefined) return problem
  }
  return undefined
}

function objectProblem(value: object, levels: number): string | undefined {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype)
    return 'an object that is not a plain one is not JSON'
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__') return 'the key "__proto__" is refused'
    if (hasLoneSurrogate(key)) return 'a key has a lone surrogate'
    const problem = member === undefined ? undefined : jsonProblem(member, levels)
    if (problem !== undefined) return problem
  }
  return undefined
}

function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}
