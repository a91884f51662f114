import { join } from 'node:path'
import type { ChatClient } from '@countersign/client'
import { createServer, type Plugin } from 'vite'

const root = join(import.meta.dirname, '../..')
const assignment = 'skipped = true'

/** The client with its second flag never set: what it was like before there was one. */
export async function loadWithoutSkippedFlag(): Promise<typeof ChatClient> {
  let replaced = 0
  const mutation: Plugin = {
    name: 'without-skipped-flag',
    enforce: 'pre',
    transform(code, id) {
      const pieces = id.includes('/packages/client/src/') ? code.split(assignment) : []
      if (pieces.length < 2) return undefined
      replaced += pieces.length - 1
      return pieces.join('skipped = false')
    },
  }
  const vite = await createServer({
    root,
    configFile: false,
    logLevel: 'error',
    plugins: [mutation],
    server: { middlewareMode: true, ws: false, watch: null },
    optimizeDeps: { noDiscovery: true },
    resolve: {
      alias: [
        { find: '@countersign/core/ag-ui', replacement: `${root}/packages/core/src/ag-ui.ts` },
        { find: '@countersign/core', replacement: `${root}/packages/core/src/index.ts` },
      ],
    },
  })
  try {
    const mutated = await vite.ssrLoadModule('/packages/client/src/index.ts')
    if (replaced !== 1)
      throw new Error(`"${assignment}" stands ${replaced} times in the client; it has to be once.`)
    return mutated['ChatClient']
  } finally {
    await vite.close()
  }
}
