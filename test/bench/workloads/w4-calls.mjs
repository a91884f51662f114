import { checkCalls } from '../checks.mjs'
import { manyCalls } from '../scenarios.mjs'
import { runTimed } from './timed.mjs'

export const tables = [
  {
    id: 'w4',
    title: 'W4 Tool calls in one message, each with an approval request, then each approved',
    unit: 'calls',
    kind: 'calls',
    sizes: { full: [10, 30, 100, 300, 1000], quick: [10, 100, 300, 1000], tiny: [2, 4] },
    scenario: manyCalls,
    check: checkCalls,
    count: (n) => n,
    notes: ['The AG-UI client takes all answers at once: it cannot send a single one.'],
  },
]

export const run = (options) => runTimed('w4', tables, options)
