import { CountersignError, isThreadRecord, type ThreadRecord } from '@countersign/core'

/** The current version of the format. */
const current: ThreadRecord['version'] = 1

/**
 * Converts what an older version of this package stored to the current format. `undefined` means that it
 * cannot; the stored data is then moved aside like any that cannot be read.
 */
export type MigrateRecord = (old: unknown, version: number) => ThreadRecord | undefined

/** Why a stored value is invalid. */
export type Damage = 'not-json' | 'wrong-form' | 'not-migrated'

export type StoredRecord =
  | { readonly status: 'record'; readonly record: ThreadRecord }
  | { readonly status: 'newer'; readonly version: number }
  | { readonly status: 'damaged'; readonly damage: Damage; readonly cause?: unknown }

/** The text `{"version":1,"record":{...}}`. The version comes first, so that {@link versionOf} need not parse the rest. */
export function writeRecordText(record: ThreadRecord): string {
  if (!isThreadRecord(record)) {
    throw new CountersignError('invalid-argument', 'This is no ThreadRecord. Save what the client gives you.')
  }
  try {
    return JSON.stringify({ version: current, record })
  } catch (error) {
    const message = 'The record cannot be written as JSON. Keep cycles, BigInt and the like out of messages.'
    throw new CountersignError('invalid-argument', message, {}, error)
  }
}

/** The version in a stored text, read from its first characters. */
export function versionOf(stored: unknown): number | undefined {
  if (typeof stored !== 'string') return undefined
  const [, digits] = /^\{"version":(\d+),/.exec(stored) ?? []
  return digits === undefined ? undefined : Number(digits)
}

export function isNewer(version: number | undefined): version is number {
  return version !== undefined && version > current
}

export function readRecordText(stored: unknown, migrate: MigrateRecord | undefined): StoredRecord {
  const envelope = parsed(stored)
  if (envelope === undefined) return { status: 'damaged', damage: 'not-json' }
  if (!isEnvelope(envelope)) return { status: 'damaged', damage: 'wrong-form' }
  const { version, record } = envelope
  if (isNewer(version)) return { status: 'newer', version }
  if (version < current) return migrated(record, version, migrate)
  return isThreadRecord(record) ? { status: 'record', record } : { status: 'damaged', damage: 'wrong-form' }
}

function migrated(old: unknown, version: number, migrate: MigrateRecord | undefined): StoredRecord {
  try {
    const record = migrate?.(old, version)
    return isThreadRecord(record)
      ? { status: 'record', record }
      : { status: 'damaged', damage: 'not-migrated' }
  } catch (cause) {
    return { status: 'damaged', damage: 'not-migrated', cause }
  }
}

/** JSON has no `undefined`, so it can stand for an invalid text. The parser's own error would quote the conversation. */
function parsed(stored: unknown): unknown {
  if (typeof stored !== 'string') return undefined
  try {
    return JSON.parse(stored)
  } catch {
    return undefined
  }
}

function isEnvelope(value: unknown): value is { version: number; record: unknown } {
  if (typeof value !== 'object' || value === null || !('version' in value && 'record' in value)) return false
  return Number.isSafeInteger(value.version)
}
