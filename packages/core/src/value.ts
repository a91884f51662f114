export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type WithoutUndefined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>
}

/** A copy without `undefined` members. For objects with known names, not for maps from outside. */
export function omitUndefined<T extends object>(members: T): WithoutUndefined<T> {
  const found: Record<string, unknown> = {}
  for (const name in members) {
    const member = members[name]
    if (member !== undefined) found[name] = member
  }
  return found as WithoutUndefined<T>
}

/** Whether application code returned a promise. Where none is expected, nobody else handles its rejection. */
export function reportRejection(given: unknown, report: (error: unknown) => void): boolean {
  const isPromise = isRecord(given) && typeof given.then === 'function'
  if (isPromise) Promise.resolve(given).catch(report)
  return isPromise
}

/** A copy with changes. With a spread, new members cost V8 ten times as much. */
export function changed<T extends object>(value: T, change: Partial<T>): T {
  return Object.assign({}, value, change)
}

/** Deep-copies plain objects and arrays; anything else in them is shared. */
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

/** Deep-freezes plain objects and arrays, and returns the value. */
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
  // Not compared with `Object.prototype`: a plain object may come from another realm.
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null
}

/** `undefined` for an object without members. */
export function filled<T extends object>(value: T): T | undefined {
  for (const _ in value) return value
  return undefined
}

/** `metadata.countersign`: data that Countersign peers write for each other. An empty object if there is none. */
export function getCountersignMetadata(metadata: unknown): Record<string, unknown> {
  const own = isRecord(metadata) ? metadata.countersign : undefined
  return isRecord(own) ? own : {}
}

/** Metadata with `own` as its `countersign` member, omitted if empty. `undefined` for metadata without members. */
export function setCountersignMetadata(
  metadata: Readonly<Record<string, unknown>> | undefined,
  own: Record<string, unknown>,
): Record<string, unknown> | undefined {
  const { countersign: _, ...rest } = metadata ?? {}
  return filled(filled(own) ? { countersign: own, ...rest } : rest)
}

/**
 * Splits the metadata of a call: what Countersign peers store about its approval and its outcome, and
 * everything else (`kept`), which is passed on unchanged.
 */
export function readCallMetadata(metadata: unknown) {
  const { arguments: whole, token, approval, state, error, ...more } = getCountersignMetadata(metadata)
  const { providerExecuted, ...own } = more
  const kept = setCountersignMetadata(isRecord(metadata) ? metadata : {}, own)
  return { arguments: whole, token, approval, state, error, providerExecuted, kept }
}

export function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The value, if it is one of the options. */
export function oneOf<const T>(value: unknown, ...options: readonly T[]): T | undefined {
  return options.find((option) => option === value)
}

/** The digits of a number from the first to the last that is not 0. A pattern for the zeros at the end would be tried at each of them. */
function significant(number: string): string {
  const digits = number.replace(/e.*|[-.]/gi, '')
  let from = 0
  let to = digits.length
  while (digits[from] === '0') from++
  while (to > from && digits[to - 1] === '0') to--
  return digits.slice(from, to)
}

/** Whether a text is empty, or JSON whose numbers JavaScript keeps: it would show and send an id of 19 digits, say, with other digits. */
export function isExactJson(text: string): boolean {
  if (text === '') return true
  if (parseJson(text) === undefined) return false
  // Escapes go first: a pattern that skips them inside a string uses stack for each character.
  const bare = text.replace(/\\./g, '').replace(/"[^"]*"/g, '')
  const numbers = bare.match(/-?\d[\d.e+-]*/gi) ?? []
  return numbers.every(
    (number) => Number.isFinite(+number) && significant(number) === significant(String(+number)),
  )
}

/** Parses `text` as JSON; `otherwise` if it is not. */
export function parseJson(text: string, otherwise?: unknown): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return otherwise
  }
}

/** Empties a list that will be filled again. Unlike `length = 0`, this keeps its capacity, so that deltas do not reallocate it. */
export function clear(list: unknown[]): void {
  while (list.length > 0) list.pop()
}

/** Whether two JSON values are equal. Iterative, because values from a server may be deeply nested. */
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

/** A string as the content of a tool message: quoted if a reader would parse it as JSON, else unchanged. Readers get it back as it was. */
export function textContent(text: string): string {
  return text !== '' && parseJson(text, text) === text ? text : JSON.stringify(text)
}
