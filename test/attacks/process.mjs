// The server as a process of its own, over a ledger that others share. Started with a JSON of `{ path, shared }` it serves; every run of
// a tool is a line of its output.
import { spawn } from 'node:child_process'
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { clientOf } from './client.mjs'
import { openDescribed } from './ledgers.mjs'
import { openPlace } from './place.mjs'

/** Starts a process, over the ledger that all processes of this attack share. */
export async function startProcess(world) {
  const config = JSON.stringify({ path: world.path, shared: world.shared })
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), config], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let ran = () => {}
  const running = new Promise((resolve) => {
    ran = resolve
  })
  const record = { ...world.record }
  let killed = false
  record.crash = (error) => killed || world.record.crash(error)
  const port = await new Promise((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const said = JSON.parse(line)
      if (said.port !== undefined) resolve(said.port)
      if (said.run === undefined) return
      world.record.run(said.run)
      ran()
    })
    void ended.then(() => resolve(0))
  })
  const kill = () => {
    killed = true
    child.kill('SIGKILL')
    return ended
  }
  world.closing.push(kill)
  return { ...clientOf(port, record), kill, ran: () => running }
}

async function serve({ path, shared }) {
  const server = await import(pathToFileURL(path).href)
  const say = (value) => writeSync(1, `${JSON.stringify(value)}\n`)
  const record = {
    run: (run) => say({ run }),
    note: () => {},
    asked: () => {},
    error: () => {},
    crash: (error) => {
      throw error
    },
  }
  const ledger = await openDescribed(server, shared)
  const { port } = await openPlace(server, record, { ledger, lease: 2000 })
  say({ port })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(JSON.parse(process.argv[2]))
