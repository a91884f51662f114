import type { TokenUsage } from '@countersign/core'
import type { Owner } from '../ledger/ledger.js'

/** Identifies one thread. Two owners may use the same `threadId`; their threads have nothing in common. */
export interface ThreadKey {
  /** The user (`context.subject`), or `null` if there is none: all requests without a subject share the threads of `null`. */
  readonly owner: Owner
  /** Any text of any length. */
  readonly threadId: string
}

/** A message of a thread. Messages form a tree: after an edit or a regeneration, two messages have the same parent. */
export interface StoredMessage {
  /** Unique in its thread; any text of any length. */
  readonly id: string
  /** The message before it, or `null` for the first of a branch. The store does not check that it exists. */
  readonly parent: string | null
  /** JSON text as `JSON.stringify` writes it, kept byte for byte. */
  readonly message: string
}

/** The tokens that one run has used so far. */
export interface RunUsage {
  readonly runId: string
  /** All usage of the run. It replaces what was stored for this run before. */
  readonly usage: readonly TokenUsage[]
}

/** One attempt at a run. Only the attempt that holds a thread may append under its run's id. */
export interface RunHold {
  readonly runId: string
  /** A new random text for each attempt, as `crypto.randomUUID()` makes it: it tells two attempts at the same run apart. */
  readonly holder: string
}

/** What one `append` changes. All of it is stored, or nothing. */
export interface ThreadChange {
  /** The version that the change was made for. 0: the thread does not exist yet. */
  readonly version: number
  /** The run that makes the change. The change is refused as `lost` unless this run holds the thread. */
  readonly run?: RunHold | undefined
  /** Messages to add, or to replace where the thread has one with the same id. A replaced message keeps its place. */
  readonly messages?: readonly StoredMessage[] | undefined
  /** For how many more messages there must be room after this change, or it is refused as `full`: results of calls that may run now. Default 0. */
  readonly spare?: number | undefined
  /** For how many more bytes there must be room as well. They count as taken until the next change, or until the thread is released. Default 0. */
  readonly spareBytes?: number | undefined
  /** The last message of the branch that is shown, or `null` for an empty conversation. Absent: unchanged. */
  readonly head?: string | null | undefined
  readonly usage?: RunUsage | undefined
  /** At most 1,024 characters. Absent: unchanged. */
  readonly title?: string | undefined
  /** What a reader of the thread needs to follow `run`, in the format of its engine. Ours: the id of the last message before the run's own. */
  readonly cursor?: string | undefined
  /** Also releases the thread, in the same step: the last change of `run`. */
  readonly release?: boolean | undefined
}

/** The run that holds a thread. */
export interface ThreadRun {
  readonly runId: string
  readonly cursor?: string | undefined
  /** Its lease has expired and it did not release the thread: its process has probably died. */
  readonly lapsed: boolean
}

/** A run whose lease ended before it released its thread. */
export interface InterruptedRun {
  readonly runId: string
  readonly cursor?: string | undefined
}

/** A thread without its messages. */
export interface ThreadSummary {
  readonly threadId: string
  /** Rises by 1 with each change by `append`, from 1. A new title set by `rename` is not a new version. */
  readonly version: number
  readonly title?: string | undefined
  readonly run?: ThreadRun | undefined
  /** When the thread was first appended to, in milliseconds since the epoch. */
  readonly createdAt: number
  /** When the thread was last appended to, in milliseconds since the epoch. */
  readonly updatedAt: number
}

export interface StoredThread extends ThreadSummary {
  /** The last message of the branch that is shown. */
  readonly head: string | null
  /** In the order in which they were added, of all branches. */
  readonly messages: readonly StoredMessage[]
  readonly usage: readonly RunUsage[]
}

/** The limit that a refused change exceeds: an option of the store, or `store` if the store as a whole has no room. */
export type ThreadLimit =
  | 'maxMessages'
  | 'maxMessageBytes'
  | 'maxThreadBytes'
  | 'maxThreadsPerOwner'
  | 'store'

/** Nothing was stored, because it would exceed a limit. */
export interface ThreadFull {
  readonly status: 'full'
  readonly limit: ThreadLimit
  /** The value of that option. Absent for `store`. */
  readonly max?: number | undefined
}

export type AppendResult =
  | { readonly status: 'appended'; readonly version: number }
  /** Somebody else changed the thread; `version` is its current version, 0 if it does not exist. */
  | { readonly status: 'stale'; readonly version: number }
  /** The run does not hold the thread: it never did, it released the thread, or another attempt has taken over. */
  | { readonly status: 'lost' }
  | ThreadFull

export type HoldResult =
  | {
      readonly status: 'held'
      /** 0 if the thread does not exist yet. */
      readonly version: number
      /** Runs whose lease ended before they released the thread, oldest first. They are reported until a run releases the thread. */
      readonly interrupted: readonly InterruptedRun[]
    }
  /** Another attempt holds the thread. `runId` may be the same: then the run is open elsewhere, and can be joined. */
  | { readonly status: 'busy'; readonly runId: string }
  /** Only with `renew`: the run does not hold the thread any more. Another attempt has taken over, or the thread was removed. */
  | { readonly status: 'lost' }
  | ThreadFull

export interface ThreadPage {
  readonly threads: readonly ThreadSummary[]
  /** Where the next page begins. Absent on the last page. */
  readonly cursor?: string | undefined
}

/**
 * Stores conversations on the server. An unknown thread and a thread of another owner get the same results.
 *
 * A store that can't be reached rejects with `ledger-unavailable`. The change may have been made nevertheless; the same call can be
 * repeated, and has no effect the second time. All methods reject with `invalid-argument` for keys that are not strings, for messages that
 * are not JSON text, and for titles of more than 1,024 characters. `describeThreads` of `@countersign/testing/suites` is the suite that an
 * implementation must pass.
 */
export interface ThreadStore {
  /** Stable identity of what is stored. */
  readonly id: string
  /** Whether threads survive a restart of this process. */
  readonly durable: boolean
  /** The limit of that name: an agent keeps no result of more than half of it. Default: none. */
  readonly maxMessageBytes?: number | undefined
  /**
   * The thread, with only the messages and usage that were added or replaced after version `after` (default 0: all of them).
   * `undefined`: this owner has no such thread. A thread that a run holds but nobody has appended to does not exist yet.
   */
  load(key: ThreadKey, after?: number): Promise<StoredThread | undefined>
  /**
   * Changes the thread if it is still at `change.version` and if `change.run`, where given, holds it. Its cost grows with the change,
   * not with the thread. The same change repeated answers `appended` again and stores nothing, until somebody makes the next change.
   */
  append(key: ThreadKey, change: ThreadChange): Promise<AppendResult>
  /**
   * Takes the thread for one run, for `leaseMs` milliseconds by the store's clock; a thread that does not exist can be held as well.
   * The same `run` again renews the lease. When the lease has ended, another attempt may take the thread; until one does, `run` still
   * holds it and can renew. `renew`: only if `run` still holds the thread; else nothing changes, and the result is `lost`.
   */
  hold(
    key: ThreadKey,
    run: RunHold,
    leaseMs: number,
    options?: { readonly renew?: boolean | undefined },
  ): Promise<HoldResult>
  /** Ends the hold of `run`, and clears the interrupted runs that `hold` reported. Does nothing if `run` does not hold the thread. */
  release(key: ThreadKey, run: RunHold): Promise<void>
  /**
   * The owner's threads, the most recently appended to first; `limit` is at most 1,000. `cursor` continues an earlier page.
   *
   * Paging never repeats a thread, and never skips one that nobody appends to meanwhile. A thread that is added or appended to during
   * paging moves to the front: if it was not listed before, it is on a new first page and not on the following pages.
   * Rejects with `invalid-argument` for a cursor that no page returned.
   */
  list(
    owner: Owner,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<ThreadPage>
  /** Sets the title. It changes neither the version nor the order of `list`. `false`: this owner has no such thread. */
  rename(key: ThreadKey, title: string): Promise<boolean>
  /**
   * Removes the thread with its messages, usage and hold: a run that held it has lost it. `false`: this owner has no such thread.
   * Approvals, grants and the run log are stored elsewhere and stay.
   */
  remove(key: ThreadKey): Promise<boolean>
  /**
   * Threads of all owners whose run has not released them although its lease has expired, at most `limit`, oldest first. Before anything
   * else, recovery must take the thread with `hold`: its run may still be alive, and only the new hold stops it.
   */
  abandoned(limit: number): Promise<readonly (ThreadKey & { readonly runId: string })[]>
}

/** Limits of every store. A change that exceeds one is refused with `{ status: 'full', limit }`; nothing that is stored is dropped. */
export interface ThreadLimits {
  /** Messages of one thread, on all its branches. Default 10,000. */
  readonly maxMessages?: number | undefined
  /** Bytes of one message with its ids, in UTF-8. Default 16 MiB. */
  readonly maxMessageBytes?: number | undefined
  /** Bytes of all messages and all usage of one thread. Default 64 MiB. */
  readonly maxThreadBytes?: number | undefined
  /** Threads of one owner. A few more fit where several are made at the same moment. Default 10,000. */
  readonly maxThreadsPerOwner?: number | undefined
}
