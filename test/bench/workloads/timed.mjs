import { join } from 'node:path'
import { contenders } from '../contenders/index.mjs'
import { compare } from '../measure.mjs'
import { startProcess } from '../processes.mjs'

/**
 * Lets all contenders do the work of a workload's tables, each in a process of its own, and gives the tables with their points. A table
 * says the kind of work, its `sizes` by scale, the `scenario` of a size, how to `check` what came out, how many pieces it `count`s and,
 * where every delta is to be published, the `least` number of publications.
 */
export async function runTimed(workload, tables, { scale, ...how }) {
  const players = new Map(contenders.map(({ id }) => [id, startPlayer(id, workload)]))
  try {
    const measured = []
    for (const { id, title, unit, sizes, count, notes } of tables) {
      const points = await compare({
        contenders,
        sizes: sizes[scale],
        count,
        measure: (contender, size) => players.get(contender.id).ask({ table: id, size }),
        ...how,
      })
      const names = Object.fromEntries(contenders.map((one) => [one.id, one.name]))
      measured.push({ id, title, unit, sizes: sizes[scale], points, names, ...(notes && { notes }) })
    }
    return measured
  } finally {
    for (const player of players.values()) player.stop()
  }
}

function startPlayer(contender, workload) {
  return startProcess(join(import.meta.dirname, '../contender.mjs'), [contender, workload])
}
