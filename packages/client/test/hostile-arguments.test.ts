import {
  type ApprovalView,
  type ApprovalViewOptions,
  approvalView,
  argumentFields,
  type DisplayText,
  type ToolCallPart,
} from '@countersign/client'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type HostileArguments, hostileArguments } from '../../../test/hostile-arguments.js'

function call({
  input,
  message,
  toolName = 'run_command',
}: Omit<HostileArguments, 'name' | 'payload'>): ToolCallPart {
  const approval = {
    id: 'a1',
    needsApproval: true,
    options: ['deny', 'once', 'session'],
    allowEdits: true,
  } as const
  return {
    type: 'tool-call',
    id: 'c1',
    name: toolName,
    arguments: JSON.stringify(input),
    input,
    state: 'approval-requested',
    approval: { ...approval, ...(message !== undefined && { message }) },
  }
}

function view(part: ToolCallPart, options: ApprovalViewOptions): ApprovalView {
  return approvalView(part, options) ?? expect.fail('There is no view.')
}

/** Whether each way to say yes is open: once, for the session, with edits. */
function waysOf({ choices, edit }: ApprovalView): boolean[] {
  const yes = choices.filter(({ option }) => option !== 'deny').map(({ disabled }) => !disabled)
  return [...yes, edit.status === 'offered' && !edit.disabled]
}

const pieces = ({ title, message, arguments: shown }: ApprovalView): DisplayText[] =>
  [title, message, shown?.text, ...(shown?.fields ?? []).flatMap(({ key, value }) => [key, value])].filter(
    (text) => text !== undefined,
  )

/** Rows of so many columns that the text takes up. */
function rowsOf({ text }: DisplayText, columns: number): number {
  const widths = text
    .split('\n')
    .map((line) => [...line].reduce((sum, char) => sum + (char > '~' ? 2 : 1), 0))
  return widths.reduce((rows, width) => rows + Math.max(1, Math.ceil(width / columns)), 0)
}

/** A field's value begins beside its key. */
function rowsOfView(view: ApprovalView): number {
  const beside = view.arguments?.fields.filter(({ key }) => key !== undefined).length ?? 0
  return pieces(view).reduce(
    (sum, text) => sum + (text.text === '' ? 0 : rowsOf(text, limits.columns)),
    -beside,
  )
}

const layouts = [
  ['as fields', { fields: true }],
  ['as JSON', {}],
] as const
const limits = { maxLength: 1200, maxLines: 32, columns: 64 }

for (const [layout, options] of layouts) {
  for (const entry of hostileArguments) {
    test(`F24 F37 F38 ${entry.name}, ${layout}: readable, or held back on every way until all was shown`, () => {
      const part = call(entry)
      const first = view(part, { ...limits, ...options })
      const ways = waysOf(first)
      expect(ways, 'one decision for every way').toEqual(ways.map(() => first.hidden === 0))
      expect(first.choices[0]).toMatchObject({ option: 'deny', disabled: false })
      expect(rowsOfView(first), 'never more than was asked for').toBeLessThanOrEqual(limits.maxLines)
      for (const shown of first.hidden === 0 ? [first, view(part, options)] : [view(part, options)]) {
        const all = pieces(shown)
        expect(shown.hidden).toBe(0)
        expect(waysOf(shown)).toEqual([true, true, true])
        expect(all.map(({ text }) => text).join('\n')).toContain(JSON.stringify(entry.payload).slice(1, -1))
        if (entry.warned === true || (entry.warned === 'as text' && options === layouts[0][1]))
          expect(
            all.some(({ suspicious }) => suspicious),
            'the person is warned',
          ).toBe(true)
      }
    })
  }
}

test('F37 blank lines count: a text of few characters and many lines is held back', () => {
  const part = call({ input: { command: `git status${'\n '.repeat(7)}\n${'.\n'.repeat(30)}curl` } })
  const shown = view(part, { maxLength: 1200, maxLines: 16, fields: true })
  expect([shown.hidden > 0, ...waysOf(shown)]).toEqual([true, false, false, false])
  expect(shown.arguments?.fields[0]?.value.lines).toBe(8)
})

test('F37 what is written out counts as long as it is shown', () => {
  const part = call({ input: { command: `${'\u200b\u200c'.repeat(50)}x` } })
  expect(waysOf(view(part, { maxLength: 1200, fields: true }))).toEqual([false, false, false])
  expect(waysOf(view(part, { maxLength: 2000, fields: true }))).toEqual([true, true, true])
})

test('F38 edits are held back with everything else: by the length of arguments, of the message and of the name', () => {
  const long = 'x'.repeat(17_000)
  for (const hostile of [{ input: { long } }, { input: {}, message: long }, { input: {}, toolName: long }])
    for (const [, options] of layouts) {
      const shown = view(call(hostile), { ...limits, ...options })
      expect(waysOf(shown)).toEqual([false, false, false])
      expect(shown.hidden).toBeGreaterThan(15_000)
    }
})

test('a long argument leaves room for those after it, and what has no room is counted', () => {
  const { fields, hidden } = argumentFields({ body: 'x'.repeat(5000), to: 'ada@example.org' }, limits)
  expect(fields.map(({ value }) => value.text.length)).toEqual([600, 15])
  expect(hidden).toBe(4400)
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k${at}`, '']))
  const shown = argumentFields(many, { maxLines: 10 })
  expect(shown.fields).toHaveLength(10)
  expect(shown.hidden).toBeGreaterThan(90 * 3)
})

test('F37 F38 whatever the arguments, a yes is open exactly where nothing of them is left out', () => {
  const seed = 20_260_206
  const texts = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 60 }),
    fc.constantFrom('\n', ' ', '\u200b', 'א').map((char) => char.repeat(40)),
  )
  const values = fc.dictionary(
    fc.string({ maxLength: 8 }),
    fc.oneof(texts, fc.array(texts, { maxLength: 5 })),
    { maxKeys: 8 },
  )
  const property = fc.property(
    values,
    fc.integer({ min: 1, max: 400 }),
    fc.integer({ min: 1, max: 40 }),
    fc.boolean(),
    (input, maxLength, maxLines, fields) => {
      const part = call({ input })
      const cut = view(part, { maxLength, maxLines, columns: 40, fields })
      const whole = view(part, { fields })
      const same =
        JSON.stringify(pieces(cut).map(({ text }) => text)) ===
        JSON.stringify(pieces(whole).map(({ text }) => text))
      expect(cut.hidden === 0).toBe(same)
      expect(waysOf(cut)).toEqual([same, same, same])
    },
  )
  fc.assert(property, { seed, numRuns: 300 })
})
