import { rmSync } from 'node:fs'
import { previewView } from '@countersign/client'
import { afterAll, expect, test } from 'vitest'
import { blocksOf } from './markdown.js'
import { blockWith, folder, load } from './migration.js'

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const page = 'docs/previews.md'

test('the page about previews shows a card with the preview before the first tool that has one', () => {
  const blocks = blocksOf(page)
  const card = blocks.findIndex(({ code }) => code.includes('preview: previewView'))
  const tool = blocks.findIndex(({ code }) => /preview: async/.test(code))
  expect(card).toBeGreaterThan(-1)
  expect(card).toBeLessThan(tool)
})

test('the text of the page about previews has all of a diff, a table and a missing preview, and what has changed', async () => {
  const { previewText } = await load(blockWith(page, 'export function previewText'), {})
  const textOf = (value: unknown, previous?: unknown) => previewText(previewView(value, { previous }))
  const diff = { kind: 'diff', name: 'notes.txt', before: 'a\nb\n', after: 'a\nc\n' }
  expect(textOf(diff)).toBe('1 line added, 1 line removed in notes.txt\n  a\n- b\n+ c')
  const table = { kind: 'table', columns: ['id', 'name'], rows: [[1, 'Ann']], total: '1 row' }
  expect(textOf(table)).toBe('1 row\nid | name\n  1 | Ann')
  expect(textOf({ kind: 'none', reason: 'The disk is gone.' })).toContain('The disk is gone.')
  const [before, after] = ['one', 'two'].map((text) => ({ kind: 'text', text }))
  expect(textOf(after, before)).toBe('Changed since you looked\nnew:   two')
})
