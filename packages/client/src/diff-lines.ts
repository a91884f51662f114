/** A line of a diff. A `removed` one is only in the text before, an `added` one only in the text after. */
export interface DiffLine {
  readonly change: 'same' | 'added' | 'removed'
  readonly text: string
}

/** Beyond so many changed lines the shortest diff takes too long: everything between the first and the last change counts as replaced. */
const MAX_CHANGES = 500

/** The shortest diff of two texts by lines: removed and unchanged lines are the text before, added and unchanged lines the one after. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++
  let end = 0
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++
  return [
    ...linesAs('same', a.slice(0, start)),
    ...changesOf(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...linesAs('same', a.slice(a.length - end)),
  ]
}

/** Each with its line end; a last line without one is another line than the same with one. */
const linesOf = (text: string): readonly string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

const linesAs = (change: DiffLine['change'], lines: readonly string[]): DiffLine[] =>
  lines.map((text) => ({ change, text }))

/** Myers' greedy algorithm. `reach[i]` is how many lines of `a` a path with `d` changes gets through, on the diagonal `2 * i - d`. */
function changesOf(a: readonly string[], b: readonly string[]): readonly DiffLine[] {
  const steps: (readonly number[])[] = []
  for (let d = 0; d <= Math.min(a.length + b.length, MAX_CHANGES); d++) {
    const last = steps.at(-1) ?? []
    const reach: number[] = []
    steps.push(reach)
    for (let i = 0; i <= d; i++) {
      let x = d === 0 ? 0 : adds(last, i) ? at(last, i) : at(last, i - 1) + 1
      const diagonal = 2 * i - d
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++
      reach.push(x)
      if (diagonal === a.length - b.length && x === a.length) return traced(a, b, steps, i)
    }
  }
  return [...linesAs('removed', a), ...linesAs('added', b)]
}

/** Whether the best way to a diagonal adds a line; otherwise it removes one. */
const adds = (last: readonly number[], i: number): boolean => at(last, i - 1) < at(last, i)

/** Diagonals that no path has reached are behind all others. */
const at = (reach: readonly number[], i: number): number => reach[i] ?? -1

function traced(
  a: readonly string[],
  b: readonly string[],
  steps: readonly (readonly number[])[],
  end: number,
): readonly DiffLine[] {
  const lines: DiffLine[] = []
  let [x, y, i] = [a.length, b.length, end]
  for (let d = steps.length - 1; x > 0 || y > 0; d--) {
    const last = steps[d - 1] ?? []
    const isAdded = adds(last, i)
    const from = d === 0 ? 0 : isAdded ? at(last, i) : at(last, i - 1) + 1
    for (; x > from; x--, y--) lines.push({ change: 'same', text: a[x - 1] ?? '' })
    if (d === 0) break
    if (isAdded) lines.push({ change: 'added', text: b[--y] ?? '' })
    else lines.push({ change: 'removed', text: a[--x] ?? '' })
    if (!isAdded) i--
  }
  return lines.reverse()
}
