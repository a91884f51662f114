import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

/**
 * Tokens a second time, written from their description alone, with node:crypto and a canonicaliser of its own. It shares no
 * code with the implementation, so that the vectors in docs/token-vectors.json are checked by two independent readers.
 */
interface Payload {
  [member: string]: unknown
}

export interface Expected {
  ap: string
  aud: string
  th: string
  owner: string | null
  tc: string
  tn: string
  arguments: string
}

/** RFC 8785: members by UTF-16 code units, numbers and strings as ECMAScript writes them. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonicalText(member)}`).join(',')}}`
}

const keyOf = (secret: string, info: string) =>
  Buffer.from(hkdfSync('sha256', Buffer.from(secret), Buffer.from('countersign'), Buffer.from(info), 32))
const hmac = (key: Buffer, data: string | Buffer) => createHmac('sha256', key).update(data).digest()

export const kidOf = (secret: string) => hmac(keyOf(secret, 'kid'), '').toString('base64url').slice(0, 8)
export const argsHash = (secret: string, text: string) =>
  hmac(keyOf(secret, 'args'), text).toString('base64url')
const ownerHash = (secret: string, owner: string | null) =>
  hmac(keyOf(secret, 'owner'), JSON.stringify(owner)).toString('base64url')

/** Signs any bytes as a payload, also such as no server would. */
const REQUIRED = ['ah', 'ap', 'aud', 'ed', 'exp', 'iat', 'oh', 'run', 'sc', 'tc', 'th', 'tn']
const TEXTS = ['ah', 'ap', 'aud', 'bd', 'md', 'oh', 'pv', 'run', 'tc', 'th', 'tn']

/** `ok`, or the name of the check that refuses. `now` in seconds. */
export function verify(token: string, expected: Expected, secrets: string[], now: number): string {
  if (token.length > 4096) return 'length'
  const segments = token.split('.')
  if (segments.length !== 4 || segments[0] !== 'cs1') return 'segments'
  if (!segments.every((segment) => /^[A-Za-z0-9_-]+$/.test(segment))) return 'segments'
  const [, kid = '', body = '', mac = ''] = segments
  const macBytes = Buffer.from(mac, 'base64url')
  if (macBytes.length !== 32 || macBytes.toString('base64url') !== mac) return 'mac-length'
  const secret = secrets.find((candidate) => kidOf(candidate) === kid)
  if (secret === undefined) return 'kid'
  if (!timingSafeEqual(macBytes, hmac(keyOf(secret, 'request'), `cs1.${kid}.${body}`))) return 'signature'
  const payload = readPayload(body)
  if (payload === undefined) return 'payload'
  const compared: [string, unknown][] = [
    ['ap', expected.ap],
    ['aud', expected.aud],
    ['th', expected.th],
    ['oh', ownerHash(secret, expected.owner)],
    ['tc', expected.tc],
    ['tn', expected.tn],
    ['ah', argsHash(secret, expected.arguments)],
  ]
  for (const [member, value] of compared) if (payload[member] !== value) return member
  if (Number(payload.iat) > now + 60) return 'iat'
  if (Number(payload.exp) <= now) return 'exp'
  return 'ok'
}

function readPayload(body: string): Payload | undefined {
  const bytes = Buffer.from(body, 'base64url')
  if (bytes.toString('base64url') !== body) return undefined
  const text = bytes.toString('utf8')
  if (!Buffer.from(text).equals(bytes)) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const payload: Payload = { ...value }
  const names = Object.keys(value)
  const exact =
    REQUIRED.every((name) => names.includes(name)) &&
    names.every((name) => REQUIRED.includes(name) || ['ag', 'bd', 'md', 'pv'].includes(name))
  const texts = TEXTS.every((name) => !names.includes(name) || typeof payload[name] === 'string')
  const times = ['exp', 'iat', 'ag'].every(
    (name) => !names.includes(name) || Number.isSafeInteger(payload[name]),
  )
  const edits = payload.ed
  const editsFit =
    edits === true ||
    edits === false ||
    (Array.isArray(edits) && edits.every((key) => typeof key === 'string'))
  const scopes = payload.sc
  const scopesFit = Array.isArray(scopes) && scopes.every((scope) => scope === 'once' || scope === 'session')
  return exact && texts && times && editsFit && scopesFit ? payload : undefined
}
