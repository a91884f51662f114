import { approvalView, type ToolCallApproval, type ToolCallPart } from '@countersign/client'
import { expect, test } from 'vitest'

function call(approval: Partial<ToolCallApproval> = {}, part: Partial<ToolCallPart> = {}): ToolCallPart {
  return {
    type: 'tool-call',
    id: 'c1',
    name: 'delete_file',
    arguments: '{"path":"a.log"}',
    input: { path: 'a.log' },
    state: 'approval-requested',
    approval: { id: 'a1', needsApproval: true, options: ['deny', 'once'], ...approval },
    ...part,
  }
}

function view(part: ToolCallPart, options?: Parameters<typeof approvalView>[1]) {
  const found = approvalView(part, options)
  if (!found) throw new Error('There is no view.')
  return found
}

test('a call that nobody was asked about has no view', () => {
  const { approval: _, ...part } = call()
  expect(approvalView(part)).toBeUndefined()
})

test('S3.90 the view has the tool name, the indented arguments and the message', () => {
  const { id, toolCallId, title, message, arguments: shown } = view(call({ message: 'It is a log.' }))
  expect([id, toolCallId, title.text, message?.text]).toEqual(['a1', 'c1', 'delete_file', 'It is a log.'])
  expect(shown?.text.text).toBe('{\n  "path": "a.log"\n}')
  expect(shown).toMatchObject({ masked: [], revealable: false })
  expect(view(call(), { title: 'Delete a file' }).title.text).toBe('Delete a file')
})

test.each([[{}], [undefined]])('S3.90 without arguments (%j) there are none to show', (input) => {
  const { input: _, ...part } = call()
  expect(view({ ...part, ...(input !== undefined && { input }) }).arguments).toBeUndefined()
})

test.each([
  [null, 'null'],
  ['', '""'],
  [[], '[]'],
  [0, '0'],
  [false, 'false'],
])(
  'S3.90 arguments that are %j are shown, as JSON and as a field, and what hides them is shown as masking them',
  (input, text) => {
    const part = call({}, { arguments: text, input })
    expect(view(part).arguments?.text.text).toBe(text)
    expect(view(part, { fields: true }).arguments?.fields.map(({ value }) => value.text)).toEqual([text])
    const masked = view(call({ display: {} }, { arguments: text, input })).arguments
    expect(masked).toMatchObject({ text: { text: '{}' }, masked: [''], revealable: true })
  },
)

test('S3.90 arguments that the server shows as empty are shown as masked, not left out', () => {
  expect(view(call({ display: {} })).arguments).toMatchObject({
    text: { text: '{}' },
    masked: ['/path'],
    revealable: true,
  })
})

test('S3.91 choices are those offered, in one order, with the default labels', () => {
  const labels = (options: ToolCallApproval['options']) =>
    view(call({ options })).choices.map(({ label }) => label)
  expect(labels(['session', 'once', 'deny'])).toEqual(['Cancel', 'Approve Once', 'Always (This Session)'])
  expect(labels(['deny', 'once'])).toEqual(['Cancel', 'Approve Once'])
  expect(labels(['once'])).toEqual(['Approve Once'])
  expect(labels([])).toEqual([])
})

test('S3.91 labels can be given, each by itself', () => {
  const { choices } = view(call(), { labels: { deny: 'Nein' } })
  expect(choices.map(({ label }) => label)).toEqual(['Nein', 'Approve Once'])
})

test('S3.92 each choice yields deny, approve once, approve for the session', () => {
  const { choices } = view(call({ options: ['deny', 'once', 'session'] }))
  expect(choices.map(({ option, response }) => [option, response])).toEqual([
    ['deny', { id: 'a1', approved: false }],
    ['once', { id: 'a1', approved: true, scope: 'once' }],
    ['session', { id: 'a1', approved: true, scope: 'session' }],
  ])
})

test('S3.93 once answered nothing can be chosen, and the view says what was answered and how far it got', () => {
  const sent = call({ approved: true, delivery: 'sent' }, { state: 'approval-responded' })
  expect(view(sent)).toMatchObject({
    status: 'responded',
    disabled: true,
    approved: true,
    delivery: 'sent',
    choices: [{ disabled: true }, { disabled: true }],
  })
  expect(view(call())).toMatchObject({ status: 'open', disabled: false, choices: [{}, { disabled: false }] })
})

test.each(['executing', 'complete', 'error', 'denied', 'cancelled'] as const)(
  'a request of a call that is %s is settled',
  (state) => {
    expect(view(call({ approved: true }, { state }))).toMatchObject({ status: 'settled', disabled: true })
  },
)

test('a request with a problem is disabled and says why', () => {
  expect(view(call({ problem: 'approval-changed' }))).toMatchObject({
    status: 'unanswerable',
    disabled: true,
    problem: 'approval-changed',
    choices: [{ disabled: true }, { disabled: true }],
  })
})

test('S3.49 what the server masks is shown masked, told by its place, and can be revealed', () => {
  const part = call(
    {
      display: {
        to: ['x', '[REDACTED]'],
        auth: { 'api/key': '[REDACTED]', '~': 1 },
        note: 'as is',
        limit: 10,
      },
    },
    { input: { to: ['x', 'y'], auth: { 'api/key': 's3cret', '~': 2 }, note: 'as is' } },
  )
  const masked = view(part)
  expect(masked.arguments?.text.text).toContain('"[REDACTED]"')
  expect(masked.arguments?.text.text).not.toContain('s3cret')
  expect(masked.arguments).toMatchObject({
    masked: ['/to/1', '/auth/api~1key', '/auth/~0', '/limit'],
    revealable: true,
  })
  const exact = view(part, { exact: true })
  expect(exact.arguments?.text.text).toContain('s3cret')
  expect(exact.arguments).toMatchObject({ masked: [], revealable: true })
})

test('names of members of Object.prototype in arguments are values like others', () => {
  const input = JSON.parse('{"__proto__":{"a":1},"constructor":"x"}')
  const display = JSON.parse('{"__proto__":{"a":2},"constructor":"x"}')
  expect(view(call({ display }, { input })).arguments?.masked).toEqual(['/__proto__/a'])
  expect(view(call({ display: {} }, { input: { toString: 1 } })).arguments?.masked).toEqual(['/toString'])
})

test('arguments nested 100,000 deep are shown and compared', () => {
  const nested = (end: unknown) => {
    let value = end
    for (let depth = 0; depth < 100_000; depth++) value = [value]
    return value
  }
  const shown = view(call({ display: nested(1) }, { input: nested(2) }), { maxLength: 50 }).arguments
  expect(shown?.masked).toHaveLength(1)
})

test('security.md 8: while arguments are not all shown, nothing can be approved, but denied', () => {
  const part = call({ options: ['deny', 'once', 'session'] }, { input: { text: 'x'.repeat(5000) } })
  const cut = view(part, { maxLength: 100 })
  expect(cut.arguments?.text.hidden).toBeGreaterThan(4800)
  expect(cut.disabled).toBe(false)
  expect(cut.choices.map(({ disabled }) => disabled)).toEqual([false, true, true])
  expect(view(part).choices.map(({ disabled }) => disabled)).toEqual([false, false, false])
})

test('S3.99 what could hide or forge something in name, message or arguments is written out', () => {
  const part = call({ message: 'a\u202Eb' }, { name: 'x\u200By', input: { path: 'p\u2066q' } })
  const { title, message, arguments: shown } = view(part)
  for (const text of [title, message, shown?.text]) expect(text?.suspicious).toBe(true)
  expect([title.text, message?.text]).toEqual(['x⟨U+200B⟩y', 'a⟨U+202E⟩b'])
  expect(shown?.text.text).toContain('p⟨U+2066⟩q')
})

test('edits: none, all, certain keys, and what was edited', () => {
  const edit = (allowEdits?: boolean | readonly string[]) =>
    view(call(allowEdits === undefined ? {} : { allowEdits })).edit
  const input = { path: 'a.log' }
  expect([edit(), edit(false), edit([])]).toEqual([
    { status: 'none' },
    { status: 'none' },
    { status: 'none' },
  ])
  expect(edit(true)).toEqual({ status: 'offered', keys: 'all', input, disabled: false })
  expect(edit(['path'])).toEqual({ status: 'offered', keys: ['path'], input, disabled: false })
  const answered = { allowEdits: true, approved: true } as const
  const responded = { state: 'approval-responded' } as const
  expect(view(call(answered, responded)).edit).toEqual({ status: 'none' })
  expect(view(call({ ...answered, input: { path: 'b.log' } }, responded)).edit).toEqual({
    status: 'edited',
    input: { path: 'b.log' },
  })
})

test('the expiry is in milliseconds, and absent where there is none or it is no date', () => {
  const at = (expiresAt?: string) => view(call(expiresAt === undefined ? {} : { expiresAt })).expiresAt
  expect([at('1970-01-01T00:00:01.000Z'), at(), at('soon')]).toEqual([1000, undefined, undefined])
})

test('the view is plain data', () => {
  const found = view(call({ message: 'm', expiresAt: '2999-01-01T00:00:00Z', allowEdits: true }))
  expect(structuredClone(found)).toEqual(found)
})
