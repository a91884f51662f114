import { readFile, realpath } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { compile } from 'svelte/compiler'

/** Bundles a page for a browser, in production mode, into one ES module. */
export async function bundlePage(name, outfile) {
  const agUi = createRequire(await realpath(fileURLToPath(import.meta.resolve('ag-ui-client-1'))))
  await build({
    entryPoints: [join(import.meta.dirname, name)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    conditions: ['browser', 'production'],
    mainFields: ['browser', 'module', 'main'],
    jsx: 'automatic',
    alias: { rxjs: dirname(agUi.resolve('rxjs/package.json')) },
    define: {
      'process.env.NODE_ENV': '"production"',
      __VUE_OPTIONS_API__: 'false',
      __VUE_PROD_DEVTOOLS__: 'false',
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: 'false',
    },
    plugins: [svelte],
    // Else the paths of the repository's own tsconfig lead to sources instead of to what is published.
    tsconfigRaw: {},
    logLevel: 'error',
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
