import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ApprovalRecord, type Ledger, memoryLedger } from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'

const key = { owner: 'ann', threadId: 't', toolName: 'pay' }

const grant = (ledger: Ledger, n: number, to: string, approved: boolean, threadId = 't') =>
  ledger.grant({
    ...{ ...key, threadId, scopeKey: `terms ${n}`, approved },
    terms: {
      ...{ label: `Pay ${to}`, tool: 'v1', approvalId: `approval ${n}` },
      where: [{ field: 'to', is: to }],
    },
  })

const find = (ledger: Ledger, to: string) =>
  ledger.findMandate?.({ ...key, tool: 'v1', input: { to }, callKey: 'call', since: 0 }, 'look')

test('W12 of more mandates than are kept for a tool, the oldest is dropped, and no standing denial', async () => {
  const ledger = memoryLedger()
  await grant(ledger, 0, 'mallory', false)
  for (let n = 1; n <= 65; n++) await grant(ledger, n, `supplier ${n}`, true)
  expect(await ledger.list('ann', 't')).toHaveLength(65)
  expect(await find(ledger, 'mallory')).toMatchObject({ approved: false })
  expect(await find(ledger, 'supplier 1')).toBeUndefined()
  expect(await find(ledger, 'supplier 2')).toMatchObject({ approved: true })
})

test('W12 maxGrantsPerOwner drops no standing denial: it refuses one for a conversation too many', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kept-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const limits = { maxGrantsPerOwner: 3 }
  const file = await fileLedger(join(folder, 'ledger.sqlite'), limits)
  onTestFinished(() => file.close())
  for (const ledger of [memoryLedger(limits), file]) {
    await grant(ledger, 0, 'mallory', false)
    for (let n = 1; n <= 4; n++)
      await ledger.grant({ ...key, threadId: `t${n}`, scopeKey: 'pay', approved: true })
    expect(await find(ledger, 'mallory')).toMatchObject({ approved: false })
    await grant(ledger, 1, 'mallory', false, 't1')
    await grant(ledger, 2, 'mallory', false, 't2')
    expect(await grant(ledger, 3, 'mallory', false, 't3')).toEqual({ status: 'full' })
    // A conversation that has one has room for another.
    expect(await grant(ledger, 4, 'eve', false)).toMatchObject({ status: 'granted' })
    expect(await find(ledger, 'mallory')).toMatchObject({ approved: false })
  }
})

test('W12 a full memory ledger keeps its standing denials, and takes no other', async () => {
  const ledger = memoryLedger({ maxRecordsPerOwner: 4 })
  await grant(ledger, 0, 'mallory', false)
  const ask = (n: number) => {
    const record: ApprovalRecord = {
      ...{ ...key, approvalId: `a${n}`, runId: 'r', toolCallId: `c${n}`, arguments: '{}' },
      ...{ scopes: ['once'], edits: false, idempotent: false, token: 'cs1.k.p.m' },
      ...{ issuedAt: 0, expiresAt: Number.MAX_SAFE_INTEGER / 2 },
    }
    return ledger.issue(record)
  }
  const issued = await Promise.all([1, 2, 3, 4].map(ask))
  expect(issued.map(({ status }) => status)).toEqual(['issued', 'issued', 'issued', 'full'])
  expect(await grant(ledger, 1, 'mallory', false, 't1')).toEqual({ status: 'full' })
  expect(await find(ledger, 'mallory')).toMatchObject({ approved: false })
})

test('W9 a mandate with limits for which a memory ledger has no room is not reported as given', async () => {
  const to = 'x'.repeat(2000)
  const give = (maxSizePerOwner: number, uses: number | undefined) =>
    memoryLedger({ maxSizePerOwner }).grant({
      ...{ ...key, scopeKey: 'terms', approved: true, uses },
      terms: { label: 'Pay', where: [{ field: 'to', is: to }], tool: 'v1', approvalId: 'approval' },
      call: { ...key, tool: 'v1', input: { to }, callKey: 'approval', since: 0 },
    })
  expect(await give(1000, 2)).toEqual({ status: 'uncounted' })
  expect(await give(10_000, 2)).toMatchObject({ status: 'granted', grant: { usesLeft: 1 } })
  // Nothing is to be counted.
  expect(await give(1000, undefined)).toMatchObject({ status: 'granted' })
})
