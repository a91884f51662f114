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

/** The state of the chat after an entry. */
export interface StateThen {
  readonly snapshot: ChatSnapshot
  readonly flags: Flags
}

/** A store without a client: applies the steps that a client took, and so reproduces its state. */
export function openStore(threadId: string, start: ThreadRecord): ChatStore {
  const moreSteps = { ...fullSteps, ...restoreSteps, ...mirrorSteps }
  const store = new ChatStore({ threadId, applyPatch: statePatch, moreSteps })
  store.dispatch({ type: 'restore', record: start })
  return store
}

/** A copy with the same state. */
export function copyStore(store: ChatStore): ChatStore {
  const { threadId, messages } = store.getSnapshot()
  const copy = openStore(threadId, recordOf({ messages }))
  copy.dispatch({ type: 'mirror', state: readMirror(store.state) })
  return copy
}

/** The externally visible state of a chat, in the stored form. */
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

/** The machine's step of an entry, if it has one. */
export function stepOf(entry: TimelineEntry): AGUIEvent | LocalEvent | undefined {
  switch (entry.kind) {
    case 'event':
      // The machine ignores what it does not know.
      return entry.event as AGUIEvent
    case 'closed':
    case 'note':
      return entry.step && toStep(entry.step)
    default:
      return undefined
  }
}

/** Applies the steps of these entries. Invalid steps, as in a file written by hand, are ignored. */
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

/** The flags after an entry: those of the state recorded right after it, else of the last one before. */
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
