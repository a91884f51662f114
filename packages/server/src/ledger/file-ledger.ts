import { resolve } from 'node:path'
import { CountersignError } from '@countersign/core'
import { checkOptions, method, object, text, wholeNumber } from '../encoding/check-options.js'
import { createLedger, type LedgerLimits, ledgerLimitRules } from './create-ledger.js'
import { prepareFile } from './file-ledger-schema.js'
import { openDatabase, type SqliteModule } from './file-ledger-sqlite.js'
import type { Ledger } from './ledger.js'
import { sqlRows } from './sql-rows.js'

export interface FileLedgerOptions extends LedgerLimits {
  /** The id of a new file. Default: random. It is stored in the file. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
  /** Bytes of the file in use; beyond that, no approval is issued until others have expired. Default 1 GiB. */
  readonly maxSize?: number | undefined
  /** Lines of the audit trail kept; the oldest are dropped first. Default 100,000. */
  readonly maxAuditEntries?: number | undefined
  /** The SQLite to use. Default: `node:sqlite` if Node has it, else `@photostructure/sqlite` if installed. */
  readonly sqlite?: SqliteModule | undefined
}

/** A ledger in a file. */
export interface FileLedger extends Ledger {
  /** Closes the file; afterwards every operation rejects. A process that exits or is killed without closing loses nothing. */
  close(): void
}

/**
 * A ledger in an SQLite file, for the processes of one machine: approvals, grants and revocations survive restarts. Confirmed operations
 * are on disk. If a process is killed, its running calls are interrupted when their leases expire, and never run again by themselves.
 * While another process writes, an operation waits up to five seconds, without blocking this process. The file contains arguments and
 * tokens, so only its own user may read it. It must not be on a network drive.
 *
 * @throws CountersignError `invalid-option`; `ledger-unavailable` if there is no SQLite or the file can't be used.
 *
 * @example
 * const ledger = await fileLedger('data/approvals.sqlite')
 * const agent = createAgent({ model, tools, approvals: { ledger, secret } })
 */
export async function fileLedger(path: string, options: FileLedgerOptions = {}): Promise<FileLedger> {
  const { now = Date.now } = options
  if (typeof path !== 'string' || path === '') {
    throw new CountersignError('invalid-option', 'fileLedger needs the path of a file.', { option: 'path' })
  }
  checkOptions('fileLedger', options, {
    ...ledgerLimitRules,
    id: text,
    now: method,
    maxSize: wholeNumber,
    maxAuditEntries: wholeNumber,
    sqlite: object,
  })
  const { maxSize = 1024 * 1024 * 1024, maxAuditEntries: maxLogLines = 100_000 } = options
  const database = await openDatabase(resolve(path), options.sqlite, maxSize)
  try {
    const id = await prepareFile(database, PREFIX, options.id)
    const rows = sqlRows(database, { id, prefix: PREFIX, now, maxLogLines })
    return { ...createLedger(rows, options), close: database.close }
  } catch (error) {
    database.close()
    throw error
  }
}

const PREFIX = 'countersign_'
