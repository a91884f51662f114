interface Line {
  readonly text: string
  readonly group: string
}

export interface MemoryLog {
  append(text: string, group: string): void
  lines(): AsyncIterable<string>
}

/** Characters of all lines that are kept: a line may hold arguments. */
const MAX_SIZE = 8 * 1024 * 1024

/** The newest lines of a log, with a fair share for every group of their number, and of their characters. */
export function memoryLog(capacity: number): MemoryLog {
  let kept: readonly Line[] = []
  let fresh: Line[] = []
  let freshSize = 0
  const all = () =>
    newest(
      newest([...kept, ...fresh], capacity, () => 1),
      MAX_SIZE,
      ({ text }) => text.length,
    )
  return {
    append(text, group) {
      fresh.push({ text, group })
      freshSize += text.length
      // Trimmed only after `capacity` new lines or many characters, so that the cost of an append does not depend on the log's length.
      if (fresh.length < capacity && freshSize < MAX_SIZE / 4) return
      kept = all()
      fresh = []
      freshSize = 0
    },
    async *lines() {
      for (const { text } of all()) yield text
    },
  }
}

/** The newest lines of each group, as much as fits. A group with much can't push out the lines of groups with less. */
function newest(lines: readonly Line[], capacity: number, sizeOf: (line: Line) => number): readonly Line[] {
  const sizes = new Map<string, number>()
  for (const line of lines) sizes.set(line.group, (sizes.get(line.group) ?? 0) + sizeOf(line))
  // What a group leaves of its equal share goes to the others.
  let [left, groups, share] = [capacity, sizes.size, 0]
  if ([...sizes.values()].reduce((sum, size) => sum + size, 0) <= capacity) return lines
  for (const size of [...sizes.values()].sort((a, b) => a - b)) {
    share = Math.max(1, Math.floor(left / groups))
    if (size > share) break
    left -= size
    groups -= 1
  }
  const seen = new Map<string, number>()
  let total = 0
  const kept = lines.toReversed().filter((line) => {
    const used = (seen.get(line.group) ?? 0) + sizeOf(line)
    if (used > share || total + sizeOf(line) > capacity) return false
    seen.set(line.group, used)
    total += sizeOf(line)
    return true
  })
  return kept.reverse()
}
