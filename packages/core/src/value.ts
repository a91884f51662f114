/** Small readers of values that came from outside. */

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type WithoutUndefined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** A copy without the members that are `undefined`. For objects with names of our own, not for a map from outside. */
export function omitUndefined<T extends object>(members: T): WithoutUndefined<T> {
  const found: Record<string, unknown> = {}
  for (const name in members) {
    const member = members[name]
    if (member !== undefined) found[name] = member
  }
  return found as WithoutUndefined<T>
}

/** A copy with changes. As a spread, members that are new cost V8 ten times as much. */
export function changed<T extends object>(value: T, change: Partial<T>): T {
  return Object.assign({}, value, change)
}

/** A copy of plain objects and lists, whatever their depth; anything else in them is the same. */
export function copied<T>(value: T): T {
  const copy = { value }
  const made = new Map<unknown, object>()
  const rest: Record<string, unknown>[] = [copy]
  for (let into = rest.pop(); into; into = rest.pop()) {
    for (const name in into) {
      const inner = into[name]
      if (!isPlain(inner)) continue
      let own = made.get(inner)
      if (!own) {
        own = Array.isArray(inner) ? [...inner] : { ...inner }
        made.set(inner, own)
        rest.push(own as Record<string, unknown>)
      }
      into[name] = own
    }
  }
  return copy.value
}

/** The same value, whose plain objects and lists nobody can change any more, whatever their depth. */
export function frozen<T>(value: T): T {
  const rest: unknown[] = [value]
  for (const inner of rest)
    if (isPlain(inner) && !Object.isFrozen(inner))
      for (const name in Object.freeze(inner)) rest.push(inner[name as never])
  return value
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // Not compared with `Object.prototype`: a plain object may come from another window.
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null
}

/** `undefined` for an object without members. */
export function filled<T extends object>(value: T): T | undefined {
  for (const _ in value) return value
  return undefined
}

/** `metadata.countersign`: what Countersign peers write for one another. An empty object where there is none. */
export function getCountersignMetadata(metadata: unknown): Record<string, unknown> {
  const own = isRecord(metadata) ? metadata.countersign : undefined
  return isRecord(own) ? own : {}
}

/** Metadata with `own` as its `countersign` member, which is left out if empty. `undefined` for metadata without members. */
export function setCountersignMetadata(
  metadata: Readonly<Record<string, unknown>> | undefined,
  own: Record<string, unknown>,
): Record<string, unknown> | undefined {
  const { countersign: _, ...rest } = metadata ?? {}
  return filled(filled(own) ? { countersign: own, ...rest } : rest)
}

/**
 * The metadata of a call, taken apart: what Countersign peers say of its question, its answer and its outcome, and everything else
 * (`kept`), which is passed on as it is.
 */
export function readCallMetadata(metadata: unknown) {
  const { token, approval, state, error, providerExecuted, ...own } = getCountersignMetadata(metadata)
  const kept = setCountersignMetadata(isRecord(metadata) ? metadata : {}, own)
  return { token, approval, state, error, providerExecuted, kept }
}

export function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The value, if it is one of these. */
export function oneOf<const T>(value: unknown, ...options: readonly T[]): T | undefined {
  return options.find((option) => option === value)
}

/** `text` as JSON where it is JSON, else `otherwise`. */
export function parseJson(text: string, otherwise?: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return otherwise
  }
}

/** Empties a list that will be filled again. Unlike `length = 0` it keeps the room, so that no delta pays for it. */
export function clear(list: unknown[]): void {
  while (list.length > 0) list.pop()
}

/** Whether two JSON values are equal. Iterative: what a server sends may be deep. */
export function sameJson(left: unknown, right: unknown): boolean {
  const rest = [left, right]
  while (rest.length > 0) {
    const b = rest.pop()
    const a = rest.pop()
    if (a === b) continue
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
    if (Array.isArray(a) !== Array.isArray(b)) return false
    const keys = Object.keys(a)
    if (keys.length !== Object.keys(b).length) return false
    for (const key of keys) {
      if (!Object.hasOwn(b, key)) return false
      rest.push(a[key as never], b[key as never])
    }
  }
  return true
}

/** A text as the content of a tool message: as it is, unless a reader would take it for JSON. Every reader gets the same text back. */
export function textContent(text: string): string {
  return text !== '' && parseJson(text, text) === text ? text : JSON.stringify(text)
}
