// The epoch of a ledger: what was asked and granted before it.

import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ResumeEntry } from '@countersign/core'
import { type ApprovalOptions, type Ledger, memoryLedger } from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import { afterAll, expect, test } from 'vitest'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  last,
  refusals,
  requests,
  SECRET,
  say,
  testAgent,
  user,
} from './support.js'

const folder = mkdtempSync(join(tmpdir(), 'countersign-answers-'))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const context = { subject: 'ann' }

/** Two ledgers of one identity: what a copy taken before the claim has, and what happened after it was taken. */
async function snapshot(make: 'memory' | 'file', now: () => number) {
  if (make === 'memory') {
    const rows: Parameters<Ledger['issue']>[0][] = []
    const before = memoryLedger({ id: 'one', now })
    const recording: Ledger = {
      ...before,
      issue: async (record) => {
        rows.push(record)
        return before.issue(record)
      },
    }
    const taken = now()
    const restore = async () => {
      let clock = () => taken
      const after = memoryLedger({ id: 'one', now: () => clock() })
      for (const record of rows) await after.issue(record)
      await after.grant({ ...grantOf, approved: true })
      clock = now
      return after
    }
    return { before: recording, take: async () => {}, restore }
  }
  const path = join(folder, `snapshot-${Math.random()}.sqlite`)
  const copy = `${path}.copy`
  const before = await fileLedger(path, { now })
  await before.grant({ ...grantOf, approved: true })
  const take = async () => {
    before.close()
    copyFile(path, copy)
  }
  let restored = 0
  const restore = () => {
    const back = `${copy}.${++restored}`
    copyFile(copy, back)
    return fileLedger(back, { now })
  }
  return { before, take, restore, reopen: () => fileLedger(path, { now }) }
}

/** What was written last may be in the log beside the file. */
function copyFile(from: string, to: string): void {
  for (const log of ['', '-wal']) if (existsSync(from + log)) copyFileSync(from + log, to + log)
}

const grantOf = { owner: 'ann', threadId: 'thread', toolName: 'look', scopeKey: 'look', tool: 'any' }

test('F21 a ledger restored from a copy runs again what was claimed after the copy; an epoch after it voids what was asked and granted before', async () => {
  for (const kind of ['memory', 'file'] as const) {
    let time = Date.UTC(2026, 0, 1)
    const now = () => time
    const pay = counted('pay', { needsApproval: true })
    const look = counted('look', { needsApproval: true })
    const { before, take, restore, reopen } = await snapshot(kind, now)
    const agentOf = (ledger: Ledger, more: Partial<ApprovalOptions> = {}) =>
      testAgent(
        ({ messages }) => {
          const text = JSON.stringify(messages.at(-1))
          return text.includes('look') ? call([`l${time}`, 'look', {}]) : say('done')
        },
        { tools: [pay.tool, look.tool], now, approvals: { secret: SECRET, ledger, ...more } },
      ).agent
    const asking = testAgent([call(['c1', 'pay', { amount: 1 }])], {
      tools: [pay.tool],
      now,
      approvals: { secret: SECRET, ledger: before },
    })
    const { history, first } = await ask(asking.agent, {}, { context })
    await take()
    time += 60_000
    const ledger = reopen === undefined ? before : await reopen()
    const resume = [answer(first, { approved: true })]
    await collect(agentOf(ledger), input(history, { resume }), { context })
    expect(pay.runs.length).toBe(1)

    time += 60_000
    const restored = await restore()
    const epoch = new Date(time)
    time += 60_000
    const careful = agentOf(restored, { epoch })
    const refused = await collect(careful, input(history, { resume }), { context })
    expect(refusals(refused), kind).toMatchObject([{ code: 'approval-not-found' }])
    expect(pay.runs.length).toBe(1)
    const bare = { ...resume[0], metadata: {} } as ResumeEntry
    await collect(careful, input(history, { resume: [bare] }), { context })
    expect(pay.runs.length, 'by the ledger’s own record').toBe(1)
    expect(await careful.grants.list('ann')).toEqual([])
    const again = await collect(careful, input([user('look')]), { context })
    const [question] = requests(again)
    expect(question?.toolName).toBe('look')
    if (question === undefined) return
    const asked = fold([user('look')], again)
    await collect(careful, input(asked, { resume: [answer(question, { approved: true })] }), { context })
    expect(look.runs.length, 'what is asked after the epoch runs').toBe(1)
    look.runs.length = 0
    time += 1000
    // without an epoch the same copy runs what it does not know to be claimed
    const careless = await collect(agentOf(await restore()), input(history, { resume }), { context })
    expect(refusals(careless)).toEqual([])
    expect(last(careless)).toMatchObject({ type: 'RUN_FINISHED' })
    expect(pay.runs.length).toBe(2)
    pay.runs.length = 0
  }
})

test('F21 an epoch that is no date is refused', () => {
  for (const epoch of [new Date('x'), 'yesterday', 5, null])
    expect(() => testAgent([], { approvals: { secret: SECRET, epoch: epoch as Date } })).toThrow(
      expect.objectContaining({ code: 'invalid-option' }),
    )
})
