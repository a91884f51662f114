// `npm run compare`: sends the same attacks and accidents to servers of Countersign, the AI SDK, TanStack AI and LangGraph, and writes what ran
// into docs/compare.md. `--only ai-sdk/forged` plays one cell and prints all that was sent and all that ran; `--only ai-sdk` plays a column.
// `--check` fails where the page says something else.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fail, readArguments } from '../../scripts/arguments.mjs'
import { printCell, readTables, replaceTables } from './report.mjs'
import { cells, playCells } from './run.mjs'

const file = join(import.meta.dirname, '../../docs/compare.md')
const { values } = readArguments('compare', {
  options: { only: { type: 'string' }, check: { type: 'boolean', default: false } },
})
const { only, check } = values
const wanted = cells.filter((name) => only === undefined || name === only || name.split('/')[0] === only)
if (wanted.length === 0) {
  const [columns, rows] = [0, 1].map((at) =>
    [...new Set(cells.map((name) => name.split('/')[at]))].join(', '),
  )
  fail(`There is no cell ${only}. The columns are ${columns}; the rows are ${rows}.`)
}

const words = await playCells(wanted, (cell) =>
  console.log(wanted.length === 1 ? printCell(cell) : `${cell.name}: ${cell.verdict}`),
)
const page = readFileSync(file, 'utf8')
if (only === undefined && !check) writeFileSync(file, replaceTables(page, words))
const said = check ? readTables(page) : words
for (const [name, verdict] of words) {
  if (said.get(name) === verdict) continue
  console.error(`${name}: docs/compare.md says "${said.get(name)}", the run says "${verdict}"`)
  process.exitCode = 1
}
console.log(words.size === 1 ? '1 cell' : `${words.size} cells`)
