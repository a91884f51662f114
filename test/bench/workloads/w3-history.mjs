import { checkText } from '../checks.mjs'
import { onHistory } from '../scenarios.mjs'
import { timed } from './timed.mjs'

const scales = { full: [10, 100, 500, 1000, 2000, 5000], quick: [10, 500, 1000, 5000], tiny: [2, 4] }

export async function run({ scale, ...rest }) {
  return [
    {
      id: 'w3',
      title: 'W3 1,000 deltas on top of a history',
      unit: 'messages',
      ...(await timed({
        kind: 'text',
        sizes: scales[scale],
        scenario: onHistory,
        check: checkText,
        count: () => 1000,
        least: () => 1000,
        ...rest,
      })),
    },
  ]
}
