import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, test as anyTest, expect } from 'vitest'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { postgresForTests } from '../../scripts/postgres.mjs'
import { redisForTests } from '../../scripts/redis.mjs'
import { full } from '../full.js'
import type { LogLine } from '../machines/processes.js'
import { type ChaosOptions, playChaos } from './chaos.js'
import type { EndedCall } from './conversation.js'
import { judge } from './judge.js'

const root = resolve(import.meta.dirname, '../..')
const redis = full ? await redisForTests('chaos with the ledger in Redis') : undefined
const postgres = full ? await postgresForTests('chaos with the ledger in PostgreSQL') : undefined
const script = await bundleForNode(join(root, 'test/machines/server.process.ts'), root)
const parent = await mkdtemp(join(tmpdir(), 'countersign-chaos-test-'))
afterAll(async () => {
  await redis?.stop()
  await postgres?.stop()
  await script.remove()
  await rm(parent, { recursive: true, force: true })
})

const calls = 60
const play = async (ledger: ChaosOptions['ledger'], seed: number) =>
  playChaos({ script: script.file, folder: await mkdtemp(join(parent, 'game-')), ledger, calls, seed })

const games = [
  { name: 'a file', ledger: { kind: 'file' }, test: anyTest },
  {
    name: 'Redis',
    ledger: { kind: 'redis', url: redis?.url ?? '' },
    test: anyTest.skipIf(redis === undefined),
  },
  {
    name: 'PostgreSQL',
    ledger: { kind: 'postgres', url: postgres?.url ?? '' },
    test: anyTest.skipIf(postgres === undefined),
  },
] as const

/** `npm test` plays with the first one. */
for (const { name, ledger, test } of full ? games : games.slice(0, 1)) {
  const promise = `${calls} approved calls under kill -9 and broken connections run at most once, and none is lost: the ledger in ${name}`
  test(promise, async () => {
    const { wrong, completed, interrupted, refused, kills } = await play(ledger, 7)
    expect({ wrong, ended: completed + interrupted + refused }).toEqual({ wrong: [], ended: calls })
    expect(kills > 0).toBe(true)
  })
}

const line = (what: string, key: string, job = key): LogLine => ({ what, key, job })
const call = (approvalId: string, end: EndedCall['end']): EndedCall => {
  return { job: approvalId, approvalId, end, detail: '' }
}
const five = ['a', 'b', 'c', 'd', 'e']
const allWell = {
  ended: five.map((id) => call(id, 'completed')),
  log: five.flatMap((id) => [line('start', id), line('end', id)]),
}

anyTest(
  'what is counted can be otherwise: twice, unapproved, refused and run, completed and not run, lost',
  () => {
    const { ended, log } = allWell
    const wrong = (otherCalls: readonly EndedCall[], otherLog: readonly LogLine[]) =>
      judge(5, otherCalls, otherLog).wrong.length
    expect(wrong(ended, log)).toBe(0)
    expect(wrong(ended.with(0, call('a', 'interrupted')), log)).toBe(0)
    expect(wrong(ended, [...log, line('start', 'a', 'other')])).toBe(1)
    expect(wrong(ended, [...log, line('start', 'a')])).toBe(2)
    expect(wrong(ended, [...log, line('start', 'f', 'other')])).toBe(1)
    expect(wrong(ended.with(0, call('a', 'refused')), log)).toBe(1)
    expect(wrong(ended, log.slice(2))).toBe(1)
    expect(wrong(ended.with(0, call('a', 'lost')), log)).toBe(1)
    expect(wrong(ended.slice(1), log)).toBe(2)
    expect(
      wrong(
        ended.map(({ approvalId }) => call(approvalId, 'interrupted')),
        log,
      ),
    ).toBe(1)
  },
)
