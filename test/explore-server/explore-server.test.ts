import { rmSync } from 'node:fs'
import * as server from '@countersign/server'
import { afterAll, expect, test } from 'vitest'
import { buildServer, folder, misplaced } from '../attacks/build.mjs'
import { everything, models } from './models.mjs'
import { mutants } from './mutants.mjs'
import { exhaust, wander } from './search.mjs'

const seed = 20_260_101
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('F13 F14 F15 F16 F60 V5 V18 W11 every guard holds at the moment of the start, in the timelines of the small models', async () => {
  for (const model of models) {
    const { failure, timelines } = await exhaust(server, model, { most: 20 })
    expect(failure, model.name).toBeUndefined()
    expect(timelines, model.name).toBeGreaterThan(0)
    // the first timelines of a depth-first search are much alike; random ones are not
    const random = await wander(server, model, { seed, timelines: 12 })
    expect(random.failure, `${model.name}, seed ${seed}`).toBeUndefined()
  }
})

test('V18 every guard holds in random timelines of everything at once, with previews of a world that changes', async () => {
  const { failure, reached } = await wander(server, everything, { seed, timelines: 100 })
  expect(failure, `seed ${seed}`).toBeUndefined()
  expect(Object.keys(reached ?? {})).toEqual(
    expect.arrayContaining(['started', 'requested again and started']),
  )
})

test('each mutation is where it is said to be, and no two have one name', () => {
  expect(misplaced(mutants.flatMap(({ edits }) => edits))).toEqual([])
  expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length)
})

/** `npm run explore:server`, which a release needs, plays all timelines and breaks each guard. */
const ofPreviews = mutants.filter(({ name }) => name.includes('preview'))
const broken = mutants.filter((mutant, index) => index % 8 === 0 && !ofPreviews.includes(mutant))

/** The whole server passes all of the model's timelines, so that what is found comes of the mutation. Random ones find most of them sooner. */
async function findOut({ name, by, edits }: (typeof mutants)[number]): Promise<string | undefined> {
  const { server } = await buildServer(`explored-${name.replace(/\W+/g, '-')}`, edits)
  const model = models.find((one) => one.name === by)
  if (model === undefined) return expect.fail(`There is no model ${by}.`)
  const random = await wander(Object(server), model, { seed, timelines: 100 })
  return random.failure ?? (await exhaust(Object(server), model)).failure
}

test.each(broken)('a server is found out with the mutation: $name', async (mutant) => {
  expect(await findOut(mutant)).toBeDefined()
})

test.each(ofPreviews)('V19 a server is found out with the mutation: $name', async (mutant) => {
  expect(await findOut(mutant)).toContain('preview: ')
})
