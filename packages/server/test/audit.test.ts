import { sanitizeArgs } from '@countersign/core'
import { type AuditEntry, memoryLedger, statelessLedger } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { answer, ask, call, collect, counted, fold, input, results, say, testAgent, user } from './support.js'

const context = { subject: 'ann' }
/** One moment for all, since the times of a request are part of what was shown. */
const now = Date.now()

/** An agent whose tool `send` asks, and the lines of its trail. */
function audited(more: Parameters<typeof counted>[1] = {}, approvals: object = {}) {
  const lines: AuditEntry[] = []
  const { tool, runs } = counted('send', { needsApproval: true, scopes: ['once', 'session'], ...more })
  let made = 0
  const { agent } = testAgent(
    ({ messages }) =>
      messages.at(-1)?.role === 'user'
        ? call([`c${++made}`, 'send', { to: 'bob', apiKey: 'k-1' }])
        : say('ok'),
    {
      now: () => now,
      tools: [tool],
      approvals: { onAudit: (entry: AuditEntry) => void lines.push(entry), ...approvals },
    },
  )
  const words = () =>
    lines.map(({ event, via, decision, outcome, code }) =>
      [event, via, decision, outcome, code].filter(Boolean).join(' '),
    )
  return { agent, runs, lines, words }
}

test('one line each for proposal, decision, execution and outcome: to the hook and to the iterable alike', async () => {
  const ledger = memoryLedger()
  const { agent, lines, words } = audited({}, { ledger })
  const { history, first } = await ask(agent, {}, { context })
  const resume = [answer(first, { approved: true })]
  await collect(agent, input(history, { resume }), { context })
  expect(words()).toEqual(['issued', 'claimed resume approve', 'started', 'completed result'])
  await collect(agent, input(history, { resume }), { context })
  expect(words().length).toBe(4)
  const trail = []
  for await (const entry of ledger.auditTrail()) trail.push(entry)
  expect(trail).toEqual(lines)
  expect(new Set(lines.map(({ approvalId }) => approvalId))).toEqual(new Set([first.approval.id]))
  expect(new Set(lines.map(({ ownerHash }) => ownerHash)).size).toBe(1)
  expect(lines[0]?.argumentsHash).toBe(lines[1]?.argumentsHash)
})

test('the hook gets a copy: what it changes is not written', async () => {
  const ledger = memoryLedger()
  const onAudit = (entry: AuditEntry) => void Object.assign(entry, { event: 'refused', decision: 'deny' })
  const { agent } = audited({}, { ledger, onAudit })
  await ask(agent, {}, { context })
  for await (const entry of ledger.auditTrail()) expect(entry).toMatchObject({ event: 'issued' })
})

test('a denial, a contradiction and a message in the place of an answer have their lines', async () => {
  const denied = audited()
  const { history, first } = await ask(denied.agent, {}, { context })
  await collect(denied.agent, input(history, { resume: [answer(first, { approved: false })] }), { context })
  await collect(denied.agent, input(history, { resume: [answer(first, { approved: true })] }), { context })
  expect(denied.words()).toEqual([
    'issued',
    'claimed resume deny',
    'completed denied',
    'refused approval-conflict',
  ])
  const moved = audited()
  const asked = await ask(moved.agent, {}, { context })
  await collect(moved.agent, input([...asked.history, user('never mind')]), { context })
  expect(moved.words()).toEqual(['issued', 'claimed server cancel', 'completed cancelled', 'issued'])
})

test('a call that a session approval lets run has its decision, execution and outcome too', async () => {
  const { agent, runs, words } = audited()
  const { history, first } = await ask(agent, {}, { context })
  const resume = [answer(first, { approved: true, scope: 'session' })]
  const answered = await collect(agent, input(history, { resume }), { context })
  const before = words().length
  await collect(agent, input([...fold(history, answered), user('again')]), { context })
  expect(words().slice(before)).toEqual(['claimed grant approve', 'started grant', 'completed grant result'])
  expect(runs.length).toBe(2)
})

test('the hash of what was shown is that of the whole request: the same for the same, another for another message', async () => {
  const hashOf = async (message: string) => {
    const { agent, lines } = audited({ message }, { generateId: () => 'approval_a' })
    await ask(agent, { runId: 'run' }, { context })
    return lines[0]?.shownHash
  }
  const hash = await hashOf('Send it?')
  expect(hash).toMatch(/^[A-Za-z0-9_-]{43}$/)
  expect([(await hashOf('Send it?')) === hash, (await hashOf('Read it?')) === hash]).toEqual([true, false])
})

test('arguments are in no line unless masked: not those that a schema changed either', async () => {
  const schema = z.looseObject({}).transform((given) => ({ ...given, at: 'noon' }))
  const plain = audited({ input: schema })
  await ask(plain.agent, {}, { context })
  expect(plain.lines[0]?.view).toBeUndefined()
  expect(JSON.stringify(plain.lines)).not.toMatch(/bob|k-1|noon|cs1\./)
  const masked = audited({ redact: (given: unknown) => sanitizeArgs(given) })
  const { first } = await ask(masked.agent, {}, { context })
  expect(masked.lines[0]?.view).toEqual(first.approval.display)
  expect(JSON.stringify(masked.lines)).not.toMatch(/k-1|cs1\./)
})

test('a hook that fails, or a ledger without a trail, stops nothing', async () => {
  const failing = audited(
    {},
    {
      onAudit: () => {
        throw new Error('disk full')
      },
    },
  )
  const { history, first } = await ask(failing.agent, {}, { context })
  const events = await collect(
    failing.agent,
    input(history, { resume: [answer(first, { approved: true })] }),
    { context },
  )
  expect([results(events).length, failing.runs.length]).toEqual([1, 1])
  const stateless = audited({}, { ledger: statelessLedger({ acceptReplay: true }) })
  await ask(stateless.agent, {}, { context })
  expect(stateless.words()).toEqual(['issued'])
})
