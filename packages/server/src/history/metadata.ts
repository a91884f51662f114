/** `{ metadata: { countersign } }`, or `{}` if all members are undefined: AG-UI omits absent members. */
export function ownMetadata(own: Readonly<Record<string, unknown>>): {
  metadata?: { countersign: Record<string, unknown> }
} {
  const given = Object.entries(own).filter(([, value]) => value !== undefined)
  return given.length === 0 ? {} : { metadata: { countersign: Object.fromEntries(given) } }
}
