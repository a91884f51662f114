import { availableParallelism } from 'node:os'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { svelteTesting } from '@testing-library/svelte/vite'
import vue from '@vitejs/plugin-vue'
import type { PluginOption } from 'vite'
import solid from 'vite-plugin-solid'
import { defaultExclude, defineConfig } from 'vitest/config'
import SlowFirst from './scripts/slow-first.mjs'

const root = import.meta.dirname

/** Every `@countersign/*` entry is its source, so that no build stands between a change and its test. */
const sources = [
  { find: /^@countersign\/([^/]+)$/, replacement: `${root}/packages/$1/src/index.ts` },
  { find: /^@countersign\/(?!registry\/)([^/]+)\/(.+)$/, replacement: `${root}/packages/$1/src/$2.ts` },
]

/** `npm test` has built the packages before: it tests what is published, which also loads faster. */
const alias = [
  { find: /^@countersign\/example-page\/(.+)$/, replacement: `${root}/examples/page/src/$1.ts` },
  ...(process.env.TEST_BUILT === '1' ? [] : sources),
]

/**
 * The bindings' tests run in jsdom, with what compiles their framework's files. One worker runs all files of a binding, because loading
 * jsdom and a framework takes longer than its tests. They run first, beside the other checks of `npm test`.
 */
const frameworks: Record<string, () => PluginOption[]> = {
  react: () => [],
  solid: () => [solid({ solid: { hydratable: true } })],
  vue: () => [vue()],
  svelte: () => [svelte(), svelteTesting()],
}

/** `npm run test:full` runs everything, `npm test` all but the files named `*.full.test.ts`. */
const longForms = process.env.TEST_FULL === '1' ? [] : ['**/*.full.test.{ts,tsx}']

/** No test says how long something takes: waits end by what happens. These limits only end what hangs. */
const limits = {
  testTimeout: 600_000,
  hookTimeout: 600_000,
  teardownTimeout: 600_000,
  expect: { poll: { timeout: 300_000 } },
}

/** Files of one worker share what they import, so a file leaves the globals as they were. */
const tidy = { unstubGlobals: true, unstubEnvs: true, restoreMocks: true }

/** They count all timers, or all runs, of their process, so they share none with files that may have left one. */
const alone = [
  'packages/server/test/limits.test.ts',
  'packages/server/test/readers.test.ts',
  'packages/server/test/readers-of-any-speed.test.ts',
  'test/client/expiry.test.ts',
  'test/client/time-limits.test.ts',
]

const last = { groupOrder: Object.keys(frameworks).length }

/** An object of its own for each project: plugins add to its lists. */
const shared = () => ({
  exclude: [...defaultExclude, ...longForms],
  setupFiles: [`${root}/test/load-protocol.ts`, `${root}/test/patient-waits.ts`],
  ...limits,
  ...tidy,
})

export default defineConfig({
  test: {
    sequence: { sequencer: SlowFirst },
    // most of the long tests wait for a browser or another process
    maxWorkers: 2 * availableParallelism(),
    projects: [
      ...Object.entries(frameworks).map(([name, plugins], groupOrder) => ({
        plugins: plugins(),
        resolve: { alias },
        test: {
          name,
          root: `packages/${name}`,
          include: ['test/**/*.test.{ts,tsx}'],
          environment: 'jsdom',
          isolate: false,
          maxWorkers: 1,
          sequence: { groupOrder },
          ...shared(),
        },
      })),
      {
        resolve: { alias },
        test: {
          name: 'node',
          include: ['{packages,examples}/*/test/**/*.test.ts', 'test/**/*.test.{ts,tsx}'],
          ...shared(),
          exclude: [...shared().exclude, `packages/{${Object.keys(frameworks)}}/**`, ...alone],
          isolate: false,
          sequence: last,
        },
      },
      { resolve: { alias }, test: { name: 'alone', include: alone, sequence: last, ...shared() } },
    ],
  },
})
