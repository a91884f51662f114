import fc from 'fast-check'
import { expect, test } from 'vitest'
import vectors from '../../../docs/token-vectors.json' with { type: 'json' }
import { createKeyring } from '../src/tokens/keys.js'
import {
  bindingMatches,
  isShownPreview,
  mandatesMatch,
  previewHash,
  signToken,
  type TokenExpectation,
  type TokenRequest,
  verifyToken,
} from '../src/tokens/token.js'
import { argsHash, type Expected, verify } from './reference-token.js'

interface Vector {
  readonly name: string
  readonly token: string
  readonly result: string
  readonly code?: string
  readonly secrets?: string[]
  readonly now?: number
  readonly expected?: Partial<Expected>
  readonly binding?: string
}

const all: readonly Vector[] = vectors.tokens
const keyring = createKeyring({ secret: vectors.secrets })
const now = () => vectors.now * 1000

const request: TokenRequest = {
  owner: 'alice',
  threadId: 'thread-1',
  approvalId: vectors.expected.ap,
  ledgerId: 'ledger_test',
  runId: 'run-1',
  toolCallId: 'call_1',
  toolName: 'send_mail',
  arguments: vectors.expected.arguments,
  scopes: ['once', 'session'],
  edits: false,
  issuedAt: (vectors.now - 10) * 1000,
  expiresAt: (vectors.now + 3600) * 1000,
}

test.each(all.map((vector) => [vector.name, vector] as const))('vector: %s', async (_, vector) => {
  const expected = { ...vectors.expected, ...vector.expected }
  const secrets = vector.secrets ?? vectors.secrets
  const at = vector.now ?? vectors.now
  expect(verify(vector.token, expected, secrets, at)).toBe(vector.result)
  const deps = { keyring: createKeyring({ secret: secrets }), now: () => at * 1000 }
  const verdict = await verifyToken(vector.token, expectationOf(expected), deps)
  expect(verdict.ok ? { result: 'ok' } : { result: verdict.check, code: verdict.code }).toEqual(
    vector.code === undefined ? { result: vector.result } : { result: vector.result, code: vector.code },
  )
})

test('signing the request of the vectors gives their token, again and again', async () => {
  const token = await signToken(request, keyring)
  expect(token).toBe(all[0]?.token)
  expect(await signToken({ ...request }, keyring)).toBe(token)
  expect(token.length).toBeLessThan(500)
})

test('the claims of a token are those of its request', async () => {
  const edits = ['to', 'n']
  const token = await signToken({ ...request, edits, binding: '["x",null]' }, keyring)
  const verdict = await verifyToken(token, request, { keyring, now })
  expect(verdict).toEqual({
    ok: true,
    claims: {
      kid: 'KStW4kyC',
      approvalId: request.approvalId,
      runId: 'run-1',
      scopes: ['once', 'session'],
      edits,
      issuedAt: request.issuedAt,
      expiresAt: request.expiresAt,
      bindingHash: expect.stringMatching(/^[\w-]{43}$/),
      previewHash: undefined,
      again: 0,
    },
  })
})

test('V2 the digests of a preview, as shown and unmasked, are in the token, and are no hashes of arguments', async () => {
  const shown = '{"kind":"text","text":"Deletes [REDACTED]"}'
  const unmasked = '{"kind":"text","text":"Deletes 3 files"}'
  const { secrets, expected } = vectors
  const [secret = ''] = secrets
  const digest = (text: string) => argsHash(secret, `preview ${text}`)
  for (const [preview, hash] of [
    [{ shown }, digest(shown)],
    [{ shown, unmasked }, `${digest(shown)}.${digest(unmasked)}`],
  ] as const) {
    const token = await signToken({ ...request, preview, again: 2 }, keyring)
    expect(verify(token, expected, secrets, vectors.now)).toBe('ok')
    const verdict = await verifyToken(token, request, { keyring, now })
    if (!verdict.ok) return expect.unreachable()
    expect(verdict.claims).toMatchObject({ again: 2, previewHash: hash })
    expect(await previewHash(verdict.claims, preview, keyring)).toBe(hash)
    expect(await isShownPreview(verdict.claims, hash, shown, keyring)).toBe(true)
    expect(await isShownPreview(verdict.claims, hash, unmasked, keyring)).toBe(false)
    expect(hash).not.toContain(argsHash(secret, shown))
  }
})

test('a binding matches only itself, and nothing only nothing', async () => {
  const vector = all.find(({ binding }) => binding !== undefined)
  const expected = { ...vectors.expected, ...vector?.expected }
  const bound = await verifyToken(vector?.token, expectationOf(expected), { keyring, now })
  const free = await verifyToken(all[0]?.token, request, { keyring, now })
  if (!bound.ok || !free.ok) return expect.unreachable()
  expect(await bindingMatches(bound.claims, vector?.binding, keyring)).toBe(true)
  expect(await bindingMatches(bound.claims, `${vector?.binding} `, keyring)).toBe(false)
  expect(await bindingMatches(bound.claims, undefined, keyring)).toBe(false)
  expect(await bindingMatches(free.claims, undefined, keyring)).toBe(true)
  expect(await bindingMatches(free.claims, vector?.binding, keyring)).toBe(false)
})

test('W4 the digest of offered mandates is in the token, and matches only them', async () => {
  const mandates = '{"offers":[{"id":"a"}],"tool":"v1"}'
  const token = await signToken({ ...request, mandates }, keyring)
  const { secrets, expected } = vectors
  expect(verify(token, expected, secrets, vectors.now)).toBe('ok')
  const verdict = await verifyToken(token, request, { keyring, now })
  if (!verdict.ok) return expect.unreachable()
  const [secret = ''] = secrets
  expect(verdict.claims.mandatesHash).toBe(argsHash(secret, `mandates ${mandates}`))
  expect(await mandatesMatch(verdict.claims, mandates, keyring)).toBe(true)
  for (const other of [`${mandates} `, undefined, ''])
    expect(await mandatesMatch(verdict.claims, other, keyring)).toBe(false)
})

test('after a rotation the older token and its binding still hold', async () => {
  const [secret = '', old = ''] = vectors.kids.map((entry) => entry.secret)
  const before = createKeyring({ secret: old })
  const after = createKeyring({ secret: [secret, old] })
  const token = await signToken({ ...request, binding: '[1,2]' }, before)
  const verdict = await verifyToken(token, request, { keyring: after, now })
  expect(verdict.ok && (await bindingMatches(verdict.claims, '[1,2]', after))).toBe(true)
})

test.each([undefined, null, 7, {}, [], ['cs1']])(
  'a token that is %j is refused as malformed',
  async (token) => {
    expect(await verifyToken(token, request, { keyring, now })).toMatchObject({
      ok: false,
      code: 'approval-malformed',
    })
  },
)

test('U.11 names of members of Object.prototype are bound like any other', async () => {
  for (const name of ['__proto__', 'constructor', 'toString']) {
    const odd = {
      ...request,
      approvalId: name,
      threadId: name,
      toolCallId: name,
      toolName: name,
      owner: name,
    }
    const token = await signToken(odd, keyring)
    expect((await verifyToken(token, odd, { keyring, now })).ok).toBe(true)
    expect(await verifyToken(token, { ...odd, toolName: 'x' }, { keyring, now })).toMatchObject({
      check: 'tn',
    })
  }
})

test('a call whose token would pass 4 KiB, or whose ids are not well-formed text, is not signed', async () => {
  await expect(signToken({ ...request, toolCallId: 'x'.repeat(4000) }, keyring)).rejects.toMatchObject({
    code: 'invalid-argument',
  })
  await expect(signToken({ ...request, threadId: '\ud800' }, keyring)).rejects.toMatchObject({
    code: 'invalid-argument',
  })
})

test('refusals and their messages hold neither secret nor token', async () => {
  for (const vector of all) {
    const verdict = await verifyToken(vector.token, request, { keyring, now })
    if (verdict.ok) continue
    expect(verdict.message).not.toContain(vectors.secrets[0])
    if (vector.token.length > 0) expect(verdict.message).not.toContain(vector.token)
  }
})

test('no single character of a token can be changed', async () => {
  const token = await signToken(request, keyring)
  await fc.assert(
    fc.asyncProperty(
      fc.nat(token.length - 1),
      fc.constantFrom(...'AZaz09-_.+/= é'),
      async (at, character) => {
        const changed = token.slice(0, at) + character + token.slice(at + 1)
        const verdict = await verifyToken(changed, request, { keyring, now })
        expect(verdict.ok).toBe(changed === token)
      },
    ),
    { seed: 20_260_103, numRuns: 1000 },
  )
})

test('no text makes verification throw', async () => {
  const pieces = fc.constantFrom(
    'cs1',
    '.',
    'KStW4kyC',
    'AAAA',
    '\n',
    '=',
    '\u0000',
    ...(all[0]?.token.split('.') ?? []),
  )
  const text = fc.oneof(
    fc.string(),
    fc.array(pieces).map((parts) => parts.join('')),
    fc.array(pieces).map((parts) => parts.join('.')),
  )
  await fc.assert(
    fc.asyncProperty(text, async (token) => {
      const verdict = await verifyToken(token, request, { keyring, now })
      expect(verdict.ok).toBe(token === all[0]?.token)
    }),
    { seed: 20_260_104, numRuns: 1000 },
  )
})

function expectationOf(expected: Expected): TokenExpectation {
  return {
    owner: expected.owner,
    threadId: expected.th,
    approvalId: expected.ap,
    ledgerId: expected.aud,
    toolCallId: expected.tc,
    toolName: expected.tn,
    arguments: expected.arguments,
  }
}
