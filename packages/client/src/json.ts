/**
 * A value as it is at this moment and as a request will carry it: what the application does with its own object afterwards changes
 * nothing, and what has no JSON form (a cycle, a function, a BigInt) would make every later request fail.
 */
export function copyJson(value: unknown): { readonly value?: unknown; readonly fault?: string } {
  if (value === undefined) return {}
  try {
    return { value: JSON.parse(JSON.stringify(value)) as unknown }
  } catch {
    return { fault: 'What was given has no JSON form.' }
  }
}
