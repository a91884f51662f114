import { checkResponse } from '@countersign/client/response-schema'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { cpuOf } from '../cost/measure.js'

/** Processor time that no check takes, in milliseconds, on a slow machine too. What these schemas took before was seconds and more. */
const MOST = 1500

const check = (responseSchema: unknown, payload: unknown) =>
  checkResponse(payload, { id: 'q1', reason: 'input_required', responseSchema } as never)

async function quickly(responseSchema: unknown, payload: unknown): Promise<string | undefined> {
  let reason: string | undefined
  expect(await cpuOf(() => (reason = check(responseSchema, payload)))).toBeLessThan(MOST)
  return reason
}

const doubling = (depth: number, word: string, last: unknown) => {
  const twice = (level: number) => ({ $ref: `#/$defs/d${level + 1}` })
  const levels = Array.from({ length: depth }, (_, level) => [
    `d${level}`,
    { [word]: [twice(level), twice(level)] },
  ])
  return { $ref: '#/$defs/d0', $defs: Object.fromEntries([...levels, [`d${depth}`, last]]) }
}

const tooMuch = /^"" takes too much work to check; check it by a checkResponse of your own\.$/

test.each([
  ['anyOf', doubling(22, 'anyOf', false)],
  ['oneOf', doubling(22, 'oneOf', false)],
  ['allOf', doubling(22, 'allOf', true)],
  ['not', { not: { $ref: '#/$defs/d0' }, $defs: doubling(22, 'anyOf', false).$defs }],
])(
  'references that double on each level are refused within the time of one check: %s',
  async (_word, schema) => {
    expect(await quickly(schema, { yes: true })).toMatch(tooMuch)
  },
)

test('words that are costly by themselves are refused within the time of one check, however they are repeated', async () => {
  const often = (schema: unknown) => ({
    allOf: Array(3000).fill({ $ref: '#/$defs/it' }),
    $defs: { it: schema },
  })
  const long = 'x'.repeat(20_000)
  const many = Array.from({ length: 3000 }, (_, index) => ({ index }))
  for (const [schema, payload] of [
    [often({ pattern: '[\\p{L}\\p{N}\\p{S}\\P{Lu}]' }), 'x'],
    [often(Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`x-${index}`, 1]))), 'x'],
    [often({ additionalProperties: true }), { [long]: 1 }],
    [often({ maxLength: 1_000_000 }), long],
    [often({ pattern: '^[a-z]*$' }), long],
    [often({ pattern: '[a-z]'.repeat(1000) }), 'x'.repeat(1000)],
    [often({ enum: [...many, 'x'] }), 'x'],
    [often({ required: Array(3000).fill('a') }), { a: 1 }],
    [often({ not: { const: many } }), 'x'],
    [often({ enum: [many] }), many],
    [{ uniqueItems: true }, many],
    [often({ additionalProperties: true }), Object.fromEntries(many.map(({ index }) => [`k${index}`, 1]))],
  ] as const)
    expect(await quickly(schema, payload)).toMatch(/takes too much work/)
})

test.each([
  ['^(a+)+$', 28],
  ['^(a|a)*$', 28],
  ['^(a|aa)+$', 41],
  ['^a*a*a*a*a*$', 150],
])('the pattern %s is followed without going back over the text', async (pattern, letters) => {
  expect(await quickly({ pattern }, `${'a'.repeat(letters)}!`)).toBe(`"" must match ${pattern}.`)
})

test('a pattern that cannot be followed without going back, or is too long, lets nothing through', async () => {
  for (const pattern of ['^(a)\\1$', '(?<=a)b', '(?<!c)b', '(?<n>a)\\k<n>'])
    expect(await quickly({ pattern }, 'aab')).toBe(
      '"" cannot be checked for "pattern"; check it by a checkResponse of your own.',
    )
  const deep = `${'('.repeat(5000)}a${')'.repeat(5000)}`
  for (const pattern of [deep, '(a?){1000000000}', '^(){1000000000}$', `^(${'|'.repeat(100_000)}){9}b`])
    expect(await quickly({ pattern }, 'a')).toMatch(/takes too much work|must match/)
  expect(await quickly({ pattern: '(' }, '(')).toBe('"" must match (.')
})

test('what cannot be judged lets nothing through by being denied, or by being the other of two', () => {
  const word = { dependentRequired: { a: ['b'] } }
  for (const schema of [
    { not: word },
    { oneOf: [true, word] },
    { not: { pattern: '(a)\\1' } },
    { not: { $ref: '#' } },
    { not: { $ref: 'https://example.org/schema' } },
  ])
    expect(check(schema, 'aab')).toMatch(/cannot be checked|too deep|not there/)
})

test('schemas of forms are within the budget: many fields, long texts, many choices', () => {
  const name = (index: number) => `field${index}`
  const fields = Array.from({ length: 200 }, (_, index) => index)
  const choices = Array.from({ length: 250 }, (_, index) => `choice ${index}`)
  const properties = Object.fromEntries(
    fields.map((index) => [
      name(index),
      { type: 'string', minLength: 1, maxLength: 100, pattern: '^[\\p{L}\\d ]+$', enum: choices },
    ]),
  )
  const payload = Object.fromEntries(fields.map((index) => [name(index), 'choice 249']))
  const schema = { type: 'object', properties, required: fields.map(name), additionalProperties: false }
  expect(check(schema, payload)).toBe(undefined)
  expect(check({ type: 'string', minLength: 1, maxLength: 200_000 }, 'x'.repeat(100_000))).toBe(undefined)
  expect(check({ pattern: '^[^@]+@[^@]+\\.[^@]+$' }, `${'x'.repeat(10_000)}@example.org`)).toBe(undefined)
  expect(check({ uniqueItems: true, items: { enum: choices } }, choices)).toBe(undefined)
})

/** Patterns out of every part that is followed. */
const atom = fc.constantFrom(
  ...[
    'a',
    'b',
    '.',
    '\\d',
    '\\W',
    '[a-c]',
    '[^a\\]]',
    '\\p{L}',
    '\\u{1f600}',
    '\\uD83D\\uDE00',
    '\\u0061',
    '\\x62',
    '\\.',
  ],
  ...[
    '\\cA',
    '[\\u{1f600}-\\u{1f64f}]',
    '^',
    '$',
    '\\b',
    '\\B',
    '\u{1f600}',
    '-',
    '\\0',
    '\\n',
    '[)(|*]',
    '\\P{Lu}',
    '[\\[\\d]',
  ],
)
const { pattern: patterns } = fc.letrec<{ pattern: string }>((tie) => {
  const group = fc
    .tuple(fc.constantFrom('(', '(?:', '(?<n>'), tie('pattern'))
    .map(([open, inner]) => `${open}${inner.replaceAll('(?<n>', '(')})`)
  const look = fc
    .tuple(fc.constantFrom('(?=', '(?!'), tie('pattern'))
    .map(([open, inner]) => `${open}${inner})`)
  const times = fc.constantFrom('*', '+', '?', '*?', '+?', '??', '{2}', '{1,}', '{0,2}', '{1,3}?')
  const repeated = fc
    .tuple(fc.oneof(atom, group), times)
    .map(([one, sign]) => (/^(?:\^|\$|\\[bB])$/.test(one) ? one : one + sign))
  const part = fc.oneof({ maxDepth: 3 }, atom, atom, repeated, group, look)
  return {
    pattern: fc
      .array(fc.array(part, { maxLength: 3 }), { minLength: 1, maxLength: 2 })
      .map((choices) => choices.map((parts) => parts.join('')).join('|')),
  }
})
const texts = fc
  .array(fc.constantFrom('a', 'b', 'c', 'A', '1', '.', '-', ']', '\n', '\u{1f600}', ' ', '\0', '('), {
    maxLength: 6,
  })
  .map((chars) => chars.join(''))

test('a text matches a pattern exactly where the engine of the language says so', () => {
  const seed = Number(process.env.SEED ?? 43)
  let matching = 0
  let judged = 0
  const property = fc.property(patterns, texts, (pattern, text) => {
    let isMatch = false
    try {
      // from each character: V8 also looks within the two units of one, where nothing can begin
      const sticky = new RegExp(pattern, 'uy')
      isMatch = [...text, ''].some((_, index, all) => {
        sticky.lastIndex = all.slice(0, index).join('').length
        return sticky.test(text)
      })
    } catch {
      // a name that is there twice: no pattern
    }
    judged++
    if (isMatch) matching++
    const reason = check({ pattern }, text)
    expect({ pattern, text, reason }).toEqual({
      pattern,
      text,
      reason: isMatch ? undefined : `"" must match ${pattern}.`,
    })
  })
  fc.assert(property, { seed, numRuns: Number(process.env.RUNS ?? 3000) })
  expect(Math.min(matching, judged - matching)).toBeGreaterThan(500)
})

test('a type that every object has a member for fits nothing', () => {
  for (const type of ['constructor', 'toString', '__proto__']) expect(check({ type }, 1)).toBeTypeOf('string')
})
