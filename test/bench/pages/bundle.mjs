import { readFile, realpath } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { compile } from 'svelte/compiler'

/** How everything is bundled that a browser would run: in production mode, as ES modules. */
export const production = {
  bundle: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  conditions: ['browser', 'production'],
  mainFields: ['browser', 'module', 'main'],
  define: {
    'process.env.NODE_ENV': '"production"',
    __VUE_OPTIONS_API__: 'false',
    __VUE_PROD_DEVTOOLS__: 'false',
    __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
  },
  // Else the paths of the repository's own tsconfig lead to sources instead of to what is published.
  tsconfigRaw: {},
  logLevel: 'error',
}

/** Bundles a page into one module. */
export async function bundlePage(name, outfile) {
  const agUi = createRequire(await realpath(fileURLToPath(import.meta.resolve('ag-ui-client-1'))))
  await build({
    ...production,
    entryPoints: [join(import.meta.dirname, name)],
    outfile,
    jsx: 'automatic',
    alias: { rxjs: dirname(agUi.resolve('rxjs/package.json')) },
    plugins: [svelte],
  })
  return outfile
}

const svelte = {
  name: 'svelte',
  setup({ onLoad }) {
    onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8')
      const { js } = compile(source, { filename: basename(path), generate: 'client', dev: false })
      return { contents: js.code, loader: 'js' }
    })
  },
}
