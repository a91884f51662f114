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

/** The parts of a client that are recorded; any `ChatClient` fits. */
export type RecordedClient = Pick<
  ChatClient,
  'threadId' | 'getSnapshot' | 'subscribe' | 'inspect' | 'observe'
>

/** Options of {@link record}. */
export interface RecorderOptions {
  /** Maximum number of entries; the oldest are dropped first. Default 5,000. */
  readonly limit?: number | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
}

/** The recording of a client in progress. */
export interface Recorder extends TimelineSource {
  /** A run was open when recording was requested: it starts when that run has ended. */
  readonly waiting: boolean
  subscribe(listener: () => void): () => void
  /** Discards the recording so far and starts a new one. */
  clear(): void
  /**
   * The recording so far, as plain JSON. `masked` (the default) masks the values of secret-looking keys, and approval tokens.
   * If entries were dropped, it starts at the first user action before which no run was open, and `cut` counts what is missing.
   */
  recording(options?: { readonly masked?: boolean | undefined }): Recording
  /** Stops recording. */
  stop(): void
}

const DEFAULT_LIMIT = 5000

/**
 * Records every request, event, step, user action and state of a client from now on, without changing it.
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
  /** The conversation before the first entry. Steps of dropped entries are applied to it. */
  let base = openStore(threadId, recordOf(client.getSnapshot()))
  let waiting = client.inspect().openRun !== undefined
  /** The open run that could not be recorded has ended: the next entry starts the recording. */
  let begins = false
  /** The last step appended to a text or to arguments: it gets no state entry of its own. */
  let growing = false
  /** The last recorded state; `undefined` if the next one is the initial state, which gets no entry. */
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
    // Dropped in batches, so that a full list is not shifted for every entry.
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

  /** There is no notification when only the flags change or a text ends. */
  function lookSoon(): void {
    if (isLookDue) return
    isLookDue = true
    queueMicrotask(() => {
      isLookDue = false
      look()
    })
  }

  function see(what: Observation): void {
    // The flags change just before the end of a run is reported; that intermediate state is not recorded.
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

/** Applies steps up to the first user action before which no run was open. Without one, all entries are kept. */
function foldToAct(store: ChatStore, entries: readonly TimelineEntry[]): number {
  const ahead = copyStore(store)
  for (const [index, entry] of entries.entries()) {
    const { isLoading, error } = ahead.getSnapshot()
    if (entry.kind === 'action' && !isLoading && !error) {
      fold(store, entries.slice(0, index))
      return index
    }
    const step = stepOf(entry)
    if (step) ahead.dispatch(step)
  }
  return 0
}
