import { MAX_JSON_DEPTH } from './canonical.js'

/**
 * Converts what a schema returned to JSON, so that it can be shown and bound. An object with a `toJSON` method (a Date, a URL) becomes the
 * result of that method. A BigInt, NaN or Infinity becomes its text, a Map a list of pairs, a Set a list, a RegExp its source.
 *
 * @throws TypeError for a function, a symbol, a cycle, or an instance of a class without `toJSON`: nobody could read it before approving.
 */
export function plainOf(value: unknown, levels = MAX_JSON_DEPTH): unknown {
  switch (typeof value) {
    case 'bigint':
      return String(value)
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'function':
    case 'symbol':
      throw new TypeError(`a ${typeof value} cannot be shown`)
    case 'object':
      if (value === null) return null
      if (levels === 0) throw new TypeError(`it nests deeper than ${MAX_JSON_DEPTH} levels`)
      return plainObject(value, levels - 1)
    default:
      return value
  }
}

function plainObject(value: object, levels: number): unknown {
  const again = (member: unknown) => plainOf(member, levels)
  const item = (member: unknown) => again(member) ?? null
  // By index, because `map` would skip the holes of a sparse array.
  if (Array.isArray(value)) return Array.from(value, item)
  if (value instanceof Set) return [...value].map(item)
  if (value instanceof Map) return [...value].map((pair) => pair.map(item))
  if (value instanceof RegExp) return String(value)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined)
    return Object.fromEntries(members.map(([name, member]) => [name, again(member)]))
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') return again(value.toJSON())
  throw new TypeError(
    `a ${value.constructor?.name ?? 'object without a class'} without toJSON cannot be shown`,
  )
}
