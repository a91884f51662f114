// What a streamed turn costs on the server, from the request to the last byte of the response, in CPU time: beside a hand-written handler
// that sends the same events, and beside the peers. Everything is in one process, with a model that costs nothing.
import { join } from 'node:path'
import { memoryRunLog } from '@countersign/server'
import { textDeltas } from '../material.mjs'
import { median } from '../measure.mjs'
import { startProcess } from '../processes.mjs'
import { openWithLog, requestOf, routes, textOf } from '../routes.mjs'

const script = join(import.meta.dirname, '../route.mjs')
const ids = Object.keys(routes)
const floor = 'hand-written'

/** Deltas of a turn, and how many of them come with one read of the model: one alone is the hardest. */
const turnsOf = [
  { count: 500, perRead: 1 },
  { count: 5000, perRead: 1 },
  { count: 5000, perRead: 8 },
]

const sizes = {
  tiny: { processes: 1, rounds: 1, deltas: 500 },
  quick: { processes: 1, rounds: 3, deltas: 20_000 },
  full: { processes: 3, rounds: 3, deltas: 20_000 },
}

/** For each route the CPU time of every turn of `turnsOf`: routes take turns, each in a process of its own. */
async function measure({ processes, rounds, deltas }) {
  const times = new Map(ids.map((id) => [id, turnsOf.map(() => [])]))
  for (let n = 0; n < processes; n++) {
    const running = ids.map((id) => ({ id, process: startProcess(script, [id]) }))
    try {
      for (const [index, { count, perRead }] of turnsOf.entries())
        for (let round = 0; round < rounds; round++)
          for (const { id, process } of running) {
            const turns = Math.max(1, Math.round(deltas / count))
            const warmup = round === 0 ? turns : 0
            times.get(id)[index].push(await process.ask({ count, perRead, turns, warmup }))
          }
    } finally {
      for (const { process } of running) process.stop()
    }
  }
  return (id, index) => times.get(id)[index]
}

const bounds = { countersign: 2, 'countersign-log': 2.5 }

/** The median over all rounds: in each, both meet what else the machine does. */
function ratio(times, base) {
  return median(times.map((ms, round) => ms / base[round]))
}

function rowsOf(timesOf) {
  return turnsOf.flatMap(({ count, perRead }, index) => {
    const turn = `${count.toLocaleString('en')} deltas, ${perRead === 1 ? 'one' : perRead} with each read of the model`
    const base = timesOf(floor, index)
    return [
      { name: `${turn}: ${routes[floor].name}`, value: median(base), unit: 'ms' },
      ...ids.slice(1).map((id) => ({
        name: `${turn}: ${routes[id].name}, relative to that`,
        value: ratio(timesOf(id, index), base),
        unit: 'x',
        ...(id in bounds && { bound: bounds[id], acceptance: ['T.40'] }),
      })),
    ]
  })
}

/** How often a run log elsewhere is written for a turn whose deltas come in so many reads. */
async function writesOf(count, perRead) {
  const inner = memoryRunLog()
  let writes = 0
  const log = {
    read: inner.read,
    async begin(key) {
      const { append, end } = await inner.begin(key)
      return {
        async append(events) {
          writes++
          await new Promise((resolve) => setTimeout(resolve, 1))
          return append(events)
        },
        end,
      }
    },
  }
  const deltas = textDeltas(count)
  const handle = openWithLog({ count, perRead, textAt: (at) => deltas[at] }, log)
  const text = textOf(await (await handle(requestOf(routes.countersign, 0))).text())
  if (text !== deltas.join('')) throw new Error(`${text.length} characters of ${deltas.join('').length}`)
  return writes
}

export async function run({ scale = 'full' } = {}) {
  const timesOf = await measure(sizes[scale])
  const reads = 50
  const writes = await writesOf(2000, 2000 / reads)
  return [
    ...rowsOf(timesOf),
    {
      name: '5,000 deltas: the run log, relative to no log',
      value: ratio(timesOf('countersign-log', 1), timesOf('countersign', 1)),
      unit: 'x',
      bound: 1.3,
    },
    {
      // The first and the last write are for the start and the end of the run.
      name: `2,000 deltas in ${reads} reads of the model, with a run log elsewhere: writes to it`,
      value: writes,
      unit: '',
      bound: reads + 2,
    },
  ]
}
