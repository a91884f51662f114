// `npm run acceptance`: how many lines of the acceptance checklist are proved by a test that ran and passed, and which are not.
// After that, how many tests of the suites for stores passed on each store; it fails if they are not the same number.
// It reads results, not source text. It runs all tests with coverage of the approval code, unless `--results FILE` names the JSON report
// of a run and `--coverage FILE` its coverage summary; lines about speed are read from the last `npm run bench`, or from `--bench FILE`.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readArguments } from '../../scripts/arguments.mjs'
import { findPostgres } from '../../scripts/postgres.mjs'
import { ended, start } from '../../scripts/run.mjs'
import { countSection, coverageByFolder, coverageRow, inRanges, statedBy } from './count.mjs'
import { countSuites, suiteTable, unequal } from './suites.mjs'

const root = join(import.meta.dirname, '../..')
const kept = join(root, '.countersign')

/** What decides about an approval, keeps it or carries it out. */
const approvalCode = [
  'packages/server/src/{answers,channel,gate,history,ledger,plan,run,scope,tokens}/*.ts',
  'packages/server/src/prompt/*.ts',
  'packages/core/src/machine/{approval-*,read-approval}.ts',
  'packages/client/src/{approval-queue,approval-view}.ts',
]

const { values } = readArguments('acceptance', {
  options: { results: { type: 'string' }, coverage: { type: 'string' }, bench: { type: 'string' } },
})
if (values.results === undefined) await runTests()

const results = read(values.results ?? join(kept, 'tests.json'))
const coverageFile =
  values.coverage ?? (values.results === undefined ? join(kept, 'coverage/coverage-summary.json') : '')
const folders = existsSync(coverageFile) ? coverageByFolder(read(coverageFile), root) : []
const benchFile = values.bench ?? join(kept, 'bench.json')
const benchRows = existsSync(benchFile) ? read(benchFile).rows : []
const rows = [...benchRows, coverageRow(results, folders)]
const stated = statedBy(results)

const sections = Object.entries(read(join(import.meta.dirname, 'lines.json'))).map(([name, numbers]) =>
  countSection(name, numbers, stated, rows),
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
for (const { folder, percent } of folders) console.log(`lines run in ${folder}: ${percent.toFixed(1)} %`)
if (folders.length === 0) console.log('No coverage was measured: the line about it does not count.')
if (benchRows.length === 0)
  console.log('No results of the benchmark: lines about speed count after `npm run bench`.')

const tests = results.testResults.flatMap(({ assertionResults }) => assertionResults)
const onStores = countSuites(tests.flatMap(({ fullName, status }) => (status === 'passed' ? [fullName] : [])))
console.log(`\n${suiteTable(onStores)}\nPostgreSQL: ${postgresVersion()}`)
for (const what of unequal(onStores)) {
  console.error(`Not the same on every store: ${what}`)
  process.exitCode = 1
}

/** The server that the tests start, or how to reach the one they were given. PGlite has a row of its own. */
function postgresVersion() {
  if (process.env.POSTGRES_URL) return 'the server of POSTGRES_URL'
  const programs = findPostgres()
  if (programs === undefined) return 'none was found; only PGlite ran'
  return spawnSync(join(programs, 'postgres'), ['--version'], { encoding: 'utf8' }).stdout.trim()
}

function read(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}

async function runTests() {
  const file = join(kept, 'tests.json')
  mkdirSync(dirname(file), { recursive: true })
  console.log('Running all tests…')
  const coverage = [
    '--coverage.enabled',
    '--coverage.provider=v8',
    '--coverage.reporter=json-summary',
    '--coverage.reportOnFailure',
    `--coverage.reportsDirectory=${join(kept, 'coverage')}`,
    ...approvalCode.map((files) => `--coverage.include=${files}`),
  ]
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const args = [vitest, 'run', '--reporter=json', `--outputFile.json=${file}`, ...coverage]
  const env = { ...process.env, TEST_FULL: '1' }
  await ended(start(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'ignore', 'inherit'] }))
}
