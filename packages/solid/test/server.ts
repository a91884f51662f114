import * as client from '@countersign/client'
import { createServer, type Plugin } from 'vite'
import solid from 'vite-plugin-solid'
import type { renderPages } from './served.js'

interface SolidServer {
  readonly renderPages: typeof renderPages
  close(): Promise<void>
}

/** Starts what compiles and loads pages as on a server, where JSX becomes strings and `solid-js` is another build than in the browser. */
export async function createSolidServer(): Promise<SolidServer> {
  const server = await createServer({
    configFile: false,
    root: import.meta.dirname,
    appType: 'custom',
    logLevel: 'error',
    server: { middlewareMode: true, ws: false, watch: null },
    optimizeDeps: { noDiscovery: true },
    plugins: [sameClient(), ownTimer(), solid({ ssr: true })],
    // Else Node loads it, under the conditions of a browser that the test runner sets.
    ssr: { noExternal: ['solid-js'] },
    resolve: { alias: { '@countersign/solid': `${import.meta.dirname}/../src/index.ts` } },
  })
  const { renderPages } = await server.ssrLoadModule('/served.tsx')
  return { renderPages, close: () => server.close() }
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

/** Solid lets go of what it has rendered by a timer, which is its own affair: tests that watch `setTimeout` do not see it. */
function ownTimer(): Plugin {
  return {
    name: 'countersign.test.timer',
    transform: (code, id) =>
      id.includes('/solid-js/web/') ? `const { setTimeout } = globalThis\n${code}` : undefined,
  }
}
