import { describe, expect, test } from 'vitest'
import { full } from '../full.js'
import { aiSdkRequests } from './ai-sdk.js'
import { agUiFields, customEvents, declaredFields, ownFields } from './fields.js'
import { listings, readListing, readResult, results, schemaFields } from './mcp.js'
import { DOUBLINGS, GROWTH, leastCosts, parseAll, TIMES_JSON_PARSE } from './measure.js'
import { agentOver, ledgerFor, requests, serve, serveAiSdk } from './requests.js'
import { readByClient, sse, streams } from './streams.js'
import known from './wire-fields.json' with { type: 'json' }

/**
 * What a request, a stream or an MCP server controls, each made as costly as its bytes allow (F3, F4, F5, F10). The inputs are the lists
 * that are imported above; most are made out of the descriptions of the wire, the others by hand. Cost is processor time, which other
 * processes do not add to, and the least of several rounds, since noise only adds.
 */

const KIB = 1024
/** Bytes of the largest input; of one that is made out of a description, where there is not much time. */
const MOST = full ? 4096 * KIB : 256 * KIB
const GENERATED = full ? MOST : 64 * KIB
/** Most of the inputs need one; a round more is made only where noise may have been in the ones before. */
const ROUNDS = 15
const SMALL_ROUNDS = 4

/** One input at two sizes, ready to be worked on as often as there are rounds. */
interface Measured {
  /** Makes the input and gives the work on it, and its bytes. */
  readonly isGenerated?: boolean | undefined
  readonly prepare: (bytes: number) => Promise<Input>
}

interface Input {
  /** The same bytes as JSON. */
  readonly json: string
  readonly work: () => unknown
}

async function measure({ isGenerated = false, prepare }: Measured): Promise<void> {
  const most = isGenerated ? GENERATED : MOST
  const sizes = [most / 2 ** DOUBLINGS, most]
  let judged = judge([Number.NaN, Number.NaN], [Number.NaN, Number.NaN])
  let least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  let parsed = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round < ROUNDS; round++) {
    // made anew for each time: a run may settle what its ledger holds
    const costs: number[] = []
    const inputs: Input[] = []
    for (const [index, size] of sizes.entries()) {
      // the small one more often: an engine that has not seen this work before takes far longer for it
      const several = await Promise.all(
        Array.from({ length: index === 0 ? SMALL_ROUNDS : 1 }, () => prepare(size)),
      )
      const tries = await leastCosts(
        1,
        several.map(({ work }) => work),
      )
      costs.push(Math.min(...tries))
      inputs.push(...several.slice(0, 1))
    }
    const parses = await leastCosts(
      1,
      inputs.map(
        ({ json }) =>
          () =>
            parseAll(json),
      ),
    )
    least = least.map((cost, index) => Math.min(cost, costs[index] ?? cost))
    parsed = parsed.map((cost, index) => Math.min(cost, parses[index] ?? cost))
    judged = judge(least, parsed)
    if (judged.isGood) break
  }
  expect(judged).toMatchObject({ isGood: true })
}

/** By the least costs of the small and the large input, and of `JSON.parse` of their bytes. */
function judge(
  [small = 0, large = 0]: readonly number[],
  [smallParse = 0, largeParse = 0]: readonly number[],
) {
  // what JSON.parse itself takes beyond a straight line (an object of very many members) is not ours
  const beyond = Math.max(1, largeParse / smallParse / 2 ** DOUBLINGS)
  const growth = large / Math.max(small, FLOOR) / beyond
  const times = large / Math.max(largeParse, FLOOR)
  const isGood = growth <= GROWTH ** DOUBLINGS && (!full || times <= TIMES_JSON_PARSE)
  return { isGood, growth, times, small, large, largeParse }
}

/** Milliseconds that a request costs whatever is in it: nothing is compared below that. */
const FLOOR = 2

describe('F3 F4 F5 a request costs in proportion to its bytes', () => {
  test.each(requests.map((one) => [one.name, one] as const))('%s', async (_name, asked) => {
    await measure({
      isGenerated: asked.isGenerated,
      prepare: async (bytes) => {
        const value = asked.body(bytes)
        const json = JSON.stringify(value)
        const agent = agentOver(await ledgerFor(asked, value))
        return { json, work: () => serve(agent, json) }
      },
    })
  })
})

describe('a request of an AI SDK client costs in proportion to its bytes', () => {
  test.each(aiSdkRequests.map((one) => [one.name, one] as const))('%s', async (_name, { body }) => {
    await measure({
      isGenerated: true,
      prepare: async (bytes) => {
        const json = JSON.stringify(body(bytes))
        const agent = agentOver(await ledgerFor({ name: '', body }, {}))
        return { json, work: () => serveAiSdk(agent, json) }
      },
    })
  })
})

describe('a stream costs its reader in proportion to its bytes', () => {
  test.each(streams.map((one) => [one.name, one] as const))('%s', async (_name, { events, isGenerated }) => {
    await measure({
      isGenerated,
      prepare: async (bytes) => {
        const made = events(bytes)
        const stream = new TextEncoder().encode(sse(made))
        return { json: JSON.stringify(made), work: () => readByClient(stream) }
      },
    })
  })
})

describe('F10 an MCP server costs in proportion to its bytes', () => {
  test.each(listings.map((one) => [one.name, one] as const))(
    'a list of tools: %s',
    async (_name, { tools }) => {
      await measure({
        isGenerated: true,
        prepare: async (bytes) => {
          const made = tools(bytes)
          return { json: JSON.stringify(made), work: await readListing(made) }
        },
      })
    },
  )
  test.each(results.map((one) => [one.name, one] as const))('a result: %s', async (_name, { result }) => {
    await measure({
      isGenerated: true,
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
    'AI SDK messages': declaredFields('core/src/ai-sdk/message.ts'),
    MCP: schemaFields(),
  }).toEqual(known)
})
