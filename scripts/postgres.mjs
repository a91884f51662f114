import { execFileSync, spawnSync } from 'node:child_process'
import { chownSync, existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, installWithApt } from './redis.mjs'

/** The folder of PostgreSQL's programs: one on PATH or Debian's, else, on Debian as root, installed with apt; else `undefined`. */
export function findPostgres() {
  const found = whereItIs()
  if (found !== undefined || !installWithApt('postgresql')) return found
  return whereItIs()
}

function whereItIs() {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian)
    ? readdirSync(debian).sort((one, other) => Number(other) - Number(one))
    : []
  const folders = [
    ...(process.env.PATH ?? '').split(':'),
    ...versions.map((version) => join(debian, version, 'bin')),
  ]
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'pg_ctl')))
}

/**
 * Starts a separate PostgreSQL server on a free loopback port. `durable` makes it write to the disk as in
 * production. Without it, the server is faster, but its data survives only as long as the machine runs.
 */
export async function startPostgres(programs, { durable = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-postgres-'))
  const port = await freePort()
  // it refuses to run as root
  const user = process.getuid?.() === 0 ? userId('postgres') : undefined
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const run = (program, args) => {
    const { status, stderr, error } = spawnSync(join(programs, program), args, {
      ...user,
      cwd: folder,
      // a server that keeps running would keep a pipe open
      stdio: ['ignore', 'ignore', program === 'pg_ctl' ? 'ignore' : 'pipe'],
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`${program} ended with ${status ?? error}: ${stderr ?? ''}`)
  }
  const data = join(folder, 'data')
  run('initdb', ['-D', data, '-A', 'trust', '-U', 'postgres', '--no-sync'])
  const sync = durable ? '' : '-c fsync=off'
  const options = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c max_connections=200 ${sync}`
  const start = () => run('pg_ctl', ['-D', data, '-l', join(folder, 'log'), '-o', options, '-w', 'start'])
  const stop = (mode) => run('pg_ctl', ['-D', data, '-m', mode, '-w', 'stop'])
  start()
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    /** Simulates a crash and starts it again. */
    restart: () => {
      stop('immediate')
      start()
    },
    stop: async () => {
      stop('immediate')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function userId(name) {
  const of = (what) => Number(execFileSync('id', [what, name], { encoding: 'utf8' }))
  return { uid: of('-u'), gid: of('-g') }
}

/**
 * The PostgreSQL that tests use: the one at POSTGRES_URL, else one started for them. Without either, prints
 * what is `untested` and resolves to `undefined`; the tests must then be skipped by name.
 */
export async function postgresForTests(untested, options) {
  const { POSTGRES_URL } = process.env
  if (POSTGRES_URL) return { url: POSTGRES_URL, stop: async () => {} }
  const programs = findPostgres()
  if (programs !== undefined) return startPostgres(programs, options)
  console.warn(
    `\nNOT TESTED: ${untested}. There is no PostgreSQL here: set POSTGRES_URL, or install postgresql, and run the tests again.\n`,
  )
  return undefined
}
