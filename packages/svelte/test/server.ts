import * as client from '@countersign/client'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { createServer, type Plugin, type ViteDevServer } from 'vite'

/** Starts what compiles and loads components as on a server, where `svelte` is another package than in the browser. */
export function createSvelteServer(): Promise<ViteDevServer> {
  return createServer({
    configFile: false,
    root: import.meta.dirname,
    appType: 'custom',
    logLevel: 'error',
    // Components that can be replaced while they run are rendered with other markers than those of the tests.
    server: { middlewareMode: true, hmr: false, ws: false, watch: null },
    optimizeDeps: { noDiscovery: true },
    plugins: [sameClient(), svelte({ configFile: false })],
    resolve: { alias: { '@countersign/svelte': `${import.meta.dirname}/../src/index.ts` } },
  })
}

/** The client's module as it is here, so that a test can hand a `ChatClient` to a page on either side. */
function sameClient(): Plugin {
  const name = 'countersign.test.client'
  const id = `\0${name}`
  Reflect.set(globalThis, name, client)
  return {
    name,
    enforce: 'pre',
    resolveId: (source) => (source === '@countersign/client' ? id : undefined),
    load: (wanted) =>
      wanted === id ? `export const { ${Object.keys(client).join()} } = globalThis['${name}']` : undefined,
  }
}
