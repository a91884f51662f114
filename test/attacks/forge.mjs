// Tokens as an attacker makes them: out of genuine ones, or from nothing.
import { createHmac, hkdfSync } from 'node:crypto'

const parts = (token) => {
  const [prefix, kid, payload, mac] = token.split('.')
  return { prefix, kid, payload: JSON.parse(Buffer.from(payload, 'base64url')), mac }
}

/** The token with other members in its payload, under its old signature. */
export function altered(token, change) {
  const { prefix, kid, payload, mac } = parts(token)
  return [prefix, kid, encode({ ...payload, ...change }), mac].join('.')
}

/** The token with the unused bits of its last character set: the same bytes for a careless decoder. */
export function withOtherTail(token) {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1)) | 1]
}

/** A token signed with the attacker's own secret, under the name of the secret of a genuine token, or under its own. */
export function selfMade(change, { like, secret = 'the secret of the attacker, also 32 bytes long' } = {}) {
  const key = (purpose) => Buffer.from(hkdfSync('sha256', secret, 'countersign', purpose, 32))
  const hmac = (purpose, text) => createHmac('sha256', key(purpose)).update(text).digest('base64url')
  const { arguments: given = '{}', owner = 'ann', ...members } = change
  const now = Math.floor(Date.now() / 1000)
  const payload = {
    ah: hmac('args', given),
    ap: 'approval_forged',
    aud: 'stateless',
    ed: true,
    exp: now + 3600,
    iat: now,
    oh: hmac('owner', JSON.stringify(owner)),
    run: 'run',
    sc: ['once', 'session'],
    tc: 'x1',
    th: 'thread',
    tn: 'send',
    ...members,
  }
  const kid = like === undefined ? hmac('kid', '').slice(0, 8) : parts(like).kid
  const signed = `cs1.${kid}.${encode(payload)}`
  return `${signed}.${hmac('request', signed)}`
}

/** A genuine token's payload. */
export const payloadOf = (token) => parts(token).payload

const encode = (payload) => Buffer.from(JSON.stringify(payload)).toString('base64url')
