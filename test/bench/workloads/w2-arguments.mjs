import { checkArguments } from '../checks.mjs'
import { longArguments } from '../scenarios.mjs'
import { timed } from './timed.mjs'

const KB = 1024
const scales = { full: [10, 25, 50, 100, 200, 400], quick: [25, 50, 100, 400], tiny: [1, 2] }

export async function run({ scale, ...rest }) {
  const scenario = (size) => longArguments(size * KB)
  const count = (size) => scenario(size).deltas.length
  const notes = [
    'The partial value is read at every notification. TanStack AI shows none: it parses, and keeps the result to itself. What the AG-UI client shows is one delta behind.',
  ]
  return [
    {
      id: 'w2',
      title: 'W2 Arguments of one tool call in deltas of 50 characters',
      unit: 'KB',
      ...(await timed({
        kind: 'args',
        sizes: scales[scale],
        scenario,
        check: checkArguments,
        count,
        least: (size) => count(size) - 5,
        ...rest,
      })),
      notes,
    },
  ]
}
