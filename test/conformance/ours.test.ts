import { expect, test } from 'vitest'
import { runFixture } from './ag-ui-driver.mjs'
import { judge, loadFixtures } from './judge.mjs'

// Rules of AG-UI that no fixture of the corpus touches, each with the page of the specification it is taken from. What is expected is
// taken from there too; only `errorContains` is in our own words: where the error lies.
const fixtures = loadFixtures(`${import.meta.dirname}/ours/fixtures`)

test('each fixture has a name of its own, and says what it proves and by which page', () => {
  expect(new Set(fixtures.map(({ name }) => name)).size).toBe(fixtures.length)
  for (const { description, specPage } of fixtures) {
    expect(description).not.toBe('')
    expect(specPage).toMatch(/^\/spec\//)
  }
})

for (const fixture of fixtures) {
  test(`${fixture.name}: ${fixture.expect.outcome}`, async () => {
    expect(judge(fixture, await runFixture(fixture))).toEqual([])
  })
}
