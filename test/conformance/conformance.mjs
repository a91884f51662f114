// Runs AG-UI's conformance streams through the built client and prints how many are as expected, and every difference with the clause
// that allows it. `npm run conformance [-- FOLDER]`; default: the copy of the corpus beside this file.
import { resolve } from 'node:path'
import { PROTOCOL_VERSION } from '@countersign/core'
import { runFixture } from './ag-ui-driver.mjs'
import { judge, loadFixtures, versionClause } from './judge.mjs'

const folder = resolve(process.argv[2] ?? `${import.meta.dirname}/fixtures`)
const fixtures = loadFixtures(folder)
if (fixtures.length === 0) throw new Error(`There is no fixture in ${folder}.`)

const played = []
for (const fixture of fixtures) {
  const differences = judge(fixture, await runFixture(fixture))
  played.push({ fixture, differences, passed: differences.every(({ allowedBy }) => allowedBy) })
}

const literal = played.filter(({ differences }) => differences.length === 0)
const passed = played.filter((one) => one.passed)
for (const { fixture, differences, passed } of played) {
  if (differences.length === 0) continue
  console.log(`${passed ? 'allowed' : 'FAILED '}  ${fixture.name}`)
  for (const { what, expected, actual, allowedBy, rule } of differences) {
    console.log(`    ${what}: expected ${JSON.stringify(expected)}`)
    console.log(`    ${' '.repeat(what.length)}       got ${JSON.stringify(actual)}`)
    console.log(`    ${allowedBy ? `allowed by: ${allowedBy}` : 'NOT ALLOWED'}`)
    console.log(`    rule tested: ${rule}`)
  }
}
const versions = fixtures.filter(({ versionRead }) => versionRead)
if (versions.length > 0) {
  console.log(
    `allowed  the version, in ${versions.length} fixtures: ours (${PROTOCOL_VERSION}) is read for "1.1"`,
  )
  console.log(`    ${versions.map(({ name }) => name).join(', ')}`)
  console.log(`    allowed by: ${versionClause}`)
}
console.log(`\n${passed.length} of ${played.length} pass; ${literal.length} of them to the letter.`)
process.exitCode = passed.length === played.length ? 0 : 1
