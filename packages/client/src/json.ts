/** Of a request's 4 MiB, for one thing in it. */
const MAX_BYTES = 2 ** 21

/**
 * A value as it is at this moment and as a request will carry it: what the application does with its own object afterwards changes
 * nothing. What JSON would change or drop (NaN, a function, a Map, a cycle) is refused, and so is what is so long that a server would refuse
 * it together with its conversation, again and again.
 */
export function copyJson(value: unknown): { readonly value?: unknown; readonly fault?: string } {
  if (value === undefined) return {}
  try {
    const text = JSON.stringify(value, checked)
    if (isLong(text)) return { fault: `It has more than ${MAX_BYTES} bytes of JSON.` }
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { fault: `What was given has no JSON form (${error}). Give plain objects and lists.` }
  }
}

/** No character has more than three bytes for each UTF-16 unit. */
function isLong(text = ''): boolean {
  return text.length > MAX_BYTES / 3 && new TextEncoder().encode(text).length > MAX_BYTES
}

/** A Date says itself what it is in JSON, and so may any object, by `toJSON`. */
function checked(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  if (key === '__proto__') throw key
  // one that is no time has become null by now
  if (value === null && this[key] !== null) throw this[key]
  const kind = Object.prototype.toString.call(value).slice(8, -1)
  if (!/^(Object|Array|String|Boolean|Null|Undefined)$/.test(kind) && !Number.isFinite(value))
    throw kind === 'Number' ? value : kind
  return value
}
