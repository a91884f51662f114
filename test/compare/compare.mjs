// `npm run compare`: sends the same attacks and accidents to servers of Countersign, the AI SDK, TanStack AI and LangGraph, and writes what ran
// to docs/compare.md. `--only ai-sdk/forged` runs one cell, and prints what was sent and what ran. `--check` compares with the page instead of writing it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { given } from '../../scripts/arguments.mjs'
import { playCell, removeBundle } from './cell.mjs'
import { columns } from './columns.mjs'
import { printCell, printTable, replaceTable } from './report.mjs'
import { scenarios } from './scenarios.mjs'
import { verdictOf } from './verdict.mjs'

const page = join(import.meta.dirname, '../../docs/compare.md')
const { values } = parseArgs({
  args: given,
  options: { only: { type: 'string' }, check: { type: 'boolean', default: false } },
})
const [onlyColumn, onlyRow] = values.only?.split('/') ?? []
const chosenColumns = columns.filter(({ key }) => !onlyColumn || key === onlyColumn)
const chosenRows = scenarios.filter(({ key }) => !onlyRow || key === onlyRow)
if (chosenColumns.length * chosenRows.length === 0) {
  console.error(`There is no cell ${values.only}.`)
  console.error(`Columns: ${columns.map(({ key }) => key).join(', ')}`)
  console.error(`Rows: ${scenarios.map(({ key }) => key).join(', ')}`)
  process.exit(1)
}

const words = new Map()
try {
  for (const scenario of chosenRows) {
    for (const column of chosenColumns) {
      const found = await playCell(column, scenario)
      const verdict = verdictOf(found)
      words.set(`${column.key}/${scenario.key}`, verdict)
      console.log(values.only ? printCell(column, scenario, found, verdict) : `${column.key}/${scenario.key}: ${verdict}`)
    }
  }
} finally {
  await removeBundle()
}
if (values.only === undefined) {
  console.log(`\n${printTable(words)}`)
  const before = readFileSync(page, 'utf8')
  const after = replaceTable(before, words)
  if (values.check && before !== after) {
    console.error('docs/compare.md says something else. `npm run compare` writes it.')
    process.exitCode = 1
  } else if (!values.check) writeFileSync(page, after)
}
