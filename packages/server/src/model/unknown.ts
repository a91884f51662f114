import { isRecord } from '@countersign/core'

/** Untrusted data from the wire or a client, read without trusting its type. */
export type Fields = Readonly<Record<string, unknown>>

/** An object's fields; no fields for anything else. */
export function asRecord(value: unknown): Fields {
  return isRecord(value) ? value : {}
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

export function asNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}
