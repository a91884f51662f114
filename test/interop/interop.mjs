// `npm run interop`: runs every cell of the interop matrix (`test/interop`), prints it and writes it to docs/interop-matrix.md. A cell is a
// test named `matrix | <column> | <row>`, or `matrix | <column> | <row> | cannot: <reason>` where the peer cannot do it.
// `--results FILE` reads the JSON report of a run instead.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readArguments } from '../../scripts/arguments.mjs'
import { ended, start } from '../../scripts/run.mjs'
import { printMatrix, readMatrix, writeMatrix } from './table.mjs'

const root = join(import.meta.dirname, '../..')
const kept = join(root, '.countersign')
const { values } = readArguments('interop', { options: { results: { type: 'string' } } })
const file = values.results ?? join(kept, 'interop.json')
if (values.results === undefined) await runTests()

const matrix = readMatrix(JSON.parse(readFileSync(file, 'utf8')))
console.log(printMatrix(matrix))
if (matrix.missing.length === 0) writeFileSync(join(root, 'docs/interop-matrix.md'), writeMatrix(matrix))
process.exitCode = matrix.missing.length + matrix.failed.length > 0 ? 1 : 0

/** That tests fail is for the report to say. */
async function runTests() {
  mkdirSync(kept, { recursive: true })
  console.log('Running every cell…')
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const args = ['run', 'test/interop', '--reporter=json', `--outputFile.json=${file}`]
  await ended(
    start(process.execPath, [vitest, ...args], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] }),
  )
}
