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

export function asText(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function asNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** Parsed JSON, or undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
