import type { EntryKind, TimelineEntry } from './form.js'
import { isGrowth } from './growth.js'

/** One line of the list: an entry, or pieces of one text or of one call's arguments that came one after the other. */
export interface Row {
  /** The number of its last entry, counted from the beginning of the recording. */
  readonly number: number
  /** The index of its last entry among those that are there. */
  readonly index: number
  /** How many entries it stands for. */
  readonly count: number
  readonly entry: TimelineEntry
  /** The request that was last when it was noted. */
  readonly run: number
  /** The state that was noted before it. */
  readonly stateBefore: string
}

/** The lines that are shown of a timeline, without the kinds that are hidden. `cut` is the number of the first entry. */
export function rowsOf(
  entries: readonly TimelineEntry[],
  cut: number,
  hidden: ReadonlySet<EntryKind>,
): readonly Row[] {
  const rows: Row[] = []
  let run = 0
  let state = ''
  for (const [index, entry] of entries.entries()) {
    if ('run' in entry) run = entry.run
    const stateBefore = state
    if (entry.kind === 'state') state = entry.text
    if (hidden.has(entry.kind)) continue
    const last = rows.at(-1)
    const grown = last !== undefined && last.index === index - 1 && isSameGrowth(last.entry, entry)
    const row = { number: cut + index, index, count: grown ? last.count + 1 : 1, entry, run, stateBefore }
    if (grown) rows[rows.length - 1] = row
    else rows.push(row)
  }
  return rows
}

function isSameGrowth(one: TimelineEntry, other: TimelineEntry): boolean {
  if (one.kind !== 'event' || other.kind !== 'event') return false
  return one.event.type === other.event.type && isGrowth(one.event) && idOf(one.event) === idOf(other.event)
}

/** What a piece belongs to. */
function idOf(event: object): unknown {
  return 'toolCallId' in event ? event.toolCallId : 'messageId' in event ? event.messageId : undefined
}

/** Where a row stands that stands for this entry: the row that ends with it, else the next one. -1 where there is none. */
export function rowAt(rows: readonly Row[], number: number): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((rows[middle]?.number ?? 0) < number) low = middle + 1
    else high = middle
  }
  return low < rows.length ? low : -1
}
