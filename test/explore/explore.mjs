// Runs the client through every timeline of models.mjs and through random longer ones, in two processes. Run `pnpm build` first.
//   node test/explore/explore.mjs [--seed N] [--random N] [--only TEXT] [--verbose]
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { fail, readArguments } from '../../scripts/arguments.mjs'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { everything } from './models.mjs'

const { values } = readArguments('explore', {
  options: {
    seed: { type: 'number' },
    random: { type: 'number', default: 12_000 },
    only: { type: 'string', default: '' },
    verbose: { type: 'boolean', default: false },
  },
})
const { seed = Date.now() % 1_000_000_000 } = values
const share = 2000
const root = join(import.meta.dirname, '../..')

const models = everything.flatMap(({ name }, index) =>
  name.includes(values.only) ? [{ kind: 'model', name, index }] : [],
)
if (models.length === 0) fail(`No model has "${values.only}" in its name.`)
const random = Array.from({ length: Math.ceil(values.random / share) }, (_, index) => ({
  kind: 'random',
  name: `random from seed ${seed + index * share}`,
  seed: seed + index * share,
  timelines: Math.min(share, values.random - index * share),
}))
const jobs = [...models, ...random]

const totals = { model: total(), random: total() }
const states = new Set()
const failures = []

function total() {
  return { played: 0, timelines: new Set() }
}

function take(job, result) {
  const sum = totals[job.kind]
  sum.played += result.played
  for (const timeline of result.timelines) sum.timelines.add(timeline)
  for (const state of result.states) states.add(state)
  failures.push(...result.failures)
  if (values.verbose) {
    const { played, timelines, seconds } = result
    console.log(`${job.name}: ${played} played, ${timelines.length} distinct, ${seconds.toFixed(1)} s`)
  }
}

/** One process that takes jobs until there are none. */
function work() {
  return new Promise((resolve, reject) => {
    const worker = fork(new URL('./worker.mjs', import.meta.url), [explorer.file], {
      execArgv: ['--max-semi-space-size=64'],
      serialization: 'advanced',
    })
    let job
    const next = () => {
      job = failures.length > 0 ? undefined : jobs.shift()
      if (job) worker.send(job)
      else worker.disconnect()
    }
    worker.on('message', (result) => {
      take(job, result)
      next()
    })
    worker.on('error', reject)
    worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`A worker ended with ${code}.`))))
    next()
  })
}

const explorer = await bundleForNode(join(import.meta.dirname, 'lib/index.ts'), root)
const began = performance.now()
try {
  await Promise.all([work(), work()])
} finally {
  await explorer.remove()
}
const seconds = (performance.now() - began) / 1000
for (const failure of failures) console.log(`\n${failure}\n`)
const { model, random: drawn } = totals
console.log(
  `exhaustive: ${model.timelines.size} distinct timelines of ${model.played} played, ${models.length} models`,
)
console.log(`random:     ${drawn.timelines.size} distinct timelines of ${drawn.played} played, seed ${seed}`)
console.log(`${states.size} distinct states, ${failures.length} violations, ${seconds.toFixed(1)} s`)
process.exitCode = failures.length > 0 ? 1 : 0
