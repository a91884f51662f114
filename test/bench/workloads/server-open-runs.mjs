// Many runs open at once over HTTP on one process, each with 20 deltas a second: how late a delta arrives, and what an open run holds.
import { request } from 'node:http'
import { join } from 'node:path'
import { startProcess } from '../processes.mjs'
import { routes } from '../routes.mjs'

const script = join(import.meta.dirname, '../open-runs.mjs')
const EVERY_MS = 50
/** Where a server falls behind, its runs are ended after so long. */
const MOST_MS = 60_000

const sizes = {
  tiny: { runs: 10, deltas: 5 },
  quick: { runs: 1000, deltas: 60 },
  full: { runs: 1000, deltas: 100 },
}

/** Opens one run. `delay` is called with the milliseconds that each delta took; `settled` resolves with the number of deltas. */
function openRun(port, body, deltas, delay) {
  const text = JSON.stringify(body)
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  const sent = request({ host: '127.0.0.1', port, method: 'POST', headers, agent: false })
  let arrived = 0
  let rest = ''
  const said = new Promise((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        const now = performance.timeOrigin + performance.now()
        const lines = (rest + chunk).split('\n')
        rest = lines.pop()
        for (const line of lines) {
          const [, time] = /"delta":"([\d.]+) "/.exec(line) ?? []
          if (time === undefined) continue
          delay(now - Number(time))
          if (++arrived === deltas) resolve()
        }
      })
      response.on('close', () => reject(new Error(`${arrived} of ${deltas} deltas`)))
    })
  })
  sent.end(text)
  const ended = new Promise((resolve) => sent.on('close', resolve))
  return { said, ended, close: () => sent.destroy() }
}

/** `{ p50, p99, memory, cpu }`: milliseconds of delay, bytes that a run holds, and CPU milliseconds of the server for a delta. */
async function measure(id, { runs, deltas }) {
  const server = startProcess(script, [id, String(deltas), String(EVERY_MS)], ['--expose-gc'])
  const delays = []
  const open = []
  try {
    const port = await server.ask('port')
    const delay = (ms) => delays.push(ms)
    // The first one loads what the others need.
    const first = openRun(port, routes[id].bodyOf(0), deltas, () => {})
    await first.said
    const before = await server.ask('memory')
    await server.ask('cpu')
    for (let n = 1; n <= runs; n++) {
      open.push(openRun(port, routes[id].bodyOf(n), deltas, delay))
      // Opened over two seconds.
      if (n % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    let timer
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, MOST_MS, 'late')
    })
    const result = await Promise.race([Promise.all(open.map(({ said }) => said)), late])
    clearTimeout(timer)
    if (result === 'late') for (const { said } of open) said.catch(() => {})
    const cpu = (await server.ask('cpu')) / delays.length
    const memory = ((await server.ask('memory')) - before) / runs
    await server.ask('release')
    if (result !== 'late') await Promise.all([first, ...open].map(({ ended }) => ended))
    delays.sort((a, b) => a - b)
    const at = (share) => delays[Math.floor(share * (delays.length - 1))]
    return { p50: at(0.5), p99: at(0.99), memory, cpu, isLate: result === 'late' }
  } finally {
    for (const { close } of open) close()
    server.stop()
  }
}

export async function run({ scale = 'full' } = {}) {
  const { runs, deltas } = sizes[scale]
  const rows = []
  for (const [id, { name }] of Object.entries(routes)) {
    const { p50, p99, memory, cpu, isLate } = await measure(id, { runs, deltas })
    const what = `${runs.toLocaleString('en')} open runs, ${name}`
    rows.push(
      { name: `${what}: delay of a delta, median`, value: p50, unit: 'ms' },
      {
        name: `${what}: delay of a delta, 99th percentile${isLate ? ' (it fell behind)' : ''}`,
        value: p99,
        unit: 'ms',
      },
      { name: `${what}: CPU time of the server for a delta`, value: cpu * 1000, unit: 'us' },
      { name: `${what}: memory that an open run holds`, value: memory / 1024, unit: 'KB' },
    )
  }
  return rows
}
