// Explores what the parent process hands out, one job after another.
import * as client from '@countersign/client'
import { explore, exploreRandom, printFailure } from '@countersign/testing'
import { everything, randomModel } from './models.mjs'

// Every aborted stream makes an error, and nobody reads where it came from.
Error.stackTraceLimit = 0

process.on('message', async (job) => {
  const began = performance.now()
  const found = await (job.kind === 'model'
    ? explore({ client, models: [everything[job.index]] })
    : exploreRandom({ client, model: randomModel, seed: job.seed, timelines: job.timelines }))
  process.send({
    played: found.played,
    timelines: [...found.timelines],
    states: [...found.states],
    failures: found.failures.map(printFailure),
    seconds: (performance.now() - began) / 1000,
  })
})
