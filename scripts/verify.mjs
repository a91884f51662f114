// `npm test`: all checks that a change has to pass. `npm run test:full`: also the checks for a release; test/README.md lists
// them. Prints one line per step with its time, and the whole output of a step that fails; the last line counts the tests.
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { readArguments } from './arguments.mjs'
import { findChromium } from './chromium.mjs'
import { root } from './packages.mjs'
import { findPostgres } from './postgres.mjs'
import { findRedisServer } from './redis.mjs'
import { capture, ended, since, start } from './run.mjs'

const { full } = readArguments('verify', { options: { full: { type: 'boolean' } } }).values
if (full) process.env.TEST_FULL = '1'
process.env.TEST_BUILT = '1'
const results = join(root, '.countersign/tests.json')
const failed = []

function report(name, passed, began) {
  if (!passed) failed.push(name)
  console.log(`${passed ? 'ok    ' : 'FAILED'}  ${name}  ${since(began)}`)
  return passed
}

/** Runs one step without output, except if it fails, or for the lines that match `show`. */
async function step(name, [command, ...args], show) {
  const began = performance.now()
  const { status, output } = await capture(command, args, { cwd: root })
  if (status !== 0) process.stdout.write(`\n--- ${name} ---\n${output}\n`)
  else if (show)
    for (const line of output.split('\n')) if (show.test(line)) console.log(`        ${line.trim()}`)
  return report(name, status === 0, began)
}

const script = (file, ...args) => [process.execPath, file, ...args]
const tool = (name, ...args) => ['pnpm', 'exec', name, ...args]

/** Once, before several test files look for it at the same time. */
function chromiumForTests() {
  const began = performance.now()
  try {
    process.env.CHROME_PATH = findChromium()
    report('chromium', true, began)
  } catch (error) {
    console.log(error.message)
    report('chromium', false, began)
  }
}

/** Test files that need it and do not find it print what they did not test. */
function redisForTests() {
  const began = performance.now()
  const found = process.env.REDIS_URL ?? findRedisServer()
  if (found === undefined)
    console.log('NOT TESTED  whatever needs Redis: set REDIS_URL, or install redis-server')
  else report('redis', true, began)
}

function postgresForTests() {
  const began = performance.now()
  const found = process.env.POSTGRES_URL ?? findPostgres()
  if (found === undefined)
    console.log('NOT TESTED  whatever needs PostgreSQL: set POSTGRES_URL, or install postgresql')
  else report('postgresql', true, began)
}

/** Runs all test files. Resolves to how many passed, failed and were skipped. */
async function tests() {
  const began = performance.now()
  rmSync(results, { force: true })
  mkdirSync(join(root, '.countersign'), { recursive: true })
  const reporters = ['dot', './scripts/parity-reporter.mjs', './scripts/slowest-reporter.mjs', 'json']
  const args = ['run', '--silent=passed-only', ...reporters.map((name) => `--reporter=${name}`)]
  const [command, ...all] = script('node_modules/vitest/vitest.mjs', ...args, `--outputFile.json=${results}`)
  const status = await ended(start(command, all, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }))
  report('tests', status === 0, began)
  try {
    const { testResults, ...numbers } = JSON.parse(readFileSync(results, 'utf8'))
    const counted = counts(numbers, testResults.flatMap(failuresIn))
    // an error outside of any test
    return status === 0 || counted.failures.length > 0
      ? counted
      : { ...counted, failures: ['an error outside of any test; it is above'] }
  } catch {
    return { passed: 0, failures: ['the test runner broke off'], skipped: 0 }
  }
}

const counts = ({ numPassedTests, numPendingTests, numTodoTests }, failures) => ({
  passed: numPassedTests,
  failures,
  skipped: numPendingTests + numTodoTests,
})

/** A line for each failed test of a file, with the start of its message; one for a file that did not load or whose setup failed. */
function failuresIn({ name, status, message, assertionResults }) {
  const tell = (what, text = '') => `${relative(root, name)}: ${what}\n    ${text.trim().slice(0, 600)}`
  const broken = assertionResults.filter((result) => result.status === 'failed')
  if (broken.length === 0) return status === 'failed' ? [tell('did not run', message)] : []
  return broken.map(({ fullName, failureMessages: [text] }) => tell(fullName, text))
}

/** The steps of `npm run test:full` only. The server's explorer uses one core, so it runs in parallel. */
async function releaseChecks() {
  const explorer = script('test/explore-server/explore.mjs', '--mutations', '--random', '100000')
  const explored = step('explorer of the server, with its mutations', explorer, /exhaustive|random|of \d+/)
  await step('types as every module resolution sees them', script('scripts/check-packages.mjs'))
  await step('types of the pages', script('scripts/check-pages.mjs'))
  await step('documentation site', script('scripts/docs.mjs'))
  await step('search of the site', script('scripts/check-search.mjs'), /searches/)
  await step(
    'acceptance',
    script('test/acceptance/acceptance.mjs', '--results', results),
    / of |^tests of| {5}[-\d]+$|^PostgreSQL:/,
  )
  await step('conformance', script('test/conformance/conformance.mjs'), /of \d+|pass/)
  const inProduction = ['env', 'NODE_ENV=production', ...script('test/conformance/conformance.mjs')]
  await step('conformance, in production', inProduction, /of \d+|pass/)
  await step('comparison with other servers', script('test/compare/compare.mjs', '--check'), /cells$|says/)
  await step('timelines', script('test/timelines/run.mjs'), /passed|timelines/)
  await step('explorer', script('test/explore/explore.mjs'), /timelines|states/)
  await step('explorer: mutations', script('test/explore/mutations.mjs'), /MISSED|FAILS|of \d+|All/)
  await step('attacks, and each without its check', script('test/attacks/attacks.mjs'), /attacks/)
  await step('chaos', script('test/chaos/chaos.mjs', '--calls', '300'), /at most once|twice|lost/)
  await step('applications', script('test/apps/run.mjs'), /^(?:ok|NOT TESTED)|applications pass/)
  await explored
}

chromiumForTests()
redisForTests()
postgresForTests()
/** What needs no browser and no other process fills the time in which the tests wait for those. */
async function staticChecks() {
  await step('types', script('scripts/types.mjs'))
  await step('lint and format', tool('biome', 'ci', '--colors=off', '.'))
  await step('unused code', tool('knip', '--no-config-hints'))
  await step('size', script('scripts/size.mjs'))
}

const built = await step('build', script('scripts/build.mjs'))
const [counted] = built
  ? await Promise.all([tests(), staticChecks()])
  : [{ passed: 0, failures: [], skipped: 0 }]
if (full && built) await releaseChecks()
for (const failure of counted.failures) console.log(failure)
if (failed.length > 0) console.log(`Failed: ${failed.join(', ')}`)
process.exitCode = failed.length > 0 ? 1 : 0
// a failed step counts as a failed test, so that the last line alone shows whether everything passed
const others = failed.filter((name) => name !== 'tests').length
const skipped = counted.skipped > 0 ? `, ${counted.skipped} skipped` : ''
console.log(`${counted.passed} passed, ${counted.failures.length + others} failed${skipped}`)
