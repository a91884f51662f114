/** How deep a value may nest, as in `canonicalJson`. */
const MAX_DEPTH = 64

/**
 * A value as JSON can say it, for what a schema or a mask makes of arguments. A Date, a URL and whatever else has a `toJSON` is what that
 * gives; a BigInt and a number that is not finite are their digits; a Map is a list of pairs, a Set a list, a RegExp its text.
 *
 * @throws TypeError for what it cannot say: a function, a symbol, a cycle, or an instance of a class without `toJSON`. What nobody can
 * read must not be approved.
 */
export function plainOf(value: unknown, levels = MAX_DEPTH): unknown {
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
      if (levels === 0) throw new TypeError(`it nests deeper than ${MAX_DEPTH} levels`)
      return plainObject(value, levels - 1)
    default:
      return value
  }
}

function plainObject(value: object, levels: number): unknown {
  const again = (member: unknown) => plainOf(member, levels)
  const item = (member: unknown) => again(member) ?? null
  // by index, since `map` would skip the holes of a sparse list
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
