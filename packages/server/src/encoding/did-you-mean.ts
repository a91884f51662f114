/** ` Did you mean needsApproval?`, if a name is at most two edits away from the one that was given, or one if that is short; otherwise nothing. */
export function didYouMean(given: string, names: readonly string[]): string {
  // Two edits would make almost any short name of almost any other.
  const edits = Math.min(2, Math.floor(given.length / 3))
  const near = names.find((name) => name.toLowerCase() === given.toLowerCase() || isNear(given, name, edits))
  return near === undefined ? '' : ` Did you mean ${near}?`
}

/** Whether `a` becomes `b` with at most this many characters added, removed or replaced. */
function isNear(a: string, b: string, edits: number): boolean {
  if (edits < 0 || Math.abs(a.length - b.length) > edits) return false
  if (a === '' || b === '') return a.length + b.length <= edits
  if (a[0] === b[0]) return isNear(a.slice(1), b.slice(1), edits)
  const [restA, restB] = [a.slice(1), b.slice(1)]
  return isNear(restA, restB, edits - 1) || isNear(restA, b, edits - 1) || isNear(a, restB, edits - 1)
}
