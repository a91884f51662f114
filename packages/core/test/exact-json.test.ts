import { isExactJson } from '@countersign/core'
import { expect, test } from 'vitest'

test('only the numbers of a JSON text need to be exact, not what strings have', () => {
  for (const text of [
    '{"a":"9007199254740993"}',
    '"\\"9007199254740993"',
    '["\\\\",1,"1e999"]',
    '"\\\\\\"1e999"',
    '',
  ])
    expect(isExactJson(text), text).toBe(true)
  for (const text of ['{"a":9007199254740993}', '["\\\\",1e999]', '["\\"",1e999,"\\""]', '{'])
    expect(isExactJson(text), text).toBe(false)
})

test('a JSON text is read however long its strings are: a server decides that', () => {
  const count = 20_000_000
  expect(isExactJson(`"${'x'.repeat(count)}"`)).toBe(true)
  expect(isExactJson(`["${'\\"'.repeat(count / 2)}",1e999]`)).toBe(false)
})
