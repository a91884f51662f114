import type { Message } from '@countersign/core'
import { type AgentOptions, ApprovalCache, type Ledger, memoryLedger } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { answer, call, collect, counted, fold, input, requests, say, testAgent, user } from './support.js'

// A session approval counts for the tool that the user was asked about, and for no other version of it.

type Terms = Parameters<typeof counted>[1]

const context = { subject: 'ann' }
const session: Terms = { needsApproval: true, scopes: ['once', 'session'], version: '1' }
const schema = z.looseObject({ to: z.string() })
const widened = z.looseObject({ to: z.string(), all: z.boolean().default(true) })
const mandates = () => [{ id: 'acme', label: 'Send to acme', where: [{ field: 'to', is: 'acme' }] }]

let calls = 0

/** One deployment of the tool `send`, which the model calls whenever the user says something. */
function deploy(ledger: Ledger, terms: Terms, more: Partial<AgentOptions> = {}) {
  const send = counted('send', { input: schema, ...session, ...terms } as Terms)
  const { agent } = testAgent(
    ({ messages }) =>
      messages.at(-1)?.role === 'user' ? call([`c${++calls}`, 'send', { to: 'acme' }]) : say('done'),
    { tools: [send.tool], approvals: { ledger }, ...more },
  )
  const run = async (history: readonly Message[], resume: ReturnType<typeof answer>[] = []) => {
    const events = await collect(agent, input(history, { resume }), { context })
    return { asked: requests(events), history: fold(history, events) }
  }
  return {
    runs: send.runs,
    answer: run,
    listed: async () => (await agent.grants.list('ann')).length,
    speak: () => run([user('go')]),
    approve: ({ asked, history }: Awaited<ReturnType<typeof run>>, scope = 'session') =>
      run(
        history,
        asked.map((one) => answer(one, { approved: true, scope })),
      ),
  }
}

test.each<readonly [string, Terms]>([
  ['another version', { version: '2' }],
  ['no version any more', { version: undefined }],
  ['another schema', { input: widened } as Terms],
  ['no session approvals any more', { scopes: ['once'] }],
  ['mandates in their place', { scopes: undefined, mandates }],
  ['facts that an approval depends on', { bind: () => 'account' }],
  ['a scopeKey, even if that returns its name', { scopeKey: () => 'send' }],
  ['a preview', { preview: () => ({ kind: 'text', text: 'sends it' }) }],
])('a session approval does not count, and is not listed, once its tool has %s', async (_, terms) => {
  const ledger = memoryLedger()
  const before = deploy(ledger, {})
  await before.approve(await before.speak())
  const after = deploy(ledger, terms)
  expect((await after.speak()).asked.length).toBe(1)
  expect([after.runs, await after.listed()]).toEqual([[], 0])

  // As it was: nothing was lost.
  const back = deploy(ledger, { description: 'In other words' })
  expect((await back.speak()).asked).toEqual([])
  expect([back.runs.length, await back.listed()]).toEqual([1, 1])
})

test('a session approval for one scopeKey counts for no call once its tool has no scopeKey any more', async () => {
  const ledger = memoryLedger()
  const before = deploy(ledger, { scopeKey: () => 'send' })
  await before.approve(await before.speak())
  const after = deploy(ledger, {})
  expect((await after.speak()).asked.length).toBe(1)
  expect([after.runs, await after.listed()]).toEqual([[], 0])
})

test('a session approval of a request from another version does not count for the tool as it is now', async () => {
  const ledger = memoryLedger()
  const asked = await deploy(ledger, {}).speak()
  const after = deploy(ledger, { version: '2' })
  await after.approve(asked)
  expect(after.runs.length).toBe(1)
  expect((await after.speak()).asked.length).toBe(1)
  expect([after.runs.length, await after.listed()]).toEqual([1, 0])
})

test('a session approval that was stored without its tool is asked about again', async () => {
  const ledger = memoryLedger()
  const { speak, listed, runs } = deploy(ledger, {})
  await ledger.grant({ owner: 'ann', threadId: 'thread', toolName: 'send', scopeKey: 'send', approved: true })
  expect((await speak()).asked.length).toBe(1)
  expect([runs, await listed()]).toEqual([[], 0])
})

test('what the application sets in its cache counts for any version of the tool', async () => {
  const ledger = memoryLedger()
  await new ApprovalCache({ ledger, subject: 'ann' }).set('thread', 'send', true)
  for (const version of ['1', '2']) {
    const { speak, listed } = deploy(ledger, { version, scopes: ['once'] })
    expect((await speak()).asked).toEqual([])
    expect(await listed()).toBe(1)
  }
})

test('a mandate of another version of its tool is not listed, and one of a tool of another agent is', async () => {
  const ledger = memoryLedger()
  const before = deploy(ledger, { mandates })
  const { asked, history } = await before.speak()
  const resume = asked.map((one) => answer(one, { approved: true, mandate: 'acme' }))
  expect(resume.length).toBe(1)
  await before.answer(history, resume)
  expect(await before.listed()).toBe(1)
  expect(await deploy(ledger, { mandates, version: '2' }).listed()).toBe(0)
  expect(await deploy(ledger, {}, { tools: [] }).listed()).toBe(1)
})

test('a tool whose schema has no canonical text offers no session approval, with one warning, and can be approved', async () => {
  class Schema {
    readonly type = 'object'
  }
  const warned: string[] = []
  const terms = { parameters: new Schema() } as unknown as Terms
  const more = { warn: (message: string) => void warned.push(message) }
  const { speak, approve, runs, listed } = deploy(memoryLedger(), terms, more)
  for (const count of [1, 2]) {
    const asked = await speak()
    expect(asked.asked.map(({ approval }) => approval.options)).toEqual([['deny', 'once']])
    await approve(asked, 'once')
    expect(runs.length).toBe(count)
  }
  expect(await listed()).toBe(0)
  expect(warned.filter((message) => message.includes('send'))).toHaveLength(1)
})

test('a tool with mandates whose schema has no canonical text offers none, and can be approved', async () => {
  const parameters = { type: 'object', description: '\ud800' }
  const { speak, approve, runs } = deploy(memoryLedger(), { mandates, parameters, scopes: ['once'] } as Terms)
  const asked = await speak()
  expect(asked.asked.map(({ approval }) => approval.mandates)).toEqual([undefined])
  await approve(asked, 'once')
  expect(runs.length).toBe(1)
})
