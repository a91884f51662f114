import { argumentFields, ChatClient, stream } from '@countersign/client'
import {
  announce,
  answerName,
  applyDraft,
  badgedTitle,
  beginningsOf,
  decisionOf,
  effectiveInput,
  fieldsOf,
  fitting,
  grantedSince,
  grantName,
  grantUse,
  limitsOf,
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
import { type Prose, type ProseElement, parseMarkdown } from '../../examples/page/src/markdown.js'
import { sendEmail, writeFile } from '../../examples/page/src/tools.js'

const seed = 20261

/** The text of Markdown without its marks. */
const textOf = (pieces: readonly Prose[]): string =>
  pieces.map((piece) => (typeof piece === 'string' ? piece : textOf(piece.children))).join('')

const element = (tag: string, ...children: readonly unknown[]) => ({ tag, attributes: {}, children })

test('markdown: paragraphs, lists, headings and code are told apart', () => {
  expect(parseMarkdown('# Title\nOne\ntwo\n\n- a\n- b\n\n2. c\n\n```\n- code\n```\nend')).toEqual([
    element('h4', 'Title'),
    element('p', 'One\ntwo'),
    element('ul', element('li', 'a'), element('li', 'b')),
    { ...element('ol', element('li', 'c')), attributes: { start: '2' } },
    element('pre', '- code'),
    element('p', 'end'),
  ])
})

test('markdown: tables are tables, in a box that scrolls', () => {
  const head = (text: string) => ({ ...element('th', text), attributes: { scope: 'col' } })
  const table = element(
    'table',
    element('thead', element('tr', head('a'), head('b'))),
    element('tbody', element('tr', element('td', '1'), element('td', element('code', 'x')))),
  )
  expect(parseMarkdown('| a | b |\n| - | -: |\n| 1 | `x` |')).toEqual([
    { ...element('div', table), attributes: { tabIndex: 0 } },
  ])
})

test('markdown: a fence that is still open is code already', () => {
  expect(parseMarkdown('```\n<b>x')).toEqual([element('pre', '<b>x')])
})

test('markdown: inline pieces put together are the text without its marks, and a file is no link', () => {
  expect(parseMarkdown('read `todo.md` **now**, todo.md, 2 ** 3 and `')).toEqual([
    element(
      'p',
      'read ',
      element('code', 'todo.md'),
      ' ',
      element('strong', 'now'),
      ', todo.md, 2 ** 3 and `',
    ),
  ])
})

test('markdown: a link goes to the web or to a mail address, in a tab of its own, and says where', () => {
  const links = (text: string) => linksIn(parseMarkdown(text)).map(({ attributes }) => attributes.href)
  expect(links('[a](https://example.org/a) http://example.org/b [c](mailto:ada@example.org)')).toEqual([
    'https://example.org/a',
    'http://example.org/b',
    'mailto:ada@example.org',
  ])
  const unsafe = [
    'javascript:alert(1)',
    'JAVASCRIPT:alert(1)',
    '&#106;avascript:alert(1)',
    'data:text/html,x',
  ]
  for (const url of [
    ...unsafe,
    'vbscript:x',
    'file:///etc/passwd',
    '/logout',
    '//example.org',
    'java\tscript:x',
  ])
    for (const text of [`[a](${url})`, `<${url}>`, `[a][b]\n\n[b]: ${url}`])
      expect(links(text), text).toEqual([])
  const [link] = linksIn(parseMarkdown('[safe](https://example.org)'))
  expect(link?.attributes).toEqual({
    href: 'https://example.org',
    title: 'https://example.org',
    rel: 'noopener noreferrer',
    target: '_blank',
  })
})

const linksIn = (pieces: readonly Prose[]): ProseElement[] =>
  pieces.flatMap((piece) =>
    typeof piece === 'string' ? [] : [...(piece.tag === 'a' ? [piece] : []), ...linksIn(piece.children)],
  )

test('markdown: markup is text, and an image is no image', () => {
  const text = '<img src=x onerror=alert(1)> <script>alert(1)</script> ![i](https://example.org/i.png)'
  const pieces = parseMarkdown(`${text}\n\n<div onclick="x">`)
  expect(textOf(pieces)).toContain('<img src=x onerror=alert(1)> <script>alert(1)</script> !i')
  expect(textOf(pieces)).toContain('<div onclick="x">')
})

test('markdown: no visible character is lost, whatever the text', () => {
  const visible = (text: string) => text.replace(/\s/g, '')
  const letters = fc.string({ unit: fc.constantFrom('a', '<', '&', '\n', ' ', '"', 'é') })
  fc.assert(
    fc.property(letters, (text) => {
      expect(visible(textOf(parseMarkdown(text)))).toBe(visible(text))
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

test('F44 arguments that arrive: a long text is cut and counted, and the count itself is not cut', () => {
  const beginnings = beginningsOf({ a: 'x'.repeat(2000), b: 1 })
  expect(beginnings).toEqual({ a: `${'x'.repeat(500)}… (2,000 characters so far)`, b: 1 })
  expect(argumentFields(beginnings, limitsOf(false)).hidden).toBe(0)
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

test('words: after a reload an edited call shows its arguments in the order of the call, and none that were taken out', () => {
  const approval = { id: 'p', needsApproval: true, options: ['deny', 'once'] } as const
  const input = { to: 'ann', subject: 's', cc: 'bob', body: 'b' }
  const call = part({ state: 'complete', approval, input })
  const sorted = JSON.parse('{"__proto__":"p","body":"b","subject":"Edited","to":"ann"}')
  const metadata = {
    countersign: { decided: { decision: 'approve', by: 'person', edited: true, input: sorted } },
  }
  const result = { type: 'tool-result', id: 'r', toolCallId: call.id, content: '1', metadata } as const
  const messages = [{ id: 'm', role: 'assistant', parts: [call, result] }] as const
  expect(summaryOf(withRecord(call, messages))).toBe('ann, Edited, b, p')
})

test('words: after a reload a denied call shows the reason, which only its result has', () => {
  const approval = { id: 'p', needsApproval: true, options: ['deny', 'once'] } as const
  const call = part({ state: 'denied', approval, error: { message: 'keep it' } })
  const metadata = { countersign: { decided: { decision: 'deny', by: 'person' } } }
  const result = { type: 'tool-result', id: 'r', toolCallId: call.id, content: '{}', metadata } as const
  const messages = [{ id: 'm', role: 'assistant', parts: [call, result] }] as const
  expect(withRecord(call, messages).approval).toMatchObject({ approved: false, reason: 'keep it' })
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

test('words: the title of the page counts the requests and the questions that wait', () => {
  const { getSnapshot } = new ChatClient({ connection: stream(() => (async function* () {})()) })
  expect(badgedTitle('Chat', getSnapshot())).toBe('Chat')
  const interrupts = [{ id: 'q1', reason: 'input_required' }]
  const waiting = { ...getSnapshot(), pendingApprovals: [asked('p1'), asked('p2')], interrupts }
  expect(badgedTitle('Chat', waiting)).toBe('(3) Chat')
})

test('F43 words: the names of two buttons differ with what they answer, and show no more than the server does', () => {
  const at = (path: string) => part({ input: { path } })
  expect(answerName('Approve once', at('a.txt'))).toBe('Approve once: delete_file a.txt')
  expect(answerName('Approve once', at('a\u202E.txt'))).toBe('Approve once: delete_file a⟨U+202E⟩.txt')
  expect(answerName('Deny', part({ input: {} }))).toBe('Deny: delete_file')
  expect(answerName('Deny', at('x'.repeat(200))).length).toBeLessThan(100)
  const { approval } = asked('p1')
  const masked = { ...at('secret'), approval: { ...approval, display: { path: '•••' } } }
  expect(answerName('Deny', masked)).toBe('Deny: delete_file •••')
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

test('F43 announcer: a request that expires is announced', () => {
  const approval = { ...asked('p1').approval, problem: 'approval-expired' } as const
  const over = part({ state: 'cancelled', approval })
  const messages = [{ id: 'm', role: 'assistant', parts: [over] }] as const
  expect(announced({ pendingApprovals: [asked('p1')] }, { messages })).toEqual([
    'Expired without an answer: delete_file.',
  ])
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

test('F44 words: a standing approval names what it is narrowed to, how long it lasts, and its day where that is not today', () => {
  expect(grantUse(grant, new Date(grant.grantedAt))).toMatch(/^until .*2026/)
  expect(grantName(grant)).toBe('move_file')
  expect(grantName({ ...grant, scopeKey: 'a.txt' })).toBe('move_file: a.txt')
  const at = new Date(grant.grantedAt)
  expect(grantedSince(grant, at)).not.toContain('2026')
  expect(grantedSince(grant, new Date(at.getTime() + 48 * 3_600_000))).toContain('2026')
})
