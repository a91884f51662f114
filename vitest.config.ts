import { existsSync, readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { svelteTesting } from '@testing-library/svelte/vite'
import vue from '@vitejs/plugin-vue'
import type { PluginOption } from 'vite'
import solid from 'vite-plugin-solid'
import { defineConfig } from 'vitest/config'

const root = import.meta.dirname

/** In tests every `@countersign/*` entry is its source, so that no build stands between a change and its test. */
const alias = [
  { find: /^@countersign\/example-page\/(.+)$/, replacement: `${root}/examples/page/src/$1.ts` },
  { find: /^@countersign\/([^/]+)$/, replacement: `${root}/packages/$1/src/index.ts` },
  { find: /^@countersign\/([^/]+)\/(.+)$/, replacement: `${root}/packages/$1/src/$2.ts` },
]

const inJsdom = new Set(['packages/react', 'packages/solid', 'packages/vue', 'packages/svelte'])

/** What compiles a framework's own files. */
const plugins: Record<string, () => PluginOption[]> = {
  'packages/solid': () => [solid({ solid: { hydratable: true } })],
  'packages/vue': () => [vue()],
  'packages/svelte': () => [svelte(), svelteTesting()],
}

const tested = ['packages', 'examples']
  .flatMap((parent) => readdirSync(`${root}/${parent}`).map((name) => `${parent}/${name}`))
  .filter((folder) => existsSync(`${root}/${folder}/test`))

/** No test says how long something takes. These only end what hangs, also on a machine that is busy with other work. */
const patience = { testTimeout: 60_000, expect: { poll: { timeout: 30_000 } } }

export default defineConfig({
  test: {
    // the default leaves one core idle, and most of the long tests wait for a browser or another process
    maxWorkers: availableParallelism(),
    projects: [
      ...tested.map((folder) => ({
        plugins: plugins[folder]?.() ?? [],
        resolve: { alias },
        test: {
          name: folder.replace('packages/', ''),
          root: folder,
          include: ['test/**/*.test.{ts,tsx}'],
          environment: inJsdom.has(folder) ? 'jsdom' : 'node',
          ...patience,
        },
      })),
      {
        resolve: { alias },
        test: { name: 'workspace', root: 'test', include: ['**/*.test.{ts,tsx}'], ...patience },
      },
    ],
  },
})
