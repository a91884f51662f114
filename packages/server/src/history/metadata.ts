/** What Countersign peers say to one another in the `metadata` of events, messages and calls: the key `countersign`. */
export type OwnMetadata = Readonly<Record<string, unknown>>

/** The `countersign` part of a metadata object; empty where there is none. */
export function readOwn(metadata: unknown): OwnMetadata {
  const own = isRecord(metadata) ? metadata.countersign : undefined
  return isRecord(own) ? own : {}
}

/** `{ metadata: { countersign } }`, or nothing where there is nothing to say: AG-UI leaves absent members out. */
export function ownMetadata(own: Readonly<Record<string, unknown>>): {
  metadata?: { countersign: Record<string, unknown> }
} {
  const said = Object.entries(own).filter(([, value]) => value !== undefined)
  return said.length === 0 ? {} : { metadata: { countersign: Object.fromEntries(said) } }
}

/** Whether a value is an object and not an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A string, or nothing. */
export function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
