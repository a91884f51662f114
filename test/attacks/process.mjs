// The server as a process of its own, over a ledger in a file. Started with a JSON of `{ path, file }` it serves; every run of a tool
// is a line of its output.
import { spawn } from 'node:child_process'
import { mkdirSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { folder } from './build.mjs'
import { clientOf } from './client.mjs'
import { openPlace } from './place.mjs'

let files = 0

/** Starts a process, over the file that all processes of this attack share. */
export async function startProcess(world) {
  world.file ??= newFile()
  const config = JSON.stringify({ path: world.path, file: world.file })
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

function newFile() {
  mkdirSync(folder, { recursive: true })
  return join(folder, `ledger-${process.pid}-${++files}.sqlite`)
}

async function serve({ path, file }) {
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
  const ledger = await server.fileLedger(file)
  const { port } = await openPlace(server, record, { ledger, lease: 300 })
  say({ port })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await serve(JSON.parse(process.argv[2]))
