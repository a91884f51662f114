import type { RunHold, StoredMessage, ThreadKey, ThreadLimits, ThreadStore } from '@countersign/server'

export interface ThreadsUnderTest {
  readonly store: ThreadStore
  /** The same storage as another process would open it, where the store is shared. */
  readonly another?: ThreadStore | undefined
  close?(): Promise<void> | void
}

/** Makes an empty store with these limits that takes the time from `now`, in milliseconds since the epoch. */
export type CreateThreads = (
  options: ThreadLimits & { readonly now: () => number },
) => Promise<ThreadsUnderTest> | ThreadsUnderTest

export type ThreadSpec = (
  sentence: string,
  run: (bench: ThreadBench) => Promise<void>,
  limits?: ThreadLimits,
) => void

export const LEASE = 30_000
export const key: ThreadKey = { owner: 'alice', threadId: 'thread' }

export interface ThreadBench {
  readonly store: ThreadStore
  /** The store as another process opens it; the same one where it cannot be shared. */
  readonly another: ThreadStore
  readonly now: () => number
  advance(ms: number): void
  /** Appends a message to a thread as it is now; answers the new version. */
  say(id: string, where?: ThreadKey): Promise<number>
  /** The ids of the messages that were added or replaced after a version. */
  idsAfter(after: number, where?: ThreadKey): Promise<readonly string[] | undefined>
  close(): Promise<void>
}

export async function openThreadBench(create: CreateThreads, limits: ThreadLimits): Promise<ThreadBench> {
  let now = Date.UTC(2026, 0, 1)
  const made = await create({ ...limits, now: () => now })
  const { store, another = store } = made
  return {
    store,
    another,
    now: () => now,
    advance: (ms) => {
      now += ms
    },
    async say(id, where = key) {
      const before = await store.load(where)
      const change = { version: before?.version ?? 0, messages: [text(id, before?.head ?? null)], head: id }
      const result = await store.append(where, change)
      if (result.status !== 'appended') throw new Error(`The message was not appended: ${result.status}`)
      return result.version
    },
    idsAfter: async (after, where = key) => (await another.load(where, after))?.messages.map(({ id }) => id),
    close: async () => made.close?.(),
  }
}

export function text(id: string, parent: string | null = null, content = `of ${id}`): StoredMessage {
  return { id, parent, message: JSON.stringify({ id, role: 'user', parts: [{ type: 'text', content }] }) }
}

/** An attempt at a run. */
export function attempt(runId: string, holder = `${runId} once`): RunHold {
  return { runId, holder }
}
