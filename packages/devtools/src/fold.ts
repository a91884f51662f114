import { statePatch } from '@countersign/client/state-patch'
import {
  type AGUIEvent,
  type ChatSnapshot,
  ChatStore,
  type InterruptDraft,
  type LocalEvent,
  mirrorSteps,
  readMirror,
  restoreSteps,
  type ThreadRecord,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { type Flags, type TimelineEntry, toStep } from './form.js'

/** The chat as it was after an entry. */
export interface StateThen {
  readonly snapshot: ChatSnapshot
  readonly flags: Flags
}

/** A conversation without a client: takes the steps that a client took, and so stands where that client stood. */
export function openStore(threadId: string, start: ThreadRecord): ChatStore {
  const moreSteps = { ...fullSteps, ...restoreSteps, ...mirrorSteps }
  const store = new ChatStore({ threadId, applyPatch: statePatch, moreSteps })
  store.dispatch({ type: 'restore', record: start })
  return store
}

/** Another one that stands where this stands. */
export function copyStore(store: ChatStore): ChatStore {
  const { threadId, messages } = store.getSnapshot()
  const copy = openStore(threadId, recordOf({ messages }))
  copy.dispatch({ type: 'mirror', state: readMirror(store.state) })
  return copy
}

/** What of a chat can be told from outside, in the form in which it is kept. */
export function recordOf({
  messages,
  interrupts = [],
  queue = [],
  state,
}: Pick<ChatSnapshot, 'messages'> & Partial<ChatSnapshot>): ThreadRecord {
  const open = (interrupt: InterruptDraft['interrupt']) => ({ interrupt, response: undefined, sent: false })
  return {
    version: 1,
    messages,
    unsentOutputs: [],
    ready: [],
    interrupts: interrupts.map(open),
    queue,
    ...(state !== undefined && { state }),
  }
}

/** The step of the machine that an entry is, if it is one. */
export function stepOf(entry: TimelineEntry): AGUIEvent | LocalEvent | undefined {
  switch (entry.kind) {
    case 'event':
      // What the machine does not know it leaves out.
      return entry.event as AGUIEvent
    case 'closed':
    case 'note':
      return entry.step && toStep(entry.step)
    default:
      return undefined
  }
}

/** Takes the steps of these entries. What is no step, in a file that somebody wrote by hand, is left out. */
export function fold(store: ChatStore, entries: readonly TimelineEntry[]): ChatStore {
  store.batch(() => {
    for (const entry of entries) {
      try {
        const step = stepOf(entry)
        if (step) store.dispatch(step)
      } catch {}
    }
  })
  return store
}

/** The flags after an entry: those of the state that was noted right after it, else of the last one before. */
export function flagsAt(entries: readonly TimelineEntry[], index: number): Flags {
  const none = { continuationPending: false, continuationSkipped: false }
  let last = index
  while (entries[last + 1]?.kind === 'state') last++
  for (let at = last; at >= 0; at--) {
    const entry = entries[at]
    if (entry?.kind === 'state' && entry.flags) return entry.flags
  }
  return none
}
