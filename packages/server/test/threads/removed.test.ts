import {
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
  terms: { readonly bind?: () => Promise<string> } = {},
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
  const events = await open('t')
  const finished = events.split('\n\n').findLast((event) => event.includes('RUN_FINISHED')) ?? ''
  const [{ id, metadata }] = JSON.parse(finished.slice(finished.indexOf('{'))).outcome.interrupts
  const payload = { approved: true, scope: 'session' }
  claimed = post('t', {
    runId: 'answer',
    resume: [{ interruptId: id, status: 'resolved', payload, metadata }],
  })
  await bound.promise
  expect(await remove('t')).toBe(204)
  await claimed
  expect(await agent.grants.list('ann')).toEqual([])
})

function deferred() {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
