import { CountersignError } from '@countersign/core'
import { randomId } from '../encoding/ids.js'
import type { ApprovalRef, AuditEntry, Ledger, LedgerEntry } from './ledger.js'
import { claimRow, completeRow, reclaimRow, renewRow, sameRecord, stateAt } from './ledger-row.js'
import { MemoryApprovals, rowKey } from './memory-approvals.js'
import { MemoryGrants } from './memory-grants.js'
import { boundOutcome, outcomeSize, unavailable } from './outcome.js'

export interface MemoryLedgerOptions {
  /** Default: a random one, so that tokens of another process, or of this one before a restart, are refused. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
  /** Approvals kept at once, open or settled; when full, none is issued. Default 100,000. */
  readonly maxRecords?: number | undefined
  /** Characters of arguments and outcomes kept at once. Default 256 Mi. */
  readonly maxSize?: number | undefined
  /**
   * Approvals kept for one person; beyond it none is issued to this person. Default a tenth of `maxRecords`. Requests without a subject
   * together get half of `maxRecords`.
   */
  readonly maxRecordsPerOwner?: number | undefined
  /**
   * Characters of arguments and outcomes kept for one person, whose stored outcomes go before others'. Default a tenth of `maxSize`.
   * Requests without a subject together get half of `maxSize`.
   */
  readonly maxSizePerOwner?: number | undefined
  /** Threads with grants kept at once; of the person who has the most, the one with the oldest grant goes first. Default 10,000. */
  readonly maxGrantThreads?: number | undefined
  /** Grants kept for one thread; the oldest goes first. Default 256. */
  readonly maxGrantsPerThread?: number | undefined
  /** Lifetime of a grant that names none, in milliseconds. Default seven days. */
  readonly grantTtl?: number | undefined
  /** Lines of the audit trail kept; of the persons who have the most, the oldest go first. Default 10,000. */
  readonly maxAuditEntries?: number | undefined
}

/**
 * A ledger in this process's memory, the default. After a restart, or on another process, an open approval is refused and
 * can be asked again; it never runs twice.
 *
 * @throws CountersignError `invalid-option` when a limit is not a positive integer.
 */
export function memoryLedger(options: MemoryLedgerOptions = {}): Ledger {
  const { now = Date.now } = options
  let { id } = options
  const maxRecords = limit('maxRecords', options.maxRecords, 100_000)
  const maxSize = limit('maxSize', options.maxSize, 256 * 1024 * 1024)
  const approvals = new MemoryApprovals({
    maxRecords,
    maxSize,
    maxRecordsPerOwner: limit('maxRecordsPerOwner', options.maxRecordsPerOwner, Math.ceil(maxRecords / 10)),
    maxSizePerOwner: limit('maxSizePerOwner', options.maxSizePerOwner, Math.ceil(maxSize / 10)),
  })
  const grants = new MemoryGrants({
    maxThreads: limit('maxGrantThreads', options.maxGrantThreads, 10_000),
    maxPerThread: limit('maxGrantsPerThread', options.maxGrantsPerThread, 256),
    ttl: limit('grantTtl', options.grantTtl, 7 * 24 * 60 * 60 * 1000),
  })
  const trail = auditRing(limit('maxAuditEntries', options.maxAuditEntries, 10_000))
  const waiting = waitingRoom()

  // Between reading a row and writing it nothing is awaited: that is what makes each operation atomic.
  return {
    // made when it is first needed: where modules are evaluated, workers have no random values
    get id() {
      id ??= randomId('memory_')
      return id
    },
    durable: false,

    async issue(record) {
      const known = approvals.get(record)
      if (known !== undefined) {
        return { status: sameRecord(known.record, record) ? 'unchanged' : 'conflict' }
      }
      return { status: approvals.insert(structuredClone(record), now()) ? 'issued' : 'full' }
    },

    async lookup(ref) {
      const row = approvals.get(ref)
      return row && entryAt(row, now())
    },

    async unsettled(owner, threadId) {
      const at = now()
      return approvals.unsettled(owner, threadId).map((entry) => entryAt(entry, at))
    },

    async settled(owner, threadId, toolCallIds) {
      return approvals.settled(owner, threadId, toolCallIds)
    },

    async claim(ref, answer, holder, leaseMs) {
      const row = approvals.get(ref)
      if (row === undefined) return { status: 'not-issued' }
      const step = claimRow(row, answer, holder, { now: now(), leaseMs, revision: grants.revision })
      if (step.state !== undefined && !approvals.update(row, step.state)) {
        throw new CountersignError(
          'ledger-unavailable',
          'The memory ledger has no room for the edited arguments.',
        )
      }
      if (step.state?.phase === 'done') waiting.wake(ref)
      return step.result
    },

    async renew(ref, holder, leaseMs) {
      const row = approvals.get(ref)
      if (row === undefined) return { status: 'lost' }
      const step = renewRow(row.state, holder, { now: now(), leaseMs })
      if (step.state !== undefined) approvals.update(row, step.state)
      return step.result
    },

    async complete(ref, holder, outcome) {
      const bounded = await boundOutcome(outcome)
      const large =
        bounded.type === outcome.type && outcome.type !== 'interrupted' && outcomeSize(outcome) > SMALL
      const trace = large ? await unavailable(outcome) : undefined
      const row = approvals.get(ref)
      if (row === undefined) return { status: 'not-issued' }
      const step = completeRow(row.state, holder, bounded, now())
      if (step.state !== undefined) {
        const kept = approvals.update(row, step.state, trace)
        if (!kept && trace !== undefined && step.state.phase === 'done') {
          approvals.update(row, { ...step.state, outcome: trace })
        }
        waiting.wake(ref)
      }
      return step.result
    },

    async reclaim(ref, holder, leaseMs) {
      const row = approvals.get(ref)
      if (row === undefined) return { status: 'not-issued' }
      const step = reclaimRow(row, holder, { now: now(), leaseMs })
      if (step.state !== undefined) approvals.update(row, step.state)
      return step.result
    },

    changed: (ref, signal) => waiting.wait(ref, signal),

    grant: async (request) => grants.grant(request, now()),
    findGrant: async (key, purpose) => grants.find(key, purpose, now()),
    revoke: async (selector) => grants.revoke(selector, now()),
    list: async (owner, threadId) => grants.list(owner, threadId, now()),

    async audit(entry) {
      trail.append(structuredClone(entry))
    },
    auditTrail: trail.entries,
  }
}

/** Outcomes of at most this many bytes are never dropped before their record. */
const SMALL = 1024

function entryAt({ record, state }: LedgerEntry, now: number): LedgerEntry {
  return { record, state: stateAt(state, now) }
}

function limit(option: keyof MemoryLedgerOptions, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new CountersignError(
    'invalid-option',
    `memoryLedger: ${option} must be a positive integer, not ${value}.`,
    {
      option,
      value,
    },
  )
}

function auditRing(capacity: number) {
  let entries: readonly AuditEntry[] = []
  let fresh: AuditEntry[] = []
  return {
    append(entry: AuditEntry): void {
      fresh.push(entry)
      // in halves, so that an append costs the same however long the trail is
      if (fresh.length < capacity) return
      entries = newest([...entries, ...fresh], capacity)
      fresh = []
    },
    async *entries(): AsyncIterable<AuditEntry> {
      yield* newest([...entries, ...fresh], capacity)
    },
  }
}

/** The newest lines of each owner, so many that all fit: nobody pushes out the lines of those who have fewer. */
function newest(entries: readonly AuditEntry[], capacity: number): readonly AuditEntry[] {
  if (entries.length <= capacity) return entries
  const counts = new Map<string, number>()
  for (const { ownerHash } of entries) counts.set(ownerHash, (counts.get(ownerHash) ?? 0) + 1)
  // whoever has fewer lines than an equal share leaves the rest to the others
  let [left, owners, share] = [capacity, counts.size, 0]
  for (const count of [...counts.values()].sort((a, b) => a - b)) {
    share = Math.max(1, Math.floor(left / owners))
    if (count > share) break
    left -= count
    owners -= 1
  }
  const seen = new Map<string, number>()
  const kept = entries.toReversed().filter(({ ownerHash }) => {
    const newer = seen.get(ownerHash) ?? 0
    seen.set(ownerHash, newer + 1)
    return newer < share
  })
  return kept.slice(0, capacity).reverse()
}

function waitingRoom() {
  const waiting = new Map<string, Set<() => void>>()
  return {
    wake(ref: ApprovalRef): void {
      for (const wake of waiting.get(rowKey(ref)) ?? []) wake()
    },
    wait(ref: ApprovalRef, signal: AbortSignal): Promise<void> {
      const key = rowKey(ref)
      return new Promise((resolve) => {
        const wake = () => {
          const others = waiting.get(key)
          others?.delete(wake)
          if (others?.size === 0) waiting.delete(key)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        if (signal.aborted) return resolve()
        const others = waiting.get(key)
        if (others === undefined) waiting.set(key, new Set([wake]))
        else others.add(wake)
        signal.addEventListener('abort', wake)
      })
    },
  }
}
