import { flagsAt, fold, openStore, type StateThen } from './fold.js'
import type { Recording, TimelineEntry } from './form.js'

/** The source of a displayed timeline: an active recorder, or a recording. */
export interface TimelineSource {
  readonly entries: readonly TimelineEntry[]
  /** How many entries before the first were dropped, which is the number of the first entry. */
  readonly cut: number
  /** The state of the chat after the entry at this index of `entries`. */
  stateAt(index: number): StateThen
}

/** The source for a recording. */
export function sourceOf({ threadId, start, cut, entries }: Recording): TimelineSource {
  return {
    entries,
    cut,
    stateAt: (index) => ({
      snapshot: fold(openStore(threadId, start), entries.slice(0, index + 1)).getSnapshot(),
      flags: flagsAt(entries, index),
    }),
  }
}
