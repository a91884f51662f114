const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const VALUES = new Map([...ALPHABET].map((character, value) => [character, value]))

/** RFC 4648 section 5, without padding. */
export function encodeBase64url(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let held = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    bits += 8
    while (bits >= 6) {
      bits -= 6
      text += ALPHABET.charAt((held >> bits) & 63)
    }
    held &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + ALPHABET.charAt((held << (6 - bits)) & 63)
}

/**
 * Decodes base64url; undefined if invalid. Strict: no padding, no other alphabet, no impossible length, and unused bits of
 * the last character must be zero, so that each byte sequence has exactly one text (`YQ` is accepted, `YR` is not).
 */
export function decodeBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 4 === 1) return undefined
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4))
  let length = 0
  let bits = 0
  let held = 0
  for (const character of text) {
    const value = VALUES.get(character)
    if (value === undefined) return undefined
    held = (held << 6) | value
    bits += 6
    if (bits >= 8) {
      bits -= 8
      bytes[length++] = (held >> bits) & 255
    }
    held &= (1 << bits) - 1
  }
  return held === 0 ? bytes : undefined
}
