import {
  CountersignError,
  frozen,
  isCountersignError,
  type Message,
  type TokenUsage,
} from '@countersign/core'
import type { StoredThread, ThreadKey, ThreadStore } from './thread-store.js'

/** A stored message, parsed. It is frozen: later requests get the same object. */
export interface KnownMessage {
  readonly id: string
  readonly parent: string | null
  readonly message: Message
  /** Estimated from the length of its text. */
  readonly bytes: number
}

/** A stored thread with its messages parsed. */
export interface KnownThread extends Omit<StoredThread, 'messages' | 'usage'> {
  /** By the run's id. */
  readonly usage: ReadonlyMap<string, readonly TokenUsage[]>
  readonly messages: readonly KnownMessage[]
  readonly byId: ReadonlyMap<string, KnownMessage>
}

/** A thread store that remembers the threads that were opened last, parsed. */
export interface KnownThreads extends ThreadStore {
  /**
   * The thread as it is stored now. Of a thread that is remembered, only what was stored since is loaded and parsed. All remembered threads
   * together take at most `maxBytes`: those that were not opened for longest are forgotten first, and a larger one at once.
   */
  open(key: ThreadKey, maxBytes: number): Promise<KnownThread | undefined>
}

/** About what the usage of one run takes. */
const USAGE_BYTES = 512

/** One for each store: agents may be created per request. */
const known = new WeakMap<ThreadStore, KnownThreads>()

export function knownThreads(store: ThreadStore): KnownThreads {
  const threads = known.get(store) ?? remembering(store)
  known.set(store, threads)
  return threads
}

function remembering(store: ThreadStore): KnownThreads {
  const remembered = new Map<string, { readonly thread: KnownThread; readonly bytes: number }>()
  let total = 0

  function forget(name: string): void {
    total -= remembered.get(name)?.bytes ?? 0
    remembered.delete(name)
  }

  return {
    get id() {
      return store.id
    },
    durable: store.durable,
    load: (key, after) => reached(() => store.load(key, after)),
    append: (key, change) => reached(() => store.append(key, change)),
    hold: (key, run, leaseMs, options) => reached(() => store.hold(key, run, leaseMs, options)),
    release: (key, run) => reached(() => store.release(key, run)),
    list: (owner, page) => reached(() => store.list(owner, page)),
    rename: (key, title) => reached(() => store.rename(key, title)),
    abandoned: (limit) => reached(() => store.abandoned(limit)),
    remove(key) {
      forget(nameOf(key))
      return reached(() => store.remove(key))
    },
    async open(key, maxBytes) {
      const name = nameOf(key)
      let before = remembered.get(name)?.thread
      let stored = await reached(() => store.load(key, before?.version))
      if (before && stored && !isSame(before, stored)) {
        before = undefined
        stored = await reached(() => store.load(key))
      }
      forget(name)
      if (stored === undefined) return undefined
      const thread = withChanges(before, stored)
      const bytes = thread.messages.reduce((sum, one) => sum + one.bytes, USAGE_BYTES * thread.usage.size)
      if (bytes <= maxBytes) {
        remembered.set(name, { thread, bytes })
        total += bytes
      }
      for (const oldest of remembered.keys()) {
        if (total <= maxBytes) break
        forget(oldest)
      }
      return thread
    },
  }
}

/** @throws CountersignError `ledger-unavailable` for whatever else a store throws */
async function reached<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (isCountersignError(error)) throw error
    throw new CountersignError('ledger-unavailable', 'The thread store cannot be used.', {}, error)
  }
}

function nameOf({ owner, threadId }: ThreadKey): string {
  return JSON.stringify([owner, threadId])
}

/** A thread that was removed and begun again has another time of creation. */
function isSame(before: KnownThread, { createdAt, version }: StoredThread): boolean {
  return before.createdAt === createdAt && before.version <= version
}

/** A replaced message keeps its place, as in the store. */
function withChanges(before: KnownThread | undefined, stored: StoredThread): KnownThread {
  const usage = new Map(before?.usage)
  for (const one of stored.usage) usage.set(one.runId, one.usage)
  const byId = new Map(before?.byId)
  for (const { id, parent, message: text } of stored.messages) {
    const message: Message = frozen(JSON.parse(text))
    byId.set(id, { id, parent, message, bytes: 2 * text.length })
  }
  return { ...stored, messages: [...byId.values()], byId, usage }
}
