import { expect, test } from 'vitest'
import { casesOf, checkCase, isSpoken, ownFixtures } from './replay.mjs'

/** Every recorded body, at every write size, gives the facts that an independent script read out of it. */
for (const entry of casesOf(ownFixtures)) {
  test.runIf(isSpoken(entry))(`${entry.id} gives its facts, however it is cut`, async () => {
    expect(await checkCase(entry)).toEqual([])
  })
}
