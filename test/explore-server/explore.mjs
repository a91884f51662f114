// Plays the server through every timeline of models.mjs and through random longer ones; with --mutations also with each guard broken.
//   node test/explore-server/explore.mjs [--seed N] [--random N] [--only TEXT] [--mutations]
import { rmSync } from 'node:fs'
import { fail, readArguments } from '../../scripts/arguments.mjs'
import { buildServer, folder } from '../attacks/build.mjs'
import { everything, models } from './models.mjs'
import { mutants } from './mutants.mjs'
import { exhaust, wander } from './search.mjs'

const { values } = readArguments('explore:server', {
  options: {
    seed: { type: 'number' },
    random: { type: 'number', default: 3000 },
    only: { type: 'string', default: '' },
    most: { type: 'number' },
    mutations: { type: 'boolean', default: false },
  },
})
const { seed = Date.now() % 1_000_000_000, most } = values
if (!models.some(({ name }) => name.includes(values.only))) fail(`No model has "${values.only}" in its name.`)
let failures = 0

async function whole() {
  const { server } = await buildServer('whole')
  const totals = { timelines: 0, played: 0, states: 0 }
  for (const model of models.filter(({ name }) => name.includes(values.only))) {
    const began = performance.now()
    const { played, timelines, states, failure } = await exhaust(server, model, { most })
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    console.log(
      `${model.name}: ${timelines} timelines to their end, ${played} played, ${states} states, ${seconds} s`,
    )
    if (failure) console.log(`\n${failure}\n`)
    failures += failure ? 1 : 0
    totals.timelines += timelines
    totals.played += played
    totals.states += states
  }
  console.log(
    `exhaustive: ${totals.timelines} timelines to their end, ${totals.played} played, ${totals.states} states`,
  )
  if (values.random === 0) return
  const { played, timelines, states, failure, reached } = await wander(server, everything, {
    seed,
    timelines: values.random,
  })
  console.log(`random: ${timelines} distinct timelines of ${played} played, ${states} states, seed ${seed}`)
  for (const [what, times] of Object.entries(reached ?? {})) console.log(`random: ${times} ${what}`)
  if (failure) console.log(`\n${failure}\n`)
  failures += failure ? 1 : 0
}

async function broken() {
  let caught = 0
  for (const { name, by, edits } of mutants) {
    const { server } = await buildServer(`mutant-${name.replace(/\W+/g, '-')}`, edits)
    const model = models.find((one) => one.name === by)
    // random timelines find most of them sooner
    const random = await wander(server, model, { seed, timelines: 100 })
    const failure = random.failure ?? (await exhaust(server, model)).failure
    if (failure) caught++
    else failures++
    console.log(failure ? `caught: ${name} (${failure.split('\n')[0]})` : `NOT CAUGHT: ${name}`)
  }
  console.log(`${caught} of ${mutants.length} mutations caught`)
}

try {
  await whole()
  if (values.mutations) await broken()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
console.log(`${failures} failures`)
process.exitCode = failures > 0 ? 1 : 0
