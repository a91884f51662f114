import type { Owner } from '../ledger/ledger.js'
import type {
  AppendResult,
  HoldResult,
  InterruptedRun,
  RunHold,
  ThreadChange,
  ThreadKey,
  ThreadLimits,
  ThreadSummary,
} from './thread-store.js'

/** What a store keeps of a thread besides its items. All decisions about a thread are based on it. */
export interface ThreadHeader extends Omit<ThreadSummary, 'run' | 'version'> {
  readonly owner: Owner
  /** 0: a run holds the thread, and nobody has appended to it. */
  readonly version: number
  readonly head: string | null
  readonly run?: HeldRun | undefined
  readonly interrupted: readonly InterruptedRun[]
  readonly messages: number
  /** The place of the next item. */
  readonly places: number
  readonly bytes: number
  /** The digest of the last change, to recognize its repetition. */
  readonly change: string
}

interface HeldRun extends RunHold {
  readonly until: number
  readonly spareBytes?: number
  readonly cursor?: string | undefined
}

export interface Decision<Result> {
  readonly result: Result
  /** The new header, or `null` to remove the thread. Absent: nothing changes. */
  readonly header?: ThreadHeader | null | undefined
}

export interface FoundThread {
  readonly key: ThreadKey
  /** Absent: nobody has held it or appended to it. */
  readonly header: ThreadHeader | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
  /** Whether the owner may have one more thread. */
  readonly mayBegin: boolean
  readonly maxThreadsPerOwner: number
}

/** What an append adds to the thread, as counted by the store's limits. */
export interface Growth {
  readonly messages: number
  /** Messages and usage of runs. */
  readonly items: number
  readonly bytes: number
  readonly largest: number
}

/** {@link ThreadLimits}, checked and complete. */
export type FullThreadLimits = Readonly<Record<keyof ThreadLimits, number>>

/** How many interrupted runs are reported; the newest count. */
const MAX_INTERRUPTED = 16

function newHeader({ owner, threadId }: ThreadKey, now: number): ThreadHeader {
  const empty = { version: 0, head: null, interrupted: [], messages: 0, places: 0, bytes: 0 }
  return { owner, threadId, ...empty, createdAt: now, updatedAt: now, change: '' }
}

export function holdThread(
  found: FoundThread,
  hold: RunHold,
  leaseMs: number,
  renew: boolean,
): Decision<HoldResult> {
  const { key, now, header = newHeader(key, now), mayBegin, maxThreadsPerOwner } = found
  const { runId, holder } = hold
  const { run, version } = header
  const isMine = run !== undefined && isHeldBy(run, hold)
  if (renew && !isMine) return { result: { status: 'lost' } }
  if (found.header === undefined && !mayBegin) return full('maxThreadsPerOwner', maxThreadsPerOwner)
  if (run !== undefined && !isMine && run.until > now) return { result: { status: 'busy', runId: run.runId } }
  const interrupted =
    run === undefined || isMine ? header.interrupted : [...header.interrupted, interruptedRun(run)]
  const next: ThreadHeader = {
    ...header,
    run: { ...(isMine && run), runId, holder, until: now + leaseMs },
    interrupted: interrupted.slice(-MAX_INTERRUPTED),
  }
  return { result: { status: 'held', version, interrupted: next.interrupted }, header: next }
}

export function releaseThread(header: ThreadHeader | undefined, run: RunHold): Decision<void> {
  if (header?.run === undefined || !isHeldBy(header.run, run)) return { result: undefined }
  return { result: undefined, header: header.version === 0 ? null : released(header) }
}

/** `digest` covers the whole change. */
export function appendToThread(
  found: FoundThread,
  change: ThreadChange,
  digest: string,
  growth: Growth,
  limits: FullThreadLimits,
): Decision<AppendResult> {
  const { key, now, header = newHeader(key, now), mayBegin, maxThreadsPerOwner } = found
  const version = change.version + 1
  if (header.version === version && header.change === digest)
    return { result: { status: 'appended', version } }
  const { run } = change
  if (run !== undefined && (header.run === undefined || !isHeldBy(header.run, run)))
    return { result: { status: 'lost' } }
  if (header.version !== change.version) return { result: { status: 'stale', version: header.version } }
  if (header.version === 0 && !mayBegin) return full('maxThreadsPerOwner', maxThreadsPerOwner)
  const messages = header.messages + growth.messages
  const { spare = 0, spareBytes = 0 } = change
  const bytes = header.bytes + growth.bytes
  if (growth.largest > limits.maxMessageBytes) return full('maxMessageBytes', limits.maxMessageBytes)
  if (growth.messages + spare > 0 && messages + spare > limits.maxMessages)
    return full('maxMessages', limits.maxMessages)
  if (growth.bytes + spareBytes > 0 && bytes + spareBytes > limits.maxThreadBytes)
    return full('maxThreadBytes', limits.maxThreadBytes)
  const { head = header.head, title = header.title, cursor } = change
  const next: ThreadHeader = {
    ...header,
    ...{ version, head, title, messages, bytes, change: digest, places: header.places + growth.items },
    run: header.run && { ...header.run, spareBytes, cursor: (run && cursor) ?? header.run.cursor },
    createdAt: header.version === 0 ? now : header.createdAt,
    // A clock that was set back must not move a thread down the list.
    updatedAt: Math.max(now, header.updatedAt),
  }
  const isReleased = run !== undefined && change.release === true
  return { result: { status: 'appended', version }, header: isReleased ? released(next) : next }
}

export function summaryOf(header: ThreadHeader, now: number): ThreadSummary {
  const { threadId, version, title, run, createdAt, updatedAt } = header
  return {
    ...{ threadId, version, title, createdAt, updatedAt },
    run: run && { ...interruptedRun(run), lapsed: run.until <= now },
  }
}

function released(header: ThreadHeader): ThreadHeader {
  return { ...header, run: undefined, interrupted: [] }
}

function isHeldBy(run: HeldRun, { runId, holder }: RunHold): boolean {
  return run.runId === runId && run.holder === holder
}

function interruptedRun({ runId, cursor }: HeldRun): InterruptedRun {
  return cursor === undefined ? { runId } : { runId, cursor }
}

function full(limit: keyof ThreadLimits, max: number) {
  return { result: { status: 'full', limit, max } } as const
}
