import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ChatClient, stream } from '@countersign/client'
import { isCountersignError } from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { full } from '../full.js'
import {
  arbitraryFaultyRun,
  arbitraryRun,
  explore,
  exploreRandom,
  invariants,
  printFailure,
  replay,
} from './lib/index.js'
import { brief, randomModel } from './models.mjs'
import { mutants } from './mutants.mjs'

const client = { ChatClient, stream }
const seed = 20_260_101

/**
 * What is queued differs from what is cancelled only after a message that comes between, and the longest chains from the shorter ones only
 * in length: `npm test` leaves them out.
 */
const models = full
  ? brief
  : brief.filter(
      ({ mode, name }) => mode === 'cancel' && !/^(chain of 3|parallel 3|parallel pair)/.test(name),
    )

test('every invariant holds in every timeline of the small models', async () => {
  const { failures, timelines } = await explore({ client, models })
  expect(failures.map(printFailure)).toEqual([])
  expect(timelines.size).toBeGreaterThan(full ? 8000 : 1500)
})

test('every invariant holds in random longer timelines', async () => {
  const { failures, timelines } = await exploreRandom({
    client,
    seed,
    timelines: full ? 2000 : 100,
    model: randomModel,
  })
  expect(failures.map(printFailure), `seed ${seed}`).toEqual([])
  expect(timelines.size).toBeGreaterThan(full ? 1900 : 95)
})

test('a client that forgets an answer is found out, and its timeline can be played again', async () => {
  class Forgetful extends ChatClient {
    override addToolApprovalResponse: ChatClient['addToolApprovalResponse'] = async () => ({ status: 'sent' })
  }
  const broken = { ChatClient: Forgetful, stream }
  const { failures } = await explore({ client: broken, models: brief })
  const [failure] = failures
  expect(failure?.played.violations[0]?.invariant).toBe('consistent')
  if (!failure) return
  const again = await replay(broken, failure.model, failure.decisions)
  expect(again.trace).toBe(failure.played.trace)
  expect(printFailure(failure)).toContain(invariants.consistent)
})

const found = [
  {
    name: 'what a listener sends while a retry starts client tools is followed by no other request (seed 714614864)',
    model: { stages: [['gated-client', 'client']], mode: 'queue', fine: true },
    decisions: [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 5, 4, 4],
  },
  {
    name: 'an answer that is withdrawn in the listener which hears of the stop is an act (seed 716117220)',
    model: { stages: [['snapshot']], mode: 'reject', fine: false },
    decisions: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 2, 0, 0, 0, 0, 4, 0, 1],
  },
]

test.each(found.map((one) => [one.name, one] as const))('%s', async (_name, { model, decisions }) => {
  const whole = { ...randomModel(() => 0), microtasks: 10, ...model }
  expect((await replay(client, whole as never, decisions)).violations).toEqual([])
})

test('each mutation is where it is said to be', () => {
  for (const { name, edits } of mutants)
    for (const { file, find, times = 1 } of edits) {
      const source = readFileSync(join(import.meta.dirname, '../../packages', file), 'utf8')
      expect(source.split(find).length - 1, `${name}: ${find}`).toBe(times)
    }
})

test('a generated run is valid AG-UI, and most faulty ones are not', () => {
  const isValid = (events: readonly unknown[]) => {
    const reader = createEventReader({ threadId: 'thread', runId: 'run' })
    try {
      for (const event of events) reader.push(event, () => {})
      reader.end()
      return true
    } catch (error) {
      if (isCountersignError(error)) return false
      throw error
    }
  }
  fc.assert(fc.property(arbitraryRun(), isValid), { seed, numRuns: 300 })
  const faulty = fc.sample(arbitraryFaultyRun(), { seed, numRuns: 300 })
  expect(faulty.filter((run) => !isValid(run)).length).toBeGreaterThan(150)
})
