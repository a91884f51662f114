// Preparing a long history for the model: closing what is open, and the model's own copy.
import {
  cancelAllPending,
  createAgent,
  memoryLedger,
  prepareMessagesForModel,
  scriptedModel,
  tool,
  withResults,
} from '@countersign/server'
import * as z from 'zod'
import { takeTurns } from '../measure.mjs'

const APPROVALS = 50

/** A chat of `size` messages in which 50 calls were answered, one in three of them with no, and one was left open at the end. */
function historyOf(size) {
  const messages = []
  const every = Math.floor(size / APPROVALS)
  for (let n = 0; messages.length < size - 2; n++) {
    messages.push({
      id: `u${n}`,
      role: 'user',
      content: `Question ${n}, about as long as people write them.`,
    })
    const asks = Math.floor(messages.length / every) > Math.floor((messages.length - 2) / every)
    messages.push(asks ? asking(n) : { id: `a${n}`, role: 'assistant', content: `Answer ${n}. `.repeat(8) })
    if (asks) messages.push(resultOf(n))
  }
  return [...messages, asking('last'), { id: 'end', role: 'user', content: 'Go on.' }]
}

function asking(n) {
  const approval = { id: `approval_${n}`, approved: n % 3 !== 0, options: ['deny', 'once'] }
  const metadata = { countersign: { token: `cs1.${'x'.repeat(400)}`, approval } }
  const call = {
    id: `c${n}`,
    type: 'function',
    function: { name: 'remove', arguments: `{"path":"file-${n}.md"}` },
    metadata,
  }
  return { id: `a${n}`, role: 'assistant', content: 'I will.', toolCalls: [call] }
}

function resultOf(n) {
  const denied = n % 3 === 0
  const content = denied ? '{"type":"execution-denied"}' : '{"removed":true}'
  return {
    id: `r${n}`,
    role: 'tool',
    toolCallId: `c${n}`,
    content,
    ...(denied && { error: 'denied', metadata: { countersign: { outcome: 'denied' } } }),
  }
}

/** What the engine does between a history and the model, as the public functions do it. */
function prepare(messages) {
  return prepareMessagesForModel(withResults(messages, cancelAllPending(messages, 'user moved on')))
}

function check(prepared, size) {
  const calls = prepared.flatMap((message) => message.toolCalls ?? [])
  const results = prepared.filter(({ role }) => role === 'tool')
  if (calls.length < APPROVALS || calls.length !== results.length)
    throw new Error(`${calls.length} calls, ${results.length} results`)
  if (JSON.stringify(prepared).includes('approval_'))
    throw new Error('an approval was left in the copy of the model')
  if (prepared.length !== size + 1) throw new Error(`${prepared.length} messages of ${size}`)
}

/** A whole run: answers read, everything verified and closed, prepared, converted for a model that says nothing. */
function untilModel(messages) {
  const turn = () => [{ type: 'finish', reason: 'stop' }]
  const remove = tool({
    name: 'remove',
    description: 'Removes',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    execute: () => true,
  })
  const agent = createAgent({
    model: scriptedModel(turn),
    tools: [remove],
    approvals: { secret: 'x'.repeat(32), ledger: memoryLedger() },
    warn: () => {},
  })
  let run = 0
  return async () => {
    const input = {
      protocolVersion: '1.0',
      threadId: 't',
      runId: `r${run++}`,
      messages,
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    }
    let last
    for await (const event of agent.run(input)) last = event
    if (last?.type !== 'RUN_FINISHED') throw new Error(JSON.stringify(last))
  }
}

export async function run({ scale = 'full' } = {}) {
  const rounds = { tiny: 1, quick: 8, full: 25 }[scale]
  const sizes = [10_000, 20_000]
  const [once, twice] = sizes.map(historyOf)
  check(prepare(once), once.length)
  check(prepare(twice), twice.length)
  const works = [() => prepare(once), () => prepare(twice), untilModel(once)]
  const [short, long, whole] = await takeTurns(works, { rounds })
  return [
    {
      name: '10,000 messages, 50 approvals: prepared',
      value: short.median,
      unit: 'ms',
      bound: 50,
      acceptance: ['S3.115'],
    },
    { name: '20,000 messages: prepared', value: long.median, unit: 'ms' },
    {
      name: 'time for twice the messages, as a ratio (fastest rounds of both)',
      value: long.least / short.least,
      unit: 'x',
      bound: 2.5,
      acceptance: ['S3.115'],
    },
    {
      name: '10,000 messages: a complete run of the engine, with a model that returns nothing',
      value: whole.median,
      unit: 'ms',
    },
  ]
}
