import { encodeBase64url } from './base64url.js'

/** 128 random bits as 22 characters of base64url, behind a prefix. */
export function randomId(prefix: string): string {
  return prefix + encodeBase64url(globalThis.crypto.getRandomValues(new Uint8Array(16)))
}

/** A new approval id: unguessable, and never derived from the call's id (D2). */
export function newApprovalId(): string {
  return randomId('approval_')
}

const ID = /^[^\p{Cc}\p{Cs}]{1,256}$/u

/** Whether a text may be an id in a request: 1 to 256 characters, no control characters, no half of a surrogate pair. */
export function isId(text: string): boolean {
  return ID.test(text)
}
