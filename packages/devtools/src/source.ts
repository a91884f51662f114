import { flagsAt, fold, openStore, type StateThen } from './fold.js'
import type { Recording, TimelineEntry } from './form.js'

/** What a timeline is shown from: a recorder at work, or a recording. */
export interface TimelineSource {
  readonly entries: readonly TimelineEntry[]
  /** How many entries before the first are gone: the number of the first entry. */
  readonly cut: number
  /** The chat after the entry at this index of `entries`. */
  stateAt(index: number): StateThen
}

/** A recording, to be looked at. */
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
