import { relative } from 'node:path'
import { entriesOf, packages } from './scripts/packages.mjs'

/** The entries of a package are the sources that its `exports` are built from. */
const ofPackages = packages.map((one) => [
  `packages/${one.name}`,
  {
    entry: [
      ...entriesOf(one).map((file) => relative(one.folder, file)),
      'test/**/*.test.{ts,tsx}',
      'test/**/*.process.ts',
    ],
    project: ['src/**/*.{ts,tsx}', 'test/**/*.{ts,tsx}'],
    ignoreDependencies: ['@photostructure/sqlite'],
  },
])

export default {
  // the pages of test/registry get the files that they import in a fresh application
  ignore: ['**/dist/**', 'test/timelines/harness/**', 'test/registry/page/*/**'],
  ignoreBinaries: ['apt-get', 'redis-server'],
  workspaces: {
    ...Object.fromEntries(ofPackages),
    '.': {
      entry: ['scripts/*.mjs', 'vitest.config.ts'],
      project: ['*.ts'],
      ignoreDependencies: [
        '@arethetypeswrong/cli',
        '@ag-ui/core',
        '@countersign/*',
        'fast-check',
        'playwright-core',
        'typedoc-plugin-markdown',
        'valibot',
        'zod',
      ],
    },
    'examples/server': {
      entry: ['src/main.ts', 'test/**/*.test.ts', 'test/**/*.process.ts'],
      project: ['src/**/*.ts', 'test/**/*.ts'],
    },
    'examples/mcp-server': {
      entry: ['src/main.ts'],
      project: ['src/**/*.ts'],
    },
    'examples/terminal': {
      entry: ['src/main.ts', 'test/**/*.test.ts'],
      project: ['src/**/*.ts', 'test/**/*.ts'],
    },
    'examples/routes': {
      entry: ['test/**/*.test.ts'],
      project: ['src/**/*.ts', 'test/**/*.ts'],
    },
    'examples/page': {
      entry: ['src/*.ts', 'test/**/*.test.ts'],
      project: ['src/**/*.ts', 'test/**/*.ts'],
    },
    'examples/*': {
      project: ['src/**/*.{ts,tsx,vue,svelte}'],
    },
    'examples/vue': {
      project: ['src/**/*.{ts,vue}'],
      ignoreDependencies: ['vue-tsc'],
    },
    'examples/svelte': {
      project: ['src/**/*.{ts,svelte}'],
      ignoreDependencies: ['svelte-check'],
    },
    scripts: {
      entry: ['*.mjs'],
      project: ['*.mjs'],
    },
    test: {
      entry: [
        '**/*.test.{ts,tsx}',
        '**/*.process.ts',
        'acceptance/*.mjs',
        'bench/*.mjs',
        'compare/compare.mjs',
        'compare/servers/*.mjs',
        'timelines/*.mjs',
        'conformance/*.mjs',
        'interop/*.mjs',
        'newcomer/*.mjs',
        'explore/*.mjs',
        'browser/*-page.ts',
        'registry/page/*.{ts,tsx}',
      ],
      project: ['**/*.{ts,tsx,mjs}'],
      ignoreDependencies: ['ag-ui-client-0', 'ag-ui-client-1'],
    },
  },
}
