import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/** The command of a Redis server: one on PATH, else, on Debian as root, installed with apt; else `undefined`. */
export function findRedisServer() {
  if (isThere() || (installWithApt('redis-server') && isThere())) return 'redis-server'
  return undefined
}

/** Installs a Debian package, if this is Debian and the user is root. Returns whether it tried. */
export function installWithApt(name) {
  if (!existsSync('/etc/debian_version') || process.getuid?.() !== 0) return false
  for (const command of [['update'], ['install', '-y', '--no-install-recommends', name]]) aptGet(...command)
  return true
}

/** Waits for another apt process. Success is not reported: check for what should be installed. */
function aptGet(...command) {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  try {
    execFileSync('apt-get', ['-qq', '-o', 'DPkg::Lock::Timeout=120', ...command], { stdio: 'inherit', env })
  } catch {
    // another process may have installed it meanwhile
  }
}

function isThere() {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * Starts a separate Redis server on a free loopback port. With `keep` it writes every change to its folder, for
 * `restart` to load; otherwise it keeps nothing. `cluster` makes it a node of a cluster, with no slots assigned yet.
 */
export async function startRedis(command, { keep = false, cluster = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-redis-'))
  const port = await freePort()
  const durable = keep ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no']
  const mode = cluster ? ['--cluster-enabled', 'yes'] : []
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    folder,
    '--save',
    '',
    ...durable,
    ...mode,
  ]
  let child = await launch(command, args, port)

  /** Kills it at once, as a failing machine would. */
  async function kill() {
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    child = undefined
    await ended
  }

  return {
    url: `redis://127.0.0.1:${port}`,
    kill,
    restart: async () => {
      await kill()
      child = await launch(command, args, port)
    },
    stop: async () => {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function launch(command, args, port) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  for (let tries = 0; tries < 500; tries++) {
    if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}:\n${output}`)
    if (await answers(port)) return child
    await pause(20)
  }
  child.kill('SIGKILL')
  throw new Error(`${command} does not answer on port ${port}:\n${output}`)
}

/** Whether it accepts commands; while it loads its files it answers, but not with PONG. */
function answers(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.once('data', (reply) => {
      socket.destroy()
      resolve(String(reply).startsWith('+PONG'))
    })
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
  })
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/**
 * The Redis that tests use: the one at REDIS_URL, else one started for them. Without either, prints what is
 * `untested` and resolves to `undefined`; the tests must then be skipped by name.
 */
export async function redisForTests(untested) {
  const { REDIS_URL } = process.env
  if (REDIS_URL) return { url: REDIS_URL, stop: async () => {} }
  const command = findRedisServer()
  if (command !== undefined) return startRedis(command)
  console.warn(
    `\nNOT TESTED: ${untested}. There is no Redis here: set REDIS_URL, or install redis-server, and run the tests again.\n`,
  )
  return undefined
}
