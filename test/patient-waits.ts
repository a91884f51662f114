import { vi } from 'vitest'

/**
 * `vi.waitFor` and `vi.waitUntil` give up after one second unless they are told otherwise, which on a busy machine is a matter of luck.
 * Here they wait as long as `expect.poll` (see vitest.config.ts).
 */
const timeout = 300_000

const withTimeout = (options: number | { interval?: number; timeout?: number } = {}) =>
  typeof options === 'number' ? options : { timeout, ...options }

const { waitFor, waitUntil } = vi
// the files of a worker share `vi`, and each runs this
if (waitFor.name !== 'waitPatiently') {
  vi.waitFor = function waitPatiently(callback, options) {
    return waitFor(callback, withTimeout(options))
  }
  vi.waitUntil = (callback, options) => waitUntil(callback, withTimeout(options))
}
