import { rmSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { full } from '../full.js'
import { buildServer, folder, misplaced } from './build.mjs'
import { checks, editsOf } from './checks.mjs'
import { families } from './families.mjs'
import { ledgersOf } from './ledgers.mjs'
import { play } from './play.mjs'

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const built = await buildServer('whole')
const attacks = families.flatMap((family) => family.attacks)

/** A ledger in memory cannot be shared; where one is asked for, processes share a file, as with the ledger of that kind. */
const severalProcesses = 'several processes'
const inOneProcess = families.filter(({ family }) => full || family !== severalProcesses)

/** In the short form, what needs several requests at once. The suite of ledgers decides the rest. */
const atLedger = families
  .filter(({ family }) => full || family === 'replay and races')
  .flatMap((family) => family.attacks)

test.each(inOneProcess)(
  'no attack on $family gets through, and each is refused as stated',
  async (family) => {
    const failed: unknown[] = []
    for (const attack of family.attacks) {
      const { ok, ...seen } = await play(built, attack)
      if (!ok) failed.push({ attack: attack.name, ...seen })
    }
    expect(failed, JSON.stringify(failed)).toEqual([])
  },
)

test.each(full ? ['file', 'redis'] : ['redis'])(
  'no attack gets through to a server whose ledger is of the kind %s, and each is refused as stated',
  async (kind) => {
    // where there is no Redis, that was said aloud
    const ledgers = await ledgersOf(kind)
    if (ledgers === undefined) return
    const failed: unknown[] = []
    try {
      for (const attack of atLedger) {
        const { ok, ...seen } = await play(built, attack, ledgers)
        if (!ok) failed.push({ attack: attack.name, ...seen })
      }
    } finally {
      await ledgers.stop()
    }
    expect(failed, JSON.stringify(failed)).toEqual([])
  },
)

test('each check is where it is said to be', () => {
  expect(misplaced(Object.keys(checks).flatMap(editsOf))).toEqual([])
})

test('W20 at least 25 of them are on mandates', () => {
  expect(families.find(({ family }) => family === 'mandates')?.attacks.length).toBeGreaterThanOrEqual(25)
})

test('there are more than sixty, no two have one name, and each has a check', () => {
  expect(attacks.length).toBeGreaterThan(60)
  expect(new Set(attacks.map(({ name }) => name)).size).toBe(attacks.length)
  for (const { check, behind = [] } of attacks) [check, ...behind].forEach(editsOf)
})

test.each(full ? ['signature', 'settled once', 'run key', 'content type'] : ['signature'])(
  'without the check "%s" every attack gets through that nothing else stands against',
  async (check) => {
    const broken = await buildServer(`without-${check}`, editsOf(check))
    const alone = attacks.filter(
      (attack) => attack.check === check && attack.behind === undefined && attack.stands === undefined,
    )
    const held: string[] = []
    for (const attack of alone) if (!(await play(broken, attack)).through) held.push(attack.name)
    expect(alone.length).toBeGreaterThan(2)
    expect(held).toEqual([])
  },
)
