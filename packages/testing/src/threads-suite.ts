import type { SuiteRunner } from './ledger-suite.js'
import { appending } from './threads-suite/appending.js'
import { type CreateThreads, openThreadBench, type ThreadBench } from './threads-suite/bench.js'
import { holding } from './threads-suite/holding.js'
import { limiting } from './threads-suite/limiting.js'
import { listing } from './threads-suite/listing.js'
import { loading } from './threads-suite/loading.js'

export type { CreateThreads, ThreadsUnderTest } from './threads-suite/bench.js'

/**
 * The tests that every {@link ThreadStore} passes. Call it at the top of a test file with the runner's `test` and `expect`.
 *
 * @example
 * describeThreads('memoryThreads', (options) => ({ store: memoryThreads(options) }), { test, expect })
 */
export function describeThreads(name: string, create: CreateThreads, runner: SuiteRunner): void {
  const { expect } = runner
  const spec = (sentence: string, run: (bench: ThreadBench) => Promise<void>, limits = {}) =>
    runner.test(`${sentence} (${name})`, async () => {
      const bench = await openThreadBench(create, limits)
      try {
        await run(bench)
      } finally {
        await bench.close()
      }
    })

  loading(spec, expect)
  appending(spec, expect)
  holding(spec, expect)
  listing(spec, expect)
  limiting(spec, expect)
}
