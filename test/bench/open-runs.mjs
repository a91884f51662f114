// A chat route behind HTTP in a process of its own: `node --expose-gc open-runs.mjs <route> <deltas> <milliseconds>`. Its model says a delta
// every so many milliseconds, each the time at which it was due, and waits before its end until it is asked for it.
import { createServer } from 'node:http'
import { answerQuestions } from './processes.mjs'
import { routes } from './routes.mjs'

const [id, count, every] = process.argv.slice(2)
const { open } = routes[id]
let release
const released = new Promise((resolve) => {
  release = resolve
})
const dueAt = (at, start) => start + (at + 1) * every
const handle = await open({
  count: Number(count),
  perRead: 1,
  // When it was due, for a server that falls behind says it later.
  textAt: (at, start) => `${dueAt(at, start)} `,
  pause: (at, start) => (at === Number(count) ? released : until(dueAt(at, start))),
})

function until(time) {
  const ms = time - performance.timeOrigin - performance.now()
  return new Promise((resolve) => setTimeout(resolve, ms))
}

async function respond(incoming, outgoing) {
  const chunks = []
  for await (const chunk of incoming) chunks.push(chunk)
  const headers = { 'content-type': 'application/json' }
  const response = await handle(
    new Request('http://127.0.0.1/', { method: 'POST', headers, body: Buffer.concat(chunks) }),
  )
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  for await (const bytes of response.body) outgoing.write(bytes)
  outgoing.end()
}

const server = createServer((incoming, outgoing) => {
  respond(incoming, outgoing).catch(() => outgoing.destroy())
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))

function memory() {
  gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

let cpu = process.cpuUsage()
answerQuestions(async (question) => {
  switch (question) {
    case 'port':
      return server.address().port
    case 'memory':
      return memory()
    case 'cpu': {
      const { user, system } = process.cpuUsage(cpu)
      cpu = process.cpuUsage()
      return (user + system) / 1000
    }
    case 'release':
      return release()
    default:
      throw new Error(`an unknown question: ${question}`)
  }
})
