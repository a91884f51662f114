import { type Preview, readPreview } from '@countersign/core'
import { describe, expect, test } from 'vitest'

const wellFormed: readonly Preview[] = [
  { kind: 'text', text: 'Deletes 3 files' },
  { kind: 'diff', before: 'a\n', after: 'b\n' },
  { kind: 'diff', name: 'a.txt', hunks: [{ before: 1, after: 1, lines: [' a', '-b', '+c'] }] },
  { kind: 'diff', hunks: [] },
  { kind: 'list', items: ['a.txt', 'b.txt'], total: '2 files, 3.1 MB' },
  { kind: 'list', items: [] },
  {
    kind: 'table',
    columns: ['to', 'amount'],
    rows: [
      ['Ann', 5],
      [null, true],
    ],
    total: '2 payments',
  },
  { kind: 'json', value: null },
  { kind: 'none', reason: 'The file is binary.' },
]

test.each(wellFormed)('V1 a well-formed preview is read as it is: %j', (preview) => {
  expect(readPreview(preview)).toBe(preview)
})

describe('V1 anything else is shown as JSON', () => {
  test.each([
    { kind: 'chart', points: [1, 2] },
    { kind: 'text' },
    { kind: 'text', text: 1 },
    { kind: 'text', text: 'harmless', warning: 'Deletes 3 files' },
    { kind: 'diff', before: 'a', after: 'b', hunks: null },
    { kind: 'diff', before: 'a', after: 'b', hunks: [] },
    { kind: 'diff', hunks: [{ before: 1, after: 1, lines: [], note: 'more' }] },
    { kind: 'none', reason: 'The file is binary.', text: 'more' },
    { kind: 'diff', before: 'a' },
    { kind: 'diff', name: 5, before: 'a', after: 'b' },
    { kind: 'diff', hunks: [{ before: 1, after: 1, lines: ['no sign'] }] },
    { kind: 'diff', hunks: [{ before: 1.5, after: 1, lines: [] }] },
    { kind: 'list', items: ['a', 1] },
    { kind: 'list', items: 'a' },
    { kind: 'list', items: [], total: 3 },
    { kind: 'table', columns: ['a'], rows: [['1', '2']] },
    { kind: 'table', columns: ['a'], rows: [[{}]] },
    { kind: 'json' },
    { kind: 'none' },
    { kind: 5 },
    {},
    [],
    null,
    'text',
    7,
  ])('%j', (value) => {
    expect(readPreview(value)).toEqual({ kind: 'json', value })
  })
})
