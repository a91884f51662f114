import { encodeBase64url } from './base64url.js'

const utf8 = new TextEncoder()

/** SHA-256 of a string as UTF-8, in base64url. */
export async function sha256(text: string): Promise<string> {
  return encodeBase64url(new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', utf8.encode(text))))
}
