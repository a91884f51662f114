import { expect, test } from 'vitest'
import { answer, ask, call, collect, counted, input, say, testAgent } from './support.js'

test('Node warns of no leak, however many calls of one run are asked about, answered and run at once', async () => {
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => warnings.push(name)
  process.on('warning', onWarning)
  const plain = counted('plain', { timeout: 5 })
  const gated = counted('gated', {
    needsApproval: true,
    timeout: 5,
    preview: async () => ({ kind: 'text', text: 'what it would do' }),
  })
  const calls = Array.from({ length: 24 }, (_, n) => [`c${n}`, n % 2 ? 'plain' : 'gated', { n }] as const)
  const { agent } = testAgent([call(...calls), say('ok')], { tools: [plain.tool, gated.tool] })
  const { history, asked } = await ask(agent)
  const resume = asked.map((one) => answer(one, { approved: true }))
  await collect(agent, input(history, { resume }))
  // they are emitted in the next tick
  await new Promise(setImmediate)
  process.off('warning', onWarning)
  expect([plain.runs.length, gated.runs.length, warnings]).toEqual([12, 12, []])
})
