// What a turn costs: safe tools side by side, the gate before each call, the cache of session approvals.
import { ApprovalCache, createAgent, memoryLedger, scriptedModel, tool } from '@countersign/server'
import * as z from 'zod'
import { median, takeTurns } from '../measure.mjs'

const wait = tool({
  name: 'wait',
  description: 'Takes 100 ms',
  input: z.object({}),
  execute: () => new Promise((resolve) => setTimeout(resolve, 100, 'done')),
})
const quick = (needsApproval) =>
  tool({
    name: 'quick',
    description: 'Takes no time',
    input: z.object({ n: z.number() }),
    needsApproval,
    execute: ({ n }) => n,
  })

function agentOf(tools, ids) {
  const calls = ids.map(([name, id, input]) => ({
    type: 'tool-call',
    id,
    name,
    arguments: JSON.stringify(input),
  }))
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [{ type: 'finish', reason: 'stop' }]
      : [...calls, { type: 'finish', reason: 'tool_calls' }],
  )
  return createAgent({
    model,
    tools,
    approvals: { secret: 'x'.repeat(32), ledger: memoryLedger() },
    warn: () => {},
  })
}

let runs = 0

/** Milliseconds of one run, and of one run until the last safe result was told. */
async function turn(agent, results) {
  const start = performance.now()
  const messages = [{ id: 'u', role: 'user', content: 'go' }]
  const input = {
    protocolVersion: '1.0',
    threadId: `t${runs++}`,
    runId: `r${runs}`,
    messages,
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
  }
  let told = 0
  let ms
  let last
  for await (const event of agent.run(input)) {
    if (event.type === 'TOOL_CALL_RESULT' && ++told === results) ms = performance.now() - start
    last = event
  }
  if (told !== results || last?.type !== 'RUN_FINISHED')
    throw new Error(`${told} of ${results} results, then ${JSON.stringify(last)}`)
  return { results: ms, whole: performance.now() - start }
}

async function times(count, work) {
  const measured = []
  for (let n = 0; n < count; n++) measured.push(await work())
  return median(measured)
}

async function safeTools(count) {
  const three = ['a', 'b', 'c'].map((id) => ['wait', id, {}])
  const alone = agentOf([wait], three)
  const beside = agentOf([wait, quick(true)], [['quick', 'g', { n: 1 }], ...three])
  return {
    alone: await times(count, async () => (await turn(alone, 3)).results),
    beside: await times(count, async () => (await turn(beside, 3)).results),
  }
}

const CALLS = 200

/** Milliseconds per call of a turn with many calls: without a gate, with one that lets pass, and with one that asks. */
async function gate(rounds) {
  const ids = Array.from({ length: CALLS }, (_, n) => ['quick', `c${n}`, { n }])
  const rules = [undefined, ({ n }) => n < 0, true]
  const works = rules.map((rule) => {
    const agent = agentOf([quick(rule)], ids)
    return () => turn(agent, rule === true ? 0 : CALLS)
  })
  const [free, passes, asks] = await takeTurns(works, { rounds })
  return { free: free.least / CALLS, passes: passes.least / CALLS, asks: asks.median / CALLS }
}

/** Milliseconds of one look-up among 1,000 threads with 100 tools each. */
async function cache(lookups) {
  const approvals = new ApprovalCache({
    ledger: memoryLedger({ maxRecords: 300_000, maxRecordsPerOwner: 300_000, maxGrantsPerOwner: 200_000 }),
  })
  for (let thread = 0; thread < 1000; thread++)
    for (let name = 0; name < 100; name++) await approvals.set(`thread-${thread}`, `tool-${name}`, true)
  let found = 0
  const start = performance.now()
  for (let n = 0; n < lookups; n++)
    if (await approvals.get(`thread-${(n * 7919) % 1000}`, `tool-${(n * 31) % 100}`)) found++
  const ms = (performance.now() - start) / lookups
  if (found !== lookups) throw new Error(`${found} of ${lookups} look-ups found their approval`)
  return ms
}

export async function run({ scale = 'full' } = {}) {
  const count = scale === 'quick' ? 3 : 7
  const safe = await safeTools(count)
  const { free, passes, asks } = await gate(scale === 'tiny' ? 1 : 3 * count)
  const lookup = await cache(scale === 'quick' ? 20_000 : 200_000)
  return [
    { name: 'three tools of 100 ms without approval in one turn', value: safe.alone, unit: 'ms', bound: 150 },
    { name: 'the same, alongside a call that waits for a user', value: safe.beside, unit: 'ms', bound: 150 },
    { name: 'a call without a gate, from the model to its result (fastest round)', value: free, unit: 'ms' },
    {
      // the gate alone is less than two such rounds differ by: what bounds the whole call bounds the gate
      name: 'the same call with a gate that allows it, including the gate',
      value: passes,
      unit: 'ms',
      bound: 5,
      acceptance: ['S3.114'],
    },
    {
      name: 'a call that needs approval: signed, stored in the ledger, sent',
      value: asks,
      unit: 'ms',
      bound: 5,
      acceptance: ['S3.114'],
    },
    {
      name: 'a lookup among 100,000 session approvals',
      value: lookup * 1000,
      unit: 'us',
      bound: 1000,
      acceptance: ['S3.113'],
    },
  ]
}
