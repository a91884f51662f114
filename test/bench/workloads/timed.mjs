import { join } from 'node:path'
import { contenders } from '../contenders/index.mjs'
import { compare, inProcesses, mergePoints } from '../measure.mjs'
import { startProcess } from '../processes.mjs'

/** Whoever takes longer (ms) at some size is measured in one process: no luck of it makes up for that. */
const quick = 1_000

/**
 * Lets all contenders do the work of a workload's tables, each in processes of its own, and gives the tables with their points. A table
 * says the kind of work, its `sizes` by scale, the `scenario` of a size, how to `check` what came out, how many pieces it `count`s and,
 * where every delta is to be published, the `least` number of publications. `only` names the contenders that take part, `collects` a
 * table whose rounds each begin with a collection.
 */
export async function runTimed(workload, tables, { scale, only, ...how }) {
  const players = contenders.filter(({ id }) => !only || only.includes(id))
  const measured = []
  for (let pass = 0; pass < inProcesses[scale]; pass++)
    measured.push(await measureOnce(workload, tables, players, measured[0] ?? [], { scale, ...how }))
  const names = Object.fromEntries(players.map((one) => [one.id, one.name]))
  return tables.map(({ id, title, unit, sizes, notes }, at) => {
    const points = mergePoints(measured.map((passes) => passes[at]))
    return { id, title, unit, sizes: sizes[scale], points, names, ...(notes && { notes }) }
  })
}

/** The points of each table, of new processes; `before` are those of an earlier pass, which say who is too slow to take part again. */
async function measureOnce(workload, tables, contenders, before, { scale, ...how }) {
  const players = new Map(contenders.map(({ id }) => [id, startPlayer(id, workload)]))
  try {
    const measured = []
    for (const [at, { id, sizes, count }] of tables.entries()) {
      const points = await compare({
        contenders: contenders.filter((one) => isQuick(one, before[at] ?? [])),
        sizes: sizes[scale],
        count,
        measure: (contender, size) => players.get(contender.id).ask({ table: id, size }),
        ...how,
      })
      measured.push(points)
    }
    return measured
  } finally {
    for (const player of players.values()) player.stop()
  }
}

function isQuick({ id }, points) {
  return points.every((point) => point.contender !== id || point.ms < quick)
}

function startPlayer(contender, workload) {
  return startProcess(join(import.meta.dirname, '../contender.mjs'), [contender, workload], ['--expose-gc'])
}
