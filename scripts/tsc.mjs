import { join } from 'node:path'
import { root } from './packages.mjs'
import { capture } from './run.mjs'

/**
 * Runs the compiler of TypeScript 7, which needs a third of the time of TypeScript 6. Version 6 is there for its API, and for the checkers of
 * Vue and Svelte. Resolves to the exit status and everything it printed.
 */
export const tsc = (...args) =>
  capture(process.execPath, [join(root, 'scripts/node_modules/typescript/bin/tsc'), ...args], { cwd: root })
