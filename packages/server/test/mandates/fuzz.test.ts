import type { Constraint } from '@countersign/core'
import { meetsConstraints, rules } from '@countersign/server'
import { expect, test } from 'vitest'
import { full } from '../../../../test/full.js'
import { randomFrom } from '../../../../test/random.js'
import { mayMeetByForce, meetsByForce } from './brute-force.js'

const bases = [
  '/srv/data',
  '/srv/data/',
  '/',
  '.',
  'src',
  './src/lib',
  '/a/./b',
  '/é',
  'C:/data',
  'https://example.org',
  'https://example.org/',
  'https://example.org/v1',
  'https://example.org:8443/v1/x',
  'https://xn--mller-kva.de/a',
  's3://bucket/key',
  'file:///srv/data',
]

/** What tricks are made of. */
const pieces = [
  ...[
    '/',
    '//',
    '.',
    '..',
    '...',
    './',
    '../',
    '..;/',
    ' ..;/',
    ' .; ',
    ';a/',
    '.;/',
    '\\',
    '/..',
    '/.',
    'a',
    'b',
    'data',
    'srv',
    'v1',
    'x',
  ],
  ...[
    '%2e',
    '%2E%2e',
    '%252e',
    '%2f',
    '%5c',
    '%20',
    '%00',
    '%c3%a9',
    '%C3%A9',
    '%c0%ae',
    '%ef%bc%8e',
    '%',
    '%zz',
    '%e2%80%ae',
    '%cd%8f',
    '%20..;/',
  ],
  ...[
    'é',
    'e\u0301',
    '\uff0e',
    '\uff0f',
    '\u2024',
    '\u200b',
    '\u202e',
    '\u0000',
    '\t',
    '\n',
    '\ud800',
    '\u{1f600}',
    'ﬁ',
    '\u00a0',
    '\u034f',
    '\u3164',
    '\ufe0f',
    '\u{e0041}',
    '\ufeff',
  ],
  ...[
    ' ',
    '. ',
    ':',
    ':443',
    ':8443',
    '@',
    '@evil.example',
    'evil.example',
    '?',
    '#',
    '?a=/../b',
    '~',
    '~root',
    'C:',
    '$',
    '*',
    ';',
  ],
  ...[
    'https:',
    'HTTPS:',
    'https://example.org',
    'http://example.org',
    'https://EXAMPLE.org',
    'https://example.org.',
    'https://user@example.org',
  ],
]

const values = [
  0,
  -0,
  1,
  2,
  2.5,
  -1,
  1e300,
  2 ** 53,
  2 ** 53 - 1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  true,
  false,
  null,
  undefined,
]
const texts = [
  ...['', '0', '1', 'EUR', 'ЕUR', 'eur', 'true', 'é', 'e\u0301', '__proto__', 'constructor'],
  ...['i', 'I', 'ı', 'İ', 'i\u0307', 'ß', 'ẞ', 'SS'],
]
const fields = [
  'a',
  'b',
  '__proto__',
  'constructor',
  'toString',
  ['a', 'b'],
  ['a', 'a'],
  ['b', 'length'],
  ['constructor', 'name'],
]

function caseOf(random: () => number) {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const scalar = () => pick<unknown>([...values, ...texts])
  const isComparable = (value: unknown): value is string | number | boolean =>
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Math.abs(value) < 2 ** 53)
  const comparable = () => {
    const one = scalar()
    return isComparable(one) ? one : 1
  }
  const number = () => Math.floor(random() * 8) - 3
  const base = pick(bases)
  const address = () => {
    const start = random() < 0.7 ? base : ''
    const between = random() < 0.5 && start !== '' && !start.endsWith('/') ? '/' : ''
    const piece = () => (random() < 0.6 ? pick(['a', 'data', '/v1', '/x', 'b/']) : pick(pieces))
    return `${start}${between}${Array.from({ length: 1 + Math.floor(random() * 4) }, piece).join('')}`
  }
  const constraint = (): Constraint => {
    const field = pick(fields)
    switch (Math.floor(random() * 8)) {
      case 0:
        return { field, is: comparable() }
      case 1:
        return { field, in: [comparable(), comparable()] }
      case 2:
        return { field, atMost: number() }
      case 3:
        return { field, atLeast: number() }
      default:
        return { field, under: base }
    }
  }
  const member = (depth: number): unknown => {
    const roll = random()
    if (roll < 0.5) return address()
    if (roll < 0.75 || depth === 0) return scalar()
    if (roll < 0.8) return [member(0)]
    return record(depth - 1)
  }
  // As JSON.parse makes it: `__proto__` is an own key like any other.
  const record = (depth: number): unknown => {
    const entries = fields.flatMap((key) =>
      typeof key === 'string' && random() < 0.6 ? [[key, member(depth)]] : [],
    )
    return Object.defineProperties(
      {},
      Object.fromEntries(entries.map(([key, value]) => [key, { value, enumerable: true }])),
    )
  }
  const where = Array.from({ length: random() < 0.8 ? 1 : 2 }, constraint)
  // Half of the cases aim at the first constraint, so that many of them match.
  const [first] = where
  const key = typeof first?.field === 'string' && first.field !== '__proto__' ? first.field : undefined
  const aimed = () => (first !== undefined && 'under' in first ? address() : scalar())
  const input = random() < 0.6 && key !== undefined ? { [key]: aimed() } : record(2)
  return { where, input }
}

const seed = Number(process.env.MANDATES_SEED ?? 20261125)
const count = full ? 1_000_000 : 20_000

test(`W3 two matchers agree about ${count} random cases`, () => {
  console.info(`seed ${seed} (set MANDATES_SEED for another)`)
  const random = randomFrom(seed)
  let matched = 0
  for (let at = 0; at < count; at++) {
    const { where, input } = caseOf(random)
    const met = meetsConstraints(input, where)
    if (met) matched++
    if (met !== meetsByForce(input, where))
      expect.fail(`case ${at} of seed ${seed}: ${met} for ${JSON.stringify({ where, input })}`)
  }
  console.info(`${matched} of ${count} cases match`)
  expect(matched).toBeGreaterThan(count / 50)
})

test(`W3 two matchers agree about what may match in ${count} random cases, and what matches may match`, () => {
  console.info(`seed ${seed} (set MANDATES_SEED for another)`)
  const random = randomFrom(seed)
  let elsewhere = 0
  for (let at = 0; at < count; at++) {
    const { where, input } = caseOf(random)
    const subject = { toolName: 'pay', toolCallId: 'c', input, location: 'server' as const, annotations: {} }
    const about = { toolCallId: 'c', messages: [], context: {} }
    const isBlocked = rules([{ where, decide: 'block' }])(subject, about) !== undefined
    if (!isBlocked) elsewhere++
    if (isBlocked !== mayMeetByForce(input, where) || (!isBlocked && meetsConstraints(input, where)))
      expect.fail(`case ${at} of seed ${seed}: ${isBlocked} for ${JSON.stringify({ where, input })}`)
  }
  console.info(`${elsewhere} of ${count} cases surely don't match`)
  expect(elsewhere).toBeGreaterThan(count / 50)
})
