// A process of mandates.ts: many workers at once make calls that mandates let through, until it has made all of them or is killed.
import { appendFileSync } from 'node:fs'
import { createAgent, type Ledger, scriptedModel, tool } from '@countersign/server'
import * as z from 'zod'
import { openShared } from '../machines/shared-ledger.js'
import { randomFrom } from '../random.js'
import { offerOf, type WorkerConfig } from './mandates.js'

const config: WorkerConfig = JSON.parse(process.argv[2] ?? '')
const { ledger } = await openShared(config.ledger, 30_000)
const random = randomFrom(config.seed)
const stops = new Map<unknown, AbortController>()
const write = (...words: readonly unknown[]) => appendFileSync(config.log, `${words.join(' ')}\n`)

/** Some calls are stopped after the debit and before the start. Nobody answers requests here, so none is stored. */
const watched: Ledger = {
  ...ledger,
  id: ledger.id,
  issue: async () => ({ status: 'full' }),
  async findMandate(call, purpose) {
    const found = await ledger.findMandate?.(call, purpose)
    const { n } = Object(call.input)
    if (purpose === 'use' && found !== undefined && random() < 0.1) stops.get(n)?.abort()
    return found
  },
  async returnUse(call, callKey) {
    await ledger.returnUse?.(call, callKey)
    write('returned', callKey)
  },
}

const pay = tool({
  name: 'pay',
  description: 'Pays',
  input: z.object({ n: z.string(), amount: z.number() }),
  needsApproval: true,
  mandates: offerOf,
  execute: ({ n, amount }, { threadId }) => {
    write('start', threadId, n, amount)
    return 'paid'
  },
})

/** The message is the call's arguments. */
const model = scriptedModel(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role !== 'user') return [{ type: 'finish', reason: 'stop' }]
  const [part] = last.content
  const text = part?.type === 'text' ? part.text : ''
  return [
    { type: 'tool-call', id: JSON.parse(text).n, name: 'pay', arguments: text },
    { type: 'finish', reason: 'tool_calls' },
  ]
})

const agent = createAgent({
  model,
  tools: [pay],
  approvals: { secret: 'countersign-test-secret-0123456789abcdef', ledger: watched },
  warn: () => {},
  onError: () => {},
})

let left = config.calls
async function work(): Promise<void> {
  while (left-- > 0) {
    const n = crypto.randomUUID()
    const stop = new AbortController()
    stops.set(n, stop)
    const content = JSON.stringify({ n, amount: Math.ceil(random() * 200) / 10 })
    const messages = [{ id: `user_${n}`, role: 'user' as const, content }]
    const given = { threadId: random() < 0.5 ? 'budget' : 'uses', runId: n, messages }
    for await (const _ of agent.run(
      { ...given, tools: [], context: [], state: {}, forwardedProps: {} },
      { context: { subject: 'ann' }, signal: stop.signal },
    ));
    stops.delete(n)
    process.stdout.write('.')
  }
}

await Promise.all(Array.from({ length: config.workers }, work))
process.exit(0)
