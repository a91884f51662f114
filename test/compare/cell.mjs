// One cell: a server of its own, as a process, and what a scenario does to it. Everything sent is kept, and everything its tool wrote.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { openPage, pagesOf } from './pages.mjs'

const root = join(import.meta.dirname, '../..')
const preload = pathToFileURL(join(import.meta.dirname, 'servers/preload.mjs')).href
const secret = 'a-secret-of-the-comparison-0123456789abcdef'
let ours

/** Our server runs from the sources, the others from their packages. */
async function fileOf(peer) {
  const file = join(import.meta.dirname, `servers/${peer}.mjs`)
  if (peer !== 'countersign') return file
  ours ??= bundleForNode(file, join(root, 'test'))
  return (await ours).file
}

/** Removes what `fileOf` made. */
export async function removeBundle() {
  await (await ours)?.remove()
  ours = undefined
}

/** Runs one scenario against one column. Resolves to what the scenario found, with all that was sent and all that ran. */
export async function playCell(column, scenario) {
  mkdirSync(join(root, '.countersign'), { recursive: true })
  const folder = mkdtempSync(join(root, '.countersign/compare-'))
  const log = join(folder, 'tool.log')
  writeFileSync(log, '')
  const sent = []
  const lines = () =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line, at) => ({ at, ...JSON.parse(line) }))
  let server
  let dieAt = ''

  const cell = {
    column,
    pages: pagesOf(column),
    lines,
    /** Starts the server; again, after it was killed, on the same port and folder, two minutes later by its clock. */
    async start(options = {}) {
      const port = server?.port
      dieAt = options.dieAt ?? ''
      server = await startServer(await fileOf(column.peer), {
        ...{ LOG: log, DATA: folder, DIE_AT: dieAt },
        ...(column.option && { OPTION: '1', COUNTERSIGN_SECRET: secret, TOOL_APPROVAL_SECRET: secret }),
        ...(port && { PORT: String(port), CLOCK_SHIFT: '120000' }),
      })
    },
    /** The server's clock goes on by thirty days. */
    async passMonth() {
      server.child.kill('SIGUSR2')
      await pause(100)
    },
    /** Resolves when the server has died by itself. */
    died: () => server.ended,
    memory: () => memoryOf(server.child.pid),
    /** Begins a conversation. */
    async open(user, thread) {
      const page = openPage(user, thread)
      for (const request of cell.pages.start(page)) await cell.send(request)
      return page
    },
    /** The user writes; resolves to what the page then shows. */
    async say(page, text) {
      const reply = await cell.send(cell.pages.say(page, text))
      return { ...(await cell.pages.read(page, reply.body)), status: reply.status }
    },
    /** Sends an answer, or the same bytes again, and reads what comes as `page` does. */
    async answer(page, request) {
      const reply = await cell.send(request)
      return { ...(await cell.pages.read(page, reply.body)), status: reply.status }
    },
    /** Sends a request. Resolves to what was answered; status 0 if the connection broke. */
    async send(request, how = {}) {
      const entry = { ...request, wroteBefore: lines().length, status: undefined }
      sent.push(entry)
      const reply = await sendRaw(server.url, request, how)
      entry.status = reply.status
      return reply
    },
    /** Waits until a server that writes its state now and then has written `text`. */
    async stored(text) {
      const kept = join(folder, '.langgraph_api')
      if (column.peer !== 'langgraph') return
      const all = () => readdirSync(kept).map((name) => readFileSync(join(kept, name), 'utf8'))
      await until(() => existsSync(kept) && all().filter((one) => one.includes(text)).length > 1)
    },
    /** Waits until nothing has been written by the tool or the model for a while. */
    async quiet(ms = 500) {
      for (let before = -1; before !== lines().length; await pause(ms)) before = lines().length
    },
  }

  try {
    await cell.start(scenario.start)
    const found = await scenario.play(cell)
    await cell.quiet(scenario.quiet)
    const ran = lines()
      .filter((line) => line.sent !== undefined)
      .map(({ sent: to, amount }) => ({ to, amount }))
    return { ...found, ran, sent, lines: lines() }
  } finally {
    server?.child.kill('SIGKILL')
    await server?.ended
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Whether it holds, at one of so many looks. */
export async function until(holds, looks = 400) {
  for (let look = 0; look < looks; look++, await pause(50)) if (await holds()) return true
  return false
}

async function startServer(file, env) {
  const child = spawn(process.execPath, ['--import', preload, file], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      LOG_LEVEL: 'silent',
      LANGSMITH_TRACING: 'false',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'exit')
  let errors = ''
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  let said = ''
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      said += chunk
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said)
      if (found) resolve(found[0])
    })
    void ended.then(() => reject(new Error(`${file} ended before it listened:\n${errors}`)))
  })
  return { child, ended, url, port: Number(new URL(url).port) }
}

/** `cutAfter`: goes away after so many bytes. `stall`: reads nothing after the head, until `stall` resolves; then goes away. */
function sendRaw(url, { method, path, headers, body }, { kill, cutAfter, stall, signal }) {
  return new Promise((resolve) => {
    const all = { ...headers, ...(kill && { 'x-kill': kill }) }
    if (body !== undefined) all['content-length'] = Buffer.byteLength(body)
    const request = httpRequest(url + path, { method, headers: all, agent: false }, async (response) => {
      const status = response.statusCode
      let text = ''
      if (stall) {
        response.pause()
        await stall()
        request.destroy()
        return resolve({ status, body: '' })
      }
      response.setEncoding('utf8')
      response.on('error', () => resolve({ status: 0, body: text }))
      try {
        for await (const chunk of response) {
          text += chunk
          if (cutAfter !== undefined && text.length >= cutAfter) break
        }
        if (cutAfter !== undefined) request.destroy()
        resolve({ status, body: text })
      } catch {
        resolve({ status: 0, body: text })
      }
    })
    signal?.addEventListener('abort', () => request.destroy())
    request.on('error', () => resolve({ status: 0, body: '' }))
    request.end(body)
  })
}

/** The memory of a process, in MiB. */
async function memoryOf(pid) {
  const child = spawn('ps', ['-o', 'rss=', '-p', String(pid)], { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  for await (const chunk of child.stdout) text += chunk
  return Number(text) / 1024
}
