import { expect, test } from 'vitest'
import { countSuites, stores, suiteTable, unequal } from './suites.mjs'

const names = (store: string) => [
  `a thread (${store === 'memory' ? 'memoryThreads' : store === 'Redis' ? 'redisThreads' : `sqlThreads on ${store}`})`,
  `a ledger (${store === 'memory' ? 'memoryLedger' : store === 'Redis' ? 'redisLedger' : `T23 sqlLedger on ${store}`})`,
  `a log (${store === 'memory' ? 'memoryRunLog' : store === 'Redis' ? 'redisRunLog' : `T24 sqlRunLog on ${store}`})`,
]

test('T23 the tests of a suite are counted by store, and other tests are not', () => {
  const counts = countSuites([
    ...names('PGlite'),
    'T26 ensureSchema may be called twice (PGlite)',
    'a ledger (fileLedger)',
    'a ledger (fileLedger with an older SQLite)',
  ])
  expect(counts).toMatchObject({
    PGlite: { threads: 1, ledger: 1, 'run log': 1 },
    file: { ledger: 1 },
    'file, an older SQLite': { ledger: 1 },
    Redis: {},
  })
})

test('T23 a store that runs fewer tests of a suite than another, or none, is named', () => {
  const all = stores.flatMap(names)
  expect(unequal(countSuites(all))).toEqual([])
  expect(unequal(countSuites([...all, 'one more (memoryThreads)', 'a ledger (fileLedger)']))).toEqual(
    stores.slice(1).map((store) => `${store}: 1 of 2 tests of threads`),
  )
  expect(unequal(countSuites(stores.filter((store) => store !== 'Redis').flatMap(names)))).toEqual([
    'Redis: 0 of 1 tests of threads',
    'Redis: 0 of 1 tests of ledger',
    'Redis: 0 of 1 tests of run log',
  ])
  expect(unequal(countSuites([])).length).toBe(stores.length * 3)
})

test('the table has a row for each store', () => {
  expect(
    suiteTable(countSuites(names('memory')))
      .split('\n')
      .slice(0, 3),
  ).toEqual([
    'tests of each store             threads   ledger  run log',
    'memory                                1        1        1',
    'SQLite                                -        -        -',
  ])
})
