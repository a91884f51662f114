import { resolve } from 'node:path'
import { CountersignError } from '@countersign/core'
import { createLedger, type LedgerLimits, positive } from './create-ledger.js'
import { prepareFile } from './file-ledger-schema.js'
import { openDatabase, type SqliteModule } from './file-ledger-sqlite.js'
import type { Ledger } from './ledger.js'
import { sqlRows } from './sql-rows.js'

export interface FileLedgerOptions extends LedgerLimits {
  /** Of a file that is new. Default: a random one, which lives in the file. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
  /** Bytes of the file in use; beyond it no approval is issued until others have outlived their time. Default 1 Gi. */
  readonly maxSize?: number | undefined
  /** Lines of the audit trail kept; the oldest go first. Default 100,000. */
  readonly maxAuditEntries?: number | undefined
  /** The SQLite to use. Default: `node:sqlite` where Node has it, else `@photostructure/sqlite` where it is installed. */
  readonly sqlite?: SqliteModule | undefined
}

/** A ledger in a file. */
export interface FileLedger extends Ledger {
  /** Closes the file; afterwards every operation rejects. A process that just ends, or is killed, loses nothing. */
  close(): void
}

/**
 * A ledger in an SQLite file, for the processes of one machine: approvals, grants and their revocations outlive restarts. What
 * an operation has confirmed is on the disk; a call whose process was killed is interrupted when its lease lapses, never run again
 * by itself. While another process writes, an operation waits, up to five seconds; the rest of this process goes on. The file holds
 * arguments and tokens: it is made readable for its user only. It must not lie on a network drive.
 *
 * @throws CountersignError `invalid-option`; `ledger-unavailable` where no SQLite can be had or the file cannot be used.
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
  const maxSize = positive('maxSize', options.maxSize ?? 1024 * 1024 * 1024)
  const maxLogLines = positive('maxAuditEntries', options.maxAuditEntries ?? 100_000)
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
