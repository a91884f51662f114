/** Names a value's type for an error message, never the value itself, which may be confidential. */
export function inWords(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return 'an array'
  if (isThenable(value)) return 'a promise'
  if (typeof value === 'number') return Number.isFinite(value) ? 'a number' : String(value)
  return `${typeof value === 'object' ? 'an' : 'a'} ${typeof value}`
}

/** Whether a value is a promise. If so, its rejection is ignored: nobody awaits it, and it must not end the process. */
export function ignoreRejection(value: unknown): boolean {
  if (!isThenable(value)) return false
  Promise.resolve(value).catch(() => {})
  return true
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}
