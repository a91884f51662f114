import { createLedger, type LedgerLimits, positive } from './create-ledger.js'
import type { Ledger } from './ledger.js'
import { MemoryRows } from './memory-rows.js'

export interface MemoryLedgerOptions extends LedgerLimits {
  /** Default: a random one, so that tokens of another process, or of this one before a restart, are refused. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
  /** Approvals and grants kept at once; when full, no approval is issued. Default 100,000. */
  readonly maxRecords?: number | undefined
  /** Characters of arguments and outcomes kept at once. Default 256 Mi. */
  readonly maxSize?: number | undefined
  /**
   * Approvals and grants kept for one person; beyond it none is issued to this person. Default a tenth of `maxRecords`. Requests without a
   * subject together get half of `maxRecords`.
   */
  readonly maxRecordsPerOwner?: number | undefined
  /**
   * Characters of arguments and outcomes kept for one person, whose stored outcomes go before others'. Default a tenth of `maxSize`.
   * Requests without a subject together get half of `maxSize`.
   */
  readonly maxSizePerOwner?: number | undefined
  /** Lines of the audit trail kept; of the persons who have the most, the oldest go first. Default 10,000. */
  readonly maxAuditEntries?: number | undefined
}

/**
 * A ledger in this process's memory, the default. After a restart, or on another process, an open approval is refused and
 * can be asked again; it never runs twice. Grants and stored outcomes give way to approvals where there is no room.
 *
 * @throws CountersignError `invalid-option` when a limit is not a positive integer.
 */
export function memoryLedger(options: MemoryLedgerOptions = {}): Ledger {
  const { now = Date.now, id } = options
  const maxRecords = positive('maxRecords', options.maxRecords ?? 100_000)
  const maxSize = positive('maxSize', options.maxSize ?? 256 * 1024 * 1024)
  const limits = {
    maxRecords,
    maxSize,
    maxRecordsPerOwner: positive(
      'maxRecordsPerOwner',
      options.maxRecordsPerOwner ?? Math.ceil(maxRecords / 10),
    ),
    maxSizePerOwner: positive('maxSizePerOwner', options.maxSizePerOwner ?? Math.ceil(maxSize / 10)),
    maxLogLines: positive('maxAuditEntries', options.maxAuditEntries ?? 10_000),
  }
  return createLedger(new MemoryRows(limits, now, id), options)
}
