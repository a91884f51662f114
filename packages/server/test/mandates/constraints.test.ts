import type { Constraint } from '@countersign/core'
import { meetsConstraints } from '@countersign/server'
import { expect, test } from 'vitest'

const meets = (value: unknown, condition: object, field: Constraint['field'] = 'a') =>
  meetsConstraints({ a: value }, [{ field, ...condition } as Constraint])

/** What no constraint ever takes for a number, a text or a boolean. */
const strange: readonly unknown[] = [
  undefined,
  null,
  [],
  [1],
  ['1'],
  {},
  { valueOf: () => 1, toString: () => '1' },
  new String('1'),
  new Number(1),
  1n,
  Symbol.iterator,
  () => 1,
  new Date(1),
]

test('W1 is and in compare text, numbers and booleans of the same type', () => {
  expect(meets('1', { is: '1' })).toBe(true)
  expect(meets(1, { is: 1 })).toBe(true)
  expect(meets(false, { is: false })).toBe(true)
  expect(meets('b', { in: ['a', 'b'] })).toBe(true)
  for (const [value, wanted] of [
    ['1', 1],
    [1, '1'],
    [1, true],
    ['true', true],
    [0, false],
    ['', false],
    ['EUR', 'eur'],
    ['EUR', 'EUR '],
    ['é', 'e\u0301'],
  ] as const) {
    expect(meets(value, { is: wanted }), JSON.stringify([value, wanted])).toBe(false)
    expect(meets(value, { in: [wanted] })).toBe(false)
  }
})

test('W1 atMost and atLeast take numbers only as numbers, inclusively', () => {
  expect([meets(5, { atMost: 5 }), meets(5.01, { atMost: 5 }), meets(-1, { atMost: 5 })]).toEqual([
    true,
    false,
    true,
  ])
  expect([meets(5, { atLeast: 5 }), meets(4.99, { atLeast: 5 })]).toEqual([true, false])
  for (const value of [
    '5',
    ' 5',
    '5e0',
    '0x5',
    true,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
  ])
    expect([meets(value, { atMost: 9 }), meets(value, { atLeast: -9 })], String(value)).toEqual([
      false,
      false,
    ])
})

test('W1 minus zero is zero; numbers beyond 2^53 - 1 match nothing, because they are not exact', () => {
  expect([meets(-0, { is: 0 }), meets(0, { atMost: -0 }), meets(-0, { in: [0] })]).toEqual([true, true, true])
  const most = Number.MAX_SAFE_INTEGER
  expect([meets(most, { is: most }), meets(-most, { atMost: 0 })]).toEqual([true, true])
  for (const value of [2 ** 53, 2 ** 53 + 2, -(2 ** 53), 1e300])
    expect([meets(value, { atLeast: 0 }), meets(value, { atMost: most })], String(value)).toEqual([
      false,
      false,
    ])
})

test('W1 a missing argument, null or another type never matches', () => {
  const conditions = [
    { is: '1' },
    { is: 1 },
    { in: [1, '1', true, false] },
    { atMost: 9 },
    { atLeast: -9 },
    { under: '/' },
  ]
  for (const value of strange)
    for (const condition of conditions) expect(meets(value, condition), String(value)).toBe(false)
  for (const condition of conditions) {
    expect(meetsConstraints({}, [{ field: 'a', ...condition } as Constraint])).toBe(false)
    for (const input of [undefined, null, 'a', 1, ['a']])
      expect(meetsConstraints(input, [{ field: 'a', ...condition } as Constraint])).toBe(false)
  }
})

test('W1 a path leads through own members of objects, and through nothing else', () => {
  const input = { invoice: { total: 5, lines: [{ total: 1 }], currency: { code: 'EUR' } } }
  const where = (field: readonly string[], is: string | number) => meetsConstraints(input, [{ field, is }])
  expect(where(['invoice', 'total'], 5)).toBe(true)
  expect(where(['invoice', 'currency', 'code'], 'EUR')).toBe(true)
  expect(where(['invoice', 'lines', '0', 'total'], 1)).toBe(false)
  expect(where(['invoice', 'lines', 'length'], 1)).toBe(false)
  expect(where(['invoice', 'missing', 'total'], 5)).toBe(false)
  expect(where(['constructor', 'name'], 'Object')).toBe(false)
  expect(where(['__proto__', 'constructor', 'name'], 'Object')).toBe(false)
  const inherited = Object.create({ a: 1 })
  expect(meetsConstraints(inherited, [{ field: 'a', is: 1 }])).toBe(false)
  expect(meetsConstraints({ a: 'text' }, [{ field: ['a', 'length'], is: 4 }])).toBe(false)
})

test('W1 every constraint must be met; none is met by everything', () => {
  const where: readonly Constraint[] = [
    { field: 'a', atLeast: 1 },
    { field: 'a', atMost: 3 },
    { field: 'b', is: 'x' },
  ]
  expect(meetsConstraints({ a: 2, b: 'x' }, where)).toBe(true)
  expect(meetsConstraints({ a: 4, b: 'x' }, where)).toBe(false)
  expect(meetsConstraints({ a: 2, b: 'y' }, where)).toBe(false)
  expect(meetsConstraints(null, [])).toBe(true)
})

test('W1 a constraint that is none is refused with its place', () => {
  const refused: readonly [unknown, string][] = [
    ['a', 'where must be'],
    [Array.from({ length: 17 }, () => ({ field: 'a', is: 1 })), 'where must be'],
    [[null], 'where[0] must be'],
    [[{ field: 'a' }], 'where[0] must be'],
    [[{ field: 'a', is: 1, atMost: 2 }], 'where[0] must be'],
    [[{ field: 'a', matches: '.*' }], 'where[0] must be'],
    [[{ field: 'a', constructor: 1 }], 'where[0] must be'],
    [
      [
        { field: 'a', is: 1 },
        { field: '', is: 1 },
      ],
      'where[1].field must be',
    ],
    [[{ field: 'a.b', is: 1 }], 'where[0].field must be a key, or a path such as'],
    [[{ field: [], is: 1 }], 'where[0].field must be'],
    [[{ field: [1], is: 1 }], 'where[0].field must be'],
    [[{ field: 'a', is: null }], 'where[0].is must be'],
    [[{ field: 'a', is: Number.NaN }], 'where[0].is must be'],
    [[{ field: 'a', in: [] }], 'where[0].in must be'],
    [[{ field: 'a', in: ['x', null] }], 'where[0].in must be'],
    [[{ field: 'a', atMost: '5' }], 'where[0].atMost must be'],
    [[{ field: 'a', atLeast: 2 ** 53 }], 'where[0].atLeast must be'],
    [[{ field: 'a', under: 5 }], 'where[0].under must be'],
  ]
  for (const [where, message] of refused)
    expect(() => meetsConstraints({}, where as Constraint[]), JSON.stringify(where)).toThrow(message)
})
