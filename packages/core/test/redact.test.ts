import { REDACTED, type SanitizeOptions, sanitizeArgs } from '@countersign/core'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

const masked = (key: string, options?: SanitizeOptions) =>
  sanitizeArgs({ [key]: 'x' }, options) instanceof Object &&
  JSON.stringify(sanitizeArgs({ [key]: 'x' }, options)) === JSON.stringify({ [key]: REDACTED })

test('S3.41 keys that contain key, password, token, secret or auth, in any case, are masked', () => {
  for (const key of [
    'apiKey',
    'API_KEY',
    'password',
    'userPassword',
    'token',
    'accessTokens',
    'clientSecret',
    'Authorization',
    'AUTH',
  ])
    expect([key, masked(key)]).toEqual([key, true])
  expect(sanitizeArgs({ secret: { nested: [1, 2] }, token: null, key: undefined })).toEqual({
    secret: REDACTED,
    token: REDACTED,
    key: REDACTED,
  })
})

test('S3.42 other keys are as they were, and the input is not touched', () => {
  const input = Object.freeze({ path: '/tmp/a', deep: Object.freeze({ password: 'p', lines: 3 }) })
  const copy = sanitizeArgs(input)
  expect(copy).toEqual({ path: '/tmp/a', deep: { password: REDACTED, lines: 3 } })
  expect(input.deep.password).toBe('p')
  expect(copy).not.toBe(input)
})

test('S3.43 secrets in nested objects and arrays are masked too', () => {
  const input = {
    servers: [{ host: 'a', auth: { user: 'u' } }, [{ token: 't' }]],
    env: { API_KEY: 'k', HOME: '/' },
  }
  expect(sanitizeArgs(input)).toEqual({
    servers: [{ host: 'a', auth: REDACTED }, [{ token: REDACTED }]],
    env: { API_KEY: REDACTED, HOME: '/' },
  })
})

test('S3.44 arrays stay arrays; texts, null, numbers and booleans pass through', () => {
  expect(sanitizeArgs(['a', 1, null, true])).toEqual(['a', 1, null, true])
  for (const value of ['abc', 7, null, true, undefined]) expect(sanitizeArgs(value)).toBe(value)
})

test('S3.45 by default author, monkey and max_tokens are masked; by words the first two are not, and no secret is missed', () => {
  for (const key of ['author', 'monkey', 'max_tokens']) expect(masked(key)).toBe(true)
  const word = { match: 'word' } as const
  for (const key of ['author', 'monkey', 'keyboard', 'authored_by', 'turkey', 'tokenizer', 'secretary'])
    expect([key, masked(key, word)]).toEqual([key, false])
  for (const key of [
    'apiKey',
    'api_key',
    'apikey',
    'APIKey',
    'authorization',
    'Authorization',
    'accessTokens',
    'accesstoken',
    'x-auth-token',
    'oauth2',
    'client_secret',
    'userpassword',
    'passwd',
    'authToken',
    'KEY',
  ])
    expect([key, masked(key, word)]).toEqual([key, true])
  expect(masked('pin', { keys: ['PIN'] })).toBe(true)
  expect(masked('ssn', { keys: [/^ssn$/g] })).toBe(true)
  expect(masked('ssn', { keys: [/^ssn$/g] })).toBe(true)
  expect(masked('monkey', { isSecret: (key) => (key === 'monkey' ? false : undefined) })).toBe(false)
  expect(sanitizeArgs({ a: { b: 1 } }, { isSecret: (key, path) => path[0] === 'a' && key === 'b' })).toEqual({
    a: { b: REDACTED },
  })
})

test('S3.46 cycles end, depth is bounded, and long texts are cut and say so', () => {
  const loop: Record<string, unknown> = { name: 'a', both: [] }
  loop.self = loop
  expect(sanitizeArgs(loop)).toEqual({ name: 'a', both: [], self: '[Circular]' })
  const shared = { n: 1 }
  expect(sanitizeArgs({ one: shared, other: shared })).toEqual({ one: { n: 1 }, other: { n: 1 } })
  const deep = JSON.parse(`${'{"a":'.repeat(1000)}1${'}'.repeat(1000)}`)
  expect(JSON.stringify(sanitizeArgs(deep, { maxDepth: 1e9 }))).toContain('[Too deep]')
  expect(sanitizeArgs({ a: { b: { c: 1 } } }, { maxDepth: 2 })).toEqual({ a: { b: '[Too deep]' } })
  expect(sanitizeArgs({ text: 'x'.repeat(12) }, { maxLength: 5 })).toEqual({
    text: 'xxxxx... (7 more characters)',
  })
})

test('S3.47 nothing of the input is called: no getter, no toJSON; an instance is shown by its own data', () => {
  let calls = 0
  class Login {
    user = 'ann'
    password = 'p'
    toJSON() {
      calls++
      return { password: this.password }
    }
  }
  const input = {
    login: new Login(),
    get body() {
      calls++
      return 'p'
    },
    at: new Date(0),
    never: new Date(Number.NaN),
    run: () => calls++,
    big: 7n,
    mark: Symbol('p'),
  }
  const copy = sanitizeArgs(input)
  expect(copy).toEqual({
    login: { user: 'ann', password: REDACTED },
    body: '[Getter]',
    at: '1970-01-01T00:00:00.000Z',
    never: 'Invalid Date',
    run: '[Function]',
    big: '7n',
    mark: '[Symbol]',
  })
  JSON.stringify(copy)
  expect(calls).toBe(0)
})

test('U.11 a key named __proto__ is a key like any other', () => {
  const copy = sanitizeArgs(JSON.parse('{"__proto__":{"polluted":true},"constructor":1}'))
  expect(Object.entries(Object(copy))).toEqual([
    ['__proto__', { polluted: true }],
    ['constructor', 1],
  ])
  expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
})

test('whatever the JSON, its masked copy is JSON in which no value stands under a secret key', () => {
  const keys = fc.constantFrom('apiKey', 'path', 'token', 'deep', 'authorization', '__proto__', 'n')
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 5 },
      fc.constant('a secret value'),
      fc.integer(),
      fc.array(tie('any'), { maxLength: 4 }),
      fc.dictionary(keys, tie('any'), { maxKeys: 5 }),
    ),
  })).any
  fc.assert(
    fc.property(value, (given) => {
      const before = JSON.stringify(given)
      const text = JSON.stringify(sanitizeArgs(given))
      JSON.parse(text, (key, one) => {
        if (/key|token|auth/i.test(key)) expect(one).toBe(REDACTED)
        return one
      })
      expect(JSON.stringify(given)).toBe(before)
    }),
    { seed: 7, numRuns: 300 },
  )
})
