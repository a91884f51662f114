import {
  noteOf,
  problemOf,
  questionFields,
  type ReadAnswer,
  readAnswer,
  typedIn,
} from '@countersign/client/ui'
import type { Interrupt } from '@countersign/core'
import { expect, test } from 'vitest'

const ask = (responseSchema?: Interrupt['responseSchema']): Interrupt => ({
  id: 'q1',
  reason: 'input_required',
  message: 'Where to?',
  ...(responseSchema && { responseSchema }),
})

const move = ask({
  type: 'object',
  properties: {
    folder: { type: 'string', title: 'Folder', description: 'Where the files go', minLength: 2 },
    depth: { type: 'integer', minimum: 0, default: 1 },
    share: { type: 'number' },
    mail: { type: 'string', format: 'email' },
    day: { type: 'string', format: 'date' },
    how: { type: 'string', enum: ['copy', 'move'], enumNames: ['Copy them', 'Move them'], default: 'move' },
    keep: { type: 'boolean', default: true },
    note: { type: 'string', maxLength: 2000 },
    tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['folder', 'how'],
  additionalProperties: false,
})

const faultsOf = (read: ReadAnswer) => (read.ok ? expect.fail('it fits') : [...read.faults])

test('a flat schema has a field for each property, with its title, description, default, format and whether it is required', () => {
  const fields = questionFields(move)
  expect(fields.map(({ label, control }) => [label, control.kind])).toEqual([
    ['Folder', 'text'],
    ['depth', 'number'],
    ['share', 'number'],
    ['mail', 'text'],
    ['day', 'text'],
    ['how', 'choice'],
    ['keep', 'flag'],
    ['note', 'text'],
    ['tags', 'json'],
  ])
  expect(fields[0]).toMatchObject({ key: 'folder', description: 'Where the files go', required: true })
  expect(fields[3]?.control).toEqual({ kind: 'text', input: 'email', isLong: false })
  expect(fields[4]?.control).toMatchObject({ input: 'date' })
  expect(fields[5]?.control).toEqual({
    kind: 'choice',
    choices: [
      { label: 'Copy them', value: 'copy' },
      { label: 'Move them', value: 'move' },
    ],
  })
  expect(fields[7]?.control).toMatchObject({ isLong: true })
  expect(fields.map((field) => typedIn(field, {}))).toEqual(['', '1', '', '', '', '1', 'true', '', ''])
  expect(fields.map(noteOf)).toEqual([
    undefined,
    'optional, a whole number',
    'optional',
    'optional',
    'optional',
    undefined,
    undefined,
    'optional',
    'optional, JSON',
  ])
})

test('an answer holds what was typed as the schema has it, and nothing for what was left empty', () => {
  const draft = { 0: 'logs', 1: ' 2 ', 2: '0.5', 5: '0', 6: 'false', 8: '["a"]' }
  expect(readAnswer(move, draft)).toEqual({
    ok: true,
    payload: { folder: 'logs', depth: 2, share: 0.5, how: 'copy', keep: false, tags: ['a'] },
  })
})

test('what cannot be read is told at every field at once, before the schema is asked', () => {
  expect(faultsOf(readAnswer(move, { 1: '1.5', 2: '1,5', 5: '', 8: 'a' }))).toEqual([
    [0, 'This is required.'],
    [1, 'This must be a whole number.'],
    [2, 'This must be a number, such as 2.5.'],
    [5, 'This is required.'],
    [8, 'This is not valid JSON. A text is written in "quotes".'],
  ])
  const huge = { 0: 'logs', 1: '12345678901234567890' }
  expect(faultsOf(readAnswer(move, huge))).toEqual([[1, 'This number is too large.']])
  for (const typed of ['0x10', 'Infinity', '1e999', '--1', '1 2', 'e1'])
    expect(readAnswer(move, { 0: 'logs', 2: typed }).ok).toBe(false)
})

test('what does not fit the schema is told at its field, or for the form where it concerns no one field', () => {
  expect(faultsOf(readAnswer(move, { 0: 'a' }))).toEqual([[0, 'This must have a length of at least 2.']])
  expect(faultsOf(readAnswer(move, { 0: 'logs', 3: 'ada' }))).toEqual([
    [3, 'This must be of the format email.'],
  ])
  expect(faultsOf(readAnswer(move, { 0: 'logs', 8: '["a", 1]' }))).toEqual([
    [8, '"/tags/1" must be of the type string.'],
  ])
  const pair = ask({ type: 'object', properties: { a: { type: 'string' } }, minProperties: 1 })
  expect(faultsOf(readAnswer(pair, {}))).toEqual([['form', 'The answer must have a length of at least 1.']])
  const odd = ask({ type: 'object', properties: { 'x"/~': { type: 'string', minLength: 2 } } })
  expect(faultsOf(readAnswer(odd, { 0: 'a' }))).toEqual([[0, 'This must have a length of at least 2.']])
})

test('an answer that is one value has one field; any other schema is answered in JSON', () => {
  expect(readAnswer(ask({ type: 'integer', title: 'How many?' }), { 0: '3' })).toEqual({
    ok: true,
    payload: 3,
  })
  expect(faultsOf(readAnswer(ask({ type: 'integer' }), {}))).toEqual([[0, 'This is required.']])
  expect(faultsOf(readAnswer(ask({ type: 'string', pattern: '^a' }), { 0: 'b' }))).toEqual([
    [0, 'This must match ^a.'],
  ])
  const choice = ask({ oneOf: [{ const: 1, title: 'One' }, { const: null }] })
  expect(questionFields(choice)[0]?.control).toEqual({
    kind: 'choice',
    choices: [
      { label: 'One', value: 1 },
      { label: 'null', value: null },
    ],
  })
  expect(readAnswer(choice, { 0: '1' })).toEqual({ ok: true, payload: null })
  for (const schema of [
    { $ref: '#/$defs/a', properties: {} },
    { type: ['string', 'null'] },
    { anyOf: [{}] },
    {},
  ])
    expect(questionFields(ask(schema))).toMatchObject([{ label: 'Your answer', control: { kind: 'json' } }])
  expect(readAnswer(ask({ type: ['string', 'null'] }), { 0: 'null' })).toEqual({ ok: true, payload: null })
})

test('a question without a schema takes a text, and one that wants no property an empty answer', () => {
  expect(readAnswer(ask(), { 0: 'logs' })).toEqual({ ok: true, payload: 'logs' })
  expect(readAnswer(ask({ type: 'object', properties: {} }), {})).toEqual({ ok: true, payload: {} })
})

test('names that objects have anyway are properties like any other', () => {
  const properties = JSON.parse('{"__proto__": {"type": "string"}, "constructor": {"type": "string"}}')
  const read = readAnswer(ask({ type: 'object', properties }), { 0: 'a', 1: 'b' })
  expect(read.ok && JSON.stringify(read.payload)).toBe('{"__proto__":"a","constructor":"b"}')
})

test('why the server did not take the last answer is read out of the question', () => {
  expect(problemOf({ ...move, metadata: { countersign: { problem: 'No such folder.' } } })).toBe(
    'No such folder.',
  )
  for (const metadata of [undefined, {}, { countersign: 'x' }, { countersign: { problem: 1 } }])
    expect(problemOf({ ...ask(), ...(metadata && { metadata }) })).toBeUndefined()
})
