import { vi } from 'vitest'

/**
 * `vi.waitFor` and `vi.waitUntil` give up after one second unless they are told otherwise, which on a busy machine is a matter of luck.
 * Here they wait as long as `expect.poll` (see vitest.config.ts).
 */
const timeout = 300_000
const { waitFor, waitUntil } = vi
vi.waitFor = (callback, options) => waitFor(callback, withTimeout(options))
vi.waitUntil = (callback, options) => waitUntil(callback, withTimeout(options))

function withTimeout(options: number | { interval?: number; timeout?: number } = {}) {
  return typeof options === 'number' ? options : { timeout, ...options }
}
