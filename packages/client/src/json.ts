/**
 * A value as it is at this moment and as a request will carry it: what the application does with its own object afterwards changes
 * nothing, and what has no JSON form (a cycle, a function, a BigInt, a Map) would make every later request fail, or say nothing.
 */
export function copyJson(value: unknown): { readonly value?: unknown; readonly fault?: string } {
  if (value === undefined) return {}
  try {
    const text = JSON.stringify(value, (_, inner: unknown) => {
      for (const kind of [Map, Set, Error]) if (inner instanceof kind) throw kind.name
      return inner
    })
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { fault: `What was given has no JSON form (${error}). Give plain objects and lists.` }
  }
}
