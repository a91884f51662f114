// Plays cells, several at a time because they mostly wait.
import { playCell, removeBundle } from './cell.mjs'
import { columns } from './columns.mjs'
import { verdictOf } from './report.mjs'
import { scenarios } from './scenarios.mjs'

/** The names of all cells: `column/row`. */
export const cells = scenarios.flatMap((scenario) => columns.map((column) => `${column.key}/${scenario.key}`))

/** Resolves to the words of the cells, by name. `onCell`: gets each, with all that was sent and all that ran. */
export async function playCells(names, onCell = () => {}) {
  const left = [...names]
  const words = new Map()
  const playNext = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const [columnKey, row] = name.split('/')
      const column = columns.find(({ key }) => key === columnKey)
      const scenario = scenarios.find(({ key }) => key === row)
      const found = await playCell(column, scenario)
      const verdict = verdictOf(found)
      words.set(name, verdict)
      onCell({ name, column, scenario, found, verdict })
    }
  }
  try {
    await Promise.all(Array.from({ length: 6 }, playNext))
  } finally {
    await removeBundle()
  }
  return words
}
