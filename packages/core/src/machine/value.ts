/** Small readers of values that came from outside. */

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The part of a metadata object that Countersign peers write for one another. */
export function ours(metadata: unknown): Record<string, unknown> {
  const own = isRecord(metadata) ? metadata.countersign : undefined
  return isRecord(own) ? own : {}
}

/**
 * The metadata of a call, taken apart: what Countersign peers say of its question, its answer and its outcome, and everything else
 * (`kept`), which is passed on as it is.
 */
export function readCallMetadata(metadata: unknown) {
  const { token, approval, state, error, providerExecuted, ...own } = ours(metadata)
  const { countersign: _, ...rest } = isRecord(metadata) ? metadata : {}
  return { token, approval, state, error, providerExecuted, kept: withOwn(rest, own) }
}

/** Metadata with our part in it, where there is any. */
export function withOwn(
  metadata: Record<string, unknown>,
  own: Record<string, unknown>,
): Record<string, unknown> {
  return Object.keys(own).length > 0 ? { ...metadata, countersign: own } : metadata
}

export function string(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** Merges metadata key by key, the last write winning (AG-UI 1.0, metadata). Never writes into either argument. */
export function mergeMetadata(
  before: Record<string, unknown> | undefined,
  after: Record<string, unknown> | undefined,
): Record<string, unknown> | undefined {
  return after ? { ...before, ...after } : before
}

/** `text` as JSON where it is JSON, else as it is. */
export function parseOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Whether two JSON values are equal. Iterative: what a server sends may be deep. */
export function sameJson(left: unknown, right: unknown): boolean {
  const pairs: [unknown, unknown][] = [[left, right]]
  for (let pair = pairs.pop(); pair; pair = pairs.pop()) {
    const [a, b] = pair
    if (Object.is(a, b) || (a === 0 && b === 0)) continue
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
    if (Array.isArray(a) !== Array.isArray(b)) return false
    const keys = Object.keys(a)
    if (keys.length !== Object.keys(b).length) return false
    for (const key of keys) {
      if (!Object.hasOwn(b, key)) return false
      pairs.push([Reflect.get(a, key), Reflect.get(b, key)])
    }
  }
  return true
}
