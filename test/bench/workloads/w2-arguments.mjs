import { checkArguments } from '../checks.mjs'
import { longArguments } from '../scenarios.mjs'
import { runTimed } from './timed.mjs'

const KB = 1024
const scenario = (size) => longArguments(size * KB)
const count = (size) => scenario(size).deltas.length

export const tables = [
  {
    id: 'w2',
    title: 'W2 Arguments of one tool call in deltas of 50 characters',
    unit: 'KB',
    kind: 'args',
    sizes: { full: [10, 25, 50, 100, 200, 400], quick: [25, 50, 100, 400], tiny: [1, 2] },
    scenario,
    check: checkArguments,
    count,
    least: (size) => count(size) - 5,
    notes: [
      'The partial value is read at every notification. TanStack AI parses it but does not expose it. The AG-UI client shows it one delta late.',
    ],
  },
]

export const run = (options) => runTimed('w2', tables, options)
