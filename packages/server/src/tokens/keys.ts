import { CountersignError } from '@countersign/core'
import { encodeBase64url } from '../encoding/base64url.js'
import { warnOnce } from '../encoding/warn-once.js'

/** A secret of at least 32 bytes: raw bytes, or text taken as UTF-8. */
export type Secret = string | Uint8Array

/** The keys that one secret yields, each for one purpose. */
interface DerivedKeys {
  /** Names the secret in a token; says nothing about it. */
  readonly kid: string
  readonly request: CryptoKey
  readonly args: CryptoKey
  readonly owner: CryptoKey
}

export interface Keyring {
  /** Whether the secret was given, and so outlives this process. */
  readonly durable: boolean
  /** The keys that sign. */
  current(): Promise<DerivedKeys>
  /** The keys of one secret of the list, or nothing for a kid that is not, or no longer, in it. */
  byKid(kid: string): Promise<DerivedKeys | undefined>
}

export interface KeyringOptions {
  /**
   * One secret, or a list for rotation: the first signs, the others still verify. Default: a random one that lives as long
   * as this process, with one warning in it.
   */
  readonly secret?: Secret | readonly Secret[] | undefined
  readonly warn?: ((message: string) => void) | undefined
}

const MIN_SECRET_BYTES = 32
const utf8 = new TextEncoder()

/**
 * Turns secrets into keys. Nothing is derived before it is needed.
 *
 * @throws CountersignError `invalid-option` when a secret is empty or shorter than 32 bytes, or the list is empty.
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

/** `COUNTERSIGN_SECRET`, where there is such an environment. Set but empty reads as empty, which no keyring accepts. */
export function secretFromEnvironment(): string | undefined {
  return typeof process === 'undefined' ? undefined : process.env?.COUNTERSIGN_SECRET
}

const RANDOM_SECRET_WARNING =
  'countersign: no approvals.secret (or COUNTERSIGN_SECRET) was given, so a random one is used. Approvals asked before a restart ' +
  'or by another process will be refused and have to be asked again. Give a secret of at least 32 random bytes.'

/** The keys of one secret: HKDF-SHA-256 with salt `countersign` and one info string per purpose. */
async function deriveKeys(secret: Uint8Array): Promise<DerivedKeys> {
  const { subtle } = globalThis.crypto
  const base = await subtle.importKey('raw', Uint8Array.from(secret), 'HKDF', false, ['deriveKey'])
  const derive = (purpose: 'request' | 'args' | 'owner' | 'kid') =>
    subtle.deriveKey(
      { name: 'HKDF', hash: 'SHA-256', salt: utf8.encode('countersign'), info: utf8.encode(purpose) },
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

/** HMAC-SHA-256 of a text's UTF-8, as base64url. */
export async function keyedHash(key: CryptoKey, text: string): Promise<string> {
  return encodeBase64url(new Uint8Array(await globalThis.crypto.subtle.sign('HMAC', key, utf8.encode(text))))
}

function readSecrets(secret: Secret | readonly Secret[]): readonly [Uint8Array, ...Uint8Array[]] {
  const given = typeof secret === 'string' || secret instanceof Uint8Array ? [secret] : secret
  const [first, ...rest] = given.map(readSecret)
  if (first === undefined) {
    throw new CountersignError(
      'invalid-option',
      'approvals.secret is an empty list: give at least one secret.',
    )
  }
  return [first, ...rest]
}

function readSecret(secret: Secret, index: number): Uint8Array {
  const bytes = typeof secret === 'string' ? utf8.encode(secret) : Uint8Array.from(secret)
  if (bytes.length < MIN_SECRET_BYTES) {
    const problem = bytes.length === 0 ? 'is empty' : `has ${bytes.length} bytes`
    throw new CountersignError(
      'invalid-option',
      `approvals.secret ${problem}: it needs at least ${MIN_SECRET_BYTES} bytes, for example from \`openssl rand -base64 32\`.`,
      { option: 'approvals.secret', index, bytes: bytes.length },
    )
  }
  return bytes
}

let processSecret: Uint8Array | undefined

// One for the whole process: agents made anew for each request would otherwise refuse each other's tokens. Made when it is first
// needed: where modules are evaluated, workers have no random values.
function secretOfThisProcess(): Uint8Array {
  processSecret ??= globalThis.crypto.getRandomValues(new Uint8Array(MIN_SECRET_BYTES))
  return processSecret
}
