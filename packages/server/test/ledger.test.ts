import { expect, test } from 'vitest'
import { describeLedger } from '../../testing/src/suites/ledger.js'
import { memoryLedger } from '../src/ledger/memory-ledger.js'

// Small enough to be filled.
const maxSizePerOwner = 500_000
describeLedger('memoryLedger', ({ now }) => ({ ledger: memoryLedger({ now, maxSizePerOwner }) }), {
  test,
  expect,
})
