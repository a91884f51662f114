import { jsonDepthExceeds, parseStrictJson, type StrictJsonLimits } from '@countersign/server'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const seed = 20_260_102

function codeOf(text: string, limits?: StrictJsonLimits): string {
  const result = parseStrictJson(text, limits)
  return result.ok ? 'ok' : result.code
}

test('what every reader understands alike is read as JSON.parse reads it', () => {
  const texts = [
    ...[
      '{}',
      '[]',
      '""',
      '0',
      '-0',
      'true',
      'false',
      'null',
      ' [ 1 , 2.5e-3 , "a\\"]}" ] ',
      '{"a":{"a":{"a":[1,{"a":2}]}},"b":1}',
    ],
    ...[
      '{"a":"b","b":"a","a:":",a"}',
      '[{"a":1},{"a":2}]',
      '{"to":"team@example.org","n":1.0,"z":-0,"é":"\\u20ac","A":[1e2]}',
    ],
    ...[
      '"\\ud83d\\ude00"',
      '"\u{1f600}"',
      '9007199254740991',
      '-9007199254740991',
      '{"proto":1,"_proto_":2}',
    ],
    ...[
      '{"a":"__proto__"}',
      '["__proto__"]',
      '{"constructor":1}',
      '{"\\\\":1,"\\"":2}',
      '[true,false,null,{"t":true,"f":false,"n":null}]',
    ],
  ]
  for (const text of texts) expect(parseStrictJson(text)).toEqual({ ok: true, value: JSON.parse(text) })
})

test('random values without an ambiguity are accepted', () => {
  const values = fc.jsonValue({ stringUnit: 'grapheme', maxDepth: 5 })
  const property = fc.property(values, fc.constantFrom(0, 2), (value, indent) => {
    const text = JSON.stringify(value, null, indent)
    const hasBigNumber = /(?<![\\"\w])-?\d[\d.]*e\+/.test(text) || /\d{16}/.test(text)
    fc.pre(!hasBigNumber && !text.includes('__proto__'))
    expect(parseStrictJson(text)).toEqual({ ok: true, value: JSON.parse(text) })
  })
  fc.assert(property, { seed, numRuns: 1000 })
})

test('duplicate keys are refused at any level, after unescaping', () => {
  expect(codeOf('{"a":1,"a":1}')).toBe('duplicate-key')
  expect(codeOf('{"a":1,"\\u0061":2}')).toBe('duplicate-key')
  expect(codeOf('[{"x":[{"a":{},"b":[],"a":1}]}]')).toBe('duplicate-key')
  expect(codeOf('{"":1,"":2}')).toBe('duplicate-key')
  expect(codeOf('{"a":{"b":1},"c":[{"b":1}],"a":0}')).toBe('duplicate-key')
  expect(parseStrictJson('{"to":1,"to":2}')).toMatchObject({ message: expect.stringContaining('"to"') })
})

test('a key __proto__ is refused, escaped or not', () => {
  expect(codeOf('{"__proto__":{}}')).toBe('proto-key')
  expect(codeOf('[{"a":{"\\u005f_proto__":1}}]')).toBe('proto-key')
})

test('lone surrogates are refused in strings and keys, escaped or not', () => {
  for (const text of [
    '"\\ud83d"',
    '["\\ude00\\ud83d"]',
    '{"a":"x\\udfffy"}',
    '{"\\ud800":1}',
    '"\ud83d"',
    '{"\udc00":1}',
    '"\\ud83d \\ude00"',
  ])
    expect(codeOf(text), JSON.stringify(text)).toBe('lone-surrogate')
})

test('numbers that are not finite are refused', () => {
  for (const text of ['1e999', '[-1e400]', '{"a":1E+309}', `1${'0'.repeat(400)}`])
    expect(codeOf(text)).toBe('non-finite-number')
})

test('integers beyond 2^53 - 1 are refused, however they are written', () => {
  for (const text of [
    '9007199254740992',
    '-9007199254740992',
    '[9007199254740993]',
    '{"a":1e16}',
    '9007199254740992.0',
    '1e300',
  ])
    expect(codeOf(text)).toBe('unsafe-integer')
})

test('F13 numbers with digits that a double does not keep are refused: what is shown would not be what runs', () => {
  for (const text of [
    '0.99999999999999999999',
    '{"a":123456789012345.678901}',
    '[1e-400]',
    '1e-999',
    '2.5e-324',
    `0.${'3'.repeat(400)}`,
    '333333333.33333329',
    '4503599627370497.7',
    '8999999999999999.5',
    '99999999999999.99',
    '9007199254740991.4',
    '900719925474099.13',
    '0.12345678901234567',
    '0.10000000000000001',
  ])
    expect(codeOf(text), text).toBe('inexact-number')
  for (const text of ['0.1', '-0', '-0.0', '1.50', '100e-2', '0.30000000000000004', '5e-324', '0e9', '1E+2'])
    expect(codeOf(text), text).toBe('ok')
})

test('text that is not JSON is refused', () => {
  for (const text of [
    '',
    '{',
    '{"a":1,}',
    "{'a':1}",
    'NaN',
    '01',
    '1 2',
    '"\n"',
    '\ufeff{}',
    '[1]]',
    'undefined',
    '"\\x"',
  ])
    expect(codeOf(text), JSON.stringify(text)).toBe('invalid-json')
})

test('more than 64 levels are refused by default, brackets in strings not counted', () => {
  expect(codeOf(`${'['.repeat(64)}${']'.repeat(64)}`)).toBe('ok')
  expect(codeOf(`${'['.repeat(65)}${']'.repeat(65)}`)).toBe('too-deep')
  expect(codeOf(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`)).toBe('too-deep')
  expect(codeOf('"[[[["', { maxDepth: 0 })).toBe('ok')
  expect(codeOf('[]', { maxDepth: 0 })).toBe('too-deep')
  expect(codeOf('['.repeat(1_000_000))).toBe('too-deep')
})

test('more than 1 MiB of UTF-8 is refused by default', () => {
  const mebibyte = 1024 * 1024
  expect(codeOf(`"${'a'.repeat(mebibyte - 2)}"`)).toBe('ok')
  expect(codeOf(`"${'a'.repeat(mebibyte - 1)}"`)).toBe('too-large')
  expect(codeOf(`"${'é'.repeat(mebibyte / 2 - 1)}"`)).toBe('ok')
  expect(codeOf(`"${'é'.repeat(mebibyte / 2)}"`)).toBe('too-large')
  expect(codeOf('"é"', { maxBytes: 4 })).toBe('ok')
  expect(codeOf('"é"', { maxBytes: 3 })).toBe('too-large')
})

test('a refusal names the way out and quotes at most 40 characters', () => {
  const key = 'k'.repeat(500)
  const result = parseStrictJson(`{"${key}":1,"${key}":2}`)
  expect(result).toMatchObject({
    ok: false,
    message: expect.stringMatching(/^The key "k{40}\.\.\." appears twice .*Keep one/),
  })
})

test('jsonDepthExceeds counts brackets outside strings and needs no valid JSON', () => {
  expect(jsonDepthExceeds('[[1],{"a":[2]}]', 3)).toBe(false)
  expect(jsonDepthExceeds('[[1],{"a":[2]}]', 2)).toBe(true)
  expect(jsonDepthExceeds('["[[[[", "\\"[[[[", "\\\\"]', 1)).toBe(false)
  expect(jsonDepthExceeds('["\\\\",[[', 2)).toBe(true)
  expect(jsonDepthExceeds('[][][][]', 1)).toBe(false)
  expect(jsonDepthExceeds('"[[[', 0)).toBe(false)
  expect(jsonDepthExceeds('"\\', 0)).toBe(false)
  expect(jsonDepthExceeds('', 0)).toBe(false)
})

test('jsonDepthExceeds agrees with the depth of random values', () => {
  const depthOf = (value: unknown): number =>
    typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0
  const property = fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 }), (value) => {
    const depth = depthOf(value)
    expect(jsonDepthExceeds(JSON.stringify(value), depth)).toBe(false)
    if (depth > 0) expect(jsonDepthExceeds(JSON.stringify(value), depth - 1)).toBe(true)
  })
  fc.assert(property, { seed, numRuns: 1000 })
})
