import fc from 'fast-check'
import { expect, test } from 'vitest'
import vectors from '../../../docs/token-vectors.json' with { type: 'json' }
import { bindingText, canonicalJson, readArguments } from '../src/encoding/canonical.js'
import { canonicalText } from './reference-token.js'

test.each(vectors.canonical.map(({ text, canonical }) => [text.slice(0, 60), text, canonical] as const))(
  'vector: %s',
  (_, text, canonical) => {
    const read = readArguments(text)
    expect(read.ok ? read.canonical : null).toBe(canonical)
    if (canonical !== null) expect(canonicalText(JSON.parse(text || '{}'))).toBe(canonical)
  },
)

test('S4.11 the empty string reads as an object without members', () => {
  expect(readArguments('')).toEqual({ ok: true, value: {}, canonical: '{}' })
})

test('what runs is the parse of the canonical text', () => {
  const read = readArguments('{"b":-0,"a":1.0}')
  expect(read).toEqual({ ok: true, value: { a: 1, b: 0 }, canonical: '{"a":1,"b":0}' })
  expect(read.ok && Object.keys(read.value as object)).toEqual(['a', 'b'])
  expect(read.ok && Object.is((read.value as { b: number }).b, 0)).toBe(true)
})

test('a refusal says why', () => {
  const read = readArguments('{"a":1,"a":2}')
  expect(read.ok ? '' : read.reason.length).toBeGreaterThan(10)
})

test('canonical text is a fixed point, and agrees with a second implementation', () => {
  const seed = 20_260_101
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
      const written = canonicalJson(value)
      if (!written.ok) return expect(written.reason).toMatch(/surrogate|__proto__/)
      expect(written.canonical).toBe(canonicalText(value))
      expect(canonicalJson(JSON.parse(written.canonical))).toEqual(written)
    }),
    { seed, numRuns: 500 },
  )
})

test('two texts of one value have one canonical text', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const reversed = Object.fromEntries(Object.entries(value).reverse())
      const [one, other] = [
        readArguments(JSON.stringify(value)),
        readArguments(JSON.stringify(reversed, null, 2)),
      ]
      expect(other.ok ? other : 'refused').toEqual(one.ok ? one : 'refused')
    }),
    { seed: 20_260_102, numRuns: 300 },
  )
})

test.each([
  ['a Date', { at: new Date(0) }],
  ['a Map', new Map()],
  ['a class instance', new (class Point {})()],
  ['a function', { toJSON: () => 1 }],
  ['a symbol', [Symbol('x')]],
  ['a bigint', 1n],
  ['NaN', [Number.NaN]],
  ['Infinity', { n: Number.POSITIVE_INFINITY }],
  ['undefined in an array', [undefined]],
  ['a hole in an array', Array(1)],
  ['undefined itself', undefined],
  ['a lone surrogate', ['\ud800']],
  ['a key with a lone surrogate', { '\udfff': 1 }],
  ['an own __proto__', JSON.parse('{"__proto__":1}')],
])('%s has no canonical text', (_, value) => {
  expect(canonicalJson(value).ok).toBe(false)
})

test('a value that contains itself is refused, as is one of more than 64 levels', () => {
  const loop: unknown[] = []
  loop.push(loop)
  expect(canonicalJson(loop).ok).toBe(false)
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])
  expect(canonicalJson(nested(64)).ok).toBe(true)
  expect(canonicalJson(nested(65)).ok).toBe(false)
})

test('members that are undefined and null prototypes are as in JSON.stringify', () => {
  expect(canonicalJson({ b: undefined, a: Object.create(null) })).toEqual({ ok: true, canonical: '{"a":{}}' })
})

test('the binding text holds the validated value and what bind made', () => {
  expect(bindingText({ b: 1, a: 2 }, ['x'])).toEqual({ ok: true, canonical: '[{"a":2,"b":1},["x"]]' })
  expect(bindingText('v')).toEqual({ ok: true, canonical: '["v",null]' })
  expect(bindingText(new Date(0)).ok).toBe(false)
})
