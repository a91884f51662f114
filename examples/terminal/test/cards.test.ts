import { approvalView, type DisplayLimits, previewView } from '@countersign/client'
import type { ToolCallApproval, ToolCallPart } from '@countersign/core'
import { expect, test } from 'vitest'
import { renderCall } from '../src/call-card.js'
import { quote } from '../src/quote.js'
import { type RequestNotes, renderRequest } from '../src/request-card.js'

const asked: ToolCallApproval = { id: 'a1', needsApproval: true, options: ['deny', 'once', 'session'] }

function call(input: unknown, approval: Partial<ToolCallApproval> = {}, name = 'delete_file'): ToolCallPart {
  const state = 'approval-requested'
  return {
    type: 'tool-call',
    id: 'c1',
    name,
    arguments: '',
    input,
    state,
    approval: { ...asked, ...approval },
  }
}

function card(part: ToolCallPart, columns = 100, notes: RequestNotes = { more: 0 }): string {
  const view = approvalView(part)
  if (!view) throw new Error('It was not asked about.')
  return renderRequest(view, notes, columns)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066\u2067]/

test('S3.102 a request shows a warning, the tool, the arguments and the message', () => {
  expect(card(call({ path: 'a.log' }, { message: 'This deletes a.log.' }))).toBe(`
!! Your approval is needed: nothing runs without it.
   Tool
   | delete_file
   Arguments
   | {
   |   "path": "a.log"
   | }
   Message from the server
   | This deletes a.log.
`)
})

test('edited arguments are said to be, and a call without any has none', () => {
  const part = call({}, { message: 'This deletes a.log.' })
  const shown = card(part, 100, { more: 0, edited: true })
  expect(shown).toContain(
    '   Arguments, with your changes\n   | none\n   Message from the server, before your changes\n',
  )
})

test('S3.107 of several requests each says how many wait after it', () => {
  expect(card(call({}), 100, { more: 2 })).toContain('needed (2 more after this):')
})

test('S3.108 control sequences in name, arguments and message are written out', () => {
  const evil = '\u001b[2J\u001b[1;1H\u009b31m\u0007\r\b\u202e'
  const shown = card(call({ [evil]: evil }, { message: evil }, `x${evil}`))
  expect(shown).not.toMatch(controls)
  expect(shown.match(/⟨U\+001B⟩/g)?.length).toBeGreaterThanOrEqual(6)
  expect(shown).toContain('!! It contains characters that are invisible or look like others.')
})

test('S3.108 control sequences in the outcome of a call are written out', () => {
  const evil = '\u001b[2J\r\n\u009b'
  const done = renderCall({ ...call({ evil }, {}, evil), state: 'complete', output: { evil } })
  const failed = renderCall({ ...call({ evil }), state: 'error', error: { message: evil } })
  expect(`${done}${failed}`).not.toMatch(controls)
  expect(done?.split('\n').length).toBe(3)
  expect(failed?.split('\n').length).toBe(3)
})

test('S3.108 no line of an argument or a message begins in the first column, however narrow the terminal', () => {
  const forged = `${'x'.repeat(36)}!! Approved. ${'漢'.repeat(50)}\n[y]es / [n]o`
  const rows = card(call({ forged }, { message: forged }, 'n\n!! no'), 40)
    .trim()
    .split('\n')
  const ours = /^(!! (Your approval|It contains)| {3}(Tool|Arguments|Message from the server)$)/
  expect(rows.filter((row) => !ours.test(row) && !row.startsWith('   | '))).toEqual([])
  const width = (row: string) => [...row].reduce((sum, char) => sum + (char > '~' ? 2 : 1), 0)
  expect(rows.filter((row) => row.startsWith('   |') && width(row) > 40)).toEqual([])
})

test('right-to-left letters stay isolated in every row of a broken line', () => {
  const rows = quote(`\u2068${'א'.repeat(30)}\u2069`, 40)
    .trimEnd()
    .split('\n')
  expect(rows.length).toBe(2)
  for (const row of rows) expect(row).toMatch(/^ {3}\| \u2068א+\u2069$/)
})

test('arguments that the server masks are named', () => {
  const shown = card(call({ user: 'a', password: 'b' }, { display: { user: 'a', password: '***' } }))
  expect(shown).toContain('"password": "***"')
  expect(shown).toContain('the tool gets the real values: /password')
})

test('a call has a card once it is over, and says what became of it', () => {
  const end = (part: Partial<ToolCallPart>) => renderCall({ ...call({ path: 'a' }), ...part })?.split('\n')[1]
  expect(end({})).toBeUndefined()
  expect(end({ state: 'complete', output: { deleted: 1 } })).toBe('  done: {"deleted":1}')
  expect(end({ state: 'error', error: { message: 'Disk full.' } })).toBe('  failed: Disk full.')
  expect(end({ state: 'denied', approval: { ...asked, approved: false } })).toBe('  denied, did not run')
  expect(end({ state: 'cancelled' })).toBe('  withdrawn, did not run')
  const expired = { ...asked, problem: 'approval-expired' as const }
  expect(end({ state: 'cancelled', approval: expired })).toBe('  did not run (approval-expired)')
})

test('long values are cut in the card of a call, and the rest is counted', () => {
  const shown = renderCall({ ...call({}), state: 'complete', output: 'x'.repeat(1000) })
  expect(shown).toContain('… (842 more characters)')
})

/** The card of a request with a preview, as it fits within limits. */
function previewed(approval: Partial<ToolCallApproval>, limits: DisplayLimits = {}): string {
  const view = approvalView(call({ path: 'a.txt' }, approval), { ...limits, preview: previewView })
  return view ? renderRequest(view, { more: 0 }, 60) : ''
}

test('V16 a diff is shown before the arguments: counts, context, and a sign before each line', () => {
  const preview = { kind: 'diff', name: 'a.txt', before: 'a\nb\n', after: 'a\nc\n' }
  expect(previewed({ preview })).toContain(`   What it would do
   | 1 line added, 1 line removed in a.txt
   |   a
   | - b
   | + c
   Arguments
`)
})

test('V16 a row of a table takes a line for each cell, so that no cell can imitate another', () => {
  const columns = ['Day', 'Amount']
  const preview = {
    kind: 'table',
    columns,
    rows: [
      ['now', '5 EUR'],
      ['x   9 EUR', '1 EUR'],
    ],
    total: '6 EUR',
  }
  expect(previewed({ preview })).toContain(`   | 6 EUR
   | - Day: now
   |   Amount: 5 EUR
   | - Day: x   9 EUR
   |   Amount: 1 EUR
`)
})

test('V15 V16 what has changed since the user looked is said and marked, and what was there before is shown', () => {
  const previous = { kind: 'list', items: ['a.log', 'b.log'], total: '2 files' }
  const preview = { kind: 'list', items: ['a.log', 'c.log'], total: '2 files' }
  expect(
    previewed({ preview, previous }),
  ).toContain(`!! Changed since you looked. Nothing has run. Lines with * are new.
   What it would do
   |   2 files
   |   a.log
   | * c.log
   What you saw before; lines with * are gone
   |   2 files
   |   a.log
   | * b.log
`)
})

test('V16 a preview that does not fit holds back the approval, and control characters in it are written out', () => {
  const items = Array.from({ length: 40 }, (_, at) => `file ${at}\u001b[2J`)
  const shown = previewed({ preview: { kind: 'list', items } }, { maxLines: 10 })
  expect(shown).toContain('characters are not shown. Type m to read everything')
  expect(shown).toContain('file 0⟨U+001B⟩[2J')
  expect(shown).not.toMatch(controls)
})

test('V16 mandates are numbered, with their limits', () => {
  const mandates = [
    { id: 'team', label: 'Mail to the team', uses: 10, budget: { total: 5, unit: 'EUR' } },
    { id: 'never', label: 'Never\nask', decide: 'deny' as const },
  ]
  expect(previewed({ mandates })).toContain(`   For more than this call
   | 1  Mail to the team (10 times at most, 5 EUR in total)
   | 2  Never⟨U+000A⟩ask (until you revoke it)
`)
})
