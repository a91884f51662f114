import type { ChatClient, Observation } from '@countersign/client'
import {
  type AGUIEvent,
  type ChatStore,
  CountersignError,
  type LocalEvent,
  readRecord,
} from '@countersign/core'
import { actEntry, isEvent, stepEntry } from './entries.js'
import { copyStore, flagsAt, fold, openStore, recordOf, type StateThen, stepOf } from './fold.js'
import type { Recording, TimelineEntry } from './form.js'
import { isGrowth } from './growth.js'
import { maskRecording } from './mask.js'
import { printState } from './print.js'
import type { TimelineSource } from './source.js'

/** What is recorded of a client; a `ChatClient` of any tools is one. */
export type RecordedClient = Pick<
  ChatClient,
  'threadId' | 'getSnapshot' | 'subscribe' | 'inspect' | 'observe'
>

/** Options of {@link record}. */
export interface RecorderOptions {
  /** How many entries are held at most; the oldest fall out first. Default 5,000. */
  readonly limit?: number | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
}

/** What a client went through, as it goes on. */
export interface Recorder extends TimelineSource {
  /** A run was open when it was asked to record: it begins when that run has ended. */
  readonly waiting: boolean
  subscribe(listener: () => void): () => void
  /** Forgets what was noted until now, and begins anew. */
  clear(): void
  /**
   * What was noted, as plain JSON. `masked` (the default) hides values under keys that name secrets, and the tokens of approvals. Where
   * entries fell out it begins at the first act of the person before which no run was open, and `cut` counts what is missing.
   */
  recording(options?: { readonly masked?: boolean | undefined }): Recording
  /** The client is left alone from now on. */
  stop(): void
}

const DEFAULT_LIMIT = 5000

/**
 * Notes every request, event, step, act and state of a client from now on, without changing anything in it.
 *
 * @example const recorder = record(client); ...; await save(JSON.stringify(recorder.recording()))
 */
export function record(
  client: RecordedClient,
  { limit = DEFAULT_LIMIT, now = Date.now }: RecorderOptions = {},
): Recorder {
  if (!(limit >= 1)) {
    throw new CountersignError('invalid-option', 'record: the option `limit` has to be a number from 1 up.')
  }
  const listeners = new Set<() => void>()
  const { threadId } = client
  let entries: TimelineEntry[] = []
  let cut = 0
  let run = 0
  /** The conversation before the first entry. It takes the steps of entries that fall out. */
  let base = openStore(threadId, recordOf(client.getSnapshot()))
  let waiting = client.inspect().openRun !== undefined
  /** What is next begins a recording: the open run that could not be recorded is over. */
  let begins = false
  /** The last step was a piece of a text or of arguments: it makes no state of its own. */
  let growing = false
  /** The state noted last; `undefined` where the next one is that of the beginning, and no entry. */
  let lastState: string | undefined = printState(client)
  let isLookDue = false

  function begin(store: ChatStore): void {
    base = store
    entries = []
    cut = 0
    lastState = undefined
    tell()
  }

  function beginIfDue(): void {
    if (!begins) return
    begins = false
    begin(openStore(threadId, recordOf(client.getSnapshot())))
  }

  function add(entry: TimelineEntry): void {
    entries.push({ ...entry, at: now() })
    // In pieces, so that a full list is not moved by one at each entry.
    if (entries.length > limit + Math.min(limit / 8, 256)) drop(entries.length - limit)
    tell()
  }

  function drop(count: number): void {
    fold(base, entries.splice(0, count))
    cut += count
  }

  function tell(): void {
    for (const listener of listeners) listener()
  }

  function noteState(): void {
    const text = printState(client)
    const isNew = lastState !== undefined && text !== lastState
    lastState = text
    if (!isNew) return
    const { continuationPending, continuationSkipped } = client.inspect()
    add({ kind: 'state', text, flags: { continuationPending, continuationSkipped } })
  }

  function look(): void {
    beginIfDue()
    if (!waiting && !growing) noteState()
  }

  /** Nobody is told when the flags change, or when a text only ends. */
  function lookSoon(): void {
    if (isLookDue) return
    isLookDue = true
    queueMicrotask(() => {
      isLookDue = false
      look()
    })
  }

  function see(what: Observation): void {
    // The flags of a run that ends change just before its end is told: what they lead to is not a state of its own.
    if (what.type === 'step' && what.step.type === 'run-closed') beginIfDue()
    else look()
    if (waiting) {
      if (what.type !== 'step' || what.step.type !== 'run-closed') return
      waiting = false
      begins = true
      return
    }
    growing = what.type === 'step' && isGrowth(what.step)
    if (!growing) lookSoon()
    switch (what.type) {
      case 'command':
        add(actEntry(what))
        return
      case 'request':
        run++
        add({ kind: 'request', run, input: what.input, ...(what.rejoin && { rejoin: what.rejoin }) })
        return
      case 'step':
        seeStep(what.step)
        return
      default:
        what satisfies never
    }
  }

  function seeStep(step: AGUIEvent | LocalEvent): void {
    if (!isEvent(step) && (step.type === 'restore' || step.type === 'mirror')) {
      const store = copyStore(base)
      store.dispatch(step)
      begin(store)
    } else add(stepEntry(step, run))
  }

  const leave = [client.observe(see), client.subscribe(look)]

  return {
    get entries() {
      return entries
    },
    get cut() {
      return cut
    },
    get waiting() {
      return waiting
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stateAt: (index): StateThen => ({
      snapshot: fold(copyStore(base), entries.slice(0, index + 1)).getSnapshot(),
      flags: flagsAt(entries, index),
    }),
    clear() {
      begin(fold(base, entries))
    },
    recording({ masked = true } = {}) {
      const store = copyStore(base)
      const { isLoading, error } = store.getSnapshot()
      const first = cut > 0 || isLoading || error ? foldToAct(store, entries) : 0
      const raw: Recording = {
        version: 1,
        threadId,
        start: readRecord(store.state),
        cut: cut + first,
        masked: false,
        entries: entries.slice(first),
      }
      return masked ? maskRecording(raw) : raw
    },
    stop() {
      for (const go of leave) go()
      listeners.clear()
    },
  }
}

/** Takes steps up to the first act before which no run was open. Where there is none, all entries are kept. */
function foldToAct(store: ChatStore, entries: readonly TimelineEntry[]): number {
  const ahead = copyStore(store)
  for (const [index, entry] of entries.entries()) {
    const { isLoading, error } = ahead.getSnapshot()
    if (entry.kind === 'act' && !isLoading && !error) {
      fold(store, entries.slice(0, index))
      return index
    }
    const step = stepOf(entry)
    if (step) ahead.dispatch(step)
  }
  return 0
}
