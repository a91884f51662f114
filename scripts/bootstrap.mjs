// What `npm test` and `npm start` run. It needs nothing but Node and npm: the pinned pnpm comes by `npm exec`, installs the
// workspace from its lock file and does `pnpm run` with the arguments given here. The environment goes on as npm hands it over,
// registry and proxy included.
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { ended, start } from './run.mjs'

const root = `${import.meta.dirname}/..`
const { packageManager } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))

/** The running npm where there is one, so that no other npm on PATH takes its place. */
function npm(args, options) {
  const cli = process.env.npm_execpath ?? ''
  if (basename(cli) !== 'npm-cli.js') return start('npm', args, options)
  return start(process.execPath, [cli, ...args], { ...options, shell: false })
}

let child

// Between this process and the last one that it started stand shells, which pass no signal on: so the whole group gets it
const group = process.platform !== 'win32'
function pass(signal) {
  if (!child?.pid) return
  try {
    process.kill(group ? -child.pid : child.pid, signal)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error // it has ended by itself
  }
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, pass)

// npm, told to end, ends the shell that started this process, and nobody tells this process
const parent = process.ppid
setInterval(() => process.ppid !== parent && pass('SIGTERM'), 500).unref()

async function pnpm(...args) {
  child = npm(['exec', '--yes', `--package=${packageManager}`, '--', 'pnpm', ...args], {
    cwd: root,
    stdio: 'inherit',
    detached: group,
  })
  const status = await ended(child)
  if (status !== 0) process.exit(status)
}

await pnpm('install', '--frozen-lockfile')
await pnpm('run', ...process.argv.slice(2))
