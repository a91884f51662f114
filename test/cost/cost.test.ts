import { describe, expect, test } from 'vitest'
import { full } from '../full.js'
import { adapterStreams, encodedFor, readThrough } from './adapters.js'
import { aiSdkRequests } from './ai-sdk.js'
import { agUiFields, customEvents, declaredFields, ownFields } from './fields.js'
import { listings, readListing, readResult, results, schemaFields } from './mcp.js'
import { cpuOf, GROWTH, parseAll, TIMES_ADAPTED, TIMES_JSON_PARSE } from './measure.js'
import { chunksOf, modelStreams, readByModel, sentBy } from './model-streams.js'
import { showArguments, shownArguments } from './pages.js'
import { agentOver, ledgerFor, requests, serve, serveAiSdk, threadsFor } from './requests.js'
import { readByClient, sse, streams } from './streams.js'
import known from './wire-fields.json' with { type: 'json' }

/**
 * What a request, a stream or an MCP server controls, each made as costly as its bytes allow (F3, F4, F5, F10). The inputs are the lists
 * that are imported above; most are made out of the descriptions of the wire, the others by hand. Cost is processor time. A
 * busy machine adds to that too, so both sizes are measured again in pairs until one pair shows growth in proportion: what grows as a
 * square shows 256 times the cost, never 23.
 */

const KIB = 1024
/** As many bytes as a request may have. In the long form that is the larger input, and is compared with `JSON.parse`. */
const WHOLE = 4096 * KIB
/** Bytes of the larger input. */
const MOST = full ? WHOLE : 64 * KIB
/** Doublings between the smaller input and the larger. */
const DOUBLINGS = full ? 6 : 4

/** Most of the inputs need one; a round more is made only where noise may have been in the ones before. */
const ROUNDS = 15
const SMALL_TURNS = 4
/** As many small ones in a row as take about as long as the large one, so that a busy machine slows both alike. */
const PAIRED_TURNS = 16

/** One input at two sizes, ready to be worked on as often as there are rounds. */
interface Measured {
  /** Makes the input and gives the work on it, and its bytes. */
  readonly prepare: (bytes: number) => Promise<Input>
  /** How many times the cost of `JSON.parse` it may cost. */
  readonly most?: number | undefined
}

interface Input {
  /** The same bytes as JSON. */
  readonly json: string
  readonly work: () => unknown
}

async function measure({ prepare, most: times = TIMES_JSON_PARSE }: Measured): Promise<void> {
  let judged = judge(emptyCosts(), emptyCosts(), times)
  for (let round = 0; round < ROUNDS && !judged.isGood; round++) {
    const [small, large] = [emptyCosts(), emptyCosts()]
    // the least of the first round, since an engine that has not seen this work before takes far longer for it; then the mean
    const turns = round === 0 ? SMALL_TURNS : PAIRED_TURNS
    const works: number[] = []
    for (let turn = 0; turn < turns; turn++)
      works.push(await lower(small, await prepare(MOST / 2 ** DOUBLINGS)))
    if (round > 0) small.work = works.reduce((sum, work) => sum + work) / turns
    await lower(large, await prepare(MOST))
    judged = judge(small, large, times)
  }
  expect(judged.isGood, JSON.stringify(judged)).toBe(true)
}

/** The least that an input has cost so far, and its bytes. */
interface Costs {
  work: number
  parse: number
  bytes: number
}

function emptyCosts(): Costs {
  return { work: Number.POSITIVE_INFINITY, parse: Number.POSITIVE_INFINITY, bytes: 0 }
}

/** Works on an input and keeps the least that it cost. Resolves with what it cost this time. */
async function lower(costs: Costs, { json, work }: Input): Promise<number> {
  const cost = await cpuOf(work)
  costs.work = Math.min(costs.work, cost)
  costs.parse = Math.min(costs.parse, await cpuOf(() => parseAll(json)))
  costs.bytes = json.length
  return cost
}

function judge(small: Costs, large: Costs, most: number) {
  const doublings = Math.log2(large.bytes / small.bytes)
  // what JSON.parse itself takes beyond a straight line (an object of very many members) is not ours
  const beyond = Math.max(1, large.parse / small.parse / 2 ** doublings)
  const growth = (large.work / Math.max(small.work, FLOOR) / beyond) ** (1 / doublings)
  // of what has a limit below so many bytes, all that gets in may cost what JSON.parse of so many would
  const parse = large.parse * Math.max(1, WHOLE / large.bytes)
  const times = large.work / Math.max(parse, FLOOR)
  const isGood = growth <= GROWTH && (!full || times <= most)
  return { isGood, growth, times, small, large }
}

/** Milliseconds that a request costs whatever is in it: nothing is compared below that. */
const FLOOR = 2

describe('F3 F4 F5 a request costs in proportion to its bytes', () => {
  test.each(requests.map((one) => [one.name, one] as const))('%s', async (_name, asked) => {
    await measure({
      prepare: async (bytes) => {
        const value = asked.body(bytes)
        const json = JSON.stringify(value)
        const agent = agentOver(await ledgerFor(asked, value), await threadsFor(asked.stored?.(value)))
        return { json, work: () => serve(agent, json) }
      },
    })
  })
})

describe('a request of an AI SDK client costs in proportion to its bytes', () => {
  test.each(aiSdkRequests.map((one) => [one.name, one] as const))('%s', async (_name, { body, stored }) => {
    await measure({
      prepare: async (bytes) => {
        const json = JSON.stringify(body(bytes))
        const agent = agentOver(await ledgerFor({ name: '', body }, {}), await threadsFor(stored?.(bytes)))
        return { json, work: () => serveAiSdk(agent, json) }
      },
    })
  })
})

describe('a stream costs its reader in proportion to its bytes', () => {
  test.each(streams.map((one) => [one.name, one] as const))('%s', async (_name, { events }) => {
    await measure({
      prepare: async (bytes) => {
        const made = events(bytes)
        const stream = new TextEncoder().encode(sse(made))
        return { json: JSON.stringify(made), work: () => readByClient(stream) }
      },
    })
  })
})

describe('a stream of another protocol costs its reader in proportion to its bytes', () => {
  test.each(adapterStreams.map((one) => [`${one.adapter}, ${one.name}`, one] as const))(
    '%s',
    async (_name, { adapter, events }) => {
      await measure({
        most: TIMES_ADAPTED,
        prepare: async (bytes) => {
          const made = events(bytes)
          const stream = encodedFor(adapter, made)
          return { json: JSON.stringify(made), work: () => readThrough(adapter, stream) }
        },
      })
    },
  )
})

describe('what a page shows of a call costs in proportion to its bytes', () => {
  test.each(Object.entries(shownArguments))('%s', async (_name, argumentsOf) => {
    await measure({
      most: TIMES_ADAPTED,
      prepare: async (bytes) => {
        const json = argumentsOf(bytes)
        return { json, work: () => showArguments(json) }
      },
    })
  })
})

describe("a model's stream costs in proportion to its bytes", () => {
  test.each(modelStreams.map((one) => [one.name, one] as const))('%s', async (_name, { deltas }) => {
    await measure({
      most: TIMES_ADAPTED,
      prepare: async (bytes) => {
        const chunks = chunksOf(deltas(bytes))
        return { json: JSON.stringify(chunks), work: readByModel(sentBy(chunks)) }
      },
    })
  })
})

describe('F10 an MCP server costs in proportion to its bytes', () => {
  test.each(listings.map((one) => [one.name, one] as const))(
    'a list of tools: %s',
    async (_name, { tools }) => {
      await measure({
        prepare: async (bytes) => {
          const made = tools(bytes)
          return { json: JSON.stringify(made), work: await readListing(made) }
        },
      })
    },
  )
  test.each(results.map((one) => [one.name, one] as const))('a result: %s', async (_name, { result }) => {
    await measure({
      prepare: async (bytes) => {
        const made = result(bytes)
        return { json: JSON.stringify(made), work: await readResult(made) }
      },
    })
  })
})

test('each field of the wire is one that inputs are made for; a new one needs an input, and then its line', () => {
  expect({
    'AG-UI': agUiFields(),
    'metadata.countersign': ownFields(),
    'CUSTOM events': customEvents(),
    'AI SDK messages': declaredFields('ai-sdk/src/message.ts'),
    MCP: schemaFields(),
  }).toEqual(known)
})
