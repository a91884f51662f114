// `npm run size`: what a page loads of the built packages, minified and gzipped, at first and later. Fails above a budget.
// Then what each package takes on disk with its dependencies.
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { readArguments } from './arguments.mjs'
import { packages, root } from './packages.mjs'

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
  { name: 'client: ChatClient and fetchServerSentEvents', imports: client, first: 35, later: 9.6 },
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
    first: 8.7,
  },
  {
    name: 'langgraph: langGraph, on top of the client',
    imports: { ...client, langgraph: '{ langGraph }' },
    onTop: true,
    first: 6.4,
  },
  ...['react', 'solid', 'vue', 'svelte'].map((name) => ({
    name: `${name}: on top of the client`,
    imports: { ...client, [name]: name === 'svelte' ? '{ createChat }' : '{ useChat }' },
    onTop: true,
    first: 1.7,
  })),
  {
    name: 'devtools: the element, on top of the client',
    imports: { ...client, devtools: '{ defineDevtools }' },
    onTop: true,
    first: 23.4,
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
    logOverride: { 'import-is-undefined': 'error', 'ignored-bare-import': 'silent' },
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

/** Bytes of a file, or of all files of a folder but what is installed in it. */
function bytesOf(path) {
  if (!statSync(path).isDirectory()) return statSync(path).size
  const names = readdirSync(path).filter((name) => name !== 'node_modules')
  return names.reduce((bytes, name) => bytes + bytesOf(join(path, name)), 0)
}

/** What a package of this repository publishes: its `files`, and what npm always adds. */
function publishedBytes({ folder, manifest }) {
  const files = new Set([...manifest.files, 'package.json', 'README.md'])
  const own = [...files].reduce((bytes, name) => bytes + bytesOf(join(folder, name)), 0)
  return own + bytesOf(join(root, 'LICENSE'))
}

/** The folders of a package's dependencies as pnpm installs them: in the package, or beside it. */
function dependenciesOf(folder) {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const beside = folder.slice(0, folder.lastIndexOf('node_modules') + 'node_modules'.length)
  return Object.keys(dependencies ?? {}).map((name) => {
    const places = [join(folder, 'node_modules', name), join(beside, name)]
    const place = places.find(existsSync)
    if (!place) throw new Error(`${name}, a dependency of ${folder}, is not installed.`)
    return realpathSync(place)
  })
}

/** What installing a package adds to `node_modules`: its own bytes, all bytes, and the number of packages. Peers are the application's. */
export function installSize(one) {
  const published = new Map(packages.map((each) => [realpathSync(each.folder), each]))
  const folders = new Set([realpathSync(one.folder)])
  for (const folder of folders) for (const dependency of dependenciesOf(folder)) folders.add(dependency)
  const bytes = [...folders].map((folder) => {
    const ours = published.get(folder)
    return ours ? publishedBytes(ours) : bytesOf(folder)
  })
  const [own = 0] = bytes
  return { own, all: bytes.reduce((sum, each) => sum + each, 0), packages: folders.size }
}

function printInstallSizes() {
  console.log('\nInstalled: KiB of the package, KiB with its dependencies, packages (peers are not counted)')
  for (const one of packages) {
    const { own, all, packages: count } = installSize(one)
    const figures = [kib(own), kib(all)].map((size) => size.toFixed(0).padStart(7))
    console.log(`${figures.join('')}${String(count).padStart(4)}  ${one.manifest.name}`)
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
  printInstallSizes()
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  readArguments('size')
  await main()
}
