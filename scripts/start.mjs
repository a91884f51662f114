// `npm start [-- react|solid|vue|svelte] [--verbose]`: installs and builds what the demo needs, if necessary, and starts its server.
import './requirements.mjs'

const { createHash } = await import('node:crypto')
const { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } = await import('node:fs')
const { join } = await import('node:path')
const { readArguments } = await import('./arguments.mjs')
const { install } = await import('./install.mjs')
const { capture, runGroup, since } = await import('./run.mjs')

const root = join(import.meta.dirname, '..')
const pages = ['react', 'solid', 'vue', 'svelte']
const { values, positionals } = readArguments('start', {
  options: { verbose: { type: 'boolean' } },
  words: pages,
})
const { verbose } = values
const [page = 'react', ...more] = positionals
if (more.length > 0) fail(`npm start takes one page, not ${positionals.length}.`)

function fail(message) {
  console.error(message)
  process.exit(1)
}

/**
 * Runs one step and prints what it did and how long it took; prints nothing if there was nothing to do. A
 * tool's output is shown if it failed, or with --verbose.
 */
async function step(title, work) {
  const began = performance.now()
  const live = process.stdout.isTTY && !verbose
  if (live) process.stdout.write(`${title}…`)
  const { output = '', problem, did } = await work()
  if (live) process.stdout.write('\r\u001B[K')
  if (problem !== undefined) console.log(`${title}: failed after ${since(began)}`)
  else if (did !== undefined) console.log(`${did} in ${since(began)}`)
  if (verbose || problem !== undefined) process.stdout.write(output)
  if (problem !== undefined) fail(problem)
}

/** A digest of everything that the demo is built from. */
function sources() {
  const folders = ['packages', 'examples'].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => join(root, parent, name, 'src')),
  )
  folders.push(join(root, 'packages/registry'))
  const hash = createHash('sha256').update(readFileSync(join(root, 'pnpm-lock.yaml')))
  for (const folder of [join(root, 'scripts'), ...folders].filter(existsSync)) {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    for (const file of files.filter((name) => !name.includes('node_modules')).sort())
      hash.update(file).update(readFileSync(file))
  }
  return hash.digest('hex')
}

function installedPackages() {
  const store = join(root, 'node_modules/.pnpm')
  return readdirSync(store).filter((name) => name.includes('@')).length
}

console.log('Countersign: a chat whose tools ask you first')
const members = ['scripts', `example-${page}`, 'example-server', 'example-mcp-server']
const parts = members.map((name) => `@countersign/${name}`)
await step('Installing what the demo needs', async () => {
  const { done, output, problem } = await install(parts)
  if (problem !== undefined || !done) return { output, problem }
  return { output, did: `Installed what the demo needs (${installedPackages()} packages)` }
})

const stamp = join(root, '.countersign', `built-${page}`)
const digest = sources()
const built = [
  stamp,
  join(root, 'examples', page, 'dist/index.html'),
  join(root, 'examples/server/dist/main.js'),
]
await step(`Building the page in ${page} and the server`, async () => {
  if (built.every(existsSync) && readFileSync(stamp, 'utf8') === digest) return {}
  const flags = verbose ? ['--verbose'] : []
  const { status, output } = await capture(process.execPath, ['scripts/build.mjs', page, ...flags], {
    cwd: root,
  })
  if (status !== 0)
    return { output, problem: 'The demo could not be built. What the builder printed is above.' }
  mkdirSync(join(root, '.countersign'), { recursive: true })
  writeFileSync(stamp, digest)
  return { output, did: `Built the page in ${page} and the server` }
})

process.exitCode = await runGroup(process.execPath, ['examples/server/dist/main.js'], {
  cwd: root,
  env: { ...process.env, DEMO_PAGE: page },
})
