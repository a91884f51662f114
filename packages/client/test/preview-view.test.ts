import { approvalView, type PreviewView, previewView, type ToolCallPart } from '@countersign/client'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { diffLines } from '../src/diff-lines.js'

const seed = 20261

const marks = { same: ' ', added: '+', removed: '-', skipped: '~' } as const

/** A preview as a terminal could print it; `!` marks what is new. */
function printed({ total, columns, lines }: PreviewView): string[] {
  const rows = lines.map(({ change, cells, isNew }) => {
    const text = cells.map((cell) => cell.text).join(' | ')
    return `${isNew ? '!' : ''}${marks[change]}${text}`
  })
  const heads = columns.length === 0 ? [] : [columns.map(({ text }) => text).join(' | ')]
  return [...(total ? [`${total.isNew ? '!' : ''}${total.cells[0]?.text}`] : []), ...heads, ...rows]
}

const lines = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}\n`).join('')

test('V14 a diff begins with the counts, and shows three unchanged lines around each change', () => {
  const before = lines(1, 40)
  const after = before.replace('line 10\n', 'line ten\nand more\n').replace('line 30\n', '')
  expect(printed(previewView({ kind: 'diff', name: 'a.txt', before, after }))).toEqual([
    '2 lines added, 2 lines removed in a.txt',
    ...['~… 6 unchanged lines', ' line 7', ' line 8', ' line 9', '-line 10', '+line ten', '+and more'],
    ...[' line 11', ' line 12', ' line 13', '~… 13 unchanged lines', ' line 27', ' line 28', ' line 29'],
    ...['-line 30', ' line 31', ' line 32', ' line 33', '~… 7 unchanged lines'],
  ])
})

test('V14 hunks, lists, tables, text and JSON: totals first', () => {
  const hunks = [{ before: 4, after: 4, lines: [' a', '-b', '+c'] }]
  expect(printed(previewView({ kind: 'diff', hunks }))).toEqual([
    '1 line added, 1 line removed',
    ...['~… line 4', ' a', '-b', '+c'],
  ])
  expect(printed(previewView({ kind: 'list', items: ['a', 'b'], total: '2 files, 3 KB' }))).toEqual([
    '2 files, 3 KB',
    ' a',
    ' b',
  ])
  const table = { kind: 'table', columns: ['to', 'EUR'], rows: [['acme', 5]] }
  expect(printed(previewView(table))).toEqual(['1 row', 'to | EUR', ' acme | 5'])
  expect(printed(previewView({ kind: 'text', text: 'a\nb' }))).toEqual([' a', ' b'])
  expect(printed(previewView({ unknown: 1 }))).toEqual([' {', '   "unknown": 1', ' }'])
  expect(printed(previewView({ kind: 'none', reason: 'gone' }))).toEqual(['No preview: gone'])
})

test('V14 a line end that is removed can be seen, and a text without lines has none', () => {
  const view = previewView({ kind: 'diff', before: 'a\n', after: 'a' })
  expect(printed(view)).toEqual(['1 line added, 1 line removed', '-a', '+a', '~… no line end'])
  const imitated = { kind: 'diff', before: 'a', after: 'a (no line end)\n' }
  expect(printed(previewView(imitated))).toEqual([
    '1 line added, 1 line removed',
    ...['-a', '~… no line end', '+a (no line end)'],
  ])
  expect(printed(previewView({ kind: 'diff', before: '', after: '' }))).toEqual([
    '0 lines added, 0 lines removed',
  ])
})

test('V14 a preview with masked values says so first', () => {
  const text = { kind: 'text', text: 'deletes [REDACTED] files' }
  expect(printed(previewView(text))).toEqual(['Some values are masked', ' deletes [REDACTED] files'])
  expect(printed(previewView({ kind: 'list', items: ['[REDACTED]'] }))[0]).toBe(
    '1 item. Some values are masked',
  )
})

test('V14 a diff of both texts and hunks, or with hunks that are no list, is shown as the JSON that it is', () => {
  for (const hunks of [null, [], [{ before: 1, after: 1, lines: ['-a', '+harmless'] }]]) {
    const preview = { kind: 'diff', before: 'a\n', after: 'DROP\n', hunks }
    const view = approvalView(part({ preview }), { preview: previewView })?.preview
    expect(view?.kind).toBe('json')
    expect(view && printed(view).join()).toContain('DROP')
  }
})

test('V14 members that the kind of a preview does not have are shown', () => {
  const view = previewView({ kind: 'text', text: 'harmless', warning: 'deletes everything' })
  expect(printed(view).join()).toContain('deletes everything')
})

test('V14 an equal item more is new, and so is the same change in another place', () => {
  const list = (count: number) => ({ kind: 'list', items: Array(count).fill('pay 10'), total: 'payments' })
  expect(printed(previewView(list(2), { previous: list(1) }))).toEqual(['payments', ' pay 10', '! pay 10'])
  const hunk = (at: number) => ({ kind: 'diff', hunks: [{ before: at, after: at, lines: ['-x', '+y'] }] })
  expect(printed(previewView(hunk(500), { previous: hunk(10) }))).toContain('!~… line 500')
})

test('V14 removed and unchanged lines of a diff are the text before, added and unchanged ones the text after', () => {
  const text = fc
    .array(fc.constantFrom('a\n', 'b\n', 'c\n', '\n'), { maxLength: 30 })
    .map((all) => all.join(''))
  const ended = fc.tuple(text, fc.constantFrom('', 'x')).map((both) => both.join(''))
  fc.assert(
    fc.property(ended, ended, (before, after) => {
      const diff = diffLines(before, after)
      const without = (change: string) =>
        diff.filter((line) => line.change !== change).map((line) => line.text)
      expect(without('added').join('')).toBe(before)
      expect(without('removed').join('')).toBe(after)
      expect(diff.filter(({ change }) => change !== 'same').length).toBe(distance(before, after))
    }),
    { seed, numRuns: 2000 },
  )
})

/** The number of changed lines in a shortest diff, from the longest common subsequence. */
function distance(before: string, after: string): number {
  const [a = [], b = []] = [before, after].map((text): string[] => text.match(/[^\n]*\n|[^\n]+$/g) ?? [])
  let row = Array.from({ length: b.length + 1 }, () => 0)
  for (const line of a) {
    const next = [0]
    for (const [at, other] of b.entries())
      next.push(line === other ? (row[at] ?? 0) + 1 : Math.max(row[at + 1] ?? 0, next[at] ?? 0))
    row = next
  }
  return a.length + b.length - 2 * (row.at(-1) ?? 0)
}

test('V14 a diff with very many changes is whole too', () => {
  const before = Array.from({ length: 5000 }, (_, at) => `before ${at}\n`).join('')
  const after = Array.from({ length: 5000 }, (_, at) => `after ${at}\n`).join('')
  const view = previewView({ kind: 'diff', before, after })
  expect(printed(view)[0]).toBe('5,000 lines added, 5,000 lines removed')
  expect(view.lines).toHaveLength(10_000)
})

const part = (approval: object): ToolCallPart => ({
  type: 'tool-call',
  id: 'c1',
  name: 'write_file',
  arguments: '{}',
  input: {},
  state: 'approval-requested',
  approval: { id: 'p1', needsApproval: true, options: ['deny', 'once', 'session'], ...approval },
})

test('V14 nothing can be approved while part of a preview is not shown; denying can', () => {
  const items = Array.from({ length: 200 }, (_, at) => `file ${at}`)
  const asked = part({
    preview: { kind: 'list', items },
    allowEdits: true,
    mandates: [
      { id: 'm', label: 'More' },
      { id: 'n', label: 'Never', decide: 'deny' },
    ],
  })
  const cut = approvalView(asked, { maxLines: 20, preview: previewView })
  expect(cut?.hidden).toBeGreaterThan(1000)
  expect(cut?.choices.map(({ option, disabled }) => [option, disabled])).toEqual([
    ['deny', false],
    ['once', true],
    ['session', true],
  ])
  expect(cut?.mandates.map(({ disabled }) => disabled)).toEqual([true, false])
  expect(cut?.edit).toMatchObject({ status: 'offered', disabled: true })
  const whole = approvalView(asked, { preview: previewView })
  expect(whole?.hidden).toBe(0)
  expect(whole?.choices.some(({ disabled }) => disabled)).toBe(false)
})

test('V14 what is shown and what is hidden of a preview is all of it, whatever the limits', () => {
  const text = fc.array(fc.string({ maxLength: 12 }), { maxLength: 30 })
  fc.assert(
    fc.property(text, fc.nat(60), fc.nat(20), (items, maxLength, maxLines) => {
      const preview = { kind: 'list', items, total: '' }
      const { lines, hidden } = previewView(preview, { maxLength, maxLines, columns: 10 })
      const whole = previewView(preview)
      if (hidden === 0) expect(lines).toEqual(whole.lines)
      else expect(lines.length <= whole.lines.length).toBe(true)
    }),
    { seed },
  )
})

test('V14 a row that is left out is hidden, even if it is empty or has no cells, and a row without cells takes a line', () => {
  const items = ['a', 'b', 'c']
  for (const [preview, shown] of [
    [{ kind: 'list', items: [...items, ''] }, 3],
    [{ kind: 'table', columns: [], rows: [[], [], [], []] }, 3],
  ] as const) {
    // The total takes a line.
    const view = previewView(preview, { maxLines: 4 })
    expect(view.lines).toHaveLength(shown)
    expect(view.hidden).toBeGreaterThan(0)
    expect(previewView(preview, { maxLines: 5 })).toMatchObject({ hidden: 0, lines: { length: shown + 1 } })
  }
})

test('V14 a line end, an invisible or a look-alike character in a preview cannot pass for something else', () => {
  const view = previewView({ kind: 'list', items: ['a\nb', 'c\u202Ed'], total: '1 file\n2 files' })
  expect(printed(view)).toEqual(['1 file⟨U+000A⟩2 files', ' a⟨U+000A⟩b', ' c⟨U+202E⟩d'])
  expect(view.suspicious).toBe(true)
  const asked = part({ preview: { kind: 'text', text: 'p\u0430ypal' } })
  expect(approvalView(asked, { preview: previewView })?.suspicious).toBe(true)
})

test('V15 a preview that has changed marks what is new, and keeps the one before with what is gone', () => {
  const previous = { kind: 'list', items: ['a.log', 'b.log'], total: '2 files' }
  const preview = { kind: 'list', items: ['b.log', 'c.log', 'd.log'], total: '3 files' }
  const view = approvalView(part({ preview, previous }), { preview: previewView })?.preview
  expect(view && printed(view)).toEqual(['!3 files', ' b.log', '! c.log', '! d.log'])
  expect(view?.previous && printed(view.previous)).toEqual(['!2 files', '! a.log', ' b.log'])
})

test('V15 a line of a diff that was unchanged before is new where it is removed now', () => {
  const previous = { kind: 'diff', before: 'a\nb\n', after: 'a\nc\n' }
  const preview = { kind: 'diff', before: 'a\nx\n', after: 'a\nc\n' }
  expect(printed(previewView(preview, { previous }))).toEqual([
    '1 line added, 1 line removed',
    ...[' a', '!-x', '+c'],
  ])
})

test('a page that does not pass previewView shows none, and can approve', () => {
  const view = approvalView(part({ preview: { kind: 'text', text: 'x'.repeat(100) } }), { maxLength: 50 })
  expect(view).toMatchObject({ preview: undefined, hidden: 0 })
})
