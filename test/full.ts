import { test } from 'vitest'

/** Whether this is `npm run test:full`, which runs the long form of tests that have a short one. */
export const full = process.env.TEST_FULL === '1'

/** A test that only `npm run test:full` has. */
export const fullTest = full ? test : (_name: string, _run: () => Promise<void>) => {}
