import { answering } from './binding/answering.js'
import { type Expect, onBench, type Spec } from './binding/bench.js'
import { following } from './binding/following.js'
import type { BindingHarness } from './binding/harness.js'
import { mounting } from './binding/mounting.js'
import { running } from './binding/running.js'
import { serving } from './binding/serving.js'
import { sharing } from './binding/sharing.js'
import { turning } from './binding/turning.js'
import { updating } from './binding/updating.js'

export type {
  BindingHarness,
  MountedPage,
  PageOptions,
  PageSettings,
  PageUse,
} from './binding/harness.js'

/** The required parts of a test runner; those of vitest and jest fit. */
export interface BindingRunner {
  test(name: string, run: () => Promise<void>, timeoutMs: number): void
  readonly expect: Expect
}

/** No test waits for time to pass: this only ends what hangs. */
const TIMEOUT = 600_000

/**
 * The tests that every framework's binding passes, in a document (jsdom or a browser). Call it at the top of a test file with
 * the runner's `test` and `expect`. Prints the number of tests and how often components updated; returns the number of tests.
 *
 * @example
 * describeBinding('react', harness, { test, expect })
 */
export function describeBinding(name: string, harness: BindingHarness, runner: BindingRunner): number {
  const { expect } = runner
  let tests = 0
  const spec: Spec = (sentence, run) => {
    tests++
    runner.test(`${sentence} (${name})`, () => onBench(harness, expect, run), TIMEOUT)
  }
  const report = (line: string) => console.info(`${name}: ${line}`)

  running(spec, expect)
  answering(spec, expect)
  turning(spec, expect)
  sharing(spec, expect)
  following(spec, expect)
  mounting(spec, expect)
  serving(spec, expect)
  updating(spec, expect, report)
  report(`${tests} tests of the binding suite`)
  return tests
}
