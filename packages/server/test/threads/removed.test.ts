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

function setUp(change: (ledger: Ledger) => Partial<Ledger> = () => ({})) {
  let now = 1_700_000_000_000
  let calls = 0
  const memory = memoryLedger({ now: () => now, maxRecords: 4, maxRecordsPerOwner: 4 })
  const ledger = { ...memory, ...change(memory) }
  const pay = counted('pay', { needsApproval: true, scopes: ['once', 'session'], expiresIn: 'never' })
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
  const open = async (threadId: string) => {
    const messages = [{ id: `m-${threadId}`, role: 'user', content: 'Pay' }]
    const body = JSON.stringify({ threadId, runId: `run-${threadId}`, messages, tools: [], context: [] })
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://test/', { method: 'POST', headers, body })
    await (await handleChat(agent, request, { context })).text()
  }
  const remove = async (threadId: string) =>
    (
      await threadResponse(agent, new Request(`http://test/?threadId=${threadId}`, { method: 'DELETE' }), {
        context,
      })
    ).status
  const phases = async (threadId: string) =>
    (await memory.unsettled('ann', threadId)).map(({ state }) => state.phase)
  return { agent, ledger: memory, audited, open, remove, phases, pass: (ms: number) => (now += ms) }
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
