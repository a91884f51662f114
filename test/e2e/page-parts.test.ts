import { ChatClient, stream } from '@countersign/client'
import {
  announce,
  applyDraft,
  beginningsOf,
  decisionOf,
  effectiveInput,
  fieldsOf,
  fitting,
  grantedSince,
  grantName,
  pendingWords,
  phaseOf,
  requestView,
  standingGrants,
  standingOf,
  summaryOf,
  withRecord,
} from '@countersign/client/ui'
import type { ChatSnapshot, PendingApproval, SessionGrant, ToolCallPart } from '@countersign/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Block, parseBlocks, parseInline } from '../../examples/page/src/markdown.js'
import { sendEmail, writeFile } from '../../examples/page/src/tools.js'

const seed = 20261

test('markdown: paragraphs, lists, headings and code are told apart', () => {
  expect(parseBlocks('# Title\nOne\ntwo\n\n- a\n- b\n1. c\n\n```\n- code\n```\nend')).toEqual([
    { kind: 'heading', text: 'Title' },
    { kind: 'paragraph', text: 'One\ntwo' },
    { kind: 'list', ordered: false, items: ['a', 'b'] },
    { kind: 'list', ordered: true, items: ['c'] },
    { kind: 'code', text: '- code' },
    { kind: 'paragraph', text: 'end' },
  ])
})

test('markdown: a fence that is still open is code already', () => {
  expect(parseBlocks('```\n<b>x')).toEqual([{ kind: 'code', text: '<b>x' }])
})

test('markdown: inline pieces put together are the text without its marks', () => {
  expect(parseInline('read `a.txt` **now**, 2 ** 3 and `')).toEqual([
    { kind: 'text', text: 'read ' },
    { kind: 'code', text: 'a.txt' },
    { kind: 'text', text: ' ' },
    { kind: 'strong', text: 'now' },
    { kind: 'text', text: ', 2 ** 3 and `' },
  ])
})

test('markdown: no visible character is lost, whatever the text', () => {
  const visible = (text: string) => text.replace(/\s/g, '')
  const textOf = (block: Block) => (block.kind === 'list' ? block.items.join('') : block.text)
  const letters = fc.string({ unit: fc.constantFrom('a', '<', '&', '\n', ' ', '"', 'é') })
  fc.assert(
    fc.property(letters, (text) => {
      expect(visible(parseBlocks(text).map(textOf).join(''))).toBe(visible(text))
    }),
    { seed },
  )
})

test('edit: only fields that may be edited are, and values keep their kind', () => {
  const fields = fieldsOf({ to: 'a@example.org', count: 1, fixed: 'x' }, ['to', 'count'])
  expect(applyDraft(fields, { to: 'b@example.org', count: '2', fixed: 'y' })).toEqual({
    ok: true,
    changed: true,
    input: { to: 'b@example.org', count: 2, fixed: 'x' },
  })
})

test('edit: an untouched draft changes nothing', () => {
  const input = { to: 'a', list: [1, 2], nested: { a: null } }
  expect(applyDraft(fieldsOf(input, true), {})).toEqual({ ok: true, changed: false, input })
  expect(applyDraft(fieldsOf(input, true), { to: 'a', list: '[\n  1,\n  2\n]' })).toMatchObject({
    changed: false,
  })
})

test('edit: what cannot be read is told by field', () => {
  const edited = applyDraft(fieldsOf({ count: 1, list: [] }, true), { count: '"two"', list: '[1' })
  expect(edited).toEqual({
    ok: false,
    errors: new Map([
      ['count', 'This must stay a number; now it is a text.'],
      ['list', 'This is not valid JSON. It must be a list.'],
    ]),
  })
})

test('edit: what does not fit the schema of the tool is told by field; what no schema here knows is left to the server', () => {
  const input = { to: 'Mara', subject: '', body: 'Hi' }
  const call: ToolCallPart = { ...asked('p1'), name: 'send_email' }
  const settings = { tools: [writeFile, sendEmail] }
  expect(fitting(call, { ok: true, changed: true, input }, settings)).toEqual({
    ok: false,
    errors: new Map([
      ['subject', expect.stringContaining('Too small')],
      ['to', 'Give one or more mail addresses, separated by commas'],
    ]),
  })
  const { subject, ...incomplete } = input
  expect(
    fitting(call, { ok: true, changed: true, input: { ...incomplete, to: 'm@example.org' } }, settings),
  ).toEqual({
    ok: false,
    errors: new Map([['to', expect.stringContaining('expected string')]]),
  })
  for (const edited of [
    { ok: true, changed: false, input },
    { ok: true, changed: true, input: { ...input, to: 'm@example.org', subject: 'Hi' } },
  ] as const)
    expect(fitting(call, edited, settings)).toBe(edited)
  const unknown = { ok: true, changed: true, input } as const
  expect(fitting({ ...call, name: 'another_tool' }, unknown, settings)).toBe(unknown)
})

test('edit: a key named like a member of every object is a key like any other', () => {
  const input = JSON.parse('{"constructor":"a","toString":"b"}')
  expect(applyDraft(fieldsOf(input, true), {})).toMatchObject({ ok: true, changed: false })
})

test('arguments: a long value is cut, says how much is hidden, and can be shown whole', () => {
  const input = { body: 'x'.repeat(1000), list: ['y'.repeat(1000)] }
  const long = { ...asked('p1'), input }
  expect(requestView(long)?.hidden).toBeGreaterThan(700)
  expect(requestView(long, { expanded: true })?.hidden).toBe(0)
})

test('arguments: an invisible character is written out', () => {
  expect(summaryOf(part({ input: { path: 'a\u202Etxt.exe' } }))).toBe('a⟨U+202E⟩txt.exe')
  const hiding = { ...asked('p1'), input: { path: 'a\u200Bb' } }
  expect(requestView(hiding, { fields: true })?.arguments?.fields[0]?.value.suspicious).toBe(true)
})

test('arguments: while they arrive, a long text is cut and counted', () => {
  expect(beginningsOf({ a: 'x'.repeat(2000), b: 1 })).toEqual({
    a: `${'x'.repeat(600)}… (2,000 characters so far)`,
    b: 1,
  })
})

const part = (over: Partial<ToolCallPart>): ToolCallPart => ({
  type: 'tool-call',
  id: 'c1',
  name: 'delete_file',
  arguments: '{}',
  state: 'approval-requested',
  ...over,
})

const asked = (id: string): PendingApproval => ({
  ...part({}),
  approval: { id, needsApproval: true, options: ['deny', 'once'] },
})

test('words: a decision names its reason kind, changes and scope', () => {
  const approval = { id: 'p', needsApproval: true, options: ['deny', 'once'] } as const
  expect(decisionOf(part({ approval }), [])).toBeUndefined()
  expect(decisionOf(part({ approval: { ...approval, approved: false } }), [])).toBe('You denied this')
  expect(decisionOf(part({ approval: { ...approval, approved: true, input: {} } }), [])).toBe(
    'You approved this with changes',
  )
  expect(decisionOf(part({ approval: { ...approval, approved: true, scope: 'session' } }), [])).toBe(
    'You approved this for the rest of this chat',
  )
})

test('words: after a reload an edited call shows the arguments that ran, or says that it does not', () => {
  const approval = { id: 'p', needsApproval: true, options: ['deny', 'once'] } as const
  const call = part({ state: 'complete', approval })
  const said = (more: { readonly input?: unknown }) => {
    const decided = { decision: 'approve', by: 'person', edited: true, ...more }
    const metadata = { countersign: { decided } }
    const result = { type: 'tool-result', id: 'r', toolCallId: call.id, content: '1', metadata } as const
    const messages = [{ id: 'm', role: 'assistant', parts: [call, result] }] as const
    return [decisionOf(call, messages), effectiveInput(withRecord(call, messages))]
  }
  expect(said({ input: { path: 'gate.txt' } })).toEqual([
    'You approved this with changes',
    { path: 'gate.txt' },
  ])
  expect(said({})).toEqual([
    'You approved this with changes. The arguments shown are those before the changes',
    call.input,
  ])
})

test('words: an answer whose arrival is unknown is not shown as sent', () => {
  const approval = {
    id: 'p',
    needsApproval: true,
    options: ['deny', 'once'],
    approved: true,
    delivery: 'unknown',
  } as const
  expect(standingOf(part({ state: 'approval-responded', approval })).label).toBe('Approved, delivery unknown')
})

test('words: the bar counts what waits, and what of it was set aside', () => {
  expect(pendingWords(1, 0)).toBe('One request is waiting for you')
  expect(pendingWords(3, 2)).toBe('3 requests are waiting for you, 2 set aside')
})

test('phase: every state of a call has its place in the card', () => {
  expect(phaseOf('input-streaming')).toBe('arriving')
  expect(phaseOf('approval-requested')).toBe('asked')
  expect(phaseOf('approval-responded')).toBe('decided')
  expect(phaseOf('cancelled')).toBe('ended')
})

/** What is announced when a chat has become `now`. */
function announced(before: Partial<ChatSnapshot>, now: Partial<ChatSnapshot>): readonly string[] {
  const said: string[] = []
  const { getSnapshot } = new ChatClient({ connection: stream(() => (async function* () {})()) })
  let snapshot = { ...getSnapshot(), ...before }
  let changed = () => {}
  const subscribe = (listener: () => void) => {
    changed = listener
    return () => {}
  }
  announce({ getSnapshot: () => snapshot, subscribe }, (text) => said.push(text))
  snapshot = { ...getSnapshot(), ...now }
  changed()
  return said
}

test('announcer: new requests at once, an answer when it is complete, nothing in between', () => {
  const replying = { isLoading: true }
  const request = { ...replying, pendingApprovals: [asked('p1')] }
  expect(announced(replying, request)).toEqual(['Your approval is needed: delete_file. 1 waiting.'])
  expect(announced(request, request)).toEqual([])
  const asks = { interrupts: [{ id: 'q1', reason: 'input_required', message: 'Which folder?' }] }
  expect(announced({}, asks)).toEqual(['A question for you: Which folder?'])
  expect(announced(asks, asks)).toEqual([])
  const answer: Partial<ChatSnapshot> = {
    messages: [{ id: 'a', role: 'assistant', parts: [{ type: 'text', text: 'Done.' }] }],
  }
  expect(announced(replying, answer)).toEqual(['Answer: Done.'])
  expect(announced(answer, answer)).toEqual([])
})

/** A list of standing approvals whose server answers when it is told to, and ends none. */
function slowGrants() {
  const answers: ((grants: SessionGrant[]) => void)[] = []
  const connection = {
    ...stream(() => (async function* () {})()),
    grants: () => new Promise<SessionGrant[]>((resolve) => answers.push(resolve)),
    revokeGrant: () => Promise.reject(new Error('The server is gone.')),
  }
  const grants = standingGrants(new ChatClient({ connection }))
  grants.subscribe(() => {})
  return { grants, answers }
}

const grant: SessionGrant = {
  id: 'g1',
  threadId: 't1',
  toolName: 'move_file',
  grantedAt: '2026-03-01T10:00:00.000Z',
  expiresAt: '2026-03-02T10:00:00.000Z',
}

test('standing approvals: a list that was asked for earlier and comes later does not count', async () => {
  const { grants, answers } = slowGrants()
  const later = grants.load()
  answers[1]?.([])
  await later
  answers[0]?.([grant])
  await new Promise((resolve) => setTimeout(resolve))
  expect(grants.getSnapshot()).toEqual({ grants: [], problem: undefined })
})

test('standing approvals: one whose end was not confirmed stays listed, also when an earlier list comes', async () => {
  const { grants, answers } = slowGrants()
  const first = grants.load()
  answers[1]?.([grant])
  await first
  const second = grants.load()
  await grants.revoke('g1')
  answers[2]?.([])
  await second
  expect(grants.getSnapshot()).toEqual({ grants: [grant], problem: 'unrevoked' })
})

test('standing approvals: one that stands as before is the same object after another list', async () => {
  const { grants, answers } = slowGrants()
  const first = grants.load()
  answers[1]?.([grant])
  await first
  const again = grants.load()
  answers[2]?.([{ ...grant, id: 'g2' }, { ...grant }])
  await again
  expect(grants.getSnapshot().grants[1]).toBe(grant)
})

test('words: a standing approval names what it is narrowed to, and its day where that is not today', () => {
  expect(grantName(grant)).toBe('move_file')
  expect(grantName({ ...grant, scopeKey: 'a.txt' })).toBe('move_file: a.txt')
  const at = new Date(grant.grantedAt)
  expect(grantedSince(grant, at)).not.toContain('2026')
  expect(grantedSince(grant, new Date(at.getTime() + 48 * 3_600_000))).toContain('2026')
})
