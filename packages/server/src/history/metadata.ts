import { isRecord } from '@countersign/core'

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

/** A call or message with `own` in the place of what it says there; without metadata where nothing is left. */
export function withOwn<T extends { readonly metadata?: Readonly<Record<string, unknown>> | undefined }>(
  { metadata, ...rest }: T,
  own: OwnMetadata,
): Omit<T, 'metadata'> & { metadata?: Record<string, unknown> } {
  const others = Object.entries(metadata ?? {}).filter(([key]) => key !== 'countersign')
  if (Object.keys(own).length > 0) others.push(['countersign', own])
  return others.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(others) }
}

/** A string, or nothing. */
export function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
