// Explores what the parent process hands out, one job after another: node worker.mjs EXPLORER, the file that lib/index.ts was built into.
import { pathToFileURL } from 'node:url'
import * as client from '@countersign/client'
import { StreamProcessor } from '@countersign/core'
import { everything, randomModel } from './models.mjs'

const { explore, exploreRandom, printFailure } = await import(pathToFileURL(process.argv[2]).href)

// Every aborted stream makes an error, and nobody reads where it came from.
Error.stackTraceLimit = 0

// What a client loads at the first event that is not of a plain chat is there from the start: loading takes time that no timeline has.
const ids = { threadId: 'thread', runId: 'run' }
await new StreamProcessor({ threadId: 'thread' }).processStream(
  (async function* () {
    yield { type: 'RUN_STARTED', ...ids }
    yield { type: 'MESSAGES_SNAPSHOT', messages: [] }
    yield { type: 'RUN_FINISHED', ...ids }
  })(),
)

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
