import { isCountersignError } from '@countersign/core'
import { expect, test, vi } from 'vitest'
import vectors from '../../../docs/token-vectors.json' with { type: 'json' }
import { decodeBase64url, encodeBase64url } from '../src/encoding/bytes.js'
import { createKeyring, keyedHash } from '../src/tokens/keys.js'
import { argsHash, kidOf } from './reference-token.js'

const [first, second] = vectors.kids.map(({ secret }) => secret)

test('a kid is the first 8 characters of the naming HMAC, as two implementations have it', async () => {
  for (const { secret, kid } of vectors.kids) {
    expect((await createKeyring({ secret }).current()).kid).toBe(kid)
    expect(kidOf(secret)).toBe(kid)
  }
  expect(vectors.kids[0]?.kid).toBe('KStW4kyC')
})

test('a secret may be text or its bytes', async () => {
  const bytes = createKeyring({ secret: new TextEncoder().encode(first) })
  expect((await bytes.current()).kid).toBe('KStW4kyC')
})

test('keyed hashes agree with node:crypto', async () => {
  const keys = await createKeyring({ secret: first }).current()
  expect(await keyedHash(keys.args, '{"é":"€"}')).toBe(argsHash(first ?? '', '{"é":"€"}'))
})

test('the first secret of a list signs, all of them verify, others are unknown', async () => {
  const keyring = createKeyring({ secret: [first ?? '', second ?? ''] })
  expect((await keyring.current()).kid).toBe(kidOf(first ?? ''))
  expect((await keyring.byKid(kidOf(second ?? '')))?.kid).toBe(kidOf(second ?? ''))
  expect(await keyring.byKid('AAAAAAAA')).toBeUndefined()
  expect(keyring.durable).toBe(true)
})

test.each([
  ['empty', ''],
  ['31 bytes', 'x'.repeat(31)],
  ['an empty list', []],
  ['a list with a short one', ['x'.repeat(32), 'short']],
  ['short bytes', new Uint8Array(31)],
])('a secret that is %s is refused at construction, naming the option', (_, secret) => {
  const problem = thrown(() => createKeyring({ secret }))
  expect(isCountersignError(problem) && [problem.code, problem.message]).toEqual([
    'invalid-option',
    expect.stringContaining('approvals.secret'),
  ])
})

test('32 bytes are counted in UTF-8', () => {
  expect(createKeyring({ secret: 'é'.repeat(16) }).durable).toBe(true)
})

test('without a secret a random one is used for this process, with one warning that names the cost', async () => {
  // another test of this process may have been warned
  vi.resetModules()
  const { createKeyring } = await import('../src/tokens/keys.js')
  const warnings: string[] = []
  const keyring = createKeyring({ warn: (message) => warnings.push(message) })
  await keyring.current()
  await keyring.current()
  expect(keyring.durable).toBe(false)
  expect(warnings).toEqual([expect.stringMatching(/secret.*restart.*refused/s)])
  const another = createKeyring({ warn: () => {} })
  expect((await another.current()).kid).toBe((await keyring.current()).kid)
})

test('a given secret does not warn', () => {
  createKeyring({ secret: first, warn: (message) => expect.unreachable(message) })
})

test('base64url has one text per list of bytes', () => {
  for (let length = 0; length < 40; length++) {
    const bytes = Uint8Array.from({ length }, (_, index) => (index * 89 + length) % 256)
    const text = encodeBase64url(bytes)
    expect(text).toBe(Buffer.from(bytes).toString('base64url'))
    expect(decodeBase64url(text)).toEqual(bytes)
  }
  expect(decodeBase64url('YQ')).toEqual(Uint8Array.of(97))
  for (const text of ['YR', 'YQ=', 'YQ==', 'Y', 'YWJ', 'Y Q', 'YQ\n', '+/', 'é', 'YWF']) {
    expect(decodeBase64url(text)).toBeUndefined()
  }
})

function thrown(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}
