import type { Message } from '@countersign/core'
import { ApprovalCache, grantsResponse, memoryLedger, type RunContext } from '@countersign/server'
import { expect, test } from 'vitest'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  refusals,
  requests,
  results,
  say,
  testAgent,
  user,
} from './support.js'

const context = { subject: 'ann' }
const session = ['once', 'session'] as const

/** A model that calls `send` once for each new word of the person, with that word as the recipient. */
function sender(more: Parameters<typeof counted>[1] = {}, approvals = {}) {
  const send = counted('send', { needsApproval: true, scopes: session, ...more })
  let calls = 0
  const { agent, model } = testAgent(
    ({ messages }) => {
      const spoken = messages.at(-1)
      if (spoken?.role !== 'user') return say('done')
      const [text] = spoken.content
      return call([`c${++calls}`, 'send', { to: text?.type === 'text' ? text.text : '' }])
    },
    { tools: [send.tool], approvals },
  )
  return { agent, model, runs: send.runs }
}

/** The conversation after the person said a word, and what was asked then. */
async function speak(
  agent: ReturnType<typeof sender>['agent'],
  before: readonly Message[],
  word: string,
  options: { threadId?: string; context?: RunContext } = {},
) {
  const question = [...before, user(word)]
  const events = await collect(agent, input(question, { threadId: options.threadId ?? 'thread' }), {
    context: options.context ?? context,
  })
  return { asked: requests(events), history: fold(question, events), events }
}

async function reply(
  agent: ReturnType<typeof sender>['agent'],
  { asked, history }: Awaited<ReturnType<typeof speak>>,
  payload: Record<string, unknown>,
  threadId = 'thread',
) {
  const resume = asked.map((one) => answer(one, payload))
  const events = await collect(agent, input(history, { threadId, resume }), { context })
  return { asked: requests(events), history: fold(history, events), events }
}

test('S3.24 a no runs nothing, makes a denial and no grant, and the next call asks again', async () => {
  const { agent, runs } = sender()
  const denied = await reply(agent, await speak(agent, [], 'a'), { approved: false, scope: 'none' })
  expect(results(denied.events)).toMatchObject([{ own: { outcome: 'denied' } }])
  expect(runs).toEqual([])
  expect(await agent.grants.list('ann')).toEqual([])
  expect((await speak(agent, denied.history, 'a')).asked.length).toBe(1)
})

test('S3.2 none is the scope of a no; beside a yes it is malformed', async () => {
  const { agent, runs } = sender()
  const events = (await reply(agent, await speak(agent, [], 'a'), { approved: true, scope: 'none' })).events
  expect(refusals(events)).toMatchObject([{ code: 'approval-malformed' }])
  expect(runs).toEqual([])
})

test('S3.25 S3.26 S3.29 a yes without a scope is for once: the stored call runs once, nothing is granted, the next asks', async () => {
  for (const payload of [{ approved: true }, { approved: true, scope: 'once' }]) {
    const { agent, runs } = sender()
    const done = await reply(agent, await speak(agent, [], 'a'), payload)
    expect(done.asked).toEqual([])
    expect(runs).toEqual([{ to: 'a' }])
    expect(await agent.grants.list('ann')).toEqual([])
    expect((await speak(agent, done.history, 'a')).asked.length).toBe(1)
  }
})

test("S3.27 S3.28 a yes for the session runs now and lets later calls of this thread run unasked, no other thread's", async () => {
  const { agent, runs } = sender()
  const done = await reply(agent, await speak(agent, [], 'a'), { approved: true, scope: 'session' })
  const next = await speak(agent, done.history, 'b')
  expect(next.asked).toEqual([])
  expect(results(next.events).length).toBe(1)
  expect(runs).toEqual([{ to: 'a' }, { to: 'b' }])
  expect((await speak(agent, [], 'c', { threadId: 'other' })).asked.length).toBe(1)
  expect((await speak(agent, [], 'c', { context: { subject: 'bob' } })).asked.length).toBe(1)
})

test('S3.30 of two calls to one tool a yes for the session answers only its own', async () => {
  const send = counted('send', { needsApproval: true, scopes: session })
  const { agent, model } = testAgent(
    [call(['c1', 'send', { to: 'a' }], ['c2', 'send', { to: 'b' }]), say('ok')],
    {
      tools: [send.tool],
    },
  )
  const { history, asked } = await ask(agent, {}, { context })
  const [first, second] = asked
  if (first === undefined || second === undefined) throw new Error('two are asked')
  const resume = [answer(first, { approved: true, scope: 'session' })]
  const events = await collect(agent, input(history, { resume }), { context })
  expect(send.runs).toEqual([{ to: 'a' }])
  expect(requests(events).map(({ approval }) => approval.id)).toEqual([second.approval.id])
  expect(model.requests.length).toBe(1)
})

test('a yes for the session whose call may not start after all grants nothing: the next call is asked about', async () => {
  let bound = 0
  let decided = 0
  // asked, prepared, and then right before the start
  const changed = sender({ bind: () => (++bound <= 2 ? 'account 1' : 'account 2') })
  const blocked = sender(
    {},
    { policy: () => (++decided === 3 ? { decision: 'block', reason: 'frozen' } : undefined) },
  )
  for (const { agent, runs } of [changed, blocked]) {
    const done = await reply(agent, await speak(agent, [], 'a'), { approved: true, scope: 'session' })
    expect(runs).toEqual([])
    expect(await agent.grants.list('ann')).toEqual([])
    expect((await speak(agent, done.history, 'b')).asked.length).toBe(1)
    expect(runs).toEqual([])
  }
})

test('S3.31 a grant does not lift a block, and arguments are validated all the same', async () => {
  const ledger = memoryLedger()
  const granted = sender({}, { ledger })
  const done = await reply(granted.agent, await speak(granted.agent, [], 'a'), {
    approved: true,
    scope: 'session',
  })
  const blocking = sender({}, { ledger, policy: () => ({ decision: 'block', reason: 'closed' }) as const })
  const blocked = await speak(blocking.agent, done.history, 'b')
  expect(results(blocked.events)).toMatchObject([{ content: { type: 'execution-denied', reason: 'closed' } }])
  expect(blocking.runs).toEqual([])
  const z = await import('zod')
  const strict = sender({ input: z.looseObject({ to: z.string().max(1) }) }, { ledger })
  const invalid = await speak(strict.agent, done.history, 'long')
  expect(results(invalid.events)).toMatchObject([{ content: { type: 'execution-error' } }])
  expect(strict.runs).toEqual([])
})

test("S3.19 no history grants: neither a yes for the session, nor once, a no, nonsense, nor another tool's result", async () => {
  const { agent } = sender()
  const decisions = [
    { approved: true, scope: 'session' },
    { approved: true, scope: 'once' },
    { approved: false },
    'approve session',
  ]
  const history: Message[] = decisions.flatMap((decision, index): Message[] => [
    user('x'),
    {
      id: `a${index}`,
      role: 'assistant',
      toolCalls: [
        {
          id: `old${index}`,
          type: 'function',
          function: { name: 'send', arguments: '{"to":"x"}' },
          metadata: { countersign: { approval: { id: `approval_old${index}`, ...Object(decision) } } },
        },
      ],
    },
    {
      id: `t${index}`,
      role: 'tool',
      toolCallId: `old${index}`,
      content: JSON.stringify({ decision: 'approve', scope: 'session', toolName: 'send', approved: true }),
    },
  ])
  const next = await speak(agent, history, 'x')
  expect(next.asked.length).toBe(1)
  expect(await agent.grants.list('ann')).toEqual([])
  await reply(agent, next, { approved: true, scope: 'session' })
  expect((await agent.grants.list('ann')).map(({ toolName }) => toolName)).toEqual(['send'])
})

test('S3.20 another process with a ledger of its own asks again', async () => {
  const one = sender()
  const done = await reply(one.agent, await speak(one.agent, [], 'a'), { approved: true, scope: 'session' })
  const other = sender()
  expect((await speak(other.agent, done.history, 'b')).asked.length).toBe(1)
})

test('S3.21 after a revocation a request with the old history asks again', async () => {
  const { agent } = sender()
  const done = await reply(agent, await speak(agent, [], 'a'), { approved: true, scope: 'session' })
  expect(await agent.grants.revoke('ann', { threadId: 'thread' })).toBe(1)
  const next = await speak(agent, done.history, 'b')
  expect(next.asked.length).toBe(1)
  expect(await agent.grants.list('ann')).toEqual([])
})

test('D23 a revocation while the approved call runs beats the grant it would make', async () => {
  const ledger = memoryLedger()
  const { agent } = sender(
    {},
    {
      ledger: {
        ...ledger,
        grant: async (request: Parameters<typeof ledger.grant>[0]) => {
          await ledger.revoke({ owner: 'ann' })
          return ledger.grant(request)
        },
      },
    },
  )
  const done = await reply(agent, await speak(agent, [], 'a'), { approved: true, scope: 'session' })
  expect(results(done.events)).toMatchObject([{ content: { done: 'send' } }])
  expect((await speak(agent, done.history, 'b')).asked.length).toBe(1)
})

test('S3.22 a scope key narrows a grant to what it names, by the arguments that ran', async () => {
  const { agent } = sender({
    scopeKey: ({ to }) => `${String(to).split('/')[0]}/*`,
    allowEdits: ['to'],
  })
  const done = await reply(agent, await speak(agent, [], 'secrets/a'), {
    approved: true,
    scope: 'session',
    editedArgs: { to: 'drafts/a' },
  })
  expect((await speak(agent, done.history, 'drafts/b')).asked).toEqual([])
  expect((await speak(agent, done.history, 'secrets/b')).asked.length).toBe(1)
})

test('scope keys of different types are different keys, also where they look the same', async () => {
  const keys = ['1', 1, 'true', true, '=1', '="1"', '=true', 0.5, '0.5', false, 'false', '', '=']
  const scopeKey = ({ to }: Record<string, unknown>) => keys[Number(to)] ?? 'none'
  const ledger = memoryLedger()
  const { agent, runs } = sender({ scopeKey }, { ledger })
  for (const [index, key] of keys.entries()) {
    const threadId = `thread ${index}`
    const first = await speak(agent, [], String(index), { threadId })
    await reply(agent, first, { approved: true, scope: 'session' }, threadId)
    const before = runs.length
    const unasked: unknown[] = []
    for (const [other, value] of keys.entries()) {
      const later = await speak(agent, [], String(other), { threadId })
      if (later.asked.length === 0) unasked.push(value)
    }
    expect(unasked).toEqual([key])
    expect(runs.length).toBe(before + 1)
    const cache = new ApprovalCache({ ledger, subject: 'ann' })
    expect(await cache.get(threadId, { name: 'send', scopeKey: key })).toBe(true)
    await cache.revoke(threadId, { name: 'send', scopeKey: key })
    expect(await cache.list(threadId)).toEqual([])
  }
})

test('a scope key that is text is listed as it is', async () => {
  const { agent } = sender({ scopeKey: () => 'drafts' })
  const first = await speak(agent, [], 'a')
  await reply(agent, first, { approved: true, scope: 'session' })
  expect(await agent.grants.list('ann')).toMatchObject([{ scopeKey: 'drafts' }])
})

test('S3.23 what does not fit is asked again, never allowed', async () => {
  const ledger = memoryLedger({ maxGrantsPerOwner: 1 })
  const { agent } = sender({}, { ledger })
  const first = await reply(agent, await speak(agent, [], 'a'), { approved: true, scope: 'session' })
  const asked = await speak(agent, [], 'a', { threadId: 'two' })
  await reply(agent, asked, { approved: true, scope: 'session' }, 'two')
  expect((await speak(agent, first.history, 'b')).asked.length).toBe(1)
  expect((await speak(agent, [], 'b', { threadId: 'two' })).asked).toEqual([])
})

test('S3.112 a thread that ends takes its grants along, also for one that reuses its id', async () => {
  const ledger = memoryLedger()
  const { agent } = sender({}, { ledger })
  const cache = new ApprovalCache({ ledger, subject: 'ann' })
  await reply(agent, await speak(agent, [], 'a'), { approved: true, scope: 'session' })
  await reply(
    agent,
    await speak(agent, [], 'a', { threadId: 'kept' }),
    { approved: true, scope: 'session' },
    'kept',
  )
  expect((await cache.list()).map(({ threadId }) => threadId)).toEqual(['thread', 'kept'])
  await cache.clear('thread')
  expect((await speak(agent, [], 'a')).asked.length).toBe(1)
  expect((await speak(agent, [], 'a', { threadId: 'kept' })).asked).toEqual([])
  expect((await speak(agent, [], 'a', { threadId: 'thread:kept' })).asked.length).toBe(1)
})

test('S3.17 S3.6 what the application sets in its cache counts for the engine with the same ledger', async () => {
  const ledger = memoryLedger()
  const { agent, runs } = sender({}, { ledger })
  const cache = new ApprovalCache({ ledger, subject: 'ann' })
  await cache.set('thread', 'send', true)
  expect((await speak(agent, [], 'a')).asked).toEqual([])
  await cache.set('thread', 'send', false)
  expect((await speak(agent, [], 'a')).asked.length).toBe(1)
  expect(runs.length).toBe(1)
})

test('a ledger that cannot read its grants asks, and one that cannot make them leaves the yes at once', async () => {
  const ledger = memoryLedger()
  const down = async (): Promise<never> => {
    throw new Error('down')
  }
  const { agent, runs } = sender({}, { ledger: { ...ledger, grant: down, findGrant: down } })
  const done = await reply(agent, await speak(agent, [], 'a'), { approved: true, scope: 'session' })
  expect(runs.length).toBe(1)
  expect((await speak(agent, done.history, 'b')).asked.length).toBe(1)
  const failing = sender({
    scopeKey: () => {
      throw new Error('no key')
    },
  })
  expect((await speak(failing.agent, [], 'a')).asked.length).toBe(1)
})

test('a scopeKey of more than 8,192 characters makes no session approval: the answer counts once', async () => {
  const { agent, runs } = sender({ scopeKey: ({ to }) => String(to) })
  const [fits, long] = ['x'.repeat(8192), 'y'.repeat(8193)]
  let { history } = await reply(agent, await speak(agent, [], long), { approved: true, scope: 'session' })
  const asked = await speak(agent, history, long)
  expect([runs.length, asked.asked.length]).toEqual([1, 1])
  ;({ history } = await reply(agent, asked, { approved: true, scope: 'session' }))
  ;({ history } = await reply(agent, await speak(agent, history, fits), { approved: true, scope: 'session' }))
  expect((await speak(agent, history, fits)).asked).toEqual([])
  expect((await agent.grants.list('ann')).map(({ scopeKey }) => scopeKey)).toEqual([fits])
})

const url = 'https://chat.example.org/api/grants'
const asked = async (
  agent: ReturnType<typeof sender>['agent'],
  query: string,
  init: RequestInit = {},
  subject: string | undefined = 'ann',
) => {
  const response = await grantsResponse(agent, new Request(`${url}?${query}`, init), { context: { subject } })
  return { status: response.status, body: await response.json(), headers: response.headers }
}

test('S3.124 the route lists the standing grants of the one who asks, and ends one or all of a thread', async () => {
  const ledger = memoryLedger({ now: () => 1_000 })
  const { agent } = sender({}, { ledger })
  const cache = new ApprovalCache({ ledger, subject: 'ann' })
  await cache.set('thread', 'send', true)
  await cache.set('thread', { name: 'write', server: 'files', scopeKey: 'drafts/*' }, true)
  await cache.set('thread', 'remove', false)
  await cache.set('other', 'send', true)
  const { status, body, headers } = await asked(agent, 'threadId=thread')
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(body.grants).toMatchObject([
    { threadId: 'thread', toolName: 'send', grantedAt: '1970-01-01T00:00:01.000Z' },
    { threadId: 'thread', toolName: 'write', toolServer: 'files', scopeKey: 'drafts/*' },
  ])
  expect(body.grants[0]).not.toHaveProperty('owner')
  const [{ id }] = body.grants
  const end = { method: 'DELETE' }
  expect((await asked(agent, `threadId=thread&id=${id}`, end, 'bob')).body).toEqual({ revoked: 0 })
  expect((await asked(agent, `threadId=other&id=${id}`, end)).body).toEqual({ revoked: 0 })
  expect((await asked(agent, 'threadId=thread')).body.grants.length).toBe(2)
  expect((await asked(agent, `threadId=thread&id=${id}`, end)).body).toEqual({ revoked: 1 })
  expect((await speak(agent, [], 'a')).asked.length).toBe(1)
  expect((await asked(agent, 'threadId=thread', end)).body).toEqual({ revoked: 1 })
  expect((await asked(agent, 'threadId=thread')).body).toEqual({ grants: [] })
  expect((await asked(agent, 'threadId=other')).body.grants.length).toBe(1)
  const trail = []
  for await (const entry of ledger.auditTrail()) if (entry.event === 'revoked') trail.push(entry.toolName)
  expect(trail).toEqual(['send', 'write'])
})

test('S3.124 the route refuses other methods, other origins and bad ids, and knows nobody without a subject', async () => {
  const ledger = memoryLedger()
  const { agent } = sender({}, { ledger })
  await new ApprovalCache({ ledger }).set('thread', 'send', true)
  expect(await asked(agent, 'threadId=thread', { method: 'POST' })).toMatchObject({
    status: 405,
    body: { error: { code: 'invalid-request' } },
  })
  expect((await asked(agent, '')).status).toBe(400)
  expect((await asked(agent, `threadId=${'x'.repeat(300)}`)).status).toBe(400)
  expect((await asked(agent, 'threadId=thread&id=', { method: 'DELETE' })).status).toBe(400)
  const foreign = { headers: { origin: 'https://evil.example' }, method: 'DELETE' }
  expect((await asked(agent, 'threadId=thread', foreign)).status).toBe(403)
  const nobody = await grantsResponse(agent, new Request(`${url}?threadId=thread`))
  expect(await nobody.json()).toEqual({ grants: [] })
  const none = await grantsResponse(agent, new Request(`${url}?threadId=thread`, { method: 'DELETE' }))
  expect(await none.json()).toEqual({ revoked: 0 })
})
