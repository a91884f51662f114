/**
 * Copies a value for other code, which may change it in place: arrays, plain objects, dates and URLs, nested in each other and in maps and
 * sets. Anything else that a schema returned (an instance of a class) is passed as it is.
 */
export function copyOf<T>(value: T): T {
  return copied(value, new Map()) as T
}

/** `known` has what is already copied: a value may contain another twice, or itself. */
function copied(value: unknown, known: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (known.has(value)) return known.get(value)
  const again = (part: unknown) => copied(part, known)
  if (Array.isArray(value)) {
    const list: unknown[] = []
    known.set(value, list)
    for (const item of value) list.push(again(item))
    return list
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) {
    // Spread, so that an own `__proto__` remains one.
    const members: Record<string, unknown> = { ...value }
    if (prototype === null) Object.setPrototypeOf(members, null)
    known.set(value, members)
    for (const [key, member] of Object.entries(members)) members[key] = again(member)
    return members
  }
  if (value instanceof Date && prototype === Date.prototype) return new Date(value)
  if (value instanceof URL && prototype === URL.prototype) return new URL(value)
  if (value instanceof Map && prototype === Map.prototype) {
    const map = new Map()
    known.set(value, map)
    for (const [key, member] of value) map.set(again(key), again(member))
    return map
  }
  if (value instanceof Set && prototype === Set.prototype) {
    const set = new Set()
    known.set(value, set)
    for (const member of value) set.add(again(member))
    return set
  }
  return value
}
