import { resolve } from 'node:path'
import { CountersignError } from '@countersign/core'
import { FileApprovals } from './file-ledger-approvals.js'
import { FileGrants } from './file-ledger-grants.js'
import { prepareTables } from './file-ledger-schema.js'
import { column, type Database, openDatabase, type SqliteModule } from './file-ledger-sqlite.js'
import type { ApprovalRef, AuditEntry, Ledger, LedgerEntry } from './ledger.js'
import {
  claimRow,
  completeRow,
  type RowStep,
  reclaimRow,
  renewRow,
  sameRecord,
  stateAt,
} from './ledger-row.js'
import { boundOutcome } from './outcome.js'

export interface FileLedgerOptions {
  /** Of a file that is new. Default: a random one, which lives in the file. */
  readonly id?: string | undefined
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: (() => number) | undefined
  /** Bytes of the file in use; beyond it no approval is issued until others have outlived their time. Default 1 Gi. */
  readonly maxSize?: number | undefined
  /** Bytes of the open requests of one thread, which a run reads at once; beyond it none is issued. Default 4 Mi. */
  readonly maxOpenBytesPerThread?: number | undefined
  /** Grants kept for one thread; the oldest goes first. Default 256. */
  readonly maxGrantsPerThread?: number | undefined
  /** Lifetime of a grant that names none, in milliseconds. Default seven days. */
  readonly grantTtl?: number | undefined
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
  const maxSize = limit('maxSize', options.maxSize, 1024 * 1024 * 1024)
  const maxOpenBytes = limit('maxOpenBytesPerThread', options.maxOpenBytesPerThread, 4 * 1024 * 1024)
  const maxAudit = limit('maxAuditEntries', options.maxAuditEntries, 100_000)
  const grantLimits = {
    maxPerThread: limit('maxGrantsPerThread', options.maxGrantsPerThread, 256),
    ttl: limit('grantTtl', options.grantTtl, 7 * 24 * 60 * 60 * 1000),
  }
  const database = await openDatabase(resolve(path), options.sqlite)
  const id = await prepareTables(database, options.id)
  const { approvals, grants, trail } = await database.read(() => ({
    approvals: new FileApprovals(database, maxSize, maxOpenBytes),
    grants: new FileGrants(database, grantLimits),
    trail: auditTrail(database, maxAudit),
  }))

  /** One step of one row, read and written in one transaction. */
  function change<Result>(ref: ApprovalRef, unknown: Result, step: (row: LedgerEntry) => RowStep<Result>) {
    return database.write(() => {
      const row = approvals.get(ref)
      if (row === undefined) return unknown
      const { result, state } = step(row)
      if (state !== undefined) approvals.update(row.record, state)
      return result
    })
  }

  return {
    id,
    durable: true,

    async issue(record) {
      return database.write(() => {
        const known = approvals.get(record)
        if (known !== undefined) {
          return { status: sameRecord(known.record, record) ? 'unchanged' : 'conflict' }
        }
        return { status: approvals.insert(record, now()) ? 'issued' : 'full' }
      })
    },

    async lookup(ref) {
      const row = await database.read(() => approvals.get(ref))
      return row && entryAt(row, now())
    },

    async unsettled(owner, threadId) {
      const rows = await database.read(() => approvals.unsettled(owner, threadId))
      const at = now()
      return rows.map((row) => entryAt(row, at))
    },

    async settled(owner, threadId, toolCallIds) {
      return database.read(() => approvals.settled(owner, threadId, toolCallIds))
    },

    async claim(ref, answer, holder, leaseMs) {
      return change(ref, { status: 'not-issued' }, (row) =>
        claimRow(row, answer, holder, { now: now(), leaseMs, revision: grants.revision() }),
      )
    },

    async renew(ref, holder, leaseMs) {
      return change(ref, { status: 'lost' }, ({ state }) => renewRow(state, holder, { now: now(), leaseMs }))
    },

    async complete(ref, holder, outcome) {
      const bounded = await boundOutcome(outcome)
      return change(ref, { status: 'not-issued' }, ({ state }) => completeRow(state, holder, bounded, now()))
    },

    async reclaim(ref, holder, leaseMs) {
      return change(ref, { status: 'not-issued' }, (row) => reclaimRow(row, holder, { now: now(), leaseMs }))
    },

    grant: async (request) => database.write(() => grants.grant(request, now())),
    findGrant: async (key, purpose) => {
      const find = () => grants.find(key, purpose, now())
      return purpose === 'look' ? database.read(find) : database.write(find)
    },
    revoke: async (selector) => database.write(() => grants.revoke(selector, now())),
    list: async (owner, threadId) => database.read(() => grants.list(owner, threadId, now())),

    audit: async (entry) => database.write(() => trail.append(entry)),
    auditTrail: trail.entries,

    close: database.close,
  }
}

const PAGE = 256

function auditTrail(database: Database, max: number) {
  const insert = database.prepare('insert into audit (entry) values (?)')
  const trim = database.prepare('delete from audit where seq <= (select max(seq) from audit) - ?')
  const page = database.prepare('select seq, entry from audit where seq > ? order by seq limit ?')
  return {
    append(entry: AuditEntry): void {
      insert.run(JSON.stringify(entry))
      trim.run(max)
    },
    async *entries(): AsyncIterable<AuditEntry> {
      for (let after = 0; ; ) {
        const from = after
        const rows = await database.read(() => page.all(from, PAGE))
        for (const row of rows) {
          const entry: AuditEntry = JSON.parse(String(column(row, 'entry')))
          yield entry
          after = Number(column(row, 'seq'))
        }
        if (rows.length < PAGE) return
      }
    },
  }
}

function entryAt({ record, state }: LedgerEntry, now: number): LedgerEntry {
  return { record, state: stateAt(state, now) }
}

function limit(option: keyof FileLedgerOptions, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new CountersignError(
    'invalid-option',
    `fileLedger: ${option} must be a positive integer, not ${value}.`,
    { option, value },
  )
}
