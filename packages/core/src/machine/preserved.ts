import { asString, getCountersignMetadata, omitUndefined, setCountersignMetadata } from '../value.js'

/**
 * Opaque content of the model's provider, and the name its maker has for its kind (AG-UI 1.1, which a server may already speak). It goes
 * back as it came with the message or call it belongs to; where a part has no field for it, it is kept in `metadata.countersign`.
 */
export interface PreservedFields {
  readonly encryptedValue?: string
  readonly encryptedValueType?: string
}

type Metadata = Readonly<Record<string, unknown>> | undefined

/** What a message, a call, an event or our part of its metadata says of it. */
export function preservedOf(said: object): PreservedFields {
  const { encryptedValue, encryptedValueType }: Readonly<Record<string, unknown>> = { ...said }
  return omitUndefined({
    encryptedValue: asString(encryptedValue),
    encryptedValueType: asString(encryptedValueType),
  })
}

/** Metadata that keeps it. A kind without its value, or of the value before, says nothing and goes. */
export function withPreserved(metadata: Metadata, said: object): Record<string, unknown> | undefined {
  const fields = preservedOf(said)
  if (fields.encryptedValue === undefined) return metadata && { ...metadata }
  const { encryptedValueType: _, ...own } = getCountersignMetadata(metadata)
  return setCountersignMetadata(metadata, { ...own, ...fields })
}

/** Metadata that keeps its kind, for reasoning, which has a field for the value. */
export function keepPreservedType(metadata: Metadata, said: object): Record<string, unknown> | undefined {
  const { encryptedValueType: _, ...own } = getCountersignMetadata(metadata)
  return setCountersignMetadata(metadata, {
    ...own,
    ...omitUndefined({ encryptedValueType: preservedOf(said).encryptedValueType }),
  })
}

/** Metadata without it. */
export function withoutPreserved(metadata: Metadata): Record<string, unknown> | undefined {
  const { encryptedValue: _, encryptedValueType: __, ...own } = getCountersignMetadata(metadata)
  return setCountersignMetadata(metadata, own)
}
