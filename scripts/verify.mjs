// Everything that must hold before a change is taken: build, checks, tests. Prints a line for a step that passes and the whole
// output of one that fails; the last line counts the tests.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findChromium } from './chromium.mjs'
import { findRedisServer } from './redis.mjs'
import { ended, start } from './run.mjs'

// pnpm is silent about this script, so that its last line is the last of all; about the steps it must not be
delete process.env.npm_config_reporter

const root = `${import.meta.dirname}/..`
const failed = []

/** Runs one step quietly, its output kept for the case that it fails. */
async function step(name, command, ...args) {
  const began = performance.now()
  const child = start(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk))
  const status = await ended(child)
  if (status !== 0) process.stdout.write(`\n--- ${name} ---\n${Buffer.concat(output)}\n`)
  return report(name, status === 0, began)
}

function report(name, passed, began) {
  if (!passed) failed.push(name)
  console.log(
    `${passed ? 'ok    ' : 'FAILED'}  ${name}  ${((performance.now() - began) / 1000).toFixed(1)} s`,
  )
  return passed
}

/** What needs the build comes after it; what reads only sources runs beside it. */
async function buildAndItsChecks() {
  if (!(await step('build', 'pnpm', 'run', 'build'))) return
  await step('packed packages', 'pnpm', 'run', 'packages')
  await step('size', 'pnpm', 'run', 'size')
}

async function sourceChecks() {
  await step('lint and format', 'pnpm', 'run', 'check')
  await step('types', 'pnpm', 'run', 'types')
  await step('unused code', 'pnpm', 'run', 'knip')
}

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

/** Once, before test files that need it would all install it at the same time. They say themselves what they did not test without it. */
function redisForTests() {
  const began = performance.now()
  const found = process.env.REDIS_URL ?? findRedisServer()
  if (found === undefined)
    console.log('NOT TESTED  whatever needs Redis: set REDIS_URL, or install redis-server')
  else report('redis', true, began)
}

/** The tests have both cores to themselves, so that a busy machine does not read as a failing test. */
async function tests() {
  const began = performance.now()
  const folder = mkdtempSync(join(tmpdir(), 'countersign-verify-'))
  const file = join(folder, 'tests.json')
  const args = [
    'exec',
    'vitest',
    'run',
    '--reporter=default',
    '--reporter=./scripts/parity-reporter.mjs',
    '--reporter=json',
    `--outputFile.json=${file}`,
  ]
  const status = await ended(start('pnpm', args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }))
  report('tests', status === 0, began)
  try {
    return counts(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return '0 passed, 1 failed' // no report: the test runner itself broke off
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A file that failed without a failed test (it did not load, or its set-up failed) counts as one failure of its own. */
function counts({ numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults }) {
  const failedTests = ({ assertionResults }) => assertionResults.filter(({ status }) => status === 'failed')
  const broken = testResults.filter(
    (file) => file.status === 'failed' && failedTests(file).length === 0,
  ).length
  const skipped = numPendingTests + numTodoTests
  const line = `${numPassedTests} passed, ${numFailedTests + broken} failed`
  return skipped > 0 ? `${line}, ${skipped} skipped` : line
}

chromiumForTests()
redisForTests()
await Promise.all([buildAndItsChecks(), sourceChecks()])
const line = await tests()
if (failed.length > 0) console.log(`Failed: ${failed.join(', ')}`)
process.exitCode = failed.length > 0 ? 1 : 0
console.log(line)
