// `npm run acceptance`: how many lines of the acceptance checklist are proved by a test that ran and passed, and which are not.
// It reads results, not source text. It runs all tests, unless `--results FILE` names the JSON report of a run; lines about speed are
// read from the last `npm run bench`, or from `--bench FILE`.
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { ended, start } from '../../scripts/run.mjs'
import { countSection, inRanges, statedBy } from './count.mjs'

const root = join(import.meta.dirname, '../..')
const { values } = parseArgs({ options: { results: { type: 'string' }, bench: { type: 'string' } } })
const benchFile = values.bench ?? join(root, '.countersign/bench.json')

const results = JSON.parse(readFileSync(values.results ?? (await runTests()), 'utf8'))
const benchRows = existsSync(benchFile) ? JSON.parse(readFileSync(benchFile, 'utf8')).rows : []
const lines = JSON.parse(readFileSync(join(import.meta.dirname, 'lines.json'), 'utf8'))
const stated = statedBy(results)

const sections = Object.entries(lines).map(([name, numbers]) =>
  countSection(name, numbers, stated, benchRows),
)
for (const { section, total, proved, open } of sections) {
  const missing = open.length === 0 ? '' : `   not proved: ${inRanges(open)}`
  console.log(
    `${section.padEnd(3)} ${String(proved.length).padStart(3)} of ${String(total).padStart(3)}${missing}`,
  )
}
const total = sections.reduce((sum, section) => sum + section.total, 0)
const proved = sections.reduce((sum, section) => sum + section.proved.length, 0)
console.log(
  `all ${proved} of ${total}, from ${results.numPassedTests} tests that passed and ${results.numFailedTests} that failed`,
)
if (benchRows.length === 0)
  console.log('No results of the benchmark: lines about speed count after `npm run bench`.')

async function runTests() {
  const file = join(root, '.countersign/tests.json')
  mkdirSync(dirname(file), { recursive: true })
  console.log('Running all tests…')
  const args = ['exec', 'vitest', 'run', '--reporter=json', `--outputFile.json=${file}`]
  await ended(start('pnpm', args, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] }))
  return file
}
