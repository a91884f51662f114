import type { SuiteRunner } from './runner.js'
import { appending } from './threads/appending.js'
import { type CreateThreads, openThreadBench, type ThreadBench } from './threads/bench.js'
import { holding } from './threads/holding.js'
import { limiting } from './threads/limiting.js'
import { listing } from './threads/listing.js'
import { loading } from './threads/loading.js'

export type { CreateThreads, ThreadsUnderTest } from './threads/bench.js'

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
