import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'

const root = resolve(import.meta.dirname, '..')

/** Every `@countersign/*` entry is its source, as in the tests that start the process. */
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
 * Builds a script in TypeScript so that a test can run it as a process of its own. It lies in `folder`, from which what is not
 * built in is found. Resolves to the script's path and a function that removes it.
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
    // a binary
    external: ['@photostructure/sqlite', 'pg-native'],
    // what is built in may be CommonJS, which asks for Node's modules by `require`
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url)",
    },
    logLevel: 'error',
    plugins: [fromSources],
  })
  return { file, remove: () => rm(own, { recursive: true }) }
}
