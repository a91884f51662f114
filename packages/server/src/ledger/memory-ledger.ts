import { checkOptions, method, text, wholeNumber } from '../encoding/check-options.js'
import { createLedger, type LedgerLimits, ledgerLimitRules } from './create-ledger.js'
import type { Ledger } from './ledger.js'
import { MemoryRows } from './memory-rows.js'

export interface MemoryLedgerOptions extends LedgerLimits {
  /** Default: random, so that tokens of another process, or from before a restart, are refused. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
  /** Approvals and grants kept at once; when full, no approval is issued. Default 100,000. */
  readonly maxRecords?: number | undefined
  /**
   * Characters of requests and outcomes kept at once, twice those of a text with any beyond Latin-1. An open request counts twice, or three
   * times if it can be edited: its answer and outcome always fit. Default 256 Mi.
   */
  readonly maxSize?: number | undefined
  /**
   * Approvals and grants kept per user; beyond that, none is issued to this user. Default a tenth of `maxRecords`. All requests without a
   * subject share half of `maxRecords`.
   */
  readonly maxRecordsPerOwner?: number | undefined
  /**
   * Characters of requests and outcomes kept per user; the user's own stored outcomes are dropped first. Default a tenth of `maxSize`.
   * All requests without a subject share half of `maxSize`.
   */
  readonly maxSizePerOwner?: number | undefined
  /** Lines of the audit trail kept, of 8 Mi characters at most; the oldest lines of the users with the most are dropped first. Default 10,000. */
  readonly maxAuditEntries?: number | undefined
}

/**
 * A ledger in this process's memory, the default. After a restart, or in another process, an answer to an open request is refused and
 * approval can be requested again; no call runs twice. If room is short, session approvals, mandates
 * without limits and stored outcomes are dropped before approvals.
 *
 * @throws CountersignError `invalid-option` if a limit is not a positive integer.
 */
export function memoryLedger(options: MemoryLedgerOptions = {}): Ledger {
  checkOptions('memoryLedger', options, {
    ...ledgerLimitRules,
    id: text,
    now: method,
    maxRecords: wholeNumber,
    maxSize: wholeNumber,
    maxRecordsPerOwner: wholeNumber,
    maxSizePerOwner: wholeNumber,
    maxAuditEntries: wholeNumber,
  })
  const { now = Date.now, id, maxRecords = 100_000, maxSize = 256 * 1024 * 1024 } = options
  const limits = {
    maxRecords,
    maxSize,
    maxRecordsPerOwner: options.maxRecordsPerOwner ?? Math.ceil(maxRecords / 10),
    maxSizePerOwner: options.maxSizePerOwner ?? Math.ceil(maxSize / 10),
    maxLogLines: options.maxAuditEntries ?? 10_000,
  }
  return createLedger(new MemoryRows(limits, now, id), options)
}
