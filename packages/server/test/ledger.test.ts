import { expect, test } from 'vitest'
import { describeLedger } from '../../testing/src/suites/ledger.js'
import { memoryLedger } from '../src/ledger/memory-ledger.js'

describeLedger('memoryLedger', ({ now }) => ({ ledger: memoryLedger({ now }) }), { test, expect })
