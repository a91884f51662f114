/** The limit for one value, within the 4 MiB of a request. */
const MAX_BYTES = 2 ** 21

/**
 * A copy of a value as a request will carry it, so that the application may mutate its own object afterwards.
 * A value that JSON would change or drop (NaN, a function, a Map, a cycle) is refused; so is one so long that
 * the server would refuse it, and the conversation with it, again and again.
 */
export function copyJson(value: unknown): { readonly value?: unknown; readonly fault?: string } {
  if (value === undefined) return {}
  try {
    const text = JSON.stringify(value, checked)
    if (isLong(text)) return { fault: `More than ${MAX_BYTES} bytes of JSON can't be sent.` }
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { fault: `What was given has no JSON form (${error}). Give plain objects and lists.` }
  }
}

/** A UTF-16 unit takes at most three bytes. */
function isLong(text = ''): boolean {
  return text.length > MAX_BYTES / 3 && new TextEncoder().encode(text).length > MAX_BYTES
}

/** Objects with `toJSON`, such as a Date, have already been converted. */
function checked(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  if (key === '__proto__') throw key
  // An invalid date has become null by now.
  if (value === null && this[key] !== null) throw this[key]
  const kind = Object.prototype.toString.call(value).slice(8, -1)
  if (!/^(Object|Array|String|Boolean|Null|Undefined)$/.test(kind) && !Number.isFinite(value))
    throw kind === 'Number' ? value : kind
  return value
}
