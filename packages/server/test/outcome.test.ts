import {
  failed,
  fromResultContent,
  isSuccess,
  succeeded,
  type ToolOutcome,
  toProviderText,
  toResultContent,
} from '@countersign/server'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const roundTrip = (outcome: ToolOutcome) => {
  const { content, flag } = toResultContent(outcome)
  return fromResultContent(content, flag)
}

test("S2.45 a success is the JSON of the tool's own value", () => {
  expect(toProviderText(succeeded({ temp: 72 }))).toBe('{"temp":72}')
  expect(toResultContent(succeeded('plain'))).toEqual({ content: 'plain' })
})

test('S2.46 a denial reads {"kind":"denied"}, with its reason where there is one', () => {
  expect(toProviderText(failed('denied', 'Out of scope.'))).toBe('{"kind":"denied","reason":"Out of scope."}')
  expect(toProviderText(failed('denied'))).toBe('{"kind":"denied"}')
})

test('S2.47 a cancellation reads {"kind":"cancelled"}, with its reason when given', () => {
  expect(toProviderText(failed('cancelled'))).toBe('{"kind":"cancelled"}')
  expect(toProviderText(failed('cancelled', 'user moved on'))).toBe(
    '{"kind":"cancelled","reason":"user moved on"}',
  )
})

test('S2.48 an error reads {"kind":"execution_error","reason":...}', () => {
  expect(toProviderText(failed('execution_error', 'disk full'))).toBe(
    '{"kind":"execution_error","reason":"disk full"}',
  )
})

test('S2.49 a failure may be of a kind of its own', () => {
  expect(toProviderText(failed('rate_limited', 'later'))).toBe('{"kind":"rate_limited","reason":"later"}')
  expect(roundTrip(failed('rate_limited', 'later'))).toEqual({ kind: 'rate_limited', reason: 'later' })
})

test('S2.51 outcomes survive a round trip through a tool message', () => {
  const outcome = fc.oneof(
    fc.jsonValue().map(succeeded),
    fc
      .tuple(
        fc.constantFrom('denied', 'cancelled', 'execution_error', 'unknown_tool', 'custom'),
        fc.option(fc.string(), { nil: undefined }),
        fc.option(fc.string(), { nil: undefined }),
      )
      .map(([kind, reason, code]) => failed(kind, reason, code)),
  )
  fc.assert(
    fc.property(outcome, (given) => {
      expect(roundTrip(given)).toEqual(JSON.parse(JSON.stringify(given)))
    }),
    { seed: 20261121, numRuns: 300 },
  )
})

test('S2.53 a tool that returns { kind: "denied" } or a history payload itself is still a success', () => {
  for (const value of [{ kind: 'denied' }, { type: 'execution-denied', reason: 'no' }]) {
    expect(roundTrip(succeeded(value))).toEqual({ kind: 'ok', value })
  }
})

test('S1.30 S1.31 a denial in history is { type: "execution-denied", reason? } beside a flag', () => {
  expect(toResultContent(failed('denied', 'no'))).toEqual({
    content: '{"type":"execution-denied","reason":"no"}',
    flag: { outcome: 'denied' },
  })
  expect(JSON.parse(toResultContent(failed('denied')).content)).toEqual({ type: 'execution-denied' })
})

test('S1.63 undefined is written as null; a cycle or a BigInt is an execution error', () => {
  expect(toProviderText(succeeded(undefined))).toBe('null')
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  for (const value of [cycle, 1n, () => 1]) {
    const outcome = succeeded(value)
    expect(isSuccess(outcome)).toBe(false)
    expect(outcome.kind).toBe('execution_error')
    expect(toProviderText({ kind: 'ok', value })).toContain('"kind":"execution_error"')
  }
})

test('text that is not JSON and the error of a foreign tool message read as what they are', () => {
  expect(fromResultContent('72 degrees', undefined)).toEqual({ kind: 'ok', value: '72 degrees' })
  expect(fromResultContent('', undefined, 'declined')).toEqual({
    kind: 'execution_error',
    reason: 'declined',
  })
})

test('F61 a text goes to a model as it is, without quotes, and other values as JSON', () => {
  const texts = ['a plain string', '', '123', '"quoted"', '{"a":1}', 'two\nlines']
  for (const text of texts) expect(toProviderText(succeeded(text))).toBe(text)
  expect([7, true, null, ['a'], { a: 'b' }].map((value) => toProviderText(succeeded(value)))).toEqual([
    '7',
    'true',
    'null',
    '["a"]',
    '{"a":"b"}',
  ])
})

test('F61 the content of a tool message is the plain text where that cannot be taken for JSON, and is read again as the same value', () => {
  expect(toResultContent(succeeded('a plain string')).content).toBe('a plain string')
  const values = [
    'a plain string',
    '',
    '123',
    'true',
    'null',
    '"quoted"',
    '{"a":1}',
    'two\nlines',
    123,
    null,
    [''],
    {},
  ]
  for (const value of values)
    expect(fromResultContent(toResultContent(succeeded(value)).content, undefined)).toEqual(succeeded(value))
})

test('a result is what it was when the tool gave it, whatever becomes of the object', () => {
  const list = ['fast']
  const outcome = succeeded(list)
  list.push('slow')
  expect(outcome).toEqual({ kind: 'ok', value: ['fast'] })
  let reads = 0
  const odd = { toJSON: () => ({ read: ++reads }) }
  const read = succeeded(odd)
  expect(toProviderText(read)).toBe(toProviderText(read))
})
