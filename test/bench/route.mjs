// One chat route in a process of its own: `node route.mjs <route>`. Each question is a number of turns of so many deltas; the answer is the
// CPU time of a turn, in milliseconds: the median, for nothing that other processes do counts in it.
import { textDeltas } from './material.mjs'
import { median } from './measure.mjs'
import { answerQuestions } from './processes.mjs'
import { requestOf, routes, textOf } from './routes.mjs'

const route = routes[process.argv[2]]
const handlers = new Map()
let requests = 0

async function handlerOf(count, perRead) {
  const key = `${count} ${perRead}`
  if (!handlers.has(key)) {
    const deltas = textDeltas(count)
    const handle = await route.open({ count, perRead, textAt: (at) => deltas[at] })
    const text = textOf(await (await handle(requestOf(route, requests++))).text())
    if (text !== deltas.join('')) throw new Error(`${text.length} of ${deltas.join('').length} characters`)
    handlers.set(key, handle)
  }
  return handlers.get(key)
}

async function turn(handle) {
  const { body } = await handle(requestOf(route, requests++))
  const reader = body.getReader()
  while (!(await reader.read()).done);
}

async function cpuOf(work) {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

answerQuestions(async ({ count, perRead, turns, warmup }) => {
  const handle = await handlerOf(count, perRead)
  for (let n = 0; n < warmup; n++) await turn(handle)
  const times = []
  for (let n = 0; n < turns; n++) times.push(await cpuOf(() => turn(handle)))
  return median(times)
})
