import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'

const root = resolve(import.meta.dirname, '..')

/** Resolves every `@countersign/*` entry to its source, as in the tests that start the process. */
const fromSources = {
  name: 'from-sources',
  setup({ onResolve }) {
    onResolve({ filter: /^@countersign\// }, ({ path }) => {
      const [, name, entry = 'index'] = path.split('/')
      const folder = name === 'example-page' ? 'examples/page' : `packages/${name}`
      return { path: join(root, folder, 'src', `${entry}.ts`) }
    })
  },
}

/**
 * Bundles a TypeScript script so that a test can run it as a separate process. The bundle is put into `folder`,
 * from which it resolves external modules. Resolves to the script's path and a function that removes it.
 */
export async function bundleForNode(entry, folder) {
  const own = await mkdtemp(
    join(folder, existsSync(join(folder, 'package.json')) ? 'node_modules/.process-' : 'process-'),
  )
  const file = join(own, 'script.mjs')
  await build({
    entryPoints: [entry],
    outfile: file,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // binary modules
    external: ['@photostructure/sqlite', 'pg-native'],
    // bundled modules may be CommonJS, which loads Node's modules with `require`
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url)",
    },
    logLevel: 'error',
    plugins: [fromSources],
  })
  return { file, remove: () => rm(own, { recursive: true }) }
}

/** Bundles a TypeScript script for a page of a test, from the sources. Resolves to its text. */
export async function bundleForPage(entry) {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: 'iife',
    write: false,
    target: 'es2022',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'error',
    plugins: [fromSources],
  })
  return outputFiles[0].text
}
