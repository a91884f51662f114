// For what refuses or asks, whatever can't be decided counts as met.
import type { Constraint } from '@countersign/core'
import { rules } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { mayMeetByForce } from './brute-force.js'

const where = (condition: object) => [{ field: 'a', ...condition } as Constraint]

const ruledOn = (value: unknown, condition: object, decide: 'block' | 'ask' = 'block') => {
  const subject = { toolName: 't', toolCallId: 'c', input: { a: value }, location: 'server' as const }
  const policy = rules([{ where: where(condition), decide }, { decide: 'allow' }])
  const said = policy({ ...subject, annotations: {} }, { toolCallId: 'c', messages: [], context: {} })
  return Object(said).decision
}

const decisionOf = (value: unknown, condition: object, decide: 'block' | 'ask' = 'block') => {
  const decision = ruledOn(value, condition, decide)
  expect(mayMeetByForce({ a: value }, where(condition)), JSON.stringify(value)).toBe(decision === decide)
  return decision
}

const etc = { under: '/etc' }
const admin = { under: 'https://intra.example/admin' }

test('W16 a path or URL that may lead below a blocked one is blocked', () => {
  for (const value of [
    ...['/etc/passwd', '/etc', '/etc/', '/etc/x/../passwd', '//etc/passwd', '/tmp/../etc/passwd'],
    ...['/etc/a%20b', '/%65tc/passwd', '/etc/ok.', '/etc /a', '/etc/pass\u00adwd', '/e\u200btc/passwd'],
    ...['/ETC/passwd', '\\etc\\passwd', 'etc/passwd', '../etc/passwd', '~/x', 'file:///etc/passwd', 'C:/etc'],
    ...['/PROGRA~1/x', '/tmp/a:b', `/tmp/${'a'.repeat(9000)}`, 5, ['/etc/passwd'], { path: '/etc' }, ''],
  ])
    expect(decisionOf(value, etc), JSON.stringify(value)).toBe('block')
  for (const value of [
    ...['https://intra.example/admin', 'https://intra.example/admin/a?b#c', 'http://intra.example/admin'],
    ...[
      'https://INTRA.example./Admin/a',
      'https://intra.example:8443/admin',
      'https://intra.example/x/../admin',
    ],
    ...['https://intra.example/%61dmin', 'https://intra.example//admin', 'https://user@intra.example/admin'],
    ...['https://user@other.example/', 'https:\\\\intra.example\\admin', 'https:/intra.example/admin'],
    ...[
      '//intra.example/admin',
      '/admin',
      'intra.example/admin',
      'https://',
      'https://int\u00adra.example/admin',
    ],
  ])
    expect(decisionOf(value, admin), value).toBe('block')
})

test('W16 a URL that leads below a blocked one for servers that leave out path parameters is blocked', () => {
  for (const value of ['admin;a=b/users', 'admin;/users', 'Admin;jsessionid=1', 'admin/a;b', 'admin;a;b/c'])
    expect(decisionOf(`https://intra.example/${value}`, admin), value).toBe('block')
  expect(decisionOf('https://intra.example/a;b', { under: 'https://intra.example/a;c/d' })).toBe('allow')
  expect(decisionOf('https://intra.example/a/d', { under: 'https://intra.example/a;c/d' })).toBe('block')
  for (const value of ['public;a=b/admin', 'administrator;admin/users', 'x?y;/admin'])
    expect(decisionOf(`https://intra.example/${value}`, admin), value).toBe('allow')
  // For files it is a part of the name.
  expect(decisionOf('/etc;a/passwd', etc)).toBe('allow')
})

test('W16 a text is read once, with however many values and rules it is compared: the model decides how long it is', () => {
  const many = Array.from({ length: 256 }, (_, at) => `${at}`.padEnd(10_000, 'y'))
  const others = many.map((is) => ({ where: [{ field: 'a', is }], decide: 'ask' as const }))
  const policy = rules([{ where: [{ field: 'a', in: many }], decide: 'block' }, ...others])
  const subject = { toolName: 't', toolCallId: 'c', location: 'server' as const, annotations: {} }
  const text = 'x'.repeat(10_000)
  const normalize = vi.spyOn(String.prototype, 'normalize')
  policy({ ...subject, input: { a: text } }, { toolCallId: 'c', messages: [], context: {} })
  expect(normalize.mock.contexts.filter((one) => String(one) === text).length).toBeLessThanOrEqual(2)
})

test('W16 a text that is far longer than all that it is compared with is never normalized: that makes some texts 18 times longer', () => {
  const text = '\ufdfa'.repeat(1000)
  const normalize = vi.spyOn(String.prototype, 'normalize')
  expect(ruledOn(text, { in: ['mallory', 'eve'] })).toBe('allow')
  expect(normalize.mock.contexts.filter((one) => String(one).length > 100)).toEqual([])
  // Beside a long text it is, but what comes out is read no further.
  expect(ruledOn(text, { is: 'x'.repeat(1000) })).toBe('allow')
  expect(normalize.mock.contexts.filter((one) => String(one).length > 1000)).toEqual([])
  expect(decisionOf(text, { is: text.normalize('NFKC') })).toBe('block')
})

test('W16 a text is compared however much longer than the same text in another form it is', () => {
  const padded = `${' '.repeat(5000)}${'\u200d'.repeat(5000)}a${'\u{e0061}'.repeat(5000)}${'\u3000'.repeat(5000)}`
  expect(decisionOf(padded, { is: 'A' })).toBe('block')
  // Characters of which another form is at least four times as long, as in the Unicode version of this Node.js.
  for (let code = 0; code <= 0x10_ff_ff; code++) {
    const letter = String.fromCodePoint(code)
    const short = letter.normalize('NFKC')
    for (const form of [letter, letter.normalize('NFD'), letter.normalize('NFKD')])
      if (form.length >= 4 * short.length)
        expect(decisionOf(form.repeat(20), { is: short.repeat(20) }), code.toString(16)).toBe('block')
  }
  // The longest: mathematical letters, which are half as long in their plain form, with marks that become one letter with them.
  for (const upper of [false, true]) {
    const long = '\u{1d6c2}\u0313\u0300'.repeat(20)
    const short = '\u1f02'.repeat(20)
    expect(decisionOf(upper ? long.toUpperCase() : long, { is: short })).toBe('block')
  }
})

test('W16 a text with more combining marks in a row than UAX #15 lets through may be any: it is blocked, and never normalized', () => {
  const normalize = vi.spyOn(String.prototype, 'normalize')
  for (const marks of [
    '\u0301'.repeat(31),
    '\uff9e'.repeat(40),
    '\u0301\u200d'.repeat(31),
    '\u0301\u0323'.repeat(500),
  ]) {
    normalize.mockClear()
    for (const condition of [{ is: 'mallory' }, { in: ['mallory', 'eve'] }])
      for (const text of [`a${marks}`, `bob a${marks} bob`])
        expect([decisionOf(text, condition), decisionOf(text, condition, 'ask')]).toEqual(['block', 'ask'])
    expect([decisionOf(`/tmp/a${marks}`, etc), decisionOf(`https://intra.example/a${marks}`, admin)]).toEqual(
      ['block', 'block'],
    )
    for (const value of [`/tmp/${marks}`, `https://x${marks}/`])
      expect(() => decisionOf('/tmp', { under: value })).toThrow('in its normal form')
    // a rule over such a text: nothing can be told apart from it
    expect(decisionOf('bob', { is: `a${marks}` })).toBe('block')
    const long = normalize.mock.contexts.filter((one) => /[\p{M}\uff9e]{31}/u.test(String(one)))
    expect(long).toEqual([])
  }
  const fits = `a${'\u0301'.repeat(30)}`
  expect(decisionOf(`${fits}${fits}`, { is: 'mallory' })).toBe('allow')
  expect(decisionOf(`${fits}`, { is: fits.normalize() })).toBe('block')
})

test('W16 what surely lies elsewhere is not blocked', () => {
  for (const value of [
    '/tmp/a',
    '/etcetera/a',
    '/',
    '/tmp/etc/passwd',
    '/tmp//a',
    '/tmp/./a',
    '/tmp/~',
    undefined,
    null,
  ])
    expect(decisionOf(value, etc), String(value)).toBe('allow')
  expect(decisionOf('lib/a', { under: 'src' })).toBe('allow')
  for (const value of [
    ...['https://example.org/admin', 'https://example.org/a?x=/../admin', 'https://example.org/x/../admin'],
    ...[
      'https://intra.example',
      'https://intra.example/public/admin',
      'https://intra.example.evil.example/admin',
    ],
  ])
    expect(decisionOf(value, admin), value).toBe('allow')
})

test('W16 a number that is not exact, and a value of another type, count for what blocks and asks', () => {
  for (const decide of ['block', 'ask'] as const) {
    for (const value of [
      10_000,
      2 ** 53,
      1e300,
      Number.POSITIVE_INFINITY,
      '10000',
      '5',
      true,
      [1],
      Number.NaN,
    ])
      expect(decisionOf(value, { atLeast: 10_000 }, decide), String(value)).toBe(decide)
    for (const value of [9_999, -(2 ** 53), undefined, null])
      expect(decisionOf(value, { atLeast: 10_000 }, decide), String(value)).toBe('allow')
    for (const value of [-1, -1e300, '0']) expect(decisionOf(value, { atMost: 0 }, decide)).toBe(decide)
    expect(decisionOf(1e300, { atMost: 0 }, decide)).toBe('allow')
  }
})

test('W16 a text that differs only in what programs ignore counts as the same for what blocks', () => {
  for (const value of [
    'mallory',
    'Mallory',
    ' mallory ',
    'mal\u00adlory',
    '\uff4dallory',
    5,
    ['mallory'],
    {},
  ])
    expect(decisionOf(value, { is: 'mallory' }), JSON.stringify(value)).toBe('block')
  for (const value of ['bob', 'mallory2', '', null, undefined])
    expect(decisionOf(value, { is: 'mallory' }), String(value)).toBe('allow')
  expect(decisionOf('5', { in: ['mallory', 5] })).toBe('block')
  expect(decisionOf('bob', { in: ['mallory', 5] })).toBe('allow')
})

test('W16 upper and lower case of every language count as the same for what blocks, with and without the dot of an i', () => {
  const groups = [
    ['istanbul', 'İSTANBUL', 'ISTANBUL', 'ıstanbul', 'İstanbul', 'i\u0307stanbul'],
    ['weiß', 'WEISS', 'WEIẞ'],
    // Lithuanian keeps the dot below an accent.
    ['jį\u0301', 'J\u0307Į\u0301', 'j\u0307į\u0307\u0301'],
  ]
  for (const group of groups)
    for (const is of group)
      for (const value of group) {
        expect(decisionOf(value, { is }), `${is} ${value}`).toBe('block')
        expect(decisionOf(`/srv/${value}/x`, { under: `/srv/${is}` }), `${is} ${value}`).toBe('block')
      }
  expect(decisionOf('q\u0307', { is: 'q' })).toBe('allow')
})

test('W16 a nested argument counts for what blocks if something else than an object is in its place', () => {
  const policy = rules([{ where: [{ field: ['invoice', 'total'], atLeast: 5 }], decide: 'block' }])
  const decide = (input: unknown) =>
    policy(
      { toolName: 't', toolCallId: 'c', input, location: 'server', annotations: {} },
      { toolCallId: 'c', messages: [], context: {} },
    )
  for (const invoice of [{ total: 5 }, [{ total: 5 }], '{"total":5}', new Map()])
    expect(decide({ invoice }), String(invoice)).toMatchObject({ decision: 'block' })
  for (const input of [{ invoice: { total: 4 } }, { invoice: {} }, { invoice: null }, {}])
    expect(decide(input)).toBeUndefined()
})
