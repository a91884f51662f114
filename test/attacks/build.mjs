// The server as one module, whole or with checks taken out. Nothing is read from or written to the packages' dist.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '../..')
const packages = join(root, 'packages')

const entries = `
export * from './index.ts'
export * from './node.ts'
export { handleAiSdkChat, resumeAiSdkChat } from '../../ai-sdk/src/server.ts'
export { CountersignError } from '@countersign/core'
export { redisLedger } from '../../redis/src/index.ts'
export { ensureSchema, fromPg, sqlLedger } from '../../sql/src/index.ts'`

/** Where the builds of this process go; below the root, so that they find its dependencies. */
export const folder = join(root, `.verify/attacks-${process.pid}`)

/**
 * Bundles server, core and the ledgers in Redis and SQL from their sources. Each of `edits` (`{ file, find, put }`, the file below packages/) must find its text
 * exactly once.
 */
export async function buildServer(name, edits = []) {
  mkdirSync(folder, { recursive: true })
  const outfile = join(folder, `${name}.mjs`)
  const applied = new Set()
  await build({
    stdin: {
      contents: entries,
      resolveDir: join(packages, 'server/src'),
      loader: 'ts',
    },
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['@photostructure/sqlite'],
    nodePaths: [join(packages, 'server/node_modules')],
    alias: {
      '@countersign/server/prompt': join(packages, 'server/src/prompt.ts'),
      '@countersign/core/ag-ui': join(packages, 'core/src/ag-ui.ts'),
      '@countersign/core': join(packages, 'core/src/index.ts'),
      '@countersign/server/http-kit': join(packages, 'server/src/http-kit.ts'),
      '@countersign/server/ledger-kit': join(packages, 'server/src/ledger-kit.ts'),
      '@countersign/server': join(packages, 'server/src/index.ts'),
    },
    logLevel: 'error',
    plugins: edits.length === 0 ? [] : [editing(edits, applied)],
  })
  for (const edit of edits) if (!applied.has(edit)) throw new Error(`${edit.file} is no part of the server`)
  return { path: outfile, server: await import(pathToFileURL(outfile).href) }
}

function editing(edits, applied) {
  return {
    name: 'edits',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const mine = edits.filter(({ file }) => path === join(packages, file))
        if (mine.length === 0) return undefined
        let contents = readFileSync(path, 'utf8')
        for (const edit of mine) {
          contents = replaceOnce(contents, edit)
          applied.add(edit)
        }
        return { contents, loader: 'ts' }
      })
    },
  }
}

/** What is wrong with where edits are to be made; nothing where each finds its text exactly once. */
export function misplaced(edits) {
  return edits.flatMap(({ file, find }) => {
    const times = readFileSync(join(packages, file), 'utf8').split(find).length - 1
    return times === 1 ? [] : [`${file} has ${times} times, not once:\n${find}`]
  })
}

/** A check that has moved or changed must not silently stay in. */
function replaceOnce(text, edit) {
  const [problem] = misplaced([edit])
  if (problem !== undefined) throw new Error(problem)
  return text.split(edit.find).join(edit.put)
}
