import { asString, getCountersignMetadata, omitUndefined, setCountersignMetadata } from '../value.js'

/**
 * Opaque content of the model's provider, and the provider's name for its type (AG-UI 1.1, which a server may already use). It is
 * sent back unchanged with the message or call it belongs to. If a part has no field for it, it is kept in `metadata.countersign`.
 */
export interface PreservedFields {
  readonly encryptedValue?: string
  readonly encryptedValueType?: string
}

type Metadata = Readonly<Record<string, unknown>> | undefined

/** Reads the fields from a message, a call, an event or our part of its metadata. */
export function preservedOf(said: object): PreservedFields {
  const { encryptedValue, encryptedValueType }: Readonly<Record<string, unknown>> = { ...said }
  return omitUndefined({
    encryptedValue: asString(encryptedValue),
    encryptedValueType: asString(encryptedValueType),
  })
}

/** Stores the fields in metadata. A type without a value, or left over from an earlier value, is removed. */
export function withPreserved(metadata: Metadata, said: object): Record<string, unknown> | undefined {
  const fields = preservedOf(said)
  if (fields.encryptedValue === undefined) return metadata && { ...metadata }
  const { encryptedValueType: _, ...own } = getCountersignMetadata(metadata)
  return setCountersignMetadata(metadata, { ...own, ...fields })
}

/** Stores only the type, for reasoning, which has a field for the value. */
export function keepPreservedType(metadata: Metadata, said: object): Record<string, unknown> | undefined {
  const { encryptedValueType: _, ...own } = getCountersignMetadata(metadata)
  return setCountersignMetadata(metadata, {
    ...own,
    ...omitUndefined({ encryptedValueType: preservedOf(said).encryptedValueType }),
  })
}

/** Metadata without these fields. */
export function withoutPreserved(metadata: Metadata): Record<string, unknown> | undefined {
  const { encryptedValue: _, encryptedValueType: __, ...own } = getCountersignMetadata(metadata)
  return setCountersignMetadata(metadata, own)
}
