// Installs what the lock file names. Does nothing if nothing has changed since the last run.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { capture } from './run.mjs'

const root = join(import.meta.dirname, '..')
const stamp = join(root, 'node_modules/.countersign.json')
const { packageManager } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** The running npm if there is one, so that no other npm on PATH is used. */
const npm = () => {
  const cli = process.env.npm_execpath ?? ''
  return basename(cli) === 'npm-cli.js' ? [process.execPath, cli] : ['npm']
}

/** The command of the pinned pnpm, which needs only npm. */
export function pnpm(...args) {
  return [...npm(), 'exec', '--yes', `--package=${packageManager}`, '--', 'pnpm', ...args]
}

/** A digest of everything that decides what is installed. */
function wanted() {
  const members = ['packages', 'examples'].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => join(parent, name, 'package.json')),
  )
  const files = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json', ...members].map((file) =>
    join(root, file),
  )
  const hash = createHash('sha256')
  for (const file of files) if (existsSync(file)) hash.update(readFileSync(file))
  return hash.digest('hex')
}

/** The parts of the workspace that are installed for this digest; `all` if everything is. */
function installed(digest) {
  const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')
  const { digest: last, parts } = JSON.parse(read(stamp) || '{}')
  if (last === digest) return parts
  // pnpm was run by hand. Installing only some parts would now remove the rest.
  const same = read(join(root, 'node_modules/.pnpm/lock.yaml')) === read(join(root, 'pnpm-lock.yaml'))
  return same ? ['all'] : []
}

/**
 * Installs the workspace, or only what `parts` (names of packages) need to run. `done`: false if there was
 * nothing to do; `problem`: what is wrong and how to fix it; `output`: what the installer printed.
 */
export async function install(parts = ['all']) {
  const digest = wanted()
  const known = installed(digest)
  if (known.includes('all') || parts.every((part) => known.includes(part))) return { done: false, output: '' }
  // a part is installed without its dev dependencies, and so are the parts it depends on
  const filters = parts.includes('all')
    ? []
    : ['--prod', ...parts.flatMap((part) => ['--filter', `${part}...`])]
  const [command, ...args] = pnpm(
    'install',
    '--frozen-lockfile',
    '--prefer-offline',
    '--config.confirmModulesPurge=false',
    ...filters,
  )
  const { status, output } = await capture(command, args, { cwd: root })
  if (status !== 0) return { done: true, output, problem: explain(output) }
  writeFileSync(stamp, JSON.stringify({ digest, parts: [...new Set([...known, ...parts])] }))
  return { done: true, output }
}

const offline =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|network/i

function explain(output) {
  if (offline.test(output))
    return 'The packages could not be downloaded: the package registry does not answer. Check the network and the proxy settings of npm, then run this again.'
  if (output.includes('ENOSPC')) return 'The disk is full. Make room, then run this again.'
  return 'The packages could not be installed. What the installer printed is above.'
}
