interface Line {
  readonly text: string
  readonly group: string
}

export interface MemoryLog {
  append(text: string, group: string): void
  lines(): AsyncIterable<string>
}

/** The newest lines of a log, with a fair share for every group. */
export function memoryLog(capacity: number): MemoryLog {
  let kept: readonly Line[] = []
  let fresh: Line[] = []
  return {
    append(text, group) {
      fresh.push({ text, group })
      // Trimmed only after `capacity` new lines, so that the cost of an append does not depend on the log's length.
      if (fresh.length < capacity) return
      kept = newest([...kept, ...fresh], capacity)
      fresh = []
    },
    async *lines() {
      for (const { text } of newest([...kept, ...fresh], capacity)) yield text
    },
  }
}

/** The newest lines of each group. A group with many lines can't push out the lines of groups with fewer. */
function newest(lines: readonly Line[], capacity: number): readonly Line[] {
  if (lines.length <= capacity) return lines
  const counts = new Map<string, number>()
  for (const { group } of lines) counts.set(group, (counts.get(group) ?? 0) + 1)
  // What a group leaves of its equal share goes to the others.
  let [left, groups, share] = [capacity, counts.size, 0]
  for (const count of [...counts.values()].sort((a, b) => a - b)) {
    share = Math.max(1, Math.floor(left / groups))
    if (count > share) break
    left -= count
    groups -= 1
  }
  const seen = new Map<string, number>()
  const kept = lines.toReversed().filter(({ group }) => {
    const newer = seen.get(group) ?? 0
    seen.set(group, newer + 1)
    return newer < share
  })
  return kept.slice(0, capacity).reverse()
}
