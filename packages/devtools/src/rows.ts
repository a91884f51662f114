import type { EntryKind, TimelineEntry } from './form.js'
import { isGrowth } from './growth.js'

/** One row of the list: an entry, or consecutive pieces of one text or of one call's arguments. */
export interface Row {
  /** The number of its last entry, counted from the start of the recording. */
  readonly number: number
  /** The index of its last entry in the current list. */
  readonly index: number
  /** How many entries it represents. */
  readonly count: number
  readonly entry: TimelineEntry
  /** The latest request at that time. */
  readonly run: number
  /** The state recorded before it. */
  readonly stateBefore: string
}

/** The rows of a timeline, without hidden kinds. `cut` is the number of the first entry. */
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

/** The id of the text or call that a piece belongs to. */
function idOf(event: object): unknown {
  return 'toolCallId' in event ? event.toolCallId : 'messageId' in event ? event.messageId : undefined
}

/** The index of the row that represents this entry: the row that ends with it, else the next one; -1 if there is none. */
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
