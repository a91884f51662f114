import { resolve } from 'node:path'
import type { ChatClient } from '@countersign/client'
import { afterAll, test as anyTest, expect } from 'vitest'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { redisForTests } from '../../scripts/redis.mjs'
import { full } from '../full.js'
import type { Step } from './processes.js'
import { approve, callsOf, type Door, persist, please, twoMachines, until } from './two-machines.js'

const root = resolve(import.meta.dirname, '../..')
const redis = await redisForTests('kill -9 of a process that shares Redis with another')
const script = await bundleForNode(`${root}/test/machines/server.process.ts`, root)
afterAll(async () => {
  await script.remove()
  await redis?.stop()
})

interface Outcome {
  readonly step: Step
  readonly when: string
  readonly end: 'complete' | 'interrupted'
  readonly starts: number
  readonly ends: number
}

/** What must come of a call whose process ends at each step, once its person has tried again on the other one. */
const outcomes: readonly Outcome[] = [
  { step: 'answered', when: 'before the claim', end: 'complete', starts: 1, ends: 1 },
  { step: 'claimed', when: 'after the claim, before the tool', end: 'interrupted', starts: 0, ends: 0 },
  { step: 'started', when: 'while the tool runs', end: 'interrupted', starts: 1, ends: 0 },
  {
    step: 'ran',
    when: 'after the tool, before its outcome is recorded',
    end: 'interrupted',
    starts: 1,
    ends: 1,
  },
  { step: 'completed', when: 'after completion, before the response', end: 'complete', starts: 1, ends: 1 },
]

const settings = [
  { name: 'a file is shared', door: 'request', redis: undefined, test: anyTest },
  { name: 'Redis is shared', door: 'request', redis: redis?.url, test: anyTest.skipIf(redis === undefined) },
  {
    name: 'Redis is shared, live',
    door: 'live',
    redis: redis?.url,
    test: anyTest.skipIf(redis === undefined),
  },
] as const

async function asked(door: Door, setup: Parameters<typeof twoMachines>[0]) {
  // who waits for a process that is gone waits this long
  const bench = await twoMachines({ lease: 1000, ...setup })
  const page = bench.chat(door)
  void page.sendMessage(please('a'))
  await until(page, ({ pendingApprovals, error }) => pendingApprovals.length > 0 || error !== undefined)
  return { ...bench, page }
}

/** A request that failed is repeated; a call that broke off before it was asked about is closed, and the person asks again. */
async function askUntilAsked(page: ChatClient): Promise<void> {
  for (;;) {
    await until(page, ({ pendingApprovals, isLoading }) => pendingApprovals.length > 0 || !isLoading)
    const { pendingApprovals, error } = page.getSnapshot()
    if (pendingApprovals.length > 0) return
    if (error === undefined) void page.sendMessage(please('a'))
    else void page.retry()
  }
}

/** What needs a lease is different in each setting; the rest of `npm test` is on what is in use most. */
const short = settings.filter(({ name }) => name === 'Redis is shared')

for (const { name, door, test, redis: url } of full ? settings : short) {
  const setup = { script: script.file, redis: url }

  for (const { step, when, end, starts, ends } of outcomes) {
    test(`kill -9 ${when}: ${end}, and never run again (${name})`, async () => {
      // live, the process with the open run carries the answer out; else the one that the answer comes to
      const dieAt = door === 'live' ? ([step, undefined] as const) : ([undefined, step] as const)
      const { page, one, other, ...bench } = await asked(door, { ...setup, dieAt })
      await until(page, ({ isLoading }) => door === 'live' || !isLoading)
      await persist(page, () => approve(page))
      await (door === 'live' ? one : other).ended
      const [call] = callsOf(page)
      expect(call?.error?.code ?? call?.state).toBe(end)
      expect([await bench.starts(), await bench.ends()]).toEqual([starts, ends])
      await persist(page, () => void page.sendMessage(please()))
      expect([callsOf(page).length, await bench.starts()]).toEqual([1, starts])
    })
  }

  test(`kill -9 between a question and its sending: it is asked anew, and runs once (${name})`, async () => {
    const { page, ...bench } = await asked(door, { ...setup, dieAt: ['asked', undefined] })
    expect(page.getSnapshot().pendingApprovals).toEqual([])
    await askUntilAsked(page)
    await persist(page, () => approve(page))
    expect(callsOf(page).at(-1)?.state).toBe('complete')
    expect([await bench.starts(), await bench.ends()]).toEqual([1, 1])
  })
}
