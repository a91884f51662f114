import { isRecord } from '@countersign/core'

/** What came over the wire, or through a client, is what it is: these read it without trusting its type. */
export type Fields = Readonly<Record<string, unknown>>

/** An object's fields; none of anything else. */
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

/** JSON, or nothing where the text is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
