const encoder = new TextEncoder()

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text)
}

export function byteLength(text: string): number {
  return encoder.encode(text).length
}

/** SHA-256 of a string as UTF-8, in base64url. */
export async function sha256(text: string): Promise<string> {
  return encodeBase64url(new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', utf8(text))))
}

/** RFC 4648 section 5, without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')
  return btoa(binary).replace(/=+$/, '').replaceAll('+', '-').replaceAll('/', '_')
}

/**
 * Decodes base64url; undefined if invalid. Strict: no padding, no other alphabet, no impossible length, and unused bits of
 * the last character must be zero, so that each byte sequence has exactly one text (`YQ` is accepted, `YR` is not).
 */
export function decodeBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]*$/.test(text) || text.length % 4 === 1) return undefined
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
  return encodeBase64url(bytes) === text ? bytes : undefined
}
