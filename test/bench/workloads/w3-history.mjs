import { checkText } from '../checks.mjs'
import { onHistory } from '../scenarios.mjs'
import { runTimed } from './timed.mjs'

export const tables = [
  {
    id: 'w3',
    title: 'W3 1,000 deltas on top of a history',
    unit: 'messages',
    kind: 'text',
    sizes: { full: [10, 100, 500, 1000, 2000, 5000], quick: [10, 500, 1000, 5000], tiny: [2, 4] },
    scenario: onHistory,
    check: checkText,
    count: () => 1000,
    least: () => 1000,
  },
]

export const run = (options) => runTimed('w3', tables, options)
