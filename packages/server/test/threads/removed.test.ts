import {
  ApprovalRequiredError,
  type AuditEntry,
  createAgent,
  handleChat,
  type Ledger,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  scriptedModel,
  threadResponse,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { call, counted, SECRET, say } from '../support.js'

// A conversation that is removed leaves no open approval request behind: nobody could answer it, and one that never expires would stay for ever.

const context = { subject: 'ann' }

function setUp(
  change: (ledger: Ledger) => Partial<Ledger> = () => ({}),
  terms: Parameters<typeof counted>[1] = {},
) {
  let now = 1_700_000_000_000
  let calls = 0
  const memory = memoryLedger({ now: () => now, maxRecords: 4, maxRecordsPerOwner: 4 })
  const ledger = { ...memory, ...change(memory) }
  const asks = { needsApproval: true, scopes: ['once', 'session'], expiresIn: 'never' } as const
  const pay = counted('pay', { ...asks, ...terms })
  const audited: AuditEntry[] = []
  const agent = createAgent({
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'user' ? call([`c${++calls}`, 'pay', {}]) : say('done'),
    ),
    tools: [pay.tool],
    now: () => now,
    warn: () => {},
    threads: memoryThreads({ now: () => now }),
    runLog: memoryRunLog(),
    approvals: { ledger, secret: SECRET, onAudit: (entry) => void audited.push(entry) },
  })
  const post = async (threadId: string, more: object) => {
    const body = JSON.stringify({ threadId, messages: [], tools: [], context: [], ...more })
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://test/', { method: 'POST', headers, body })
    return (await handleChat(agent, request, { context })).text()
  }
  const open = (threadId: string) => {
    const messages = [{ id: `m-${threadId}`, role: 'user', content: 'Pay' }]
    return post(threadId, { runId: `run-${threadId}`, messages })
  }
  const remove = async (threadId: string) =>
    (
      await threadResponse(agent, new Request(`http://test/?threadId=${threadId}`, { method: 'DELETE' }), {
        context,
      })
    ).status
  const phases = async (threadId: string) =>
    (await memory.unsettled('ann', threadId)).map(({ state }) => state.phase)
  return { agent, ledger: memory, audited, post, open, remove, phases, pass: (ms: number) => (now += ms) }
}

test('removing a conversation cancels its open approval requests, and those of no other', async () => {
  const { agent, ledger, audited, open, remove, phases } = setUp()
  for (const threadId of ['route', 'code', 'other']) await open(threadId)
  const [entry] = await ledger.unsettled('ann', 'route')
  expect(await remove('route')).toBe(204)
  await agent.removeThread({ threadId: 'code' }, context)
  await agent.removeThread({ threadId: 'other' }, { subject: 'bob' })
  expect([await phases('route'), await phases('code'), await phases('other')]).toEqual([[], [], ['issued']])
  expect(entry && (await ledger.lookup(entry.record))?.state).toMatchObject({
    answer: { decision: 'cancel', by: 'server', at: expect.any(Number) },
    outcome: { type: 'cancelled' },
  })
  const { toolCallId, approvalId } = entry?.record ?? {}
  expect(audited.filter((one) => one.approvalId === approvalId)).toMatchObject([
    { event: 'issued' },
    { event: 'claimed', decision: 'cancel', via: 'server', toolCallId },
    { event: 'completed', outcome: 'cancelled' },
  ])
})

test('a request that never expires is dropped a week after its conversation was removed', async () => {
  const { ledger, open, remove, pass } = setUp()
  await open('removed')
  const [entry] = await ledger.unsettled('ann', 'removed')
  await remove('removed')
  pass(7 * 24 * 60 * 60 * 1000)
  for (const threadId of ['a', 'b', 'c', 'd']) await open(threadId)
  expect(entry && (await ledger.lookup(entry.record))).toBeUndefined()
})

test('a conversation can be removed again, and must be while the ledger could not be reached', async () => {
  let isDown = true
  const { remove, open, phases } = setUp((ledger) => ({
    unsettled: (...given) => (isDown ? Promise.reject(new Error('lost')) : ledger.unsettled(...given)),
  }))
  isDown = false
  await open('t')
  isDown = true
  expect(await remove('t')).toBe(503)
  expect(await phases('t')).toEqual(['issued'])
  isDown = false
  expect(await remove('t')).toBe(204)
  expect(await phases('t')).toEqual([])
})

test('a call that runs while its conversation is removed is left alone', async () => {
  const { ledger, open, remove, phases } = setUp()
  await open('t')
  const [entry] = await ledger.unsettled('ann', 't')
  if (entry === undefined) throw new Error('nothing was asked')
  await ledger.claim(entry.record, { decision: 'approve', scope: 'once' }, 'holder', 1000)
  expect(await remove('t')).toBe(204)
  expect(await phases('t')).toEqual(['claimed'])
})

test('an answer for the session that is carried out while its conversation is removed leaves no session approval behind', async () => {
  const [bound, removing] = [deferred(), deferred()]
  let binds = 0
  const bind = async () => {
    if (++binds === 2) {
      bound.resolve()
      await removing.promise
    }
    return 'x'
  }
  // The answer goes on as soon as the approvals of the conversation are revoked, and is claimed before anything else happens.
  let claimed: Promise<unknown> = Promise.resolve()
  const slow = (memory: Ledger): Partial<Ledger> => ({
    async revoke(...given) {
      const revoked = await memory.revoke(...given)
      removing.resolve()
      await claimed
      return revoked
    },
  })
  const { agent, post, open, remove } = setUp(slow, { bind })
  claimed = post('t', approving(await open('t'), 'session'))
  await bound.promise
  expect(await remove('t')).toBe(204)
  await claimed
  expect(await agent.grants.list('ann')).toEqual([])
})

// A conversation may also be removed before its request exists: then the run that makes it closes it.

const text = (shown: string) => ({ kind: 'text', text: shown }) as const

test.each<readonly [string, (wait: () => Promise<void>) => Parameters<typeof counted>[1]]>([
  ['what it is bound to is read', (wait) => ({ bind: () => wait().then(() => 'x') })],
  ['its preview is computed', (wait) => ({ preview: () => wait().then(() => text('x')) })],
  [
    'its tool runs, which then requires approval',
    (wait) => ({
      needsApproval: false,
      async execute() {
        await wait()
        throw new ApprovalRequiredError({ toolName: 'pay' })
      },
    }),
  ],
])('a request that is made once its conversation was removed is closed by its run: %s', async (_, terms) => {
  const [working, removing] = [deferred(), deferred()]
  const wait = () => {
    working.resolve()
    return removing.promise
  }
  const { audited, open, remove, phases } = setUp(undefined, terms(wait))
  const events = open('t')
  await working.promise
  expect(await remove('t')).toBe(204)
  removing.resolve()
  expect(await events).toContain('thread-unknown')
  expect(await phases('t')).toEqual([])
  expect(audited.map(({ event }) => event)).toEqual(['issued', 'claimed', 'completed'])
})

test('a call that is asked about again once its conversation was removed is not left open', async () => {
  const [working, removing] = [deferred(), deferred()]
  let previews = 0
  const preview = async () => {
    if (++previews === 2) {
      working.resolve()
      await removing.promise
    }
    return text(`the ${previews}th`)
  }
  const { post, open, remove, phases } = setUp(undefined, { preview })
  const events = post('t', approving(await open('t')))
  await working.promise
  expect(await remove('t')).toBe(204)
  removing.resolve()
  expect(await events).toContain('thread-unknown')
  expect(await phases('t')).toEqual([])
})

test('a run whose conversation was removed leaves the requests of one that was begun again under its id alone', async () => {
  const [working, removing] = [deferred(), deferred()]
  let binds = 0
  const bind = async () => {
    if (++binds === 4) {
      working.resolve()
      await removing.promise
    }
    return 'x'
  }
  const { ledger, post, open, remove } = setUp(undefined, { bind })
  const messages = ['1', '2', '3'].map((id) => ({ id, role: 'user', content: 'Pay' }))
  for (const { id } of messages)
    await post('t', { runId: id, messages: messages.filter((one) => one.id <= id) })
  const events = open('t')
  await working.promise
  await remove('t')
  await post('t', { runId: 'again', messages: [{ id: 'm', role: 'user', content: 'Pay' }] })
  removing.resolve()
  expect(await events).toContain('thread-unknown')
  const left = await ledger.unsettled('ann', 't')
  expect(left.map(({ record, state }) => [record.runId, state.phase])).toEqual([['again', 'issued']])
})

/** The answer to the request that a run ended with. */
function approving(events: string, scope = 'once') {
  const finished = events.split('\n\n').findLast((event) => event.includes('RUN_FINISHED')) ?? ''
  const [{ id, metadata }] = JSON.parse(finished.slice(finished.indexOf('{'))).outcome.interrupts
  const payload = { approved: true, scope }
  return { runId: 'answer', resume: [{ interruptId: id, status: 'resolved', payload, metadata }] }
}

function deferred() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
