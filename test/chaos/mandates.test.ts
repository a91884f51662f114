import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, test as anyTest, expect } from 'vitest'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { postgresForTests } from '../../scripts/postgres.mjs'
import { redisForTests } from '../../scripts/redis.mjs'
import { full } from '../full.js'
import type { SharedLedger } from '../machines/processes.js'
import { openShared } from '../machines/shared-ledger.js'
import { playMandates } from './mandates.js'

const root = resolve(import.meta.dirname, '../..')
const redis = full ? await redisForTests('mandates in Redis') : undefined
const postgres = await postgresForTests('mandates in PostgreSQL')
const script = await bundleForNode(join(import.meta.dirname, 'mandates.process.ts'), root)
const parent = await mkdtemp(join(tmpdir(), 'countersign-mandates-test-'))
afterAll(async () => {
  await redis?.stop()
  await postgres?.stop()
  await script.remove()
  await rm(parent, { recursive: true, force: true })
})

const calls = Number(process.env.MANDATE_CALLS ?? (full ? 10_000 : 150))
const seed = 11
/** `npm test` plays with one ledger. */
const short = postgres === undefined ? 'a file' : 'PostgreSQL'
const games = [
  {
    name: 'a file',
    ledger: (folder: string): SharedLedger => ({ kind: 'file', path: join(folder, 'ledger.sqlite') }),
    test: anyTest,
  },
  {
    name: 'SQLite by compare and swap',
    ledger: (folder: string): SharedLedger => ({ kind: 'sqlite', path: join(folder, 'rows.sqlite') }),
    test: anyTest,
  },
  {
    name: 'Redis',
    ledger: (): SharedLedger => ({ kind: 'redis', url: redis?.url ?? '', prefix: 'mandates:' }),
    test: anyTest.skipIf(redis === undefined),
  },
  {
    name: 'PostgreSQL',
    ledger: (): SharedLedger => ({ kind: 'postgres', url: postgres?.url ?? '', prefix: 'mandates_' }),
    test: anyTest.skipIf(postgres === undefined),
  },
]

for (const { name, ledger: ledgerIn, test } of full ? games : games.filter(({ name }) => name === short)) {
  test(`W7 W9 ${calls} calls by 64 workers on two processes under kill -9 exceed neither budget nor uses, in ${name}`, async () => {
    const folder = await mkdtemp(join(parent, 'game-'))
    const ledger = ledgerIn(folder)
    const { ledger: opened } = await openShared(ledger, 30_000)
    const callsPerKill = Math.max(60, calls / 40)
    const played = await playMandates({
      script: script.file,
      folder,
      opened,
      ledger,
      calls,
      callsPerKill,
      seed,
    })
    console.info(`${name}: ${JSON.stringify(played)}`)
    const { budget, uses, paid, counted, spent = 0, used, lostAtMost } = played
    expect(played.twice).toBe(0)
    expect(paid).toBeLessThanOrEqual(budget)
    expect(counted).toBeLessThanOrEqual(uses)
    // What has started is debited. Only killed workers may have debited more than they started; every other call was given back.
    expect(spent).toBeGreaterThanOrEqual(paid)
    expect(spent - paid).toBeLessThanOrEqual(lostAtMost.amount)
    expect(used).toBeGreaterThanOrEqual(counted)
    expect(used - counted).toBeLessThanOrEqual(lostAtMost.uses)
    expect(played.kills).toBeGreaterThan(0)
    expect(played.returned).toBeGreaterThan(0)
  }, 1_800_000)
}

anyTest(`W7 without kills, what is debited is exactly what has started: all else is given back`, async () => {
  const folder = await mkdtemp(join(parent, 'game-'))
  const ledger: SharedLedger = { kind: 'file', path: join(folder, 'ledger.sqlite') }
  const { ledger: opened } = await openShared(ledger, 30_000)
  const played = await playMandates({
    script: script.file,
    folder,
    opened,
    ledger,
    calls,
    callsPerKill: 0,
    seed,
  })
  expect([played.spent, played.used]).toEqual([played.paid, played.counted])
  expect(played.returned).toBeGreaterThan(0)
})
