// `npm run apps [-- NAME...]`: installs each application of `examples/apps` with the packed packages, builds it for production, checks its
// types, and uses it in Chromium. Needs a build, and npm needs its registry or cache. `--pictures FOLDER` keeps a picture of each
// application; `--keep` keeps the folders that they were installed in. `--lock` only writes their lock files anew, with the present version
// of our packages: after a change of their dependencies or of ours.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { chromium } from 'playwright-core'
import { readArguments } from '../../scripts/arguments.mjs'
import { findChromium } from '../../scripts/chromium.mjs'
import { packages, root } from '../../scripts/packages.mjs'
import { since } from '../../scripts/run.mjs'
import { committedLock, lockWithTarballs, withTarballs } from './lock.mjs'
import { packAll } from './packed.mjs'
import { useApp } from './use-app.mjs'

const sources = join(root, 'examples/apps')
const all = readdirSync(sources).filter((name) => existsSync(join(sources, name, 'package.json')))
const { values: options, positionals: asked } = readArguments('apps', {
  options: { pictures: { type: 'string' }, keep: { type: 'boolean' }, lock: { type: 'boolean' } },
  words: all,
})

const home = mkdtempSync(join(tmpdir(), 'countersign-apps-'))
const running = new Set()

/** As of a shell that has nothing to do with this workspace. Without a secret of its own, an application warns, as it should. */
const env = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|VITEST|NODE_ENV$|TEST)/i.test(name)),
  ),
  COUNTERSIGN_SECRET: 'a secret for the tests of the applications, of 32 bytes or more',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
  npm_config_prefer_offline: 'true',
  npm_config_omit_lockfile_registry_resolved: 'true',
  NEXT_TELEMETRY_DISABLED: '1',
  NUXT_TELEMETRY_DISABLED: '1',
  ASTRO_TELEMETRY_DISABLED: '1',
  NO_COLOR: '1',
  CI: '1',
}

/** Starts a command in a process group of its own, so that it ends with all that it started. */
function start(cwd, command, args, more = {}) {
  const child = spawn(command, args, {
    cwd,
    env: { ...env, ...more },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const closed = once(child, 'close')
  const one = { child, closed, output: () => output }
  running.add(one)
  closed.finally(() => running.delete(one))
  return one
}

async function command(cwd, name, args) {
  const { closed, output } = start(cwd, name, args)
  const [status] = await closed
  if (status !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${status}:\n${output()}`)
}

async function stop({ child, closed }) {
  if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid)
  await closed
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  return port
}

/** Starts the production server; resolves when it answers. */
async function serve(folder, port) {
  const url = `http://127.0.0.1:${port}`
  const server = start(folder, 'npm', ['run', 'start'], {
    PORT: String(port),
    HOST: '127.0.0.1',
    ORIGIN: url,
  })
  let ended = false
  server.closed.then(() => (ended = true))
  while (!ended) {
    try {
      await fetch(url, { redirect: 'manual' })
      return { url, stop: () => stop(server), output: server.output }
    } catch {
      await pause(50)
    }
  }
  throw new Error(`The server ended:\n${server.output()}`)
}

/** Why an application cannot run here: its `engines` name an oldest Node. */
function problemOf({ engines }) {
  const [, major = 0, minor = 0] = /^>=(\d+)\.(\d+)/.exec(engines.node) ?? []
  const [here, minorHere] = process.versions.node.split('.').map(Number)
  const isNewEnough = here > Number(major) || (here === Number(major) && minorHere >= Number(minor))
  return isNewEnough ? undefined : `it needs Node ${engines.node}, and this is ${process.versions.node}`
}

const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))
const writeJson = (file, value) => writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)

/** All our packages have one version. */
function useOurVersion(file) {
  const { version } = packages[0].manifest
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replaceAll(/("@countersign\/[\w-]+": )"[^"]*"/g, `$1"${version}"`))
}

/** Writes the lock file of an application, for every platform: nothing is installed. */
async function writeLock(name, manifest, tarballs) {
  const folder = join(home, name)
  mkdirSync(folder)
  writeJson(join(folder, 'package.json'), withTarballs(manifest, tarballs))
  await command(folder, 'npm', ['install', '--package-lock-only', '--ignore-scripts'])
  const lock = committedLock(readJson(join(folder, 'package-lock.json')), manifest, tarballs)
  writeJson(join(sources, name, 'package-lock.json'), lock)
}

/** Puts the packed packages into a copied application, and installs it by its lock file. */
async function install(folder, manifest, tarballs) {
  const lock = readJson(join(folder, 'package-lock.json'))
  writeJson(join(folder, 'package.json'), withTarballs(manifest, tarballs))
  writeJson(join(folder, 'package-lock.json'), lockWithTarballs(lock, manifest, tarballs))
  await command(folder, 'npm', ['ci', '--ignore-scripts'])
}

/** Installs, builds, checks and uses one application. Resolves to what was seen, step by step. */
async function test(name, manifest, tarballs, browser) {
  const folder = join(home, name)
  const parts = /(?:^|\/)(?:node_modules|dist|data|\.next|\.nuxt|\.output|\.svelte-kit|\.vinxi|build)$/
  cpSync(join(sources, name), folder, { recursive: true, filter: (file) => !parts.test(file) })
  await install(folder, manifest, tarballs)
  await command(folder, 'npm', ['run', 'build'])
  await command(folder, 'npm', ['run', 'check'])
  const port = await freePort()
  let server = await serve(folder, port)
  const picture = options.pictures && join(resolve(options.pictures), `${name}.png`)
  const restart = async () => {
    await server.stop()
    server = await serve(folder, port)
  }
  try {
    return await useApp(browser, { name, url: server.url, restart, picture, ...manifest.countersign })
  } catch (error) {
    error.message += `\nThe server said:\n${server.output()}`
    throw error
  } finally {
    await server.stop()
    if (!options.keep) rmSync(folder, { recursive: true, force: true })
  }
}

const endAll = () => {
  for (const one of running) stop(one)
}
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    endAll()
    process.exit(1)
  })

let passed = 0
let untested = 0
const names = asked.length > 0 ? asked : all
if (options.pictures) mkdirSync(options.pictures, { recursive: true })
mkdirSync(join(home, 'packed'))
const browser = await chromium.launch({
  executablePath: findChromium(),
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic'],
})
try {
  const tarballsFor = await packAll(join(home, 'packed'))
  for (const name of names) {
    const began = performance.now()
    if (options.lock) useOurVersion(join(sources, name, 'package.json'))
    const manifest = readJson(join(sources, name, 'package.json'))
    const tarballs = tarballsFor(manifest)
    if (options.lock) {
      await writeLock(name, manifest, tarballs)
      passed++
      continue
    }
    const problem = problemOf(manifest)
    if (problem !== undefined) {
      untested++
      console.log(`NOT TESTED  ${name}: ${problem}`)
      continue
    }
    try {
      const seen = await test(name, manifest, tarballs, browser)
      passed++
      console.log(`ok      ${name}  ${since(began)}  ${seen.join(', ')}`)
    } catch (error) {
      const [, ...places] = `${error.stack}`.split(/\n(?= {4}at )/)
      console.log(`FAILED  ${name}  ${since(began)}\n${error.message}\n${places.join('\n')}`)
    }
  }
} finally {
  await browser.close()
  endAll()
  if (options.keep) console.log(`The applications are in ${home}.`)
  else rmSync(home, { recursive: true, force: true })
}
console.log(
  `${passed} of ${names.length} applications ${options.lock ? 'have new lock files' : 'pass'}${untested > 0 ? `, ${untested} not tested` : ''}`,
)
process.exitCode = passed + untested === names.length ? 0 : 1
