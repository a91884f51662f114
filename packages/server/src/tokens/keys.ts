import { CountersignError } from '@countersign/core'
import { encodeBase64url, utf8 } from '../encoding/bytes.js'
import { warnOnce } from '../encoding/warn-once.js'

/** A secret of at least 32 bytes: raw bytes, or a string taken as UTF-8. */
export type Secret = string | Uint8Array

interface DerivedKeys {
  /** Identifies the secret in a token, without revealing anything about it. */
  readonly kid: string
  readonly request: CryptoKey
  readonly args: CryptoKey
  readonly owner: CryptoKey
}

export interface Keyring {
  /** Whether the secret was given, and so outlives this process. */
  readonly durable: boolean
  current(): Promise<DerivedKeys>
  /** The keys of one of the secrets, or undefined if `kid` is not, or no longer, among them. */
  byKid(kid: string): Promise<DerivedKeys | undefined>
}

export interface KeyringOptions {
  /**
   * One secret, or a list for rotation: the first signs, the others still verify. Default: a random one for the lifetime of this
   * process, with one warning per process.
   */
  readonly secret?: Secret | readonly Secret[] | undefined
  readonly warn?: ((message: string) => void) | undefined
}

const MIN_SECRET_BYTES = 32

/**
 * Derives keys from secrets, when they are first needed.
 *
 * @throws CountersignError `invalid-option` if a secret is empty or shorter than 32 bytes, or the list is empty.
 */
export function createKeyring(options: KeyringOptions = {}): Keyring {
  const { secret, warn = console.warn } = options
  if (secret === undefined) warnOnce(warn, RANDOM_SECRET_WARNING)
  const given = secret === undefined ? undefined : readSecrets(secret)
  let ring: Promise<readonly [DerivedKeys, ...DerivedKeys[]]> | undefined
  const derived = () => {
    const [first, ...others] = given ?? [secretOfThisProcess()]
    ring ??= Promise.all([deriveKeys(first), ...others.map(deriveKeys)])
    return ring
  }
  return {
    durable: secret !== undefined,
    current: async () => (await derived())[0],
    byKid: async (kid) => (await derived()).find((keys) => keys.kid === kid),
  }
}

/** `COUNTERSIGN_SECRET`, if there is a `process.env`. Set but empty, it is returned as empty, which no keyring accepts. */
export function secretFromEnvironment(): string | undefined {
  return typeof process === 'undefined' ? undefined : process.env?.COUNTERSIGN_SECRET
}

const RANDOM_SECRET_WARNING =
  'countersign: no approvals.secret (or COUNTERSIGN_SECRET) was given, so a random one is used. Approvals requested before a restart ' +
  'or by another process will be refused and must be requested again. Give a secret of at least 32 random bytes.'

/** Derives the keys of one secret: HKDF-SHA-256 with salt `countersign` and one info string per purpose. */
async function deriveKeys(secret: Uint8Array): Promise<DerivedKeys> {
  const { subtle } = globalThis.crypto
  const base = await subtle.importKey('raw', Uint8Array.from(secret), 'HKDF', false, ['deriveKey'])
  const derive = (purpose: 'request' | 'args' | 'owner' | 'kid') =>
    subtle.deriveKey(
      { name: 'HKDF', hash: 'SHA-256', salt: utf8('countersign'), info: utf8(purpose) },
      base,
      { name: 'HMAC', hash: 'SHA-256', length: 256 },
      false,
      ['sign', 'verify'],
    )
  const [request, args, owner, naming] = await Promise.all([
    derive('request'),
    derive('args'),
    derive('owner'),
    derive('kid'),
  ])
  return { kid: (await keyedHash(naming, '')).slice(0, 8), request, args, owner }
}

/** HMAC-SHA-256 of a string as UTF-8, in base64url. */
export async function keyedHash(key: CryptoKey, text: string): Promise<string> {
  return encodeBase64url(new Uint8Array(await globalThis.crypto.subtle.sign('HMAC', key, utf8(text))))
}

function readSecrets(secret: Secret | readonly Secret[]): readonly [Uint8Array, ...Uint8Array[]] {
  const given = typeof secret === 'string' || secret instanceof Uint8Array ? [secret] : secret
  const [first, ...rest] = given.map(readSecret)
  if (first === undefined) {
    const message = 'approvals.secret is an empty list: give at least one secret.'
    throw new CountersignError('invalid-option', message)
  }
  return [first, ...rest]
}

function readSecret(secret: Secret, index: number): Uint8Array {
  const bytes = typeof secret === 'string' ? utf8(secret) : Uint8Array.from(secret)
  if (bytes.length < MIN_SECRET_BYTES) {
    const problem = bytes.length === 0 ? 'is empty' : `has ${bytes.length} bytes`
    const message = `approvals.secret ${problem}: it needs at least ${MIN_SECRET_BYTES} bytes, for example from \`openssl rand -base64 32\`.`
    throw new CountersignError('invalid-option', message, {
      option: 'approvals.secret',
      index,
      bytes: bytes.length,
    })
  }
  return bytes
}

let processSecret: Uint8Array | undefined

// One for the whole process: agents created per request would otherwise refuse each other's tokens. Generated on first use, because
// some worker runtimes have no random values while modules are evaluated.
function secretOfThisProcess(): Uint8Array {
  processSecret ??= globalThis.crypto.getRandomValues(new Uint8Array(MIN_SECRET_BYTES))
  return processSecret
}
