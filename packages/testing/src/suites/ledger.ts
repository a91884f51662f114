import { auditing } from './ledger/auditing.js'
import { type Bench, type CreateLedger, openBench } from './ledger/bench.js'
import { claiming } from './ledger/claiming.js'
import { granting } from './ledger/granting.js'
import { issuing } from './ledger/issuing.js'
import { leasing } from './ledger/leasing.js'
import { mandating } from './ledger/mandating.js'
import type { SuiteRunner } from './runner.js'

export type { CreateLedger, LedgerUnderTest } from './ledger/bench.js'

/**
 * The tests that every {@link Ledger} passes. Call it at the top of a test file with the runner's `test` and `expect`.
 *
 * @example
 * describeLedger('memoryLedger', ({ now }) => ({ ledger: memoryLedger({ now }) }), { test, expect })
 */
export function describeLedger(name: string, create: CreateLedger, runner: SuiteRunner): void {
  const { expect } = runner
  const spec = (sentence: string, run: (bench: Bench) => Promise<void>) =>
    runner.test(`${sentence} (${name})`, async () => {
      const bench = await openBench(create)
      try {
        await run(bench)
      } finally {
        await bench.close()
      }
    })

  issuing(spec, expect)
  claiming(spec, expect)
  leasing(spec, expect)
  granting(spec, expect)
  mandating(spec, expect)
  auditing(spec, expect)
}
