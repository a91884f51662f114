// Runs AG-UI's conformance streams through the built client and prints how many are as expected, and every difference with the clause
// that allows it. `npm run conformance [-- FOLDER]`; default: the copy of the corpus beside this file, then our own fixtures.
import { existsSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { PROTOCOL_VERSION } from '@countersign/core'
import { fail, readArguments } from '../../scripts/arguments.mjs'
import { runFixture } from './ag-ui-driver.mjs'
import { judge, loadFixtures, versionClause } from './judge.mjs'

const [asked] = readArguments('conformance', { words: 'FOLDER' }).positionals
const folders = asked ? [resolve(asked)] : ['fixtures', 'ours/fixtures'].map(beside)
for (const folder of folders) if (!existsSync(folder)) fail(`There is no folder ${folder}.`)
const all = []
for (const folder of folders) all.push(await run(folder))
process.exitCode = all.every(Boolean) ? 0 : 1

function beside(folder) {
  return `${import.meta.dirname}/${folder}`
}

/** Whether every fixture of a folder passes. */
async function run(folder) {
  const fixtures = loadFixtures(folder)
  if (fixtures.length === 0) throw new Error(`There is no fixture in ${folder}.`)

  const played = []
  for (const fixture of fixtures) {
    const differences = judge(fixture, await runFixture(fixture))
    played.push({ fixture, differences, passed: differences.every(({ allowedBy }) => allowedBy) })
  }

  const literal = played.filter(({ differences }) => differences.length === 0)
  const passed = played.filter((one) => one.passed)
  for (const one of played) if (one.differences.length > 0) printDifferences(one)
  const versions = fixtures.filter(({ versionRead }) => versionRead)
  if (versions.length > 0) printVersions(versions)
  const of = asked ? '' : ` (${relative(import.meta.dirname, folder)})`
  console.log(`\n${passed.length} of ${played.length} pass; ${literal.length} of them to the letter.${of}`)
  return passed.length === played.length
}

function printDifferences({ fixture, differences, passed }) {
  console.log(`${passed ? 'allowed' : 'FAILED '}  ${fixture.name}`)
  for (const { what, expected, actual, allowedBy, rule } of differences) {
    console.log(`    ${what}: expected ${JSON.stringify(expected)}`)
    console.log(`    ${' '.repeat(what.length)}       got ${JSON.stringify(actual)}`)
    console.log(`    ${allowedBy ? `allowed by: ${allowedBy}` : 'NOT ALLOWED'}`)
    console.log(`    rule tested: ${rule}`)
  }
}

function printVersions(fixtures) {
  console.log(
    `allowed  the version, in ${fixtures.length} fixtures: ours (${PROTOCOL_VERSION}) is read for "1.1"`,
  )
  console.log(`    ${fixtures.map(({ name }) => name).join(', ')}`)
  console.log(`    allowed by: ${versionClause}`)
}
