// `npm run size`: what a page loads of the built packages, minified and gzipped, at first and later. Fails above a budget.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { root } from './packages.mjs'

const client = { client: '{ ChatClient, fetchServerSentEvents }' }

/** When each lazily loaded chunk is loaded. */
const moments = {
  'ag-ui':
    'at the first event that is not of a plain chat (snapshots, shared state, chunks, subagents, sources, structured replies)',
}

/** The target sizes of the client, in KiB. */
export const aims = { first: 16, withBinding: 17, later: 12 }

/** Budgets in KiB: the build fails above them. */
export const budgets = [
  { name: 'client: ChatClient and fetchServerSentEvents', imports: client, first: 33.4, later: 9.5 },
  {
    // Aim: 1.5.
    name: 'client: previews and edits of them, on top of a page that shows approvals',
    imports: { client: `${client.client.slice(0, -2)}, approvalView, previewView, previewEdits }` },
    on: { client: `${client.client.slice(0, -2)}, approvalView }` },
    onTop: true,
    first: 2.25,
  },
  {
    name: 'ai-sdk: aiSdk, on top of the client',
    imports: { ...client, 'ai-sdk': '{ aiSdk }' },
    onTop: true,
    first: 8.05,
  },
  {
    name: 'langgraph: langGraph, on top of the client',
    imports: { ...client, langgraph: '{ langGraph }' },
    onTop: true,
    first: 6.1,
  },
  ...['react', 'solid', 'vue', 'svelte'].map((name) => ({
    name: `${name}: on top of the client`,
    imports: { ...client, [name]: name === 'svelte' ? '{ createChat }' : '{ useChat }' },
    onTop: true,
    first: 1.5,
  })),
  {
    name: 'devtools: the element, on top of the client',
    imports: { ...client, devtools: '{ defineDevtools }' },
    onTop: true,
    first: 23.1,
  },
]

const kib = (bytes) => bytes / 1024

/** Bundles what a page imports. Returns the bytes loaded first, gzipped and minified (`min`), and of each later chunk by its name. */
export async function measure({ imports }) {
  const lines = Object.entries(imports).map(
    ([name, names]) =>
      `export ${names} from ${JSON.stringify(join(root, 'packages', name, 'dist/index.js'))}`,
  )
  const { outputFiles, metafile } = await build({
    stdin: { contents: lines.join('\n'), resolveDir: root },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    outdir: 'out',
    write: false,
    metafile: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    external: ['react', 'solid-js', 'vue', 'svelte'].flatMap((name) => [name, `${name}/*`]),
    // Otherwise a renamed export would pass with 8 bytes.
    logOverride: { 'import-is-undefined': 'error' },
  })
  const sizes = new Map(
    Object.keys(metafile.outputs).map((path, at) => [
      path,
      gzipSync(outputFiles[at].contents, { level: 9 }).length,
    ]),
  )
  const first = new Set(['out/stdin.js'])
  for (const path of first)
    for (const { path: next, kind } of metafile.outputs[path].imports)
      if (kind === 'import-statement' && sizes.has(next)) first.add(next)
  const sumOf = (bytesOf) => [...first].reduce((bytes, path) => bytes + bytesOf(path), 0)
  const later = [...sizes].filter(([path]) => !first.has(path))
  return {
    first: sumOf((path) => sizes.get(path)),
    min: sumOf((path) => metafile.outputs[path].bytes),
    later: later.map(([path, bytes]) => [/out\/(.+)-\w+\.js/.exec(path)?.[1] ?? path, bytes]),
  }
}

async function main() {
  const base = await measure({ imports: client })
  for (const budget of budgets) {
    const page = await measure(budget)
    const below = budget.on ? await measure({ imports: budget.on }) : base
    const first = page.first - (budget.onTop ? below.first : 0)
    const later = page.later.filter(
      ([name]) => !budget.onTop || !base.later.some(([known]) => known === name),
    )
    const all = later.reduce((bytes, [, more]) => bytes + more, 0)
    console.log(`${kib(first).toFixed(2).padStart(6)} KiB of ${budget.first}  ${budget.name}`)
    for (const [name, bytes] of later)
      console.log(
        `${kib(bytes).toFixed(2).padStart(6)} KiB later  ${name}: ${moments[name] ?? 'when it is asked for'}`,
      )
    if (kib(first) > budget.first || kib(all) > (budget.later ?? 0)) {
      console.error(`Above the budget: ${budget.name}.`)
      process.exitCode = 1
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main()
