import { expect, test } from 'vitest'
import type { FinishedCall, Outcome, Turn } from '../src/conversation.js'
import { planNext } from '../src/plans.js'

const done = (output: unknown): Outcome => ({ kind: 'done', output })
const denied = (reason?: string): Outcome => ({ kind: 'denied', reason })

const logs = done({
  folder: 'logs',
  files: [
    { path: 'logs/app.log', bytes: 100, daysOld: 0 },
    { path: 'logs/app.2.log', bytes: 100, daysOld: 21 },
    { path: 'logs/app.3.log', bytes: 1500, daysOld: 35 },
  ],
})

/** Plays a turn: what is asked for gets the outcomes given, in order; the actions of all steps come back. */
function play(request: string, outcomes: Outcome[][], earlier: Turn[] = []) {
  const steps: FinishedCall[][] = []
  const actions = [planNext([...earlier, { request, steps, isAnswered: false }])]
  for (const step of outcomes) {
    const calls = actions.at(-1)?.calls ?? []
    expect(calls, 'as many outcomes as calls').toHaveLength(step.length)
    steps.push(calls.map((call, index) => ({ ...call, outcome: step[index] ?? { kind: 'cancelled' } })))
    actions.push(
      planNext([...earlier, { request, steps: steps.map((calls) => [...calls]), isAnswered: false }]),
    )
  }
  return { actions, turn: { request, steps, isAnswered: false } satisfies Turn }
}

const lastOf = ({ actions }: ReturnType<typeof play>) => actions.at(-1) ?? { text: '', calls: [] }

test('the same conversation leads to the same action', () => {
  const turns = [{ request: 'Tidy up the logs', steps: [], isAnswered: false }]
  expect(planNext(turns)).toEqual(planNext(turns))
})

test('tidying lists the logs, then asks for every old one at once', () => {
  const { actions } = play('tidy up the logs', [[logs]])
  expect(actions.map((action) => action.calls)).toEqual([
    [{ name: 'list_files', input: { folder: 'logs' } }],
    [
      { name: 'delete_file', input: { path: 'logs/app.2.log' } },
      { name: 'delete_file', input: { path: 'logs/app.3.log' } },
    ],
  ])
})

test('tidying says so when no log is old', () => {
  const young = done({ files: [{ path: 'logs/app.log', bytes: 1, daysOld: 1 }] })
  expect(lastOf(play('tidy up the logs', [[young]]))).toMatchObject({
    calls: [],
    text: expect.stringMatching(/Nothing to tidy up/),
  })
})

test('after the deletions the mail tells what was deleted, what was kept and why', () => {
  const request = 'Tidy up the logs, then mail the team a summary'
  const played = play(request, [[logs], [done({ bytes: 100 }), denied('the audit needs it')]])
  const { text, calls } = lastOf(played)
  expect(text).toContain('Deleted logs/app.2.log (100 bytes).')
  expect(text).toContain('Kept logs/app.3.log, as you decided: “the audit needs it”.')
  expect(calls).toHaveLength(1)
  expect(calls[0]).toMatchObject({ name: 'send_email', input: { to: 'team@example.org' } })
  expect(calls[0]?.input.body).toContain('Deleted logs/app.2.log')
  expect(calls[0]?.input.body).toContain('the audit needs it')
})

test('what was said before the last calls is not said again', () => {
  const { actions } = play('Tidy up the logs', [[logs], [done({ bytes: 1 }), done({ bytes: 1 })]])
  expect(actions[1]?.text).not.toContain('Let me look at the logs first')
  expect(actions[2]?.text).not.toContain('older than two weeks')
})

test('the answer names the mail as it was sent, not as it was proposed', () => {
  const sent = done({ to: 'mara@example.org', subject: 'Logs', body: 'x', file: 'outbox/1.eml' })
  const played = play('mail the team "The logs are tidy."', [[sent]])
  expect(lastOf(played).text).toBe('Sent “Logs” to mara@example.org; it is in outbox/1.eml.')
})

test('a denied mail is acknowledged with the reason', () => {
  const { text, calls } = lastOf(play('mail the team "Hello."', [[denied('not on a Friday')]]))
  expect(text).toBe('Did not send the mail to team@example.org, as you decided: “not on a Friday”.')
  expect(calls).toEqual([])
})

test('a denial without a reason invents none', () => {
  expect(lastOf(play('delete notes.txt', [[denied()]])).text).toBe('Kept notes.txt, as you decided.')
})

test('a failed tool is told with its error', () => {
  const failed: Outcome = { kind: 'failed', message: 'There is no nope.txt in the workspace.' }
  expect(lastOf(play('delete nope.txt', [[failed]])).text).toBe(
    'Could not delete nope.txt: There is no nope.txt in the workspace.',
  )
})

test('requests that were withdrawn are told at the beginning of the next turn', () => {
  const { turn } = play('delete notes.txt', [[{ kind: 'cancelled' }]])
  expect(planNext([turn, { request: 'help', steps: [], isAnswered: false }]).text).toMatch(
    /^Kept notes\.txt: the request was withdrawn\./,
  )
})

test('what the last turn has told already is not told again', () => {
  const { turn } = play('delete notes.txt', [[{ kind: 'cancelled' }]])
  const text = planNext([
    { ...turn, isAnswered: true },
    { request: 'help', steps: [], isAnswered: false },
  ]).text
  expect(text).toMatch(/^I am the demo planner/)
})

test('a refused answer is not called a withdrawn request', () => {
  const refused = play('delete notes.txt', [[{ kind: 'cancelled', code: 'approval-stale' }]])
  expect(lastOf(refused).text).toBe('Kept notes.txt: the answer could not be accepted (approval-stale).')
  const expired = play('delete notes.txt', [[{ kind: 'cancelled', code: 'approval-expired' }]])
  expect(lastOf(expired).text).toBe('Kept notes.txt: the request expired.')
})

test('a pattern is matched against the files there are', () => {
  const all = done({
    files: [
      { path: 'logs/a.log', bytes: 1, daysOld: 1 },
      { path: 'logs/b.txt', bytes: 1, daysOld: 1 },
    ],
  })
  expect(lastOf(play('delete logs/*.log', [[all]])).calls).toEqual([
    { name: 'delete_file', input: { path: 'logs/a.log' } },
  ])
  expect(lastOf(play('delete tmp/*', [[all]]))).toMatchObject({ calls: [], text: 'No file matches tmp/*.' })
})

test('a summary of an earlier turn needs no second look', () => {
  const { turn } = play('delete notes.txt', [[done({ bytes: 12 })]])
  const { calls } = planNext([turn, { request: 'mail the team a summary', steps: [], isAnswered: false }])
  expect(calls[0]?.input.body).toContain('Deleted notes.txt (12 bytes).')
})

test('a summary where nothing was changed lists the files', () => {
  const played = play('mail the team a summary', [[logs]])
  expect(played.actions[0]?.calls[0]?.name).toBe('list_files')
  expect(lastOf(played).calls[0]?.input.body).toContain('logs/app.log')
})

test('an unknown request gets examples and no call', () => {
  expect(planNext([{ request: 'sing', steps: [], isAnswered: false }])).toMatchObject({
    calls: [],
    text: expect.stringMatching(/“sing”[\s\S]*Tidy up the logs/),
  })
})

test('help says that it is not a language model', () => {
  expect(planNext([{ request: 'help', steps: [], isAnswered: false }]).text).toContain('not a language model')
})

test('F12 a pattern of many stars is matched name by name', () => {
  const files = done({
    files: [
      { path: `logs/${'a'.repeat(60)}.log`, bytes: 1, daysOld: 1 },
      { path: 'logs/b.log', bytes: 1, daysOld: 1 },
    ],
  })
  const asked = (request: string) => lastOf(play(request, [[files]])).calls.map(({ input }) => input.path)
  expect(asked(`delete logs/${'*a'.repeat(40)}*b`)).toEqual([])
  expect(asked('delete logs/*.log')).toHaveLength(2)
  expect(asked('delete logs/*a*a.log')).toEqual([`logs/${'a'.repeat(60)}.log`])
  expect(asked('delete *.log')).toEqual([])
  expect(asked('delete logs/b.log*b.log')).toEqual([])
})
