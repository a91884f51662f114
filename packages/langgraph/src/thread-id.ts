import { CountersignError } from '@countersign/core'

/** LangGraph's thread ids are UUIDs. */
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The namespace of the ids generated here, so that they can't collide with others. */
const nameSpace = '5e6c1f0a-8a4b-4d0e-9b57-2f1d3c9a7e64'

/** Returns a UUID unchanged; any other id always yields the same UUID (RFC 9562, version 5: SHA-1 of a namespace and the name). */
export async function threadUuid(threadId: string): Promise<string> {
  if (uuid.test(threadId)) return threadId.toLowerCase()
  const { subtle } = globalThis.crypto
  if (!subtle) {
    const message = `LangGraph's threads have UUIDs, and one for "${threadId}" can be made in secure contexts only: give the client a threadId that is a UUID.`
    throw new CountersignError('invalid-option', message, { option: 'threadId' })
  }
  const name = new TextEncoder().encode(threadId)
  const digest = await subtle.digest('SHA-1', new Uint8Array([...bytesOf(nameSpace), ...name]))
  const bytes = new Uint8Array(digest).slice(0, 16)
  const hex = [...bytes].map((byte, at) => versioned(byte, at).toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** Sets the version and the variant of RFC 9562. */
function versioned(byte: number, at: number): number {
  if (at === 6) return (byte & 0x0f) | 0x50
  return at === 8 ? (byte & 0x3f) | 0x80 : byte
}

function bytesOf(id: string): readonly number[] {
  return (id.replaceAll('-', '').match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16))
}
