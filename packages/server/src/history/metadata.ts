import { isRecord } from '@countersign/core'

/** Countersign's own data in the `metadata` of events, messages and calls, under the key `countersign`. */
export type OwnMetadata = Readonly<Record<string, unknown>>

/** The `countersign` part of a metadata object; empty if there is none. */
export function readOwn(metadata: unknown): OwnMetadata {
  const own = isRecord(metadata) ? metadata.countersign : undefined
  return isRecord(own) ? own : {}
}

/** `{ metadata: { countersign } }`, or `{}` if all members are undefined: AG-UI omits absent members. */
export function ownMetadata(own: Readonly<Record<string, unknown>>): {
  metadata?: { countersign: Record<string, unknown> }
} {
  const said = Object.entries(own).filter(([, value]) => value !== undefined)
  return said.length === 0 ? {} : { metadata: { countersign: Object.fromEntries(said) } }
}

/** A call or message whose `countersign` metadata is replaced by `own`; without metadata if nothing is left. */
export function withOwn<T extends { readonly metadata?: Readonly<Record<string, unknown>> | undefined }>(
  { metadata, ...rest }: T,
  own: OwnMetadata,
): Omit<T, 'metadata'> & { metadata?: Record<string, unknown> } {
  const others = Object.entries(metadata ?? {}).filter(([key]) => key !== 'countersign')
  if (Object.keys(own).length > 0) others.push(['countersign', own])
  return others.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(others) }
}

/** The value if it is a string. */
export function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
