// What all servers of the comparison share: the tool, which writes down what it does, and the script that stands in for a model.
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'

const { LOG = '', DIE_AT = '', TOOL_TIME = '300' } = process.env

export const description = 'Sends money to somebody.'
export const inputSchema = z.object({ to: z.string(), amount: z.number() })

/** One line of the file that a scenario counts, written by one call of the system. */
const write = (line) => appendFileSync(LOG, `${JSON.stringify(line)}\n`)

/** The tool. The money has gone when `sent` is written. */
export async function transfer({ to, amount }) {
  if (DIE_AT === 'starting') process.kill(process.pid, 'SIGKILL')
  write({ sent: to, amount })
  if (DIE_AT === 'running') process.kill(process.pid, 'SIGKILL')
  await pause(Number(TOOL_TIME))
  write({ ended: to })
  if (DIE_AT === 'ended') process.kill(process.pid, 'SIGKILL')
  return `sent ${amount} to ${to}`
}

/** What the model does next: calls the tool with `call`, or says the pieces of `say`. `results`: of the calls since the user wrote. */
export function nextStep(text, results) {
  const [, names = ''] = /^pay (.+)$/.exec(text) ?? []
  const to = names.split(' then ')[results.length]
  if (names !== '' && to) return { call: { to, amount: 10 } }
  if (text === 'count') return { say: count() }
  if (text === 'flood') return { say: flood() }
  return { say: [names === '' ? 'Hello.' : verdictOf(results.at(-1))] }
}

function verdictOf(result) {
  if (/sent \d+ to/.test(result)) return 'It was sent.'
  return /den[iy]|reject|declin/i.test(result) ? 'It was not sent.' : 'It is unclear whether it was sent.'
}

async function* count() {
  for (let word = 1; word <= 100; word++) {
    await pause(10)
    yield `w${word} `
  }
  write({ counted: true })
}

/** As much as its reader takes, up to 64 MiB. Each MiB is written down. */
async function* flood() {
  const piece = 'x'.repeat(1 << 16)
  for (let said = 1; said <= 64 * 16; said++) {
    yield piece
    if (said % 16 === 0) write({ saidMiB: said / 16 })
    // a model says nothing within the same turn of the event loop for ever
    await pause(0)
  }
}

/** A handler of Fetch requests as a server of Node. Waits for a slow reader, as Node's streams do. */
export function serveFetch(handle) {
  const server = createServer(async (incoming, outgoing) => {
    const { method, headers, url } = incoming
    const gone = new AbortController()
    outgoing.on('close', () => gone.abort())
    const body = method === 'POST' ? Readable.toWeb(incoming) : null
    const request = new Request(`http://127.0.0.1${url}`, {
      ...{ method, headers, body, duplex: 'half', signal: gone.signal },
    })
    const response = await handle(request).catch((thrown) =>
      thrown instanceof Response ? thrown : new Response(String(thrown), { status: 500 }),
    )
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    if (response.body) await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => {})
    else outgoing.end()
  })
  listen(server)
}

/** Says where it listens: on the port that a killed server had, or on any. */
export function listen(server) {
  server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${server.address().port}`)
  })
}
