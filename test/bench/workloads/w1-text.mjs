import { checkText } from '../checks.mjs'
import { longMessage, manyDeltas } from '../scenarios.mjs'
import { asShipped } from './as-shipped.mjs'
import { runTimed } from './timed.mjs'

const KB = 1024
const ofLength = (size) => longMessage(size * KB)
const deltasIn = (size) => ofLength(size).deltas.length

export const tables = [
  {
    id: 'w1',
    title: 'W1 Text in deltas of 4 to 12 characters',
    unit: 'deltas',
    kind: 'text',
    sizes: {
      full: [500, 1000, 2000, 4000, 8000, 16_000, 32_000],
      quick: [500, 4000, 8000, 16_000, 32_000],
      tiny: [20, 40],
    },
    scenario: manyDeltas,
    check: checkText,
    count: (n) => n,
    least: (n) => n,
  },
  {
    id: 'w1-length',
    title: 'W1 One message of 1 KB to 2 MB, in the same deltas',
    unit: 'KB',
    kind: 'text',
    sizes: {
      full: [1, 4, 16, 64, 128, 256, 512, 1024, 2048],
      quick: [1, 16, 64, 128, 256, 2048],
      tiny: [1],
    },
    scenario: ofLength,
    check: checkText,
    count: deltasIn,
    least: deltasIn,
  },
]

export async function run(options) {
  const [text, lengths] = await runTimed('w1', tables, options)
  return [{ ...text, notes: [await asShipped(options.scale === 'tiny' ? 5 : 500)] }, lengths]
}
